//! What is no graph, or would be too much of one, is refused with the node and the reason.

use tripod_tile::{
    AxisIndex, BinaryFunction, Chunking, Content, DType, Declared, Helpers, Operand, Operator, Reason,
    Scalar, Tileable, TileableGraph, UnaryFunction, limits, tile,
};

use crate::support::{arange, graph, tileable, zeros};

fn refused(tileables: Vec<Tileable>) -> (String, Reason) {
    let refusal = tile(&graph(tileables), Helpers::Refused).unwrap_err();
    (refusal.node.map(|key| key.0).unwrap_or_default(), refusal.reason)
}

/// How one operator on `a`, of that shape and in parts of 2, is refused.
fn of(shape: &[u64], dtype: DType, operator: Operator) -> Reason {
    let (node, reason) =
        refused(vec![tileable("a", zeros(shape, dtype, 2), &[]), tileable("b", operator, &["a"])]);
    assert_eq!(node, "b", "{reason}");
    reason
}

fn add() -> Operator {
    Operator::Binary { function: BinaryFunction::Add, left: Operand::Input, right: Operand::Input }
}

#[test]
fn keys_inputs_targets_and_cycles_are_named() {
    let not = || Operator::Unary { function: UnaryFunction::Not };
    let a = || tileable("a", arange(4, 2), &[]);
    assert_eq!(refused(vec![a(), a()]), ("a".to_owned(), Reason::SameKey));
    assert_eq!(refused(vec![tileable("a:0", arange(4, 2), &[])]), ("a:0".to_owned(), Reason::Key));
    let unknown = Reason::UnknownInput("x".into());
    assert_eq!(refused(vec![tileable("b", not(), &["x"])]), ("b".to_owned(), unknown));
    let wanted = "2".to_owned();
    assert_eq!(
        refused(vec![a(), tileable("b", add(), &["a"])]),
        ("b".to_owned(), Reason::Inputs { is: 1, wanted })
    );

    let circle = vec![
        tileable("d", not(), &["c"]),
        tileable("c", not(), &["b"]),
        a(),
        tileable("b", add(), &["a", "c"]),
    ];
    let (node, reason) = refused(circle);
    assert_eq!((node.as_str(), reason.to_string().as_str()), ("c", "in a cycle: c <- b"));
    assert_eq!(refused(vec![tileable("s", not(), &["s"])]).1, Reason::Cycle(vec!["s".into()]));

    let mut wanted = graph(vec![a()]);
    wanted.targets = vec!["x".into()];
    let refusal = tile(&wanted, Helpers::Refused).unwrap_err();
    assert_eq!(refusal.to_string(), "unknown target x");
}

#[test]
fn the_empty_graph_has_no_chunks() {
    let chunks = tile(&TileableGraph::default(), Helpers::Refused).unwrap();
    assert!(chunks.nodes.is_empty() && chunks.targets.is_empty());
}

#[test]
fn shapes_and_types_that_do_not_go_together_are_refused() {
    let a = || tileable("a", zeros(&[4, 3], DType::F64, 2), &[]);
    let b = || tileable("b", zeros(&[4], DType::F64, 2), &[]);
    let (node, reason) = refused(vec![a(), b(), tileable("c", add(), &["a", "b"])]);
    assert_eq!(
        (node.as_str(), reason.to_string().as_str()),
        ("c", "shapes [4, 3] and [4] do not go together")
    );
    let matmul = refused(vec![a(), b(), tileable("c", Operator::Matmul, &["a", "b"])]).1;
    assert!(matches!(matmul, Reason::Shapes { .. }), "{matmul}");
    let concat = refused(vec![a(), b(), tileable("c", Operator::Concat { axis: 0 }, &["a", "b"])]).1;
    assert!(matches!(concat, Reason::Shapes { .. }), "{concat}");
    let assigned = Operator::SetItem { index: vec![AxisIndex::At(0)], value: Operand::Input };
    let assigned = refused(vec![a(), b(), tileable("c", assigned, &["a", "b"])]).1;
    assert!(matches!(assigned, Reason::Shapes { .. }), "{assigned}");

    let neg = Operator::Unary { function: UnaryFunction::Neg };
    assert_eq!(of(&[2], DType::Bool, neg), Reason::DType(DType::Bool));
    let right = Operand::Scalar(Scalar::Int(1 << 40));
    let wide = Operator::Binary { function: BinaryFunction::Add, left: Operand::Input, right };
    assert_eq!(of(&[2], DType::I32, wide), Reason::ScalarRange(DType::I32));
    let mask = vec![a(), b(), tileable("c", Operator::Compress { axis: 0 }, &["a", "b"])];
    assert_eq!(refused(mask).1, Reason::WrongDType { is: DType::F64, wanted: DType::Bool });
    let frame = of(&[2], DType::F64, Operator::Head { rows: 1 });
    assert_eq!(frame, Reason::Tensor);
}

#[test]
fn axes_and_indexes_out_of_range_are_refused() {
    let of = |operator| of(&[4, 3], DType::I64, operator);
    for axis in [2, -3, i64::MIN, i64::MAX] {
        assert_eq!(of(Operator::Take { indices: vec![0], axis }), Reason::Axis { axis, dims: 2 });
        let axes = Some(vec![axis]);
        let function = tripod_tile::ReductionFunction::Sum;
        let sum = Operator::Reduce { function, axes, keepdims: false, ddof: 0 };
        assert_eq!(of(sum), Reason::Axis { axis, dims: 2 });
    }
    assert_eq!(of(Operator::Transpose { axes: vec![0, -2] }), Reason::AxisTwice { axis: -2 });
    for index in [4, -5, i64::MIN] {
        let extent = 4;
        assert_eq!(of(Operator::Take { indices: vec![0, index], axis: 0 }), Reason::Index { index, extent });
        assert_eq!(
            of(Operator::Slice { index: vec![AxisIndex::At(index)] }),
            Reason::Index { index, extent }
        );
    }
    let step = AxisIndex::Slice { start: None, stop: None, step: Some(0) };
    assert_eq!(of(Operator::Slice { index: vec![step] }), Reason::Step);
    let more = of(Operator::Slice { index: vec![AxisIndex::ALL; 3] });
    assert!(matches!(more, Reason::Axes { is: 3, .. }), "{more}");
    let shape = of(Operator::Reshape { shape: vec![5, -1] });
    assert!(matches!(shape, Reason::Reshape { .. }), "{shape}");
}

/// As numpy has it: along an axis without elements there is no largest one, also where the result would have no elements.
#[test]
fn the_largest_of_nothing_is_refused_and_the_sum_is_not() {
    use tripod_tile::ReductionFunction as F;
    let along = |shape: &[u64], function, axis: Option<i64>| {
        let axes = axis.map(|axis| vec![axis]);
        let operator = Operator::Reduce { function, axes, keepdims: false, ddof: 0 };
        let tileables =
            vec![tileable("a", zeros(shape, DType::F64, 2), &[]), tileable("b", operator, &["a"])];
        tile(&graph(tileables), Helpers::Refused).map(|_| ()).map_err(|refusal| refusal.to_string())
    };
    let refused = Err("tileable b: a reduction of no elements has no result".to_owned());
    for function in [F::Max, F::Min, F::ArgMax, F::ArgMin] {
        for (shape, axis) in [(&[0][..], 0), (&[0, 3], 0), (&[0, 3], -2), (&[0, 0], 0), (&[0, 0], 1)] {
            assert_eq!(along(shape, function, Some(axis)), refused, "{function:?} of {shape:?}");
        }
        assert_eq!(along(&[0, 3], function, None), refused, "{function:?} of all");
        assert_eq!(along(&[0, 3], function, Some(1)), Ok(()), "{function:?} of three, and there are none");
    }
    for function in [F::Sum, F::Prod, F::Any, F::All, F::Count, F::Mean, F::Var] {
        assert_eq!(along(&[0, 0], function, Some(0)), Ok(()), "{function:?}");
    }
}

#[test]
fn what_is_declared_is_compared() {
    let declared = |shape: &[Option<u64>], dtype| {
        let mut source = tileable("a", zeros(&[4, 3], DType::F64, 2), &[]);
        source.declared = Some(Declared { shape: shape.to_vec(), dtype });
        tile(&graph(vec![source]), Helpers::Refused).map_err(|refusal| refusal.to_string())
    };
    assert!(declared(&[Some(4), None], DType::F64).is_ok());
    let said = "tileable a: declared as f32[4, 3], and it is f64[4, 3]";
    assert_eq!(declared(&[Some(4), Some(3)], DType::F32).unwrap_err(), said);
    assert!(declared(&[Some(4), Some(4)], DType::F64).is_err());
    assert!(declared(&[Some(4)], DType::F64).is_err());
}

#[test]
fn data_is_as_long_as_the_shape_says_and_only_where_it_is_read() {
    let bytes = || Operator::FromBytes { shape: vec![2], dtype: DType::I32, chunks: Chunking::Default };
    let mut short = tileable("a", bytes(), &[]);
    short.data = vec![0; 7];
    assert_eq!(refused(vec![short]).1, Reason::DataBytes { is: 7, wanted: 8 });
    let mut other = tileable("a", arange(4, 2), &[]);
    other.data = vec![0];
    assert_eq!(refused(vec![other]).1, Reason::Data);
}

#[test]
fn what_only_delays_or_fails_is_for_tests() {
    let sleep = || vec![tileable("a", arange(4, 2), &[]), tileable("b", Operator::Sleep { ms: 1 }, &["a"])];
    assert_eq!(refused(sleep()), ("b".to_owned(), Reason::TestHelper));
    assert!(tile(&graph(sleep()), Helpers::ForTests).is_ok());
}

/// Each would be millions of nodes or ranges, of a graph of a few lines.
#[test]
fn graphs_that_explode_are_refused_before_they_do() {
    let cut = |shape: &[u64], size| tileable("a", zeros(shape, DType::I64, size), &[]);
    assert_eq!(refused(vec![cut(&[1 << 21], 1)]).1, Reason::TooManyChunks);
    let product = vec![cut(&[1024, 1024], 1), tileable("b", Operator::Matmul, &["a", "a"])];
    assert_eq!(refused(product).1, Reason::TooManyChunks);

    let mut many = vec![cut(&[1 << 20], 1)];
    many.extend((0..8).map(|at| {
        let key = format!("b{at}");
        tileable(&key, Operator::Slice { index: vec![AxisIndex::ALL] }, &["a"])
    }));
    assert_eq!(refused(many).1, Reason::TooManyPlaces);

    let wide = vec![
        cut(&[2000, 2], 1),
        tileable("b", Operator::Take { indices: vec![0; limits::INDICES_MAX], axis: 1 }, &["a"]),
    ];
    assert_eq!(refused(wide).1, Reason::TooManyChunks);
    let gathered = Operator::Take { indices: vec![0; 1 << 20], axis: 1 };
    let heavy = vec![
        tileable(
            "a",
            Operator::Zeros {
                shape: vec![100, 1 << 20],
                dtype: DType::Bool,
                chunks: Chunking::Sizes(vec![1, 1 << 20]),
            },
            &[],
        ),
        tileable("b", gathered, &["a"]),
    ];
    assert_eq!(refused(heavy).1, Reason::TooManyAttributes);

    let inputs: Vec<&str> = vec!["a"; 5000];
    let joined = vec![cut(&[1 << 11], 1), tileable("b", Operator::Concat { axis: 0 }, &inputs)];
    assert_eq!(refused(joined).1, Reason::TooManyPlaces);
    let large = vec![cut(&[1 << 40, 1 << 40], 1 << 39)];
    assert!(matches!(refused(large).1, Reason::TooLarge { .. }));
}

#[test]
fn what_is_fetched_is_said_wholly() {
    let fetch = |splits: Vec<Vec<Option<u64>>>, keys: usize| {
        let chunks = vec!["k".to_owned(); keys];
        let content = Content::Tensor(DType::I32);
        tile(&graph(vec![tileable("a", Operator::Fetch { content, splits, chunks }, &[])]), Helpers::Refused)
    };
    assert!(fetch(vec![vec![Some(3), None], vec![Some(0)]], 2).is_ok());
    assert!(fetch(Vec::new(), 1).is_ok());
    assert!(matches!(fetch(vec![vec![Some(3), None]], 1).unwrap_err().reason, Reason::Chunking(_)));
    assert!(matches!(fetch(vec![Vec::new()], 0).unwrap_err().reason, Reason::Chunking(_)));
    let most = vec![vec![Some(u64::MAX), Some(1)]];
    assert!(matches!(fetch(most, 2).unwrap_err().reason, Reason::TooLarge { .. }));
}
