//! A viewer: the whole first, then what changes. Who reads too slowly for that is sent the whole again.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::ui::frames::Frame;
use crate::ui::maker::Maker;
use crate::ui::viewers::Place;

struct Viewer {
    maker: Arc<Maker>,
    frames: broadcast::Receiver<Arc<Frame>>,
    /// What is sent before the next frame.
    first: Option<Bytes>,
    sent: u64,
    ending: watch::Receiver<bool>,
    _place: Place,
}

/// Frames for one viewer, until it goes or the node stops.
pub(crate) fn response(maker: Arc<Maker>, ending: watch::Receiver<bool>, place: Place) -> Response {
    let (frames, sent, first) = maker.join();
    let viewer = Viewer { maker, frames, first: Some(first), sent, ending, _place: place };
    let body = Body::from_stream(stream::unfold(viewer, |mut viewer| async move {
        let event = viewer.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), viewer))
    }));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

impl Viewer {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if *self.ending.borrow() {
                return None;
            }
            let received = tokio::select! {
                received = self.frames.recv() => received,
                _ = self.ending.changed() => return None,
            };
            match received {
                Ok(frame) if frame.number > self.sent => {
                    self.sent = frame.number;
                    return Some(frame.event.clone());
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    let (frames, sent, whole) = self.maker.join();
                    (self.frames, self.sent) = (frames, sent);
                    return Some(whole);
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
