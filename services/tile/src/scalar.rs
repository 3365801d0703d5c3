//! Single numbers among the attributes of operators.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number without a width. As JSON `true`, `3` or `"0.5"`: fractions are text, so that not a bit of them is lost on the
/// way and those that JSON does not know (`"nan"`, `"-inf"`) have a form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Scalar {
    /// The same as a fraction, rounded where it has more than 53 bits.
    #[must_use]
    pub fn as_float(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_str(&format!("{value:?}")),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Form)
    }
}

/// Reads what [`Scalar`] is written as.
struct Form;

impl Visitor<'_> for Form {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean, a whole number of 64 bits, or a fraction as text")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
        i64::try_from(value).map(Scalar::Int).map_err(|_| E::custom("a number of more than 63 bits"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
        value.parse().map(Scalar::Float).map_err(|_| E::custom("a text that is no fraction"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_as_it_was_written() {
        let fractions = [0.1, 1.0, -0.0, f64::MIN_POSITIVE, 1e300, f64::INFINITY, f64::NEG_INFINITY];
        let whole = [0, -1, i64::MAX, i64::MIN].map(Scalar::Int);
        let all = fractions.map(Scalar::Float).into_iter().chain(whole).chain([Scalar::Bool(true)]);
        for scalar in all {
            let text = serde_json::to_string(&scalar).unwrap();
            assert_eq!(serde_json::from_str::<Scalar>(&text).unwrap(), scalar, "{text}");
        }
        let nan: Scalar = serde_json::from_str("\"nan\"").unwrap();
        assert!(matches!(nan, Scalar::Float(value) if value.is_nan()));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for wrong in ["1.5", "\"x\"", "null", "[1]", "18446744073709551615"] {
            assert!(serde_json::from_str::<Scalar>(wrong).is_err(), "{wrong}");
        }
    }
}
