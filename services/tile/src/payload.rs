//! Operators as bytes: a name, and the attributes as an object of JSON.

use serde_json::{Map, Value};

use crate::chunk::ChunkOperator;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::operator::{NAMES, Operator};
use crate::refusal::Reason;

/// Where the name stands in the form of this crate.
const NAME: &str = "op";

/// The operator of that name with those attributes.
///
/// # Errors
/// No operator has this name, or the attributes are not its own.
pub fn read_operator(name: &str, attributes: &[u8]) -> Result<Operator, Reason> {
    if !NAMES.contains(&name) {
        let shown: String = name.chars().take(64).collect();
        return Err(Reason::UnknownOperator(shown));
    }
    let refused = |why: String| Reason::Attributes { operator: name.to_owned(), why };
    if attributes.len() > PAYLOAD_BYTES_MAX {
        return Err(Reason::Text { bytes: attributes.len(), most: PAYLOAD_BYTES_MAX });
    }
    let mut object: Map<String, Value> = if attributes.is_empty() {
        Map::new()
    } else {
        serde_json::from_slice(attributes).map_err(|error| refused(error.to_string()))?
    };
    if object.insert(NAME.to_owned(), name.into()).is_some() {
        return Err(refused(format!("unknown field `{NAME}`")));
    }
    serde_json::from_value(Value::Object(object)).map_err(|error| refused(error.to_string()))
}

/// The name of a chunk operator, and its attributes.
///
/// # Panics
/// Never: an operator is an object with a name.
#[must_use]
pub fn write_operator(operator: &ChunkOperator) -> (String, Vec<u8>) {
    let value = serde_json::to_value(operator).expect("an operator has no keys but texts");
    let Value::Object(mut object) = value else { unreachable!("an operator is an object") };
    let Some(Value::String(name)) = object.remove(NAME) else { unreachable!("an operator has a name") };
    (name, Value::Object(object).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::operator::{BinaryFunction, Operand};
    use crate::scalar::Scalar;

    #[test]
    fn an_operator_is_read_from_its_name_and_attributes() {
        let half = br#"{"function":"mul","left":"input","right":{"scalar":"0.5"}}"#;
        let right = Operand::Scalar(Scalar::Float(0.5));
        let expected = Operator::Binary { function: BinaryFunction::Mul, left: Operand::Input, right };
        assert_eq!(read_operator("binary", half), Ok(expected));
        assert_eq!(read_operator("matmul", b""), Ok(Operator::Matmul));
        assert_eq!(read_operator("cast", br#"{"dtype":"f32"}"#), Ok(Operator::Cast { dtype: DType::F32 }));
    }

    #[test]
    fn what_is_no_operator_is_refused_with_the_reason() {
        assert_eq!(read_operator("sort", b""), Err(Reason::UnknownOperator("sort".to_owned())));
        for wrong in [&b"{"[..], b"[]", b"{}", br#"{"dtype":"f16"}"#, br#"{"dtype":"f32","op":"cast"}"#] {
            assert!(matches!(read_operator("cast", wrong), Err(Reason::Attributes { .. })), "{wrong:?}");
        }
        let more = br#"{"dtype":"f32","more":1}"#;
        assert!(matches!(read_operator("cast", more), Err(Reason::Attributes { .. })));
    }

    /// The variants' own error lists all of them.
    #[test]
    fn every_operator_has_its_name_in_the_list() {
        let error = serde_json::from_str::<Operator>(r#"{"op":"nothing"}"#).unwrap_err().to_string();
        let (_, listed) = error.split_once("expected one of ").unwrap();
        let listed: Vec<_> = listed.split('`').skip(1).step_by(2).collect();
        assert_eq!(listed, NAMES);
    }
}
