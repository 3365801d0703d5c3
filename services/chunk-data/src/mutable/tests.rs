//! Chunks against a list of all that was written, and files that are cut and damaged.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use tripod_proto::mars::v1::{DimIndex, Index, Slice, dim_index};

use super::*;
use crate::element::Element;
use crate::index::Picked;

const CELLS: u64 = 6;

fn id() -> ChunkId {
    ChunkId { session: "s".to_owned(), key: "k".to_owned() }
}

fn definition() -> Definition {
    Definition {
        tileable: 7,
        element: Element::I32,
        shape: vec![2, 3],
        default: (-1_i32).to_le_bytes().to_vec(),
        columns: Vec::new(),
    }
}

fn records(client: &str, batch_no: u64, timestamp_ns: i64, cells: &[(u64, i32)]) -> Stored {
    Stored {
        seq: 0,
        client_id: client.to_owned(),
        batch_no,
        timestamp_ns,
        places: cells.iter().map(|(place, _)| *place).collect(),
        index: None,
        values: cells.iter().flat_map(|(_, value)| value.to_le_bytes()).collect::<Vec<_>>().into(),
    }
}

/// A batch that writes one value to the columns from `first` on.
fn slab(batch_no: u64, timestamp_ns: i64, first: i64, value: i32) -> Stored {
    let slice = Slice { start: Some(first), stop: None, step: Some(1) };
    let dims = vec![DimIndex::default(), DimIndex { index: Some(dim_index::Index::Slice(slice)) }];
    let index = Index { dims };
    let picked = Picked::of(&index, &[2, 3], 4).expect("within");
    let values = value.to_le_bytes().repeat(usize::try_from(picked.elements()).unwrap());
    Stored {
        places: Vec::new(),
        index: Some(index),
        values: values.into(),
        ..records("slab", batch_no, timestamp_ns, &[])
    }
}

fn cells(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// What was written, in the order in which it came.
#[derive(Debug, Default)]
struct Model {
    written: Vec<(i64, Vec<(u64, i32)>)>,
    numbers: BTreeSet<(String, u64)>,
}

impl Model {
    fn write(&mut self, batch: &Stored) {
        if !self.numbers.insert((batch.client_id.clone(), batch.batch_no)) {
            return;
        }
        let places: Vec<u64> = match &batch.index {
            None => batch.places.clone(),
            Some(index) => {
                let picked = Picked::of(index, &[2, 3], 4).unwrap();
                let [rows, columns] = &picked.picks[..] else { panic!("two axes") };
                let row = |at| rows.place(at) * 3;
                (0..rows.count())
                    .flat_map(|at| (0..columns.count()).map(move |of| (at, of)))
                    .map(|(at, of)| row(at) + columns.place(of))
                    .collect()
            }
        };
        self.written.push((batch.timestamp_ns, places.into_iter().zip(cells(&batch.values)).collect()));
    }

    /// Of all writes up to a time the one with the largest pair of time and order, for each cell by itself.
    fn as_of(&self, timestamp_ns: Option<i64>) -> Vec<i32> {
        (0..CELLS)
            .map(|cell| {
                let writes = self.written.iter().enumerate().flat_map(|(order, (at, cells))| {
                    let here = cells.iter().enumerate().filter(|(_, (place, _))| *place == cell);
                    here.map(move |(within, (_, value))| ((*at, order, within), *value))
                });
                let seen = writes.filter(|((at, ..), _)| timestamp_ns.is_none_or(|limit| *at <= limit));
                seen.max_by_key(|(place, _)| *place).map_or(-1, |(_, value)| value)
            })
            .collect()
    }
}

struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn open(&self) -> Engine {
        Engine::open(&self.directory.path().join("mutable"), 1 << 20).expect("opened")
    }

    /// The only file of a chunk.
    fn file(&self) -> std::path::PathBuf {
        let entries = std::fs::read_dir(self.directory.path().join("mutable")).expect("listed");
        let mut files = entries.map(|entry| entry.expect("an entry").path());
        files.find(|path| path.extension().is_none()).expect("a chunk's file")
    }
}

fn put(engine: &Engine, batches: Vec<Stored>) -> Result<Put, MutableError> {
    let slot = engine.open_chunk(&id(), &definition(), 1)?;
    let put = engine.put(&id(), &slot, 1, batches)?;
    let next = engine.progress(&id(), &slot)?.next;
    engine.confirm(&id(), &slot, next)?;
    Ok(put)
}

fn read(engine: &Engine, timestamp_ns: Option<i64>) -> Result<Vec<i32>, MutableError> {
    let slot = engine.find(&id()).expect("there");
    let next = engine.progress(&id(), &slot)?.next;
    engine.confirm(&id(), &slot, next)?;
    Ok(cells(&engine.read(&id(), &slot, timestamp_ns)?))
}

fn any_batch() -> impl Strategy<Value = Stored> {
    let cell = (0..CELLS, any::<i32>());
    prop_oneof![
        ("[ab]", 0_u64..5, -3_i64..4, proptest::collection::vec(cell, 0..5))
            .prop_map(|(client, number, at, cells)| records(&client, number, at, &cells)),
        (0_u64..5, -3_i64..4, 0_i64..3, any::<i32>())
            .prop_map(|(number, at, first, value)| slab(number, at, first, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cell_is_what_the_newest_write_of_a_time_made_it(groups in proptest::collection::vec(proptest::collection::vec(any_batch(), 1..4), 0..8)) {
        let scene = Scene::new();
        let engine = scene.open();
        let mut model = Model::default();
        put(&engine, vec![]).expect("begun");
        for group in groups {
            let before = read(&engine, None).expect("read");
            match put(&engine, group.clone()) {
                Ok(_) => group.iter().for_each(|batch| model.write(batch)),
                // One of them has a number that another one had: nothing of them is written.
                Err(MutableError::Reused { .. }) => prop_assert_eq!(read(&engine, None).expect("read"), before),
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
        for at in (-4..5).map(Some).chain([None]) {
            prop_assert_eq!(read(&engine, at).expect("read"), model.as_of(at), "as of {:?}", at);
        }
        let held = engine.held_bytes();
        drop(engine);
        let again = scene.open();
        prop_assert_eq!(again.held_bytes(), held);
        for at in (-4..5).map(Some).chain([None]) {
            prop_assert_eq!(read(&again, at).expect("read"), model.as_of(at), "as of {:?}, again", at);
        }
    }

    #[test]
    fn after_a_crash_at_any_byte_what_was_answered_is_there_and_nothing_is_half(
        groups in proptest::collection::vec(proptest::collection::vec((0..CELLS, any::<i32>()), 1..4), 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let scene = Scene::new();
        let engine = scene.open();
        let mut model = Model::default();
        put(&engine, vec![]).expect("begun");
        // How long the file was when a group was answered, and what was read then.
        let mut answered = vec![(std::fs::metadata(scene.file()).unwrap().len(), model.as_of(None))];
        for (number, cells) in (0..).zip(groups) {
            let two = [records("a", 2 * number, 5, &cells), records("a", 2 * number + 1, 5, &cells[..1])];
            put(&engine, two.to_vec()).expect("written");
            two.iter().for_each(|batch| model.write(batch));
            answered.push((std::fs::metadata(scene.file()).unwrap().len(), model.as_of(None)));
        }
        drop(engine);
        let file = scene.file();
        let whole = std::fs::read(&file).unwrap();
        let cut = cut.index(whole.len() + 1);
        std::fs::write(&file, &whole[..cut]).unwrap();
        let again = scene.open();
        match answered.iter().rev().find(|(len, _)| *len <= cut as u64) {
            Some((_, expected)) => prop_assert_eq!(&read(&again, None).expect("read"), expected),
            None => prop_assert!(again.find(&id()).is_none(), "it was never begun"),
        }
        // What comes next is written behind what is whole.
        put(&again, vec![records("b", 0, 9, &[(0, 42)])]).expect("written");
        drop(again);
        prop_assert_eq!(read(&scene.open(), None).expect("read")[0], 42);
    }
}

#[test]
fn damage_in_the_middle_is_told_and_other_chunks_go_on() {
    let scene = Scene::new();
    let engine = scene.open();
    for number in 0..3 {
        put(&engine, vec![records("a", number, 1, &[(0, 5)])]).expect("written");
    }
    drop(engine);
    let file = scene.file();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let again = scene.open();
    let refused = read(&again, None).expect_err("damaged").to_string();
    assert!(
        refused.starts_with("T6651 records-damaged: ") && refused.contains("frames follow it"),
        "{refused}"
    );
    assert!(matches!(put(&again, vec![records("a", 9, 1, &[(0, 5)])]), Err(MutableError::Damaged { .. })));
    let other = ChunkId { key: "other".to_owned(), ..id() };
    let slot = again.open_chunk(&other, &definition(), 1).expect("begun");
    assert!(again.put(&other, &slot, 1, vec![records("a", 0, 1, &[(0, 5)])]).is_ok());
    // And it is not repaired by opening it again.
    drop(again);
    assert!(matches!(read(&scene.open(), None), Err(MutableError::Damaged { .. })));
}

#[test]
fn a_batch_counts_once_and_its_number_is_no_other_batch() {
    let scene = Scene::new();
    let engine = scene.open();
    let batch = records("a", 1, 5, &[(0, 10), (0, 11)]);
    assert_eq!(put(&engine, vec![batch.clone(), batch.clone()]), Ok(Put { accepted: 1, duplicates: 1 }));
    put(&engine, vec![records("b", 1, 5, &[(0, 20)])]).expect("another client's");
    drop(engine);
    let engine = scene.open();
    assert_eq!(put(&engine, vec![batch]), Ok(Put { accepted: 0, duplicates: 1 }));
    assert_eq!(read(&engine, None).expect("read")[0], 20, "what came again is no later write");
    let other = put(&engine, vec![records("a", 1, 5, &[(0, 12)])]).expect_err("another one");
    assert_eq!(other, MutableError::Reused { client_id: "a".to_owned(), batch_no: 1 });
}

#[test]
fn what_does_not_fit_the_chunk_is_refused_and_writes_nothing() {
    let scene = Scene::new();
    let engine = scene.open();
    put(&engine, vec![]).expect("begun");
    let mut short = records("a", 3, 1, &[(0, 1)]);
    short.values = Bytes::from_static(&[1, 2, 3]);
    let wrong = [
        (
            vec![records("a", 1, 1, &[(0, 1)]), records("a", 2, 1, &[(CELLS, 1)])],
            "6 is no place among 6 cells",
        ),
        (vec![short], "3 bytes are not the values of 1 cells"),
        (vec![slab(4, 1, 0, 1), Stored { values: Bytes::new(), ..slab(5, 1, 0, 1) }], "0 bytes are not"),
    ];
    for (batches, text) in wrong {
        let refused = put(&engine, batches).expect_err("refused").to_string();
        assert!(refused.contains(text), "{refused}");
    }
    assert_eq!(read(&engine, None).expect("read"), [-1; 6]);
    assert_eq!(engine.held_bytes(), 0);
}

#[test]
fn the_quota_holds_also_after_a_start_and_what_is_deleted_makes_room() {
    let scene = Scene::new();
    let engine = Engine::open(&scene.directory.path().join("mutable"), 2_000).expect("opened");
    let mut number = 0;
    let refused = loop {
        match put(&engine, vec![records("a", number, 1, &[(0, 1)])]) {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 100, "no quota");
    };
    assert!(matches!(refused, MutableError::Quota { quota_bytes: 2_000, .. }), "{refused}");
    drop(engine);
    let engine = Engine::open(&scene.directory.path().join("mutable"), 2_000).expect("opened");
    let again = put(&engine, vec![records("a", number, 1, &[(0, 1)])]).expect_err("still full");
    assert!(matches!(again, MutableError::Quota { .. }), "{again}");
    assert_eq!(engine.forget(&id()), Ok(true));
    assert_eq!((engine.forget(&id()), engine.held_bytes(), engine.count()), (Ok(false), 0, 0));
    put(&engine, vec![records("a", number, 1, &[(0, 1)])]).expect("there is room");
}

#[test]
fn a_sealed_epoch_takes_nothing_and_the_next_one_does() {
    let scene = Scene::new();
    let engine = scene.open();
    put(&engine, vec![records("a", 1, 5, &[(0, 10)]), records("a", 2, 9, &[(0, 20)])]).expect("written");
    let slot = engine.find(&id()).expect("there");
    engine.seal(&id(), &slot, 1, Some(6)).expect("sealed");
    engine.seal(&id(), &slot, 1, Some(6)).expect("twice is once");
    assert!(matches!(engine.seal(&id(), &slot, 1, Some(7)), Err(MutableError::Sealed { .. })));
    assert!(matches!(engine.seal(&id(), &slot, 2, Some(6)), Err(MutableError::Epoch { is: 1, .. })));
    drop((slot, engine));
    let engine = scene.open();
    let late = put(&engine, vec![records("a", 3, 5, &[(0, 30)])]).expect_err("sealed");
    assert_eq!(late, MutableError::Sealed { key: "k".to_owned(), epoch: 1 });
    assert_eq!((read(&engine, None).unwrap()[0], read(&engine, Some(4)).unwrap()[0]), (10, -1));
    // The scheduler opened it again.
    let slot = engine.open_chunk(&id(), &definition(), 2).expect("opened");
    assert!(matches!(engine.put(&id(), &slot, 1, vec![]), Err(MutableError::Epoch { asked: 1, is: 2, .. })));
    engine.put(&id(), &slot, 2, vec![records("a", 3, 9, &[(0, 30)])]).expect("written");
    assert!(engine.open_chunk(&id(), &definition(), 1).is_err());
    drop((slot, engine));
    assert_eq!(read(&scene.open(), None).expect("read")[0], 30);
}

#[test]
fn a_name_that_is_used_again_has_nothing_of_before() {
    let scene = Scene::new();
    let engine = scene.open();
    put(&engine, vec![records("a", 1, 5, &[(0, 10)])]).expect("written");
    let anew = Definition { tileable: 8, ..definition() };
    let slot = engine.open_chunk(&id(), &anew, 1).expect("begun");
    assert_eq!(cells(&engine.read(&id(), &slot, None).expect("read")), [-1; 6]);
    assert!(engine.open_chunk(&id(), &definition(), 1).is_err(), "that one has gone");
    assert_eq!((engine.count(), engine.held_bytes()), (1, 0));
}

#[test]
fn copies_have_the_places_of_the_first_owner() {
    let (first, second) = (Scene::new(), Scene::new());
    let (first, second) = (first.open(), second.open());
    put(&first, vec![records("a", 1, 5, &[(0, 10)]), records("b", 1, 5, &[(0, 20)])]).expect("written");
    let slot = first.find(&id()).expect("there");
    let batches = first.batches(&id(), &slot, 0, 1 << 20).expect("batches");
    let copy = second.open_chunk(&id(), &definition(), 1).expect("begun");
    let behind = second.put_copy(&id(), &copy, 1, batches[1..].to_vec());
    assert_eq!(behind, Err(MutableError::Behind { next: 0 }));
    let all = second.put_copy(&id(), &copy, 0, batches.clone());
    assert_eq!(all, Ok(Put { accepted: 2, duplicates: 0 }));
    let again = second.put_copy(&id(), &copy, 1, batches[1..].to_vec());
    assert_eq!(again, Ok(Put { accepted: 0, duplicates: 1 }));
    let other = second.put_copy(&id(), &copy, 1, batches[..1].to_vec());
    assert_eq!(other, Err(MutableError::Diverged { key: "k".to_owned(), seq: 1 }));
    // Nobody reads what nobody confirmed.
    assert_eq!(cells(&second.read(&id(), &copy, None).expect("read")), [-1; 6]);
    second.confirm(&id(), &copy, 2).expect("confirmed");
    assert_eq!(second.read(&id(), &copy, None), first.read(&id(), &slot, None));
}

#[test]
fn a_directory_has_one_store() {
    let scene = Scene::new();
    let engine = scene.open();
    let path = scene.directory.path().join("mutable");
    assert!(matches!(Engine::open(&path, 1), Err(DirectoryError::Taken { .. })));
    engine.close();
    let again = scene.open();
    assert!(engine.put(&id(), &again.open_chunk(&id(), &definition(), 1).unwrap(), 1, vec![]).is_err());
}
