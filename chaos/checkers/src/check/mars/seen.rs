//! What is known of each graph and of each tensor. Everything stands in the order in which it began.

use std::collections::BTreeMap;

use crate::history::{
    Call, Cell, Content, Epoch, GraphAct, GraphName, GraphSeen, History, Operation, Refusal, Reply, StreamId,
    TensorAct, TensorName, TensorSeen, Timestamp, Value,
};

/// All of a history.
#[derive(Default)]
pub(super) struct Seen<'a> {
    pub(super) graphs: BTreeMap<&'a GraphName, Graph<'a>>,
    pub(super) tensors: BTreeMap<&'a TensorName, Tensor<'a>>,
    pub(super) examined: usize,
}

/// A submission that was sent, whatever came of it.
#[derive(Clone, Copy)]
pub(super) struct Submit<'a> {
    pub(super) operation: &'a Operation,
    pub(super) content: Content,
    pub(super) makes: Option<Value>,
    pub(super) expires: bool,
}

/// One graph.
#[derive(Default)]
pub(super) struct Graph<'a> {
    pub(super) submits: Vec<Submit<'a>>,
    /// How it was found by whoever asked.
    pub(super) found: Vec<(&'a Operation, GraphSeen)>,
    /// What streams told.
    pub(super) heard: Vec<(&'a Operation, StreamId, GraphSeen)>,
    /// Who asked and was told that it is not there.
    pub(super) missed: Vec<&'a Operation>,
    pub(super) stops: Vec<&'a Operation>,
    pub(super) deletes: Vec<&'a Operation>,
    /// What was read of it.
    pub(super) values: Vec<(&'a Operation, Option<Value>)>,
}

/// A write of a cell.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) operation: &'a Operation,
    pub(super) at: Timestamp,
    pub(super) value: Value,
}

/// A read of a cell that was answered.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) operation: &'a Operation,
    pub(super) at: Option<Timestamp>,
    pub(super) value: Option<Value>,
}

/// What was done with one cell.
#[derive(Default)]
pub(super) struct OfCell<'a> {
    /// Those that may have taken effect.
    pub(super) writes: Vec<Write<'a>>,
    pub(super) reads: Vec<Read<'a>>,
    /// What it was sealed as, as read again and again.
    pub(super) sealed: Vec<(&'a Operation, Option<Value>)>,
}

/// One tensor.
#[derive(Default)]
pub(super) struct Tensor<'a> {
    /// Those that may have taken effect.
    pub(super) creates: Vec<&'a Operation>,
    pub(super) found: Vec<(&'a Operation, TensorSeen)>,
    pub(super) missed: Vec<&'a Operation>,
    /// Those that may have taken effect.
    pub(super) seals: Vec<(&'a Operation, Option<Timestamp>)>,
    pub(super) deletes: Vec<&'a Operation>,
    /// Writes and reads of cells that were answered, with their epochs.
    pub(super) epochs: Vec<(&'a Operation, Epoch)>,
    pub(super) cells: BTreeMap<Cell, OfCell<'a>>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut seen = Self::default();
        for operation in &history.operations {
            match &operation.call {
                Call::Graph { graph, act } => {
                    seen.examined += 1;
                    seen.graphs.entry(graph).or_default().add(operation, act);
                }
                Call::Tensor { tensor, act } => {
                    seen.examined += 1;
                    seen.tensors.entry(tensor).or_default().add(operation, act);
                }
                _ => {}
            }
        }
        seen
    }
}

fn is_missing(operation: &Operation) -> bool {
    matches!(operation.reply(), Some(Reply::Refused(Refusal::Missing)))
}

/// What a read was answered; `None`: nothing of use.
fn value_of(operation: &Operation) -> Option<Option<Value>> {
    match operation.reply()? {
        Reply::Value(found) => Some(found.map(|found| found.value)),
        _ => None,
    }
}

impl<'a> Graph<'a> {
    fn add(&mut self, operation: &'a Operation, act: &GraphAct) {
        if let Some(Reply::Graph(seen)) = operation.reply() {
            match act {
                GraphAct::Hear { stream } => self.heard.push((operation, *stream, *seen)),
                _ => self.found.push((operation, *seen)),
            }
        }
        match act {
            GraphAct::Submit { content, makes, expires } => {
                let (content, makes, expires) = (*content, *makes, *expires);
                self.submits.push(Submit { operation, content, makes, expires });
            }
            GraphAct::Stop if operation.outcome.may_have_effect() => self.stops.push(operation),
            GraphAct::Delete if operation.outcome.may_have_effect() => self.deletes.push(operation),
            GraphAct::Fetch => self.values.extend(value_of(operation).map(|value| (operation, value))),
            _ => {}
        }
        if is_missing(operation) {
            self.missed.push(operation);
        }
    }
}

impl Graph<'_> {
    /// Whether another one may have been made of the same name when the first was gone: by a submission that was under way
    /// then, or may be for ever.
    pub(super) fn may_be_two(&self) -> bool {
        let mut submits = self.submits.iter().filter(|submit| submit.operation.outcome.may_have_effect());
        if self.submits.iter().any(|submit| submit.expires) {
            return submits.count() > 1;
        }
        let Some(gone) = self.deletes.iter().map(|delete| delete.invoked).min() else { return false };
        submits.any(|submit| submit.operation.reply().is_none() || submit.operation.completed >= gone)
    }
}

impl<'a> Tensor<'a> {
    fn add(&mut self, operation: &'a Operation, act: &TensorAct) {
        if let Some(Reply::Tensor(seen)) = operation.reply() {
            self.found.push((operation, *seen));
        }
        if is_missing(operation) {
            self.missed.push(operation);
        }
        let may = operation.outcome.may_have_effect();
        match act {
            TensorAct::Create if may => self.creates.push(operation),
            TensorAct::Seal { at } if may => self.seals.push((operation, *at)),
            TensorAct::Delete if may => self.deletes.push(operation),
            TensorAct::Write { cell, at, value, epoch } if may => {
                let (at, value) = (*at, *value);
                self.cells.entry(*cell).or_default().writes.push(Write { operation, at, value });
                if operation.acknowledged() {
                    self.epochs.push((operation, *epoch));
                }
            }
            TensorAct::Read { cell, at, epoch } => {
                if let Some(value) = value_of(operation) {
                    let at = *at;
                    self.cells.entry(*cell).or_default().reads.push(Read { operation, at, value });
                    self.epochs.push((operation, *epoch));
                }
            }
            TensorAct::ReadSealed { cell } => {
                let value = value_of(operation).map(|value| (operation, value));
                self.cells.entry(*cell).or_default().sealed.extend(value);
            }
            _ => {}
        }
    }

    /// The seals that were acknowledged.
    pub(super) fn sealed(&self) -> impl Iterator<Item = (&'a Operation, Option<Timestamp>)> {
        self.seals.iter().copied().filter(|(seal, _)| seal.acknowledged())
    }
}
