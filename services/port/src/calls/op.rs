//! An op that is under way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tripod_proto::tripod::v1 as wire;

use super::answer::Reading;
use crate::bytes_held::CallBytes;
use crate::followed::Going;

pin_project! {
    /// From its begin until all of its answer has come.
    pub(super) struct Op {
        bytes: CallBytes,
        #[pin]
        stage: Stage,
    }
}

pin_project! {
    #[project = StageNow]
    enum Stage {
        Going { #[pin] going: Going },
        Reading { reading: Reading },
    }
}

/// An answer, and what is held for it until it is taken.
pub(super) struct Answered {
    pub(super) answer: wire::Answer,
    pub(super) bytes: CallBytes,
}

impl Op {
    pub(super) fn of(going: Going) -> Self {
        Self { bytes: going.bytes().clone(), stage: Stage::Going { going } }
    }
}

impl Future for Op {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        let mut this = self.project();
        loop {
            let response = match this.stage.as_mut().project() {
                StageNow::Going { going } => match ready!(going.poll(context)) {
                    Ok(response) => response,
                    Err(never) => match never {},
                },
                StageNow::Reading { reading } => {
                    let answer = ready!(reading.poll(context));
                    return Poll::Ready(Answered { answer, bytes: this.bytes.clone() });
                }
            };
            this.stage.set(Stage::Reading { reading: Reading::of(response) });
        }
    }
}
