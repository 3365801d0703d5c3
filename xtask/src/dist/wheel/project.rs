//! What a `pyproject.toml` says about a package, as a wheel says it.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

/// What `[project]` may say. A wheel says all of it; what stands there besides would be lost without a word.
const KNOWN: [&str; 12] = [
    "name",
    "version",
    "description",
    "readme",
    "license",
    "license-files",
    "requires-python",
    "dependencies",
    "classifiers",
    "optional-dependencies",
    "scripts",
    "urls",
];
/// The licence of everything that is ours, which tests of the tree hold against each `pyproject.toml`.
const LICENCE: &str = "Apache-2.0";

/// The metadata of a package.
#[derive(Debug)]
pub(super) struct Project {
    /// As it is published.
    pub(super) name: String,
    pub(super) version: String,
    summary: String,
    classifiers: Vec<String>,
    /// Pages elsewhere, by what they are.
    urls: Vec<(String, String)>,
    requires_python: String,
    requires: Vec<String>,
    /// What more it needs for a part of it, by the name of that.
    extras: Vec<(String, Vec<String>)>,
    /// Programs, and the functions that they call.
    scripts: Vec<(String, String)>,
    readme: String,
}

impl Project {
    /// Reads it from a folder of the project.
    ///
    /// # Errors
    /// There is none, or it lacks what a wheel must say.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join("pyproject.toml");
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let readme = std::fs::read_to_string(folder.join("README.md"))
            .with_context(|| format!("{} has no README.md", folder.display()))?;
        Self::parse(&text, readme).with_context(|| file.display().to_string())
    }

    fn parse(text: &str, readme: String) -> Result<Self> {
        let table: Table = text.parse().context("no TOML")?;
        let project = table.get("project").and_then(Value::as_table).context("no [project]")?;
        if let Some(key) = project.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            bail!("a wheel would not have `{key}` of [project]: add it to xtask/src/dist/wheel/project.rs");
        }
        let word = |key: &str| {
            let value = project.get(key).and_then(Value::as_str);
            value.map(str::to_owned).with_context(|| format!("[project] has no `{key}`"))
        };
        let tables = |key: &str| project.get(key).and_then(Value::as_table).into_iter().flatten();
        let extras = tables("optional-dependencies").map(|(extra, list)| Ok((extra.clone(), texts(list)?)));
        let pairs = |key: &'static str| {
            tables(key).map(move |(name, value)| {
                let value = value.as_str().with_context(|| format!("`{name}` of {key} is no text"))?;
                Ok((name.clone(), value.to_owned()))
            })
        };
        Ok(Self {
            name: word("name")?,
            version: word("version")?,
            summary: word("description")?,
            classifiers: project.get("classifiers").map_or(Ok(Vec::new()), texts)?,
            urls: pairs("urls").collect::<Result<_>>()?,
            requires_python: word("requires-python")?,
            requires: project.get("dependencies").map_or(Ok(Vec::new()), texts)?,
            extras: extras.collect::<Result<_>>()?,
            scripts: pairs("scripts").collect::<Result<_>>()?,
            readme,
        })
    }

    /// The same, which needs another package in one version.
    pub(super) fn requiring(mut self, name: &str, version: &str) -> Self {
        let begins =
            |text: &String| text.split(|c: char| !c.is_alphanumeric() && c != '-').next() == Some(name);
        self.requires.retain(|requirement| !begins(requirement));
        self.requires.push(format!("{name}=={version}"));
        self
    }

    /// Its name as names of files have it.
    pub(super) fn file_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The text of `METADATA`.
    pub(super) fn metadata(&self, licences: &[&str]) -> String {
        let mut lines = vec![
            "Metadata-Version: 2.4".to_owned(),
            format!("Name: {}", self.name),
            format!("Version: {}", self.version),
            format!("Summary: {}", self.summary),
            format!("License-Expression: {LICENCE}"),
        ];
        lines.extend(licences.iter().map(|licence| format!("License-File: {licence}")));
        lines.extend(self.classifiers.iter().map(|classifier| format!("Classifier: {classifier}")));
        lines.extend(self.urls.iter().map(|(what, url)| format!("Project-URL: {what}, {url}")));
        lines.push(format!("Requires-Python: {}", self.requires_python));
        lines.extend(self.requires.iter().map(|requirement| format!("Requires-Dist: {requirement}")));
        for (extra, requirements) in &self.extras {
            lines.push(format!("Provides-Extra: {extra}"));
            let needed = requirements.iter();
            lines.extend(needed.map(|needed| format!("Requires-Dist: {needed}; extra == \"{extra}\"")));
        }
        lines.push("Description-Content-Type: text/markdown".to_owned());
        format!("{}\n\n{}", lines.join("\n"), self.readme)
    }

    /// The text of `entry_points.txt`, if there are programs.
    pub(super) fn entry_points(&self) -> Option<String> {
        let lines: Vec<String> =
            self.scripts.iter().map(|(name, function)| format!("{name} = {function}\n")).collect();
        (!lines.is_empty()).then(|| format!("[console_scripts]\n{}", lines.concat()))
    }
}

fn texts(list: &Value) -> Result<Vec<String>> {
    let Some(list) = list.as_array() else { bail!("`{list}` is no list of texts") };
    let texts = list.iter().map(|text| text.as_str().map(str::to_owned).context("a list has something else"));
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [project]
        name = "some-thing"
        version = "1.2"
        description = "A thing"
        requires-python = ">=3.9"
        dependencies = ["grpcio>=1.60", "other>=1", "other-thing>=2"]
        classifiers = ["Typing :: Typed", "Topic :: System :: Clustering"]
        [project.optional-dependencies]
        fast = ["numpy>=2"]
        [project.scripts]
        do-it = "some.thing:main"
        [project.urls]
        Documentation = "https://example.org/docs"
    "#;

    #[test]
    fn a_wheel_says_what_the_project_says() {
        let project = Project::parse(TEXT, "# Read me\n".to_owned()).unwrap().requiring("other", "3.4");
        assert_eq!(project.file_name(), "some_thing");
        let text = project.metadata(&["LICENSE"]);
        let (head, body) = text.split_once("\n\n").unwrap();
        assert_eq!(body, "# Read me\n");
        for line in [
            "Name: some-thing",
            "Version: 1.2",
            "License-Expression: Apache-2.0",
            "License-File: LICENSE",
            "Classifier: Typing :: Typed",
            "Classifier: Topic :: System :: Clustering",
            "Project-URL: Documentation, https://example.org/docs",
            "Requires-Dist: grpcio>=1.60",
            "Requires-Dist: other-thing>=2",
            "Requires-Dist: other==3.4",
            "Provides-Extra: fast",
            "Requires-Dist: numpy>=2; extra == \"fast\"",
        ] {
            assert!(head.lines().any(|found| found == line), "{line} is not in\n{head}");
        }
        assert!(!head.contains("other>=1"), "{head}");
        assert_eq!(project.entry_points().unwrap(), "[console_scripts]\ndo-it = some.thing:main\n");
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = Project::parse("[project]\nname = \"x\"\n", String::new()).unwrap_err().to_string();
        assert!(error.contains("`version`"), "{error}");
    }

    #[test]
    fn what_a_wheel_would_lose_is_refused() {
        let text = TEXT.replace("requires-python", "maintainers = []\n        requires-python");
        let error = Project::parse(&text, String::new()).unwrap_err().to_string();
        assert!(error.contains("`maintainers`"), "{error}");
    }
}
