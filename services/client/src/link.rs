//! A connection to a node, and whether calls over it go by a stream.

use tonic::transport::Channel;
use tripod_calls::{CallStream, Hello, Reason, Way};
use tripod_dial::Shown;

/// Streams of one connection that ended before the node had granted anything. After so many it is not asked again.
const USELESS_MAX: u32 = 3;

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    channel: Channel,
    calls: Calls,
    useless: u32,
}

/// How calls go over it.
#[derive(Debug)]
enum Calls {
    /// The first goes by itself: a program that makes only one needs no stream.
    First,
    /// By a stream that is yet to be opened.
    Due,
    /// By a stream as soon as that may be used. Until then by themselves: none waits for it, and none is lost by a stream that
    /// does not get through. With what its head has said of who calls, which counts for all of them.
    Streamed(CallStream, Shown),
    /// Each by itself: the node is an older one, or lets none be opened.
    Single,
}

impl Link {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { channel, calls: Calls::First, useless: 0 }
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The way for one more call.
    pub(crate) fn way(&mut self) -> Way {
        self.look_back();
        let stream = match &self.calls {
            Calls::First => {
                self.calls = Calls::Due;
                None
            }
            Calls::Due => {
                let shown = Shown::now();
                let opened = CallStream::open(
                    Way::new(self.channel(), None).bearing(tripod_dial::bearer()),
                    &Hello::default(),
                );
                self.calls = opened.map_or(Calls::Single, |stream| Calls::Streamed(stream, shown));
                None
            }
            // One that a node leaves takes no calls: these hear from it why.
            Calls::Streamed(stream, _) => {
                Some(stream.clone()).filter(|stream| stream.is_ready() && stream.is_open())
            }
            Calls::Single => None,
        };
        Way::new(self.channel(), stream)
    }

    /// Learns whether the stream has ended, or its token will, in whose place there is another one.
    fn look_back(&mut self) {
        let Calls::Streamed(stream, shown) = &self.calls else { return };
        let Some(end) = stream.end() else {
            if shown.is_replaced() {
                // What waits by it goes on.
                self.calls = Calls::Due;
            }
            return;
        };
        if !stream.is_ready() {
            self.useless += 1;
        }
        let is_useless = end == Reason::NotServed || self.useless >= USELESS_MAX;
        self.calls = if is_useless { Calls::Single } else { Calls::Due };
    }
}
