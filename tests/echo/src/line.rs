//! What a client says.

/// Bytes of a line.
pub const LINE_BYTES_MAX: u64 = 4096;

/// One line, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Put { key: String, value: String },
    Get { key: String },
}

impl Line {
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn of(line: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(line).map_err(|_| "a line is UTF-8")?;
        let mut words = text.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("put"), Some(key), Some(value)) => Ok(Self::Put { key: key.into(), value: value.into() }),
            (Some("get"), Some(key), None) => Ok(Self::Get { key: key.into() }),
            _ => Err("say `put KEY VALUE` or `get KEY`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_have_spaces_and_a_key_has_none() {
        let put = Line::Put { key: "a".into(), value: "b c".into() };
        assert_eq!(Line::of(b"put a b c"), Ok(put));
        assert_eq!(Line::of(b"get a"), Ok(Line::Get { key: "a".into() }));
        for wrong in [&b"get a b"[..], b"put a", b"", b"\xff", b"delete a"] {
            assert!(Line::of(wrong).is_err(), "{wrong:?}");
        }
    }
}
