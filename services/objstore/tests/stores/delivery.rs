//! Objects on their way from store to store.

use std::time::Duration;

use tonic::{Code, Status};
use tripod_objstore::ObjectId;
use tripod_objstore::local::LocalError;
use tripod_proto::ray::{DeallocateObjectRequest, NotifyAliasRequest, ObjChunk};
use tripod_wait::scaled;

use crate::peer::{Then, chunk, peer};
use crate::scheduler::Mood;
use crate::support::{LONG, Scene, get, pattern};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn objects_come_from_another_store_whole_and_are_reported_once() {
    let scene = Scene::new().await;
    let (source, mut target) = (scene.store().await, scene.store().await);
    let sizes = [0, 1, 8193, 64 << 10, (64 << 10) + 1, 3 * MIB + 17];
    for (object, len) in (0..).zip(sizes) {
        source.put(object, len).await;
    }
    for round in 0..3 {
        for (object, len) in (0..).zip(sizes) {
            target.fetch(object, source.store.address()).await;
            if round > 0 {
                target.expect(object, len).await;
            }
        }
    }
    for object in 0..6 {
        scene.node.until_ready(target.id, object).await;
    }
    let ready = scene.node.facts.lock().expect("not poisoned").ready.clone();
    assert_eq!(ready.iter().filter(|told| told.store == target.id.0).count(), 6, "{ready:?}");
}

#[tokio::test]
async fn many_objects_come_at_a_time_in_both_directions() {
    let scene = Scene::new().await;
    let (mut left, mut right) = (scene.store().await, scene.store().await);
    for object in 0..40 {
        let store = if object % 2 == 0 { &left } else { &right };
        store.put(object, usize::try_from(object).expect("small") * 20_000).await;
    }
    let (at_left, at_right) = (left.store.address().to_owned(), right.store.address().to_owned());
    for object in 0..40 {
        left.fetch(object, &at_right).await;
        right.fetch(object, &at_left).await;
    }
    for object in 0..40 {
        let len = usize::try_from(object).expect("small") * 20_000;
        tokio::join!(left.expect(object, len), right.expect(object, len));
    }
}

/// The whole of an object in chunks of 1 MiB, from where the request asks on, as a store of ours sends it.
fn rest(object: u64, len: usize, offset: u64) -> Vec<ObjChunk> {
    let all = pattern(object, len);
    let offset = usize::try_from(offset).expect("small");
    let mut chunks: Vec<_> = all[offset..].chunks(MIB).map(|data| chunk(len, data)).collect();
    if offset > 0 {
        chunks[0].before_crc32c = Some(crc32c::crc32c(&all[..offset]));
    }
    chunks
}

#[tokio::test]
async fn a_source_that_dies_midway_is_gone_on_from_by_another() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.stall = scaled(Duration::from_millis(500));
    let mut target = scene.store_with(config).await;
    let dying =
        peer(|request| Ok((rest(5, 4 * MIB, request.offset).into_iter().take(2).collect(), Then::Hangs)))
            .await;
    let other = peer(|request| Ok((rest(5, 4 * MIB, request.offset), Then::Ends))).await;
    target.fetch(5, &dying.address).await;
    crate::support::until("the first source is asked", || (dying.asked().len() == 1).then_some(())).await;
    target.fetch(5, &other.address).await;
    drop(dying);
    target.expect(5, 4 * MIB).await;
    let [asked] = other.asked().try_into().expect("asked once");
    assert_eq!(asked.offset % MIB as u64, 0);
    assert_eq!(asked.chunk_bytes, MIB as u64);
}

#[tokio::test]
async fn a_source_that_breaks_off_is_asked_for_the_rest() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let breaking =
        peer(|request| Ok((rest(5, 4 * MIB, request.offset).into_iter().take(1).collect(), Then::Breaks)))
            .await;
    target.fetch(5, &breaking.address).await;
    target.expect(5, 4 * MIB).await;
    let offsets: Vec<_> = breaking.asked().iter().map(|asked| asked.offset).collect();
    assert_eq!(offsets, [0, 1 << 20, 2 << 20, 3 << 20]);
}

#[tokio::test]
async fn a_source_that_sends_nothing_is_left_for_another() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.stall = scaled(Duration::from_millis(100));
    let mut target = scene.store_with(config).await;
    let silent =
        peer(|request| Ok((rest(5, 3 * MIB, request.offset).into_iter().take(1).collect(), Then::Hangs)))
            .await;
    let other = peer(|request| Ok((rest(5, 3 * MIB, request.offset), Then::Ends))).await;
    target.fetch(5, &silent.address).await;
    target.fetch(5, &other.address).await;
    target.expect(5, 3 * MIB).await;
    assert!(!other.asked().is_empty());
}

#[tokio::test]
async fn the_rest_of_another_object_is_not_put_behind_the_beginning_of_this_one() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let first = peer(|_| Ok((rest(5, 3 * MIB, 0).into_iter().take(1).collect(), Then::Breaks))).await;
    // The object was made once more, with the same size and other bytes.
    let again = peer(|request| Ok((rest(6, 3 * MIB, request.offset), Then::Ends))).await;
    target.fetch(5, &first.address).await;
    crate::support::until("the first source is asked", || (!first.asked().is_empty()).then_some(())).await;
    drop(first);
    target.fetch(5, &again.address).await;
    let got = get(&target.local, 5).await.expect("it comes");
    assert!(got.bytes().expect("mapped") == pattern(6, 3 * MIB), "two objects were mixed");
}

#[tokio::test]
async fn a_source_that_never_ends_and_one_of_another_object_do_not_take_turns_for_ever() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let broken = peer(|request| match request.offset {
        0 => Ok((rest(5, 3 * MIB, 0).into_iter().take(2).collect(), Then::Breaks)),
        _ => Ok((Vec::new(), Then::Breaks)),
    })
    .await;
    let (longer, shorter) = (scene.store().await, scene.store().await);
    longer.put(5, 4 * MIB).await;
    shorter.put(6, 70_000).await;
    for (object, source, len) in [(5, &longer, 4 * MIB), (6, &shorter, 70_000)] {
        target.fetch(object, &broken.address).await;
        target.fetch(object, source.store.address()).await;
        target.expect(object, len).await;
    }
}

#[tokio::test]
async fn a_store_of_2016_that_breaks_off_is_asked_for_the_whole_again() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let rounds = std::sync::atomic::AtomicUsize::new(0);
    let seed = peer(move |_| {
        let all = pattern(5, 100_000);
        let data =
            |part: &[u8]| ObjChunk { data: part.to_vec().into(), total_size: 100_000, ..ObjChunk::default() };
        let chunks: Vec<_> = all.chunks(8192).map(data).collect();
        let first = rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        Ok(if first { (chunks[..3].to_vec(), Then::Breaks) } else { (chunks, Then::Ends) })
    })
    .await;
    target.fetch(5, &seed.address).await;
    target.expect(5, 100_000).await;
}

#[tokio::test]
async fn a_store_that_lies_is_not_believed_and_another_is_asked() {
    type Lie = fn(Vec<ObjChunk>) -> Vec<ObjChunk>;
    let lies: [(&str, Lie); 6] = [
        ("bytes that are not those of the checksum", |mut chunks| {
            let mut data = chunks[1].data.to_vec();
            data[1000] ^= 1;
            chunks[1].data = data.into();
            chunks
        }),
        ("a size that changes", |mut chunks| {
            chunks[1].total_size += 1;
            chunks
        }),
        ("more than it says", |mut chunks| {
            chunks.push(chunks[0].clone());
            chunks
        }),
        ("less than it says", |mut chunks| {
            chunks.pop();
            chunks
        }),
        ("more than anybody has", |mut chunks| {
            chunks.iter_mut().for_each(|chunk| chunk.total_size = u64::MAX);
            chunks
        }),
        ("nothing at all", |_| Vec::new()),
    ];
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let honest = scene.store().await;
    for (object, (what, lie)) in (0..).zip(lies) {
        let liar = peer(move |_| Ok((lie(rest(object, 3 * MIB, 0)), Then::Ends))).await;
        honest.put(object, 3 * MIB).await;
        target.fetch(object, &liar.address).await;
        crate::support::until(what, || (!liar.asked().is_empty()).then_some(())).await;
        assert_eq!(target.info().await.objectid.len() as u64, object, "{what}: the lie was believed");
        target.fetch(object, honest.store.address()).await;
        target.expect(object, 3 * MIB).await;
    }
    assert_eq!(target.info().await.used_bytes, 6 * 3 * MIB as u64);
}

#[tokio::test]
async fn an_object_that_its_source_does_not_have_is_told_at_once_and_is_waited_for() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let absent = peer(|_| Err(Status::not_found("it is not here"))).await;
    for _ in 0..2 {
        scene.node.facts.lock().expect("not poisoned").failed.clear();
        target.fetch(5, &absent.address).await;
        scene.node.until_failed(target.id, 5, &absent.address, false).await;
    }
    let source = scene.store().await;
    source.put(5, 100).await;
    target.fetch(5, source.store.address()).await;
    target.expect(5, 100).await;
    assert_eq!(scene.node.facts.lock().expect("not poisoned").failed.len(), 1, "once for each order");
}

#[tokio::test]
async fn an_object_that_does_not_come_is_given_up_and_told_and_can_be_ordered_again() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.patience = scaled(Duration::from_millis(200));
    let mut target = scene.store_with(config).await;
    let broken = peer(|_| Ok((Vec::new(), Then::Breaks))).await;
    target.fetch(5, &broken.address).await;
    scene.node.until_failed(target.id, 5, "", false).await;
    // It is told as soon as an order begins anew, so one that follows at once is not in vain.
    let source = scene.store().await;
    source.put(5, 100).await;
    target.fetch(5, source.store.address()).await;
    target.expect(5, 100).await;
    let liar =
        peer(|_| Ok((rest(6, 3 * MIB, 0).into_iter().rev().take(1).cycle().take(9).collect(), Then::Ends)));
    let liar = liar.await;
    target.fetch(6, &liar.address).await;
    scene.node.until_failed(target.id, 6, &liar.address, false).await;
}

#[tokio::test]
async fn that_an_object_does_not_come_is_told_once_though_nodes_fail() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let absent = peer(|_| Err(Status::not_found("it is not here"))).await;
    scene.node.will(&[Mood::Unavailable, Mood::LosesAnswer, Mood::LosesAnswer]);
    target.fetch(5, &absent.address).await;
    scene.node.until_failed(target.id, 5, &absent.address, false).await;
    // One call for each mood, and the one that is answered.
    scene.node.until("the answer", |facts| (facts.calls.len() == 4).then_some(())).await;
    // A scheduler that refuses to hear of it ends nothing.
    scene.node.will(&[Mood::Refuses]);
    target.fetch(6, &absent.address).await;
    scene.node.until("the refusal", |facts| (facts.calls.len() == 5).then_some(())).await;
    target.put(7, 10).await;
    scene.node.until_ready(target.id, 7).await;
    assert_eq!(scene.node.facts.lock().expect("not poisoned").failed.len(), 1);
    target.expect(7, 10).await;
}

#[tokio::test]
async fn who_waits_for_what_is_larger_than_the_store_is_told_its_size_and_the_stores() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.capacity_bytes = MIB as u64;
    config.spill_directory = Some(scene.path("spilled"));
    let mut target = scene.store_with(config).await;
    let source = scene.store().await;
    source.put(5, 2 * MIB).await;
    let told = |got: Result<_, LocalError>| match got.map(drop) {
        Err(LocalError::Refused { code: Code::ResourceExhausted, text }) => {
            assert!(
                text.contains("object 5 ") && text.contains("2097152") && text.contains("1048576"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    };
    target.fetch(5, source.store.address()).await;
    told(get(&target.local, 5).await);
    scene.node.until_failed(target.id, 5, "", true).await;
    // Also who asks too late, and who asks by another name.
    told(get(&target.local, 5).await);
    let name = NotifyAliasRequest { alias_objectid: 6, canonical_objectid: 5, objstoreid: Some(target.id.0) };
    target.client.notify_alias(name).await.expect("acknowledged");
    let other = get(&target.local, 6).await.expect_err("too large");
    assert!(other.to_string().contains("2097152"), "{other}");
    let info = target.info().await;
    assert_eq!((info.objectid, info.used_bytes), (Vec::<u64>::new(), 0));
    // Made once more, it may be smaller.
    let smaller = scene.store().await;
    smaller.put(5, 100).await;
    target.fetch(5, smaller.store.address()).await;
    scene.node.until_ready(target.id, 5).await;
    target.expect(5, 100).await;
}

/// The scheduler orders it again after each round, as the place lives and is said to have it.
#[tokio::test]
async fn who_waits_for_what_is_at_a_place_that_is_not_reached_is_told_after_three_rounds() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.patience = Duration::from_millis(100);
    let mut target = scene.store_with(config).await;
    let broken = peer(|_| Ok((Vec::new(), Then::Breaks))).await;
    let (here, there) = (target.store.address().to_owned(), broken.address.clone());
    let told = |got: Result<_, LocalError>| match got.map(drop) {
        Err(LocalError::Refused { code: Code::Aborted, text }) => {
            assert!(text.contains("object 5 ") && text.contains(&here) && text.contains(&there), "{text}");
        }
        other => panic!("{other:?}"),
    };
    let local = target.local.clone();
    let waits = tokio::spawn(async move { get(&local, 5).await });
    for round in 1..=3 {
        assert!(!waits.is_finished(), "told before round {round}");
        target.fetch(5, &there).await;
        let rounds = |facts: &crate::scheduler::Facts| facts.failed.len() == round;
        scene.node.until("the round's end", |facts| rounds(facts).then_some(())).await;
    }
    told(waits.await.expect("no panic"));
    let ends = scene.node.facts.lock().expect("not poisoned").failed.clone();
    assert_eq!(ends.iter().map(|end| end.told).collect::<Vec<_>>(), [false, false, true], "{ends:?}");
    // Also who asks too late.
    told(get(&target.local, 5).await);
    // Ordered once more it is tried for as long as at first; and another place may have it.
    target.fetch(5, &there).await;
    scene.node.until("another round", |facts| (facts.failed.len() == 4).then_some(())).await;
    assert!(!scene.node.facts.lock().expect("not poisoned").failed[3].told);
    let source = scene.store().await;
    source.put(5, 100).await;
    target.fetch_until_here(5, 100, source.store.address()).await;
    scene.node.until_ready(target.id, 5).await;
}

/// All that is there is held, and stays so for a while.
#[tokio::test]
async fn who_waits_for_what_there_is_no_room_for_is_told_after_three_rounds_and_no_source_is_asked_in_vain() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.capacity_bytes = MIB as u64;
    config.spill_directory = Some(scene.path("spilled"));
    config.patience = Duration::from_millis(100);
    let mut target = scene.store_with(config).await;
    target.put(4, MIB / 2).await;
    let held = target.local.get(ObjectId(4), None).await.expect("it is here");
    let len = MIB * 3 / 4;
    let source = peer(move |request| Ok((rest(5, len, request.offset), Then::Ends))).await;
    let told = |got: Result<_, LocalError>| match got.map(drop) {
        Err(LocalError::Refused { code: Code::ResourceExhausted, text }) => {
            let parts = ["object 5 ", "no room for 786432", "being read or written", "3 rounds of 0.1 s"];
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        other => panic!("{other:?}"),
    };
    let local = target.local.clone();
    let waits = tokio::spawn(async move { get(&local, 5).await });
    for round in 1..=3 {
        assert!(!waits.is_finished(), "told before round {round}");
        target.fetch(5, &source.address).await;
        let rounds = |facts: &crate::scheduler::Facts| facts.failed.len() == round;
        scene.node.until("the round's end", |facts| rounds(facts).then_some(())).await;
        // It is asked how large the object is, and not again before there is room.
        assert_eq!(source.asked().len(), round);
    }
    told(waits.await.expect("no panic"));
    let ends = scene.node.facts.lock().expect("not poisoned").failed.clone();
    assert_eq!(ends.iter().map(|end| end.told).collect::<Vec<_>>(), [false, false, true], "{ends:?}");
    // Also who asks too late.
    told(get(&target.local, 5).await);
    // What is held can be written to disk afterwards.
    drop(held);
    target.fetch_until_here(5, len, &source.address).await;
    scene.node.until_ready(target.id, 5).await;
}

/// Rounds count for one place: what is made again elsewhere has all its time.
#[tokio::test]
async fn rounds_at_one_place_do_not_count_for_another() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.patience = Duration::from_millis(100);
    let mut target = scene.store_with(config).await;
    let places =
        [peer(|_| Ok((Vec::new(), Then::Breaks))).await, peer(|_| Ok((Vec::new(), Then::Breaks))).await];
    for (round, place) in [0, 0, 1, 1, 0].into_iter().enumerate() {
        target.fetch(5, &places[place].address).await;
        let ended = |facts: &crate::scheduler::Facts| facts.failed.get(round).map(|end| end.told);
        assert_eq!(scene.node.until("the round's end", ended).await, round == 4, "round {round}");
    }
}

#[tokio::test]
async fn an_object_that_is_deallocated_on_its_way_does_not_arrive() {
    let scene = Scene::new().await;
    let mut target = scene.store().await;
    let slow =
        peer(|request| Ok((rest(5, 4 * MIB, request.offset).into_iter().take(1).collect(), Then::Hangs)))
            .await;
    target.fetch(5, &slow.address).await;
    crate::support::until("it is asked", || (!slow.asked().is_empty()).then_some(())).await;
    let order = DeallocateObjectRequest { canonical_objectid: 5, objstoreid: Some(target.id.0) };
    target.client.deallocate_object(order).await.expect("acknowledged");
    target.until_used(0).await;
    let gone = target.local.get(ObjectId(5), None).await.expect_err("deallocated");
    assert!(gone.to_string().contains("deallocated"), "{gone}");
}

/// A worker has its task before its store has the order to fetch what the task needs, and the store once had it.
#[tokio::test]
async fn a_get_that_overtakes_the_order_to_fetch_an_object_anew_waits_for_it() {
    let scene = Scene::new().await;
    let source = scene.store().await;
    let mut config = scene.config();
    config.anew = LONG;
    let mut target = scene.store_with(config).await;
    target.put(5, 100).await;
    let order = DeallocateObjectRequest { canonical_objectid: 5, objstoreid: Some(target.id.0) };
    target.client.deallocate_object(order).await.expect("acknowledged");
    source.put(5, 100).await;
    let local = target.local.clone();
    let got = tokio::spawn(async move { local.get(ObjectId(5), None).await });
    // One by one on one connection: what came after the get was looked at after it.
    target.local.get(ObjectId(6), Some(Duration::from_millis(100))).await.expect_err("nobody has it");
    assert!(!got.is_finished(), "it is refused");
    target.fetch(5, source.store.address()).await;
    got.await.expect("it runs").expect("it came again");
    target.expect(5, 100).await;
}

#[tokio::test]
async fn spilled_objects_are_read_back_for_other_stores_and_arrive_in_stores_that_spill() {
    let scene = Scene::new().await;
    let small = |name: &str| {
        let mut config = scene.config();
        config.capacity_bytes = 2 * MIB as u64;
        config.spill_directory = Some(scene.path(name));
        config
    };
    let mut source = scene.store_with(small("source")).await;
    let mut target = scene.store_with(small("target")).await;
    for object in 0..8 {
        source.put(object, MIB / 2 + 3).await;
    }
    assert!(source.info().await.spilled_bytes > 2 * MIB as u64);
    for object in 0..8 {
        target.fetch(object, source.store.address()).await;
    }
    for object in (0..8).rev() {
        target.expect(object, MIB / 2 + 3).await;
        source.expect(object, MIB / 2 + 3).await;
    }
    let info = target.info().await;
    assert_eq!(info.objectid.len(), 8);
    assert!(info.used_bytes <= info.capacity_bytes && info.spilled_bytes > 0);
}
