//! A node that speaks one more protocol: what it needs is a value in the list of front ends, and a port.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tripod_echo::{Echo, LINE_BYTES_MAX, LINE_TIME, PORT};
use tripod_gateway::{FrontEnds, Gateway, JobBinding};
use tripod_lines::Lines;
use tripod_port::{Listener, serve};
use tripod_state::ids::ServiceIncarnation;
use tripod_state::{Command, job};

const PLACE: &str = "node:7800";

struct Client(BufReader<DuplexStream>);

impl Client {
    fn connect(lines: &Lines) -> Self {
        Self(BufReader::new(lines.dial(PLACE).unwrap()))
    }

    /// Sends a line and gives what is said to it; nothing if the connection ends.
    async fn say(&mut self, line: &str) -> String {
        // A node that has gone takes no line, and says nothing.
        let _ = self.0.get_mut().write_all(format!("{line}\n").as_bytes()).await;
        let mut answer = String::new();
        self.0.read_line(&mut answer).await.unwrap_or(0);
        answer.trim_end().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn a_sixth_protocol_is_a_value_in_the_list_of_front_ends() {
    let (gateway, _backend) = Gateway::in_memory();
    let create = job::Command::Create {
        name: "default".into(),
        spec: job::Spec::of_tasks(1),
        service: ServiceIncarnation(7),
    };
    gateway.submit(Command::Job(create)).await.unwrap().unwrap();
    let front_ends = FrontEnds::of(vec![Box::new(Echo::new(gateway.clone()))]);
    let served = front_ends.served(PORT, &JobBinding::Named("default".into()));
    let lines = Lines::new();
    let listener = Listener::within(lines.listen(PLACE));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, served, async { drop(stopped.await) }));

    let (mut one, mut other) = (Client::connect(&lines), Client::connect(&lines));
    assert_eq!(one.say("put greeting hello there").await, "ok");
    assert_eq!(other.say("get greeting").await, "ok hello there");
    assert!(other.say("get nothing").await.starts_with("error "), "a refusal of the domain, in words");
    assert_eq!(other.say("sing").await, "error say `put KEY VALUE` or `get KEY`");
    assert_eq!(other.say("get greeting").await, "ok hello there", "a bad line harms nobody");
    let long = "x".repeat(usize::try_from(LINE_BYTES_MAX).unwrap() + 1);
    assert_eq!(other.say(&long).await, "", "a line without an end is not waited for");
    let mut stuck = lines.dial(PLACE).unwrap();
    stuck.write_all(b"put greeting").await.unwrap();
    let left = timeout(LINE_TIME * 2, stuck.read_u8()).await;
    assert!(matches!(left, Ok(Err(_))), "nor is one that stops in its middle: {left:?}");
    assert_eq!(one.say("get greeting").await, "ok hello there", "who rests between two lines stays");

    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    assert_eq!(one.say("get greeting").await, "");
}
