//! Dialect T, `tensorflow.CoordinationService`: jaxlib up to 0.9.2, and TensorFlow.

mod decode;
mod devices;
mod encode;
mod service;
mod tasks;

pub(crate) use service::Service;
