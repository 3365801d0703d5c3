//! One line of a transcript: a verb, words, and `name=value` options.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

use tripod_state::ids::TaskId;

/// A parsed line. Every mistake in a transcript ends the test with its place.
pub(crate) struct Line<'a> {
    place: &'a str,
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    pub(crate) fn parse(text: &'a str, place: &'a str) -> Self {
        let mut words = Vec::new();
        let mut options = BTreeMap::new();
        for part in text.split_whitespace() {
            match part.split_once('=') {
                Some((name, value)) => {
                    assert!(options.insert(name, value).is_none(), "{place}: {name} twice");
                }
                None => words.push(part),
            }
        }
        Self { place, words, options }
    }

    /// Where the line stands.
    pub(crate) fn place(&self) -> &str {
        self.place
    }

    pub(crate) fn words_from(&self, index: usize) -> impl Iterator<Item = &'a str> {
        self.words.iter().skip(index).copied()
    }

    pub(crate) fn word(&self, index: usize) -> &'a str {
        self.words.get(index).unwrap_or_else(|| panic!("{}: word {index} is missing", self.place))
    }

    /// A text; `''` stands for the empty one, because words are split at blanks.
    pub(crate) fn text(&self, index: usize) -> String {
        match self.word(index) {
            "''" => String::new(),
            word => word.to_owned(),
        }
    }

    pub(crate) fn task(&self, index: usize) -> TaskId {
        TaskId(self.number(self.word(index)))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.words.contains(&name)
    }

    pub(crate) fn option(&self, name: &str) -> Option<&'a str> {
        self.options.get(name).copied()
    }

    pub(crate) fn get<T: FromStr<Err: Debug>>(&self, name: &str) -> Option<T> {
        self.option(name).map(|text| self.number(text))
    }

    pub(crate) fn or<T: FromStr<Err: Debug>>(&self, name: &str, default: T) -> T {
        self.get(name).unwrap_or(default)
    }

    /// A list of task ids, empty if it is not given.
    pub(crate) fn tasks(&self, name: &str) -> Vec<TaskId> {
        let list = self.option(name).unwrap_or("");
        list.split(',').filter(|id| !id.is_empty()).map(|id| TaskId(self.number(id))).collect()
    }

    pub(crate) fn number<T: FromStr<Err: Debug>>(&self, text: &str) -> T {
        text.parse().unwrap_or_else(|error| panic!("{}: {text}: {error:?}", self.place))
    }

    pub(crate) fn unknown(&self) -> ! {
        panic!("{}: unknown verb {}", self.place, self.word(0))
    }
}
