//! Asking before something is destroyed that cannot be brought back.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::output;

/// The word that means yes; a key pressed too early does not.
const YES: &str = "yes";

/// The flag of commands that destroy something.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Consent {
    /// Do not ask; needed where there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

impl Consent {
    /// Whether somebody is to be asked, and can be.
    pub(crate) fn will_ask(self) -> bool {
        !self.yes && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether it was said on the command line.
    pub(crate) fn is_given(self) -> bool {
        self.yes
    }

    /// Goes on if it was said on the command line, or is said now. `what` is what would be done, as an order:
    /// `delete job train`.
    ///
    /// # Errors
    /// Nobody says yes. Nothing was done.
    pub(crate) async fn to(self, what: String) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let asked = tokio::task::spawn_blocking(move || {
            if !self.will_ask() {
                return Err(unasked(&what));
            }
            ask(&what, &mut io::stdin().lock(), &mut io::stderr().lock())
        });
        asked
            .await
            .unwrap_or_else(|error| Err(Failure::new(Code::Defect, format!("asking was cut: {error}"))))
    }
}

/// Nobody can be asked.
fn unasked(what: &str) -> Failure {
    let told =
        format!("this would {what}; there is no terminal to ask on, so it needs --yes; nothing was done");
    Failure::new(Code::NotConfirmed, told)
}

fn ask(what: &str, answers: &mut impl BufRead, questions: &mut impl Write) -> Result<(), Failure> {
    let no = |why: &str| Failure::new(Code::NotConfirmed, format!("{why}; nothing was done"));
    write!(questions, "About to {}.\nType `{YES}` to go on: ", output::text(what))
        .and_then(|()| questions.flush())?;
    let mut answer = String::new();
    answers.read_line(&mut answer).map_err(|error| no(&format!("the answer cannot be read: {error}")))?;
    match answer.trim() {
        YES => Ok(()),
        other => Err(no(&format!("the answer was `{}`, not `{YES}`", other.escape_debug()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_means_yes() {
        let answered = |answer: &str| {
            let mut asked = Vec::new();
            let outcome = ask("delete job train", &mut answer.as_bytes(), &mut asked);
            assert_eq!(
                String::from_utf8(asked).expect("UTF-8"),
                "About to delete job train.\nType `yes` to go on: "
            );
            outcome.map_err(|failure| failure.code())
        };
        for yes in ["yes\n", " yes \n", "yes"] {
            assert_eq!(answered(yes), Ok(()), "{yes:?}");
        }
        for no in ["", "\n", "y\n", "no\n", "yes please\n"] {
            assert_eq!(answered(no), Err(Code::NotConfirmed), "{no:?}");
        }
    }

    #[test]
    fn n26_who_cannot_be_asked_is_told_in_a_sentence() {
        assert_eq!(
            unasked("replace node 3 by the one at a:1, for good: the old id never comes back").to_string(),
            "T1104 not-confirmed: this would replace node 3 by the one at a:1, for good: the old id never comes back; \
             there is no terminal to ask on, so it needs --yes; nothing was done"
        );
    }

    #[tokio::test]
    async fn the_flag_asks_nobody() {
        Consent { yes: true }.to("delete everything".to_owned()).await.expect("said before");
    }
}
