//! What a port must know of the calls that it serves: each front end brings a row for each of its services.

use std::sync::Arc;

use crate::call_tally::CallNumber;

/// How a call may end when its node stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It may be made twice, with the outcome of one: it looks, or waits for something that the state remembers. So it may
    /// be cut: gRPC makes it again elsewhere, and does not tell the client.
    Repeatable,
    /// Its client ends with any answer but one, so that this one must reach it. It is answered soon after the stop begins,
    /// and from then on must not be cut. If the node is only cut off, as `Repeatable`.
    Poll,
    /// It must be answered. If it cannot be in time, its outcome is unknown, which only it is told.
    Once,
    /// As `Once`, but the end of the connection tells the same: its client knows by itself what to make of a broken
    /// connection.
    Own,
}

/// How many messages go to and fro in a call of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// One message, and one answer, which is made before any of it is handed over.
    Unary,
    /// One message, and answers that come when they come.
    OneMessage,
    /// Messages come one after the other.
    Streaming,
}

/// The calls of one service.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// `package.Service`, as in their paths.
    pub service: &'static str,
    /// Of all its methods.
    pub kind: MethodKind,
    /// How calls end that are not among `methods`.
    pub other: Ending,
    pub methods: &'static [Method],
    /// Begins the text by which a poll is told that it is over without an error; why follows. Empty where nobody polls.
    pub poll_over: &'static str,
}

/// The calls of one method.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub ending: Ending,
    /// The bulk of its messages is one value, which stays the bytes that came, or a text of which there is one copy. Others
    /// may become long lists when they are decoded.
    pub has_value: bool,
    /// By it clients say that they live: some of them pass whatever else is held.
    pub is_beat: bool,
    /// It has more than one message, or more than one answer, so that it is no op of a stream of calls.
    pub is_streaming: bool,
}

/// Those of all services of a port. Cheap to clone. A call of a service without a row is [`Ending::Once`].
#[derive(Debug, Clone, Default)]
pub struct Manners(Arc<[Manner]>);

/// What is known of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) kind: MethodKind,
    pub(crate) ending: Ending,
    pub(crate) has_value: bool,
    pub(crate) is_beat: bool,
    pub(crate) is_streaming: bool,
    pub(crate) poll_over: &'static str,
    /// Where it is counted.
    pub(crate) number: CallNumber,
}

impl Method {
    /// One whose calls end so.
    #[must_use]
    pub const fn new(name: &'static str, ending: Ending) -> Self {
        Self { name, ending, has_value: false, is_beat: false, is_streaming: false }
    }

    /// [`Self::has_value`].
    #[must_use]
    pub const fn with_value(self) -> Self {
        Self { has_value: true, ..self }
    }

    /// [`Self::is_streaming`].
    #[must_use]
    pub const fn streaming(self) -> Self {
        Self { is_streaming: true, ..self }
    }

    /// [`Self::is_beat`].
    #[must_use]
    pub const fn beating(self) -> Self {
        Self { is_beat: true, ..self }
    }
}

impl Manner {
    /// That of a service of our own, whose clients know by themselves what to make of a broken connection.
    #[must_use]
    pub const fn own(service: &'static str, methods: &'static [Method]) -> Self {
        Self { service, kind: MethodKind::OneMessage, other: Ending::Own, methods, poll_over: "" }
    }

    /// What its row says of a method.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// How calls of a method end.
    #[must_use]
    pub fn ending(&self, method: &str) -> Ending {
        self.method(method).map_or(self.other, |method| method.ending)
    }
}

impl Manners {
    /// The rows that front ends brought.
    #[must_use]
    pub fn of(rows: &[&[Manner]]) -> Self {
        Self(rows.concat().into())
    }

    /// What they say of the call of a path such as `/package.Service/Method`.
    pub(crate) fn find(&self, path: &str) -> Known {
        let of_service =
            path.strip_prefix('/').and_then(|path| path.split_once('/')).and_then(|(service, method)| {
                let row = self.0.iter().find(|row| row.service == service)?;
                Some((row, method))
            });
        let Some((row, method)) = of_service else {
            return Known {
                kind: MethodKind::OneMessage,
                ending: Ending::Once,
                has_value: false,
                is_beat: false,
                is_streaming: false,
                poll_over: "",
                number: CallNumber::default(),
            };
        };
        let method = row.method(method).copied().unwrap_or(Method::new("", row.other));
        Known {
            kind: row.kind,
            ending: method.ending,
            has_value: method.has_value,
            is_beat: method.is_beat,
            is_streaming: method.is_streaming || row.kind == MethodKind::Streaming,
            poll_over: row.poll_over,
            number: CallNumber::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Manner] = &[
        Manner {
            service: "a.B",
            kind: MethodKind::Unary,
            other: Ending::Once,
            methods: &[
                Method::new("Look", Ending::Repeatable),
                Method::new("Say", Ending::Once).with_value(),
            ],
            poll_over: "",
        },
        Manner::own(
            "a.C",
            &[Method::new("Beat", Ending::Own).beating(), Method::new("Watch", Ending::Own).streaming()],
        ),
    ];

    #[test]
    fn what_no_row_names_must_be_answered_once() {
        let manners = Manners::of(&[ROWS, &[]]);
        let ending = |path| manners.find(path).ending;
        assert_eq!(ending("/a.B/Look"), Ending::Repeatable);
        assert_eq!(ending("/a.C/Look"), Ending::Own);
        for path in ["/a.B/Newer", "/a.D/Look", "/a.B", "a.B/Look", "/a.B/Look/More", ""] {
            assert_eq!(ending(path), Ending::Once, "{path:?}");
        }
        let say = manners.find("/a.B/Say");
        assert!(say.has_value && !say.is_beat && say.kind == MethodKind::Unary);
        let beat = manners.find("/a.C/Beat");
        assert!(!beat.is_streaming && manners.find("/a.C/Watch").is_streaming);
        assert!(beat.is_beat && !beat.has_value && beat.kind == MethodKind::OneMessage);
    }
}
