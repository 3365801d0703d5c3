//! Laws that hold for every graph.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any};
use proptest::{prop_assert, prop_assert_eq, proptest};
use tripod_tile::{ChunkGraph, ChunkOperator, DType, Helpers, TileableGraph, fuse, tile};

use crate::dense::Dense;
use crate::{chunked, random};

/// Equal, or off by what another order of inexact sums may make.
fn close(is: f64, wanted: f64) -> bool {
    is == wanted || (is.is_nan() && wanted.is_nan()) || (is - wanted).abs() <= 1e-5 * wanted.abs().max(1.0)
}

fn compare(is: &Dense, wanted: &Dense) -> Result<(), String> {
    let alike = is.shape == wanted.shape && is.dtype == wanted.dtype;
    let all_close = is.data.iter().zip(&wanted.data).all(|(is, wanted)| close(*is, *wanted));
    if alike && all_close { Ok(()) } else { Err(format!("{is:?}\nand not\n{wanted:?}")) }
}

/// The results of a random graph, chunk by chunk, and those of the whole.
fn check(bytes: &[u8]) -> Result<(), String> {
    let mut built = random::build(bytes);
    // Everything is wanted, so that everything is compared.
    built.graph.targets = built.graph.tileables.iter().map(|tileable| tileable.key.clone()).collect();
    let chunks = tile(&built.graph, Helpers::Refused).map_err(|refusal| refusal.to_string())?;
    let results = chunked::compute(&chunks, &built.chunks);
    for ((is, wanted), tileable) in results.iter().zip(&built.results).zip(&built.graph.tileables) {
        compare(is, wanted).map_err(|why| format!("{}: {why}\n{:#?}", tileable.key, built.graph))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_are_what_the_whole_is(bytes in vec(any::<u8>(), 0..160)) {
        let outcome = check(&bytes);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also when it was read from its text, and so was what came of it.
    #[test]
    fn equal_graphs_give_equal_bytes(bytes in vec(any::<u8>(), 0..160)) {
        let built = random::build(&bytes);
        let text = serde_json::to_string(&built.graph).unwrap();
        let again = serde_json::from_str(&text).unwrap();
        let bytes_of = |graph| serde_json::to_string(&tile(graph, Helpers::Refused).unwrap()).unwrap();
        let first = bytes_of(&built.graph);
        prop_assert_eq!(&first, &bytes_of(&again));
        let read: ChunkGraph = serde_json::from_str(&first).unwrap();
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), first);
    }

    #[test]
    fn inputs_stand_before_and_nothing_is_left_that_nobody_wants(bytes in vec(any::<u8>(), 0..160)) {
        let chunks = tile(&random::build(&bytes).graph, Helpers::Refused).unwrap();
        let mut wanted = vec![false; chunks.nodes.len()];
        let mut keys = std::collections::BTreeSet::new();
        for chunk in chunks.targets.iter().flat_map(|target| &target.chunks) {
            wanted[chunk.0] = true;
        }
        for (place, node) in chunks.nodes.iter().enumerate().rev() {
            prop_assert!(wanted[place], "{} is in nothing", node.key);
            prop_assert!(keys.insert(node.key.clone()), "{} is there twice", node.key);
            for input in &node.inputs {
                prop_assert!(input.0 < place, "{}", node.key);
                wanted[input.0] = true;
            }
        }
    }
}

/// What two arrays that are the same bit for bit have both. Which NaN one is nobody promises.
fn bits(array: &Dense) -> (Vec<usize>, DType, Vec<u64>) {
    let bits = |value: &f64| if value.is_nan() { u64::MAX } else { value.to_bits() };
    (array.shape.clone(), array.dtype, array.data.iter().map(bits).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fused_chunks_are_the_same_bit_for_bit(bytes in vec(any::<u8>(), 0..160)) {
        let built = random::build(&bytes);
        let chunks = tile(&built.graph, Helpers::Refused).unwrap();
        let apart = chunked::compute(&chunks, &built.chunks);
        let fused = chunked::compute(&fuse(chunks, |_, _| true), &built.chunks);
        let [is, wanted] = [&fused, &apart].map(|all| all.iter().map(bits).collect::<Vec<_>>());
        prop_assert_eq!(is, wanted);
    }
}

/// Random graphs have few chunks. Sums of these fractions would tell another order.
#[test]
fn reductions_of_many_chunks_are_the_same_fused_bit_for_bit() {
    let reduced = |key: &str, function: &str, axes: &str| {
        format!(
            r#"{{"key":"{key}","operator":{{"op":"reduce","function":"{function}","axes":{axes}}},"inputs":["x"]}}"#
        )
    };
    let source = r#"{"key":"x","operator":{"op":"rand_uniform","seed":7,"low":0,"high":1,"shape":[45,9],"dtype":"f64","chunks":[1,3]}}"#;
    let whole = ["mean", "var", "argmax"].map(|function| reduced(function, function, "null"));
    let along = [("mean", "[0]"), ("var", "[0]"), ("sum", "[1]"), ("sum", "[0,1]"), ("argmin", "[0]")];
    let along =
        along.iter().enumerate().map(|(at, (function, axes))| reduced(&format!("r{at}"), function, axes));
    for (reductions, has_groups) in [(whole.to_vec(), true), (along.collect(), false)] {
        let text = format!(r#"{{"tileables":[{source},{}]}}"#, reductions.join(","));
        let graph: TileableGraph = serde_json::from_str(&text).unwrap();
        let chunks = tile(&graph, Helpers::Refused).unwrap();
        let fused = fuse(chunks.clone(), |_, _| true);
        let count =
            |is: fn(&ChunkOperator) -> bool| fused.nodes.iter().filter(|node| is(&node.operator)).count();
        assert!(count(|operator| matches!(operator, ChunkOperator::ReduceTree { .. })) > 0, "{fused:?}");
        let groups = count(|operator| matches!(operator, ChunkOperator::Chains { .. }));
        assert_eq!(groups > 0, has_groups, "{fused:?}");
        assert!(
            fused.nodes.len() * 3 < chunks.nodes.len(),
            "{} of {}",
            fused.nodes.len(),
            chunks.nodes.len()
        );
        let [is, wanted] =
            [&fused, &chunks].map(|graph| chunked::compute(graph, &std::collections::BTreeMap::new()));
        for (is, wanted) in is.iter().zip(&wanted) {
            assert_eq!(bits(is), bits(wanted));
        }
    }
}

/// Random graphs that are all alike would prove nothing.
#[test]
fn random_graphs_have_every_operator_that_is_compared() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut names = std::collections::BTreeMap::<String, usize>::new();
    let mut unknown = 0;
    for _ in 0..600 {
        let bytes = vec(any::<u8>(), 0..160).new_tree(&mut runner).unwrap().current();
        let built = random::build(&bytes);
        unknown += built.unknown;
        for tileable in &built.graph.tileables {
            let value = serde_json::to_value(&tileable.operator).unwrap();
            *names.entry(value["op"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    let without = ["zeros", "rand_uniform", "rand_normal"];
    let compared = [
        "arange",
        "binary",
        "cast",
        "compress",
        "concat",
        "expand_dims",
        "eye",
        "fetch",
        "from_bytes",
        "full",
        "linspace",
        "matmul",
        "ones",
        "rechunk",
        "reduce",
        "reshape",
        "set_item",
        "slice",
        "split",
        "stack",
        "take",
        "transpose",
        "unary",
        "where",
    ];
    for name in compared {
        assert!(names.get(name).is_some_and(|count| *count >= 5), "{name}: {names:?}");
    }
    assert!(without.iter().all(|name| !names.contains_key(*name)), "{names:?}");
    assert!(unknown > 0, "no graph needed an extent that only execution tells");
}
