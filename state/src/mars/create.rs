//! Mutable tileables are created and deleted.

use std::sync::Arc;

use crate::fault::Fault;
use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::{Answered, shared};
use crate::mars::command::{Definition, Scalar, TileableKind};
use crate::mars::ids::{GraphKind, GraphName, MutableNo, Name};
use crate::mars::limits::{
    COLUMNS_MAX, DIMS_MAX, JOB_MUTABLES_MAX, MUTABLE_CHUNKS_MAX, MUTABLE_ELEMENTS_MAX, MUTABLE_STORES_MAX,
    MUTABLES_MAX, REPLICAS_MAX, TEXT_BYTES_MAX, check_id, invalid,
};
use crate::mars::mutable::{Mutable, MutableState};
use crate::mars::refusal::Refusal;

impl Act<'_> {
    pub(super) fn create_mutable(
        &mut self,
        session: &str,
        name: &str,
        definition: Definition,
        if_not_exist: bool,
    ) -> Answered {
        let session = self.mars.session(session)?;
        check_id("a mutable's name", name)?;
        check(&definition)?;
        let key = (session, Name::from(name));
        let before = self.mars.mutable_names.get(&key).copied();
        let before = before.and_then(|number| Some((number, self.mars.mutables.get(&number)?)));
        // The name of one that is sealed is free again.
        let known = before.filter(|(_, known)| known.state != MutableState::Sealed);
        if let Some((mutable, known)) = known {
            let name = known.name.clone();
            return match if_not_exist {
                false => Err(Refusal::MutableExists { name }.into()),
                true if *known.definition != definition => Err(Refusal::MutableDiffers { name }.into()),
                true => Ok(Answer::Mutable { mutable, name, created: false }),
            };
        }
        let sealed = before.map(|(number, _)| number);
        let tally = self.mars.sessions.get(&session).map(|session| session.tally).unwrap_or_default();
        let more = u64::from(sealed.is_none());
        within("mutable tileables of a session", tally.mutables + more, MUTABLES_MAX)?;
        within("mutable tileables of a job", self.mars.tally.mutables + more, JOB_MUTABLES_MAX)?;
        let mut stores: Vec<Name> = Vec::new();
        for store in self.ray.stores.values().filter(|store| store.is_alive()) {
            if stores.len() < MUTABLE_STORES_MAX
                && !stores.iter().any(|known| known.as_str() == store.address)
            {
                stores.push(store.address.as_str().into());
            }
        }
        if stores.is_empty() {
            return Err(Refusal::NoStore.into());
        }
        if let Some(sealed) = sealed {
            // Its tileable stays.
            self.mars.take_mutable(sealed);
        }
        let (number, name) = (MutableNo(self.index), Name::from(name));
        let mutable = Mutable {
            session,
            name: name.clone(),
            definition: Arc::new(definition),
            state: MutableState::Open,
            epoch: 1,
            stores: shared(stores),
            absent_since: None,
            seal: None,
        };
        self.mars.put_mutable(number, mutable);
        Ok(Answer::Mutable { mutable: number, name, created: true })
    }

    pub(super) fn delete_mutable(&mut self, session_name: &str, name: &str, if_exist: bool) -> Answered {
        let session = self.mars.session(session_name)?;
        let found = self.mars.mutable_names.get(&(session, Name::from(name))).copied();
        let Some(number) = found else {
            if if_exist {
                return Ok(Answer::Deleted { deleted: false });
            }
            return Err(Refusal::MutableUnknown { name: name.to_owned() }.into());
        };
        if let Some(mutable) =
            self.mars.mutables.get(&number).filter(|known| known.state == MutableState::Sealed)
        {
            let key = mutable.graph_key(number.0).as_str().to_owned();
            let sealed = GraphName { session: session_name.to_owned(), kind: GraphKind::Tileable, key };
            if let Ok((graph, _)) = self.mars.graph(&sealed) {
                self.forget_graph(graph);
            }
        }
        self.forget_mutable(number);
        Ok(Answer::Deleted { deleted: true })
    }

    /// What was promised of it comes no more.
    pub(super) fn forget_mutable(&mut self, number: MutableNo) {
        let Some(mutable) = self.mars.take_mutable(number) else { return };
        if let Some(seal) = mutable.seal.as_ref().filter(|_| mutable.state == MutableState::Sealing) {
            self.break_promises(&seal.objects);
        }
    }
}

fn check(definition: &Definition) -> Result<(), Fault> {
    let Definition { kind, element_type, columns, defaults, nsplits, replicas } = definition;
    within("replicas of a chunk", u64::from(*replicas), u64::from(REPLICAS_MAX))?;
    within("axes of a mutable tileable", nsplits.len() as u64, DIMS_MAX)?;
    within("columns of a frame", columns.len() as u64, COLUMNS_MAX)?;
    for column in columns {
        within("bytes of a column's name", column.name.len() as u64, TEXT_BYTES_MAX as u64)?;
    }
    for default in defaults {
        if let Scalar::Text(text) = default {
            within("bytes of a default value", text.len() as u64, TEXT_BYTES_MAX as u64)?;
        }
    }
    if nsplits.iter().any(Vec::is_empty) {
        return Err(invalid("nsplits", "must have at least one part along each axis"));
    }
    let count = |most: u64, of: &dyn Fn(&Vec<u64>) -> Option<u64>| {
        let product = nsplits.iter().try_fold(1_u64, |all, axis| all.checked_mul(of(axis)?));
        product.filter(|product| *product <= most).ok_or(product.unwrap_or(u64::MAX))
    };
    let chunks = count(MUTABLE_CHUNKS_MAX, &|axis| Some(axis.len() as u64));
    chunks
        .or_else(|chunks| within("chunks of a mutable tileable", chunks, MUTABLE_CHUNKS_MAX).map(|()| 0))?;
    let elements = count(MUTABLE_ELEMENTS_MAX, &|axis| {
        axis.iter().try_fold(0_u64, |sum, extent| sum.checked_add(*extent))
    });
    elements
        .or_else(|all| within("elements of a mutable tileable", all, MUTABLE_ELEMENTS_MAX).map(|()| 0))?;
    let expected = if columns.is_empty() { 1 } else { columns.len() };
    if defaults.len() != expected {
        return Err(invalid("default values", "must be one, or one for each column"));
    }
    match kind {
        TileableKind::Tensor if !columns.is_empty() => Err(invalid("columns", "are of frames only")),
        TileableKind::Tensor if *element_type == 0 => Err(invalid("dtype", "is missing")),
        TileableKind::Frame if columns.is_empty() || nsplits.len() != 1 => {
            Err(invalid("a frame", "has columns, and is cut along its rows only"))
        }
        TileableKind::Tensor | TileableKind::Frame => Ok(()),
    }
}
