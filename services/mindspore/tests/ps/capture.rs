//! Frames that were on the wire between MindSpore's nodes and their schedulers.

use bytes::BytesMut;
use serde::Deserialize;
use tripod_mindspore::wire::Frame;

#[derive(Deserialize)]
struct Vector {
    capture: String,
    name: String,
    hex: String,
}

/// The frames of one capture.
pub(crate) struct Capture(Vec<Vector>);

impl Capture {
    pub(crate) fn of(name: &str) -> Self {
        let all: Vec<Vector> = serde_json::from_str(include_str!("../golden_vectors.json")).unwrap();
        Self(all.into_iter().filter(|vector| vector.capture == name).collect())
    }

    pub(crate) fn frame<F: Frame>(&self, name: &str) -> F {
        let vector = self.0.iter().find(|vector| vector.name == name).expect(name);
        let digit = |at: usize| u8::from_str_radix(&vector.hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..vector.hex.len()).step_by(2).map(digit).collect();
        F::take(&mut BytesMut::from(&bytes[..])).unwrap().unwrap()
    }
}
