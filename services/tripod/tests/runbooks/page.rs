//! The commands of a runbook.
//!
//! They are the lines of its blocks of kind `sh`. What stands behind `sh` says how a block is typed:
//!
//! | word | means |
//! |---|---|
//! | `on=10.0.0.4` | on that host; else anywhere |
//! | `on=each` | on hosts 1, 2 and 3; the page shows what is typed on host 1 |
//! | `until-done` | again until it succeeds |
//! | `fails` | it must end with exit code 1 |
//!
//! A block of kind `text` behind them is what they print, as `screen` compares it.

/// Where a block is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Anywhere,
    Host(u8),
    Each,
}

/// What a block's commands do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    SuccessAtLast,
    Failure,
}

/// Commands that stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) target: Target,
    pub(crate) outcome: Outcome,
    pub(crate) lines: Vec<String>,
    /// What the page shows of their screen; empty: nothing.
    pub(crate) shows: Vec<String>,
}

impl Block {
    fn of(words: &str) -> Self {
        let mut block = Self {
            target: Target::Anywhere,
            outcome: Outcome::Success,
            lines: Vec::new(),
            shows: Vec::new(),
        };
        for word in words.split_whitespace() {
            match word.split_once('=') {
                None if word == "until-done" => block.outcome = Outcome::SuccessAtLast,
                None if word == "fails" => block.outcome = Outcome::Failure,
                Some(("on", "each")) => block.target = Target::Each,
                Some(("on", address)) => {
                    let last = address.strip_prefix("10.0.0.").and_then(|last| last.parse().ok());
                    block.target = Target::Host(last.expect("a host of the page"));
                }
                _ => panic!("`{word}` means nothing behind sh"),
            }
        }
        block
    }
}

/// The blocks of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut inside, mut is_screen) = (false, false);
    for line in page.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            inside = !inside;
            is_screen = kind == "text";
            if inside && !is_screen {
                blocks.push(Block::of(kind.strip_prefix("sh").expect("a block of commands or of a screen")));
            }
        } else if inside {
            let block = blocks.last_mut().expect("a screen stands behind its commands");
            let lines = if is_screen { &mut block.shows } else { &mut block.lines };
            lines.push(line.trim_start().to_owned());
        }
    }
    assert!(!inside, "a block has no end");
    blocks
}

#[test]
fn a_page_is_read_as_it_is_typed() {
    let page = "Text\n\n```sh on=each\ntripod a\n```\n\n1. More\n\n   ```sh on=10.0.0.4 fails\n   tripod b\n   tripod c\n   ```\n\n   ```text\n   no\n   ```\n";
    let [first, second] = blocks(page).try_into().expect("two blocks");
    assert_eq!(
        (first.target, first.outcome, first.lines),
        (Target::Each, Outcome::Success, vec!["tripod a".into()])
    );
    assert_eq!((second.target, second.outcome), (Target::Host(4), Outcome::Failure));
    assert_eq!(second.lines, ["tripod b", "tripod c"]);
    assert_eq!((first.shows, second.shows), (Vec::new(), vec!["no".to_owned()]));
}
