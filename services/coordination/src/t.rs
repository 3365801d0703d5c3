//! Dialect T, `tensorflow.CoordinationService`: jaxlib up to 0.9.2, and TensorFlow.

mod decode;
mod encode;
mod service;

pub(crate) use service::Service;
