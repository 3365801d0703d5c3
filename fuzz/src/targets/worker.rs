//! Values that other workers and drivers wrote.

use std::collections::BTreeMap;

use prost::Message as _;
use serde::{Deserialize, Serialize};
use tripod_proto::ray::Obj;
use tripod_worker::{Blob, ObjectId, value};

use crate::source::Source;
use crate::target::Target;
use crate::{message, mutate};

/// Objects, read as values of several types.
pub(crate) const VALUES: Target = Target { name: "values", what: "objects of other workers", generate, run };

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Tree {
    Leaf,
    Number(i64),
    Node(Box<Tree>, Box<Tree>),
    Named { name: String, inner: Option<Box<Tree>> },
    List(Vec<Tree>),
}

fn generate(source: &mut Source) -> Vec<u8> {
    let mut bytes = message::message(source, "Obj");
    if source.one_in(4) {
        mutate::mutate(source, &mut bytes);
    }
    bytes
}

/// What is read is read again when it is written.
fn run(input: &[u8]) {
    let Ok(object) = Obj::decode(input) else { return };
    drop(value::ids_inside(&object));
    check::<Tree>(&object);
    check::<Vec<i64>>(&object);
    check::<BTreeMap<String, Vec<String>>>(&object);
    check::<(bool, Option<u8>)>(&object);
    check::<ObjectId>(&object);
    check::<Vec<ObjectId>>(&object);
    let _: Result<Blob, _> = value::from_obj(&object);
    let _: Result<f64, _> = value::from_obj(&object);
    let _: Result<char, _> = value::from_obj(&object);
}

fn check<T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug>(object: &Obj) {
    let Ok(read) = value::from_obj::<T>(object) else { return };
    // What came deeper than we write is read all the same.
    let Ok(written) = value::to_obj(&read) else { return };
    assert_eq!(value::from_obj::<T>(&written).as_ref(), Ok(&read));
}
