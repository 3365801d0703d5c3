//! The recipe of the image.

use super::text;

/// The instructions of the recipe, each in one line.
fn instructions() -> Vec<(String, String)> {
    let joined = text("container/Dockerfile").replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            (word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

fn one(word: &str) -> String {
    let mut found = instructions().into_iter().filter(|(name, _)| name == word).map(|(_, rest)| rest);
    let first = found.next().unwrap_or_else(|| panic!("no {word}"));
    assert_eq!(found.next(), None, "{word} twice");
    first
}

#[test]
fn an_image_runs_the_program_as_nobody_and_without_a_shell() {
    assert_eq!(one("USER"), "65532:65532");
    assert_eq!(one("ENTRYPOINT"), r#"["/usr/bin/tripod"]"#);
    assert!(one("FROM").ends_with(":nonroot"), "the image begins with more than it needs");
    for word in ["ADD", "RUN"] {
        assert!(!instructions().iter().any(|(name, _)| name == word), "{word} needs a shell or a network");
    }
    for (name, rest) in instructions().iter().filter(|(name, _)| name == "COPY") {
        assert!(rest.contains("--chmod="), "{name} {rest}: modes would be those of the builder");
    }
    // Lists, not texts, which a shell that is not there would have to split.
    for word in ["CMD", "ENTRYPOINT"] {
        assert!(one(word).starts_with('['), "{word}");
    }
}

#[test]
fn an_image_is_asked_whether_its_cluster_serves_and_stopped_so_that_it_hands_over() {
    let health = one("HEALTHCHECK");
    let (_, command) = health.split_once("CMD ").expect("a command");
    let words: Vec<String> = serde_json::from_str(command).expect("a list of words");
    assert_eq!(words[..2], ["/usr/bin/tripod", "status"]);
    let timeout = words.iter().skip_while(|word| *word != "--timeout").nth(1).expect("a time");
    assert!(health.contains("--timeout=5s") && timeout.parse::<u64>().unwrap() < 5, "{health}");
    assert_eq!(one("STOPSIGNAL"), "SIGTERM");
    let ports = one("EXPOSE");
    assert_eq!(ports, "7700 7800 7900 8000-8099", "ports of docs/server.toml");
}
