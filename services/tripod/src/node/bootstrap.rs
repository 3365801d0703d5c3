//! Makes an operator's token for whoever may write to this node's data directory: see [`crate::bootstrap`].

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tripod_audit::{Auditor, How, Outcome, Record, kind_of, user};
use tripod_gateway::{Gateway, Outage};
use tripod_proto::code::Code;
use tripod_state::token::Refusal;
use tripod_state::{Answer, Command, Fault};

use crate::bootstrap::{Answered, Asked, Place};
use crate::logging::number;

/// Between two looks at the directory.
const EVERY: Duration = Duration::from_millis(500);
/// After something has failed that fails again most likely, such as a question that cannot be read, an answer that cannot be
/// written, or a proposal that nobody takes: each try may be an entry of the replicated log and a line of the audit log.
const REST: Duration = Duration::from_secs(30);

/// Looks for what is asked, proposes it, and answers, for as long as the node runs.
pub(super) async fn run(gateway: Gateway, data: PathBuf, auditor: Auditor) {
    let place = Place::of(&data);
    loop {
        tokio::time::sleep(EVERY).await;
        let (asked, uid) = match on_a_thread(&place, Place::asked).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(
                    code = number(Code::TokenBootstrap),
                    file = %place.asked_file().display(),
                    %error,
                    "what is asked for is not gone by; remove the file, and run `tripod auth bootstrap` again"
                );
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        // Without a leader there is one later, and the same again is answered as the first time.
        let record = record(&asked, uid);
        if auditor.begin(&record).await.is_err() {
            tokio::time::sleep(REST).await;
            continue;
        }
        let answered = match propose(&gateway, &asked).await {
            Ok(answered) => answered,
            Err(outage) => {
                tracing::info!(%outage, "what was asked for was not taken; it is proposed again");
                let is_open = matches!(outage, Outage::Unknown(_));
                let outcome = if is_open { Outcome::Unknown } else { Outcome::Failed };
                let reason = outage.to_string().as_str().into();
                auditor.end(Record { outcome, reason, ..record }).await;
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let outcome = if answered.expires_ms.is_some() { Outcome::Done } else { Outcome::Refused };
        auditor.end(Record { outcome, reason: answered.refused.as_str().into(), ..record }).await;
        match answered.expires_ms {
            Some(_) => tracing::info!(
                token = answered.id,
                by = asked.by,
                "an operator's token was made on this machine"
            ),
            None => {
                tracing::warn!(
                    code = number(Code::TokenBootstrap),
                    reason = answered.refused,
                    "no operator's token was made"
                );
            }
        }
        if let Err(error) = on_a_thread(&place, move |place| place.answer(&answered)).await {
            tracing::warn!(code = number(Code::TokenBootstrap), %error, "what was asked for cannot be answered");
            tokio::time::sleep(REST).await;
        }
    }
}

/// Who asks is who may write to the directory: the user whose file it is. A name in the file is what that says of itself.
fn record(asked: &Asked, uid: u32) -> Record {
    let who = user(uid);
    let resource = format!("bootstrap: token {} of operator {}, says {}", asked.id, asked.name, asked.by);
    Record {
        kind: kind_of(&who).into(),
        who: who.as_str().into(),
        how: How::Uid,
        from: "this machine".into(),
        resource: resource.as_str().into(),
        ..Record::default()
    }
}

async fn on_a_thread<T: Send + 'static>(
    place: &Place,
    work: impl FnOnce(&Place) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = place.clone();
    spawn_blocking(move || work(&place)).await.map_err(io::Error::other)?
}

async fn propose(gateway: &Gateway, asked: &Asked) -> Result<Answered, Outage> {
    let id = asked.id.clone();
    let refused = |refused: String| Answered { id: id.clone(), expires_ms: None, refused };
    let Some(command) = asked.command() else {
        return Ok(refused(format!("{}: the file has no id or no hash; run it again", Code::TokenBootstrap)));
    };
    Ok(match gateway.submit(Command::Token(command)).await? {
        Ok(Answer::Token { expires, .. }) => {
            Answered { id: id.clone(), expires_ms: Some(expires.0), refused: String::new() }
        }
        Ok(other) => refused(format!("{}: {other:?} is no answer", Code::Defect)),
        Err(fault) => refused(in_words(&fault)),
    })
}

fn in_words(fault: &Fault) -> String {
    match fault {
        Fault::Level(_) => format!(
            "{}: tokens need a feature level that not all members have; `tripod level show` tells what each supports",
            Code::LevelLow
        ),
        Fault::Token(Refusal::Bootstrapped { .. }) => format!(
            "{}: {}; make others with that one: `tripod auth token create`",
            Code::TokenBootstrap,
            fault.text()
        ),
        other => format!("{}: {}", Code::TokenBootstrap, other.text()),
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::TokenId;
    use tripod_state::level;
    use tripod_state::token::SecretHash;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_cannot_be_written_makes_two_entries_a_minute_and_not_two_a_second() {
        let (gateway, _backend) = Gateway::in_memory();
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
        let data = tempfile::tempdir().expect("a directory");
        let place = Place::of(data.path());
        let asked = Asked::of(TokenId(7), SecretHash([0xa5; 32]));
        let asked = Asked { name: "alice".to_owned(), lifetime_ms: 1_000, by: "root@n1".to_owned(), ..asked };
        place.ask(&asked).expect("asked");
        // No file takes the place of a directory.
        std::fs::create_dir(data.path().join("auth-bootstrap.answer.json")).expect("made");
        let before = gateway.admin().status().applied.0;
        let running = run(gateway.clone(), data.path().to_owned(), Auditor::default());
        let minute = Duration::from_secs(60);
        assert!(tokio::time::timeout(minute, running).await.is_err(), "it runs as long as the node");
        let entries = gateway.admin().status().applied.0 - before;
        // Two tries, and what the session of this node takes.
        assert!((1..=8).contains(&entries), "{entries}");
        assert!(place.asked_file().exists(), "it is still to be answered");
    }

    #[test]
    fn a_line_names_the_user_whose_file_it_is_and_not_who_the_file_says_it_is() {
        let asked = Asked::of(TokenId(7), SecretHash([0xa5; 32]));
        let asked = Asked { name: "alice".to_owned(), by: "root@n1".to_owned(), ..asked };
        let record = record(&asked, 1_000);
        assert_eq!((record.who.as_str(), record.kind.as_str(), record.how), ("user/1000", "user", How::Uid));
        assert!(record.resource.as_str().ends_with("of operator alice, says root@n1"), "{record:?}");
    }
}
