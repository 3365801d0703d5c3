//! What the layer above is told, and what it answers.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tripod_state::Effect;

/// Answers the questions that other nodes' gateways ask the leader's.
pub trait AskHandler: Send + Sync + 'static {
    /// Called only while this node leads. An error text becomes the asker's
    /// [`ProposeError::NoLeader`](crate::ProposeError::NoLeader).
    fn ask(&self, question: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>>;

    /// Called whoever leads, with what a node is asked about itself. An error text becomes the asker's
    /// [`NodeSilence::Refuses`](crate::NodeSilence::Refuses).
    fn ask_here(&self, _question: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> {
        Box::pin(std::future::ready(Err("this node answers no such questions".into())))
    }
}

/// Is given the effects of an applied batch.
pub type EffectsHook = Arc<dyn Fn(&[Effect]) + Send + Sync>;

/// What the layer above is told.
#[derive(Clone)]
pub struct Hooks {
    /// Called after every applied batch, outside the state's lock, in log order. Must not block.
    pub effects: EffectsHook,
    /// Called after a snapshot replaced the whole state: every waiter must look again.
    pub replaced: Arc<dyn Fn() + Send + Sync>,
    pub asks: Arc<dyn AskHandler>,
}
