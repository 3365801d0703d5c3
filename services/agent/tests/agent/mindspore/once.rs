//! Whatever is lost between an agent and a node, a worker hears what it would have heard, and everything happens once.

use bytes::Bytes;
use tripod_mindspore_wire::{Word, rpc0};

use super::Setting;
use super::client::frame;
use super::nodes::{Fault, Script};

/// What two workers say from their begin to their end, and what they hear.
async fn lives(setting: &Setting) -> Vec<(Bytes, Bytes)> {
    let (mut first, mut second, mut metadata) = (setting.connect(), setting.connect(), setting.connect());
    let mut heard = vec![first.register("0").await, second.register("1").await];
    metadata.write("a", "1").await;
    heard.push(metadata.read("a").await);
    metadata.write("a", "2").await;
    metadata.write("b", "1").await;
    heard.push(metadata.read("a").await);
    // Twice is another answer than once.
    heard.push(metadata.delete("a").await);
    heard.push(metadata.delete("a").await);
    metadata.write("a", "3").await;
    heard.push(metadata.delete("b").await);
    heard.push(metadata.read("b").await);
    heard.push(metadata.read("a").await);
    heard.push(first.beat("0").await);
    heard.push(first.unregister("0").await);
    heard.push(second.unregister("1").await);
    heard
}

#[tokio::test(start_paused = true)]
async fn a_frame_or_an_answer_that_is_lost_changes_nothing_that_a_worker_hears() {
    let script = Script::default();
    let setting = Setting::new(script.clone()).await;
    let expected = lives(&setting).await;
    setting.end().await;
    let frames = script.marks().len();
    // A write has no answer that a worker hears.
    assert_eq!(frames, expected.len() + 4);
    let digits: Vec<_> = expected.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(digits, ["3", "3", "10", "10", "10", "11", "10", "11", "10", "3", "3", "3"]);
    for fault in [Fault::RequestLost, Fault::AnswerLost, Fault::AnswerCut] {
        for frame in 0..frames {
            let script = Script::of(frame, fault);
            let setting = Setting::new(script.clone()).await;
            assert_eq!(lives(&setting).await, expected, "{fault:?} at frame {frame}");
            let marks = script.marks();
            assert_eq!(marks.len(), frames + 1, "{fault:?} at frame {frame}: one is sent twice");
            assert_eq!(marks[frame], marks[frame + 1], "{fault:?} at frame {frame}: as the first time");
            setting.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_was_not_executed_for_want_of_a_session_has_another_one() {
    // The last of them is a deletion, which may not happen twice.
    for frame in [0, 1, 2] {
        let script = Script::of(frame, Fault::Told(Word::SessionGone));
        let setting = Setting::new(script.clone()).await;
        let mut client = setting.connect();
        client.register("0").await;
        client.write("a", "1").await;
        assert_eq!(client.delete("a").await.0, "10");
        let session = |at: usize| script.marks()[at].expect("a mark").stamp.expect("a stamp").session;
        assert_ne!(session(frame), session(frame + 1), "frame {frame}");
        setting.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_looks_carries_no_stamp_and_a_clients_own_mark_does_not_count() {
    let script = Script::default();
    let setting = Setting::new(script.clone()).await;
    let mut client = setting.connect();
    client.register("0").await;
    client.beat("0").await;
    client.send(&frame("8", "@tripod/1:1.1.1", Bytes::new()).encode()).await;
    assert_eq!(client.hear::<rpc0::Frame>().await.expect("an answer").name, "11");
    let marks = script.marks();
    let stamp = |at: usize| marks[at].expect("agents mark their frames").stamp;
    assert_eq!(stamp(1), None);
    let (registered, deleted) = (stamp(0).expect("a stamp"), stamp(2).expect("a stamp"));
    assert_eq!((registered.sequence, deleted.sequence), (1, 2));
    assert_eq!((registered.session, deleted.acknowledged_below), (deleted.session, 2));
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_outcome_cannot_be_told_ends_its_connection_and_no_other() {
    for word in [Word::Unknown, Word::Refused] {
        let setting = Setting::new(Script::of(1, Fault::Told(word))).await;
        let (mut first, mut second) = (setting.connect(), setting.connect());
        first.register("0").await;
        second.say("8", Bytes::new()).await;
        assert_eq!(second.hear::<rpc0::Frame>().await, None, "{word:?}");
        assert_eq!(first.read("a").await.0, "11");
        setting.end().await;
    }
}
