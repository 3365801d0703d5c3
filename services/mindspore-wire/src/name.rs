//! What messages of dynamic clusters are called: a number as text. In 2.10 the numbers from 10 on are one higher than in
//! releases before, so that one answer cannot be right for both.

/// How the numbers of a node are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// 1.8 to 2.2.
    V2_0,
    /// 2.10.
    V2_10,
}

/// A message between a worker and its scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Registration,
    Unregistration,
    Heartbeat,
    Success,
    InvalidNode,
    UninitTopo,
    WriteMetadata,
    ReadMetadata,
    DeleteMetadata,
    GetHostNames,
    ValidMetadata,
    InvalidMetadata,
}

/// What workers ask, by number; the same in both dialects.
const ASKED: &[(&str, Name)] = &[
    ("0", Name::Registration),
    ("1", Name::Unregistration),
    ("2", Name::Heartbeat),
    ("6", Name::WriteMetadata),
    ("7", Name::ReadMetadata),
    ("8", Name::DeleteMetadata),
    ("9", Name::GetHostNames),
];

impl Name {
    /// What a worker asks by this name; `None` for everything that it cannot ask of a scheduler, and for names of users.
    #[must_use]
    pub fn asked(text: &[u8]) -> Option<Self> {
        ASKED.iter().find(|(number, _)| number.as_bytes() == text).map(|(_, name)| *name)
    }

    /// The number as it is sent to a worker of a dialect.
    #[must_use]
    pub fn text(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Registration, _) => "0",
            (Self::Unregistration, _) => "1",
            (Self::Heartbeat, _) => "2",
            (Self::Success, _) => "3",
            (Self::InvalidNode, _) => "4",
            (Self::UninitTopo, _) => "5",
            (Self::WriteMetadata, _) => "6",
            (Self::ReadMetadata, _) => "7",
            (Self::DeleteMetadata, _) => "8",
            (Self::GetHostNames, _) => "9",
            (Self::ValidMetadata, Dialect::V2_0) => "10",
            (Self::ValidMetadata, Dialect::V2_10) | (Self::InvalidMetadata, Dialect::V2_0) => "11",
            (Self::InvalidMetadata, Dialect::V2_10) => "12",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_has_one_number_in_both_dialects_and_answers_are_shifted() {
        for (text, name) in ASKED {
            assert_eq!(Name::asked(text.as_bytes()), Some(*name));
            assert_eq!((name.text(Dialect::V2_0), name.text(Dialect::V2_10)), (*text, *text));
        }
        let shifted = |name: Name| (name.text(Dialect::V2_0), name.text(Dialect::V2_10));
        assert_eq!(shifted(Name::ValidMetadata), ("10", "11"));
        assert_eq!(shifted(Name::InvalidMetadata), ("11", "12"));
        for no_question in ["3", "10", "12", "00", "+1", "", "my_message"] {
            assert_eq!(Name::asked(no_question.as_bytes()), None, "{no_question}");
        }
    }
}
