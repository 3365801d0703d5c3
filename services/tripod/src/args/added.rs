//! How many are to be added: `+2`.

/// So many more. The sign tells it from how many there are to be.
///
/// # Errors
/// It has no sign, or is no number from 1 on.
pub(crate) fn added(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix('+').ok_or_else(|| {
        format!("write +{text} for so many more; how many there are to be is --to-servers {text}")
    })?;
    match number.parse() {
        // A number may have a sign of its own.
        _ if number.starts_with('+') => Err("one + is enough".to_owned()),
        Ok(0) | Err(_) => Err("not a number from 1 on behind the +".to_owned()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_to_be_added_has_a_sign() {
        assert_eq!([added("+1"), added("+40")], [Ok(1), Ok(40)]);
        assert!(added("2").expect_err("refused").contains("--to-servers 2"));
        for wrong in ["", "+", "+0", "+-1", "++1", "-1", "+x", "+4294967296"] {
            assert!(added(wrong).is_err(), "{wrong}");
        }
    }
}
