//! One mutable tensor as a whole: its epochs, its seal, and whether it is there.

use super::seen::Tensor;
use crate::check::Violation;
use crate::history::{Operation, TensorName, TensorSeen, TensorState};

/// `all_peers`: all stores may have been gone at the same time, with what they keep.
pub(super) fn check(name: &TensorName, tensor: &Tensor<'_>, all_peers: bool) -> Vec<Violation> {
    let subject = format!("tensor {name}");
    let mut violations: Vec<Violation> = went_back(&subject, tensor).into_iter().collect();
    violations.extend(other_epoch(&subject, tensor));
    violations.extend(sealed_twice(&subject, tensor));
    violations.extend(written_after_seal(&subject, tensor));
    violations.extend(lost(&subject, tensor, all_peers));
    violations.extend(undead(&subject, tensor));
    violations.extend(never_sealed(&subject, tensor));
    violations
}

/// Epochs rise, and only by an opening; a seal is for good, and so is a loss.
fn went_back(subject: &str, tensor: &Tensor<'_>) -> Option<Violation> {
    for (later, seen) in &tensor.found {
        let before = tensor.found.iter().filter(|(earlier, _)| earlier.completed < later.invoked);
        for (earlier, was) in before {
            if let Some(text) = backwards(*was, *seen) {
                let text = text.to_owned();
                return Some(Violation::new("tensor-went-back", subject, text, &[*earlier, *later]));
            }
        }
    }
    None
}

fn backwards(was: TensorSeen, is: TensorSeen) -> Option<&'static str> {
    match (was.state, is.state) {
        _ if is.epoch < was.epoch => Some("its epoch has fallen"),
        (TensorState::Sealed, state) if state != TensorState::Sealed => {
            Some("it was sealed, and is not any more")
        }
        (TensorState::Lost, state) if state != TensorState::Lost => Some("it was lost, and is there again"),
        (TensorState::Sealing, TensorState::Open) if was.epoch == is.epoch => {
            Some("it was opened again in the same epoch")
        }
        _ => None,
    }
}

/// What is written and read belongs to an epoch that was current meanwhile.
fn other_epoch(subject: &str, tensor: &Tensor<'_>) -> Option<Violation> {
    for (taken, epoch) in &tensor.epochs {
        let newer =
            tensor.found.iter().find(|(found, seen)| found.completed < taken.invoked && seen.epoch > *epoch);
        let older =
            tensor.found.iter().find(|(found, seen)| found.invoked > taken.completed && seen.epoch < *epoch);
        if let Some((found, seen)) = newer.or(older) {
            let text = format!("a call of epoch {epoch} was taken, and epoch {} was current", seen.epoch);
            return Some(Violation::new("other-epoch-taken", subject, text, &[*found, *taken]));
        }
    }
    None
}

/// It is sealed as of one time.
fn sealed_twice(subject: &str, tensor: &Tensor<'_>) -> Option<Violation> {
    let (first, at) = tensor.sealed().next()?;
    let (other, _) = tensor.sealed().find(|(_, other)| *other != at)?;
    let text = "it was sealed as of one time, and then as of another one".to_owned();
    Some(Violation::new("sealed-twice", subject, text, &[first, other]))
}

/// When somebody knows that it is sealed, nothing is written any more.
fn written_after_seal(subject: &str, tensor: &Tensor<'_>) -> Option<Violation> {
    let seals = tensor.sealed().map(|(seal, _)| seal);
    let found = tensor.found.iter().filter(|(_, seen)| seen.state == TensorState::Sealed);
    let sealed = seals.chain(found.map(|(found, _)| *found)).min_by_key(|sealed| sealed.completed)?;
    let mut writes = tensor.cells.values().flat_map(|cell| &cell.writes).map(|write| write.operation);
    let late = writes.find(|write| write.acknowledged() && write.invoked > sealed.completed);
    let text = "it was sealed, and a write was acknowledged that began after that".to_owned();
    late.map(|late| Violation::new("written-after-seal", subject, text, &[sealed, late]))
}

/// What was created is there until it is deleted, and what two have is not lost with one.
fn lost(subject: &str, tensor: &Tensor<'_>, all_peers: bool) -> Option<Violation> {
    let acknowledged = tensor.creates.iter().filter(|create| create.acknowledged());
    let create = acknowledged.min_by_key(|create| create.completed)?;
    let missed = tensor.missed.iter().find(|missed| {
        let deleted = tensor.deletes.iter().any(|delete| delete.invoked < missed.completed);
        missed.invoked > create.completed && !deleted
    });
    if let Some(missed) = missed {
        let text = "it was created, nobody has deleted it, and it is not there".to_owned();
        return Some(Violation::new("tensor-lost", subject, text, &[*create, *missed]));
    }
    let (found, seen) = tensor.found.iter().find(|(_, seen)| seen.state == TensorState::Lost)?;
    let copies = seen.copies;
    let text = format!("it is lost, and had {copies} copies, of which one at most was away at a time");
    (copies > 1 && !all_peers).then(|| Violation::new("lost-with-a-copy", subject, text, &[*create, *found]))
}

/// What was deleted is gone.
fn undead(subject: &str, tensor: &Tensor<'_>) -> Option<Violation> {
    let delete = tensor.deletes.iter().find(|delete| delete.acknowledged())?;
    // One that is still under way then makes it anew.
    let late = |create: &Operation| create.completed >= delete.invoked || create.reply().is_none();
    let again = tensor.creates.iter().any(|create| late(create));
    let (there, _) = tensor.found.iter().find(|(found, _)| found.invoked > delete.completed)?;
    let text = "it was deleted, and is there".to_owned();
    (!again).then(|| Violation::new("deleted-is-there", subject, text, &[*delete, *there]))
}

/// Whoever creates one seals it in the end, or is told that it is lost.
fn never_sealed(subject: &str, tensor: &Tensor<'_>) -> Option<Violation> {
    let create = tensor.creates.iter().find(|create| create.acknowledged())?;
    let is_over = |state: TensorState| matches!(state, TensorState::Sealed | TensorState::Lost);
    let over = tensor.sealed().next().is_some() || tensor.found.iter().any(|(_, seen)| is_over(seen.state));
    if over || !tensor.deletes.is_empty() {
        return None;
    }
    let mut shown = vec![*create];
    shown.extend(tensor.seals.last().map(|(seal, _)| *seal));
    let text = "it was created, and nobody was ever told that it was sealed".to_owned();
    Some(Violation::new("never-sealed", subject, text, &shown))
}
