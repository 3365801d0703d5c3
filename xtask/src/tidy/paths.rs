//! No paths of one particular machine: tests use temporary directories, docs use `DIR`.

use super::walk::File;

/// First components of absolute paths that exist only where somebody happened to work.
const PRIVATE: &[&str] = &["home", "root", "tmp", "work"];

/// Complaints as `line: what`.
pub(super) fn check(file: &File) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            private_path(line).map(|name| format!("{}: path below /{name}", index + 1))
        })
        .collect()
}

fn private_path(line: &str) -> Option<&'static str> {
    line.match_indices('/').find_map(|(at, _)| {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "_-.}>)*".contains(c)) {
            return None; // A relative path or a division.
        }
        let rest = &line[at + 1..];
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').next()?;
        let follows = rest[name.len()..].chars().next();
        PRIVATE.iter().copied().find(|private| *private == name && follows == Some('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::walk::sample;
    use super::*;

    fn complaints(line: &str) -> usize {
        check(&sample("a.rs", line)).len()
    }

    #[test]
    fn private_directories_are_found() {
        for name in PRIVATE {
            for frame in [
                format!("\"/{name}/x\""),
                format!("cd /{name}/x"),
                format!("unix:/{name}/x"),
                format!("//{name}/x"),
            ] {
                assert_eq!(complaints(&frame), 1, "{frame}");
            }
        }
    }

    #[test]
    fn relative_paths_words_and_system_paths_are_fine() {
        for fine in [
            "target/tmp/x",
            "a/home/b",
            "/var/lib/x",
            "/proc/self",
            "a key `/work`",
            "x/tmp/y",
            "/temporary/x",
        ] {
            assert_eq!(complaints(fine), 0, "{fine}");
        }
    }
}
