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

/// Where a block is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
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
    pub(crate) place: Place,
    pub(crate) outcome: Outcome,
    pub(crate) lines: Vec<String>,
}

impl Block {
    fn of(words: &str) -> Self {
        let mut block = Self { place: Place::Anywhere, outcome: Outcome::Success, lines: Vec::new() };
        for word in words.split_whitespace() {
            match word.split_once('=') {
                None if word == "until-done" => block.outcome = Outcome::SuccessAtLast,
                None if word == "fails" => block.outcome = Outcome::Failure,
                Some(("on", "each")) => block.place = Place::Each,
                Some(("on", address)) => {
                    let last = address.strip_prefix("10.0.0.").and_then(|last| last.parse().ok());
                    block.place = Place::Host(last.expect("a host of the page"));
                }
                _ => panic!("`{word}` means nothing behind sh"),
            }
        }
        block
    }
}

/// The blocks of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(kind), None) => {
                open = Some(Block::of(kind.strip_prefix("sh").expect("pages hold commands only")));
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.trim_start().to_owned()),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

#[test]
fn a_page_is_read_as_it_is_typed() {
    let page = "Text\n\n```sh on=each\ntripod a\n```\n\n1. More\n\n   ```sh on=10.0.0.4 fails\n   tripod b\n   tripod c\n   ```\n";
    let [first, second] = blocks(page).try_into().expect("two blocks");
    assert_eq!(
        (first.place, first.outcome, first.lines),
        (Place::Each, Outcome::Success, vec!["tripod a".into()])
    );
    assert_eq!((second.place, second.outcome), (Place::Host(4), Outcome::Failure));
    assert_eq!(second.lines, ["tripod b", "tripod c"]);
}
