//! The order of the chunks of a graph, for front ends whose clients send them in any.

use std::collections::{BTreeMap, VecDeque};

use crate::mars::command::{Chunk, Input};
use crate::mars::ids::Place;

/// Puts inputs before what reads them, otherwise in the order given. Inputs that are named and are in the graph become places
/// in it; places that are there already are those of the list as it is given.
///
/// # Errors
/// The key of a chunk that is made of itself, or whose key is there twice, and what is wrong with it.
pub fn arrange(mut chunks: Vec<Chunk>) -> Result<Vec<Chunk>, (String, &'static str)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, chunk) in chunks.iter().enumerate() {
        if places.insert(&chunk.key, place).is_some() {
            return Err((chunk.key.clone(), "is there twice"));
        }
    }
    let mut inputs: Vec<Vec<Option<usize>>> = Vec::with_capacity(chunks.len());
    for chunk in &chunks {
        let place = |input: &Input| match input {
            Input::Chunk(place) => Some(place.0 as usize),
            Input::Session(key) => places.get(key.as_str()).copied(),
        };
        inputs.push(chunk.inputs.iter().map(place).collect());
    }
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); chunks.len()];
    let mut missing: Vec<usize> = vec![0; chunks.len()];
    for (place, read) in inputs.iter().enumerate() {
        for input in read.iter().flatten() {
            let Some(readers) = readers.get_mut(*input) else {
                return Err((chunks[place].key.clone(), "has an input that is not in the graph"));
            };
            readers.push(place);
            missing[place] += 1;
        }
    }
    let mut ready: VecDeque<usize> = (0..chunks.len()).filter(|place| missing[*place] == 0).collect();
    let mut order = Vec::with_capacity(chunks.len());
    while let Some(place) = ready.pop_front() {
        order.push(place);
        for reader in &readers[place] {
            missing[*reader] -= 1;
            if missing[*reader] == 0 {
                ready.push_back(*reader);
            }
        }
    }
    if let Some(mut place) = missing.iter().position(|missing| *missing > 0) {
        // Whoever is left reads somebody who is left: who is met again is in a cycle, and not only behind one.
        let mut met = vec![false; chunks.len()];
        while !std::mem::replace(&mut met[place], true) {
            let left = inputs[place].iter().flatten().find(|input| missing[**input] > 0);
            place = left.copied().unwrap_or(place);
        }
        return Err((chunks[place].key.clone(), "is made of itself"));
    }
    let mut moved: Vec<u32> = vec![0; chunks.len()];
    for (to, from) in order.iter().enumerate() {
        moved[*from] = u32::try_from(to).unwrap_or(u32::MAX);
    }
    let arranged = order.into_iter().map(|place| {
        let mut chunk = std::mem::take(&mut chunks[place]);
        for (input, from) in chunk.inputs.iter_mut().zip(&inputs[place]) {
            if let Some(from) = from {
                *input = Input::Chunk(Place(moved[*from]));
            }
        }
        chunk
    });
    Ok(arranged.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(key: &str, inputs: &[&str]) -> Chunk {
        let inputs = inputs.iter().map(|key| Input::Session((*key).to_owned())).collect();
        Chunk { key: key.to_owned(), inputs, ..Chunk::default() }
    }

    #[test]
    fn inputs_come_first_and_those_of_the_session_keep_their_names() {
        let arranged = arrange(vec![chunk("c", &["b", "a"]), chunk("b", &["a", "old"]), chunk("a", &[])]);
        let arranged = arranged.expect("there is an order");
        let keys: Vec<&str> = arranged.iter().map(|chunk| chunk.key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        assert_eq!(arranged[1].inputs, [Input::Chunk(Place(0)), Input::Session("old".to_owned())]);
        assert_eq!(arranged[2].inputs, [Input::Chunk(Place(1)), Input::Chunk(Place(0))]);
    }

    #[test]
    fn what_has_no_order_is_refused() {
        let circle = arrange(vec![chunk("a", &["b"]), chunk("b", &["a"]), chunk("c", &[])]);
        assert_eq!(circle, Err(("a".to_owned(), "is made of itself")));
        // Who reads one that is in a circle is in none.
        let behind = arrange(vec![chunk("d", &["c"]), chunk("c", &["b"]), chunk("b", &["c"])]);
        assert_eq!(behind, Err(("c".to_owned(), "is made of itself")));
        let twice = arrange(vec![chunk("a", &[]), chunk("a", &[])]);
        assert_eq!(twice, Err(("a".to_owned(), "is there twice")));
        let mut far = chunk("a", &[]);
        far.inputs.push(Input::Chunk(Place(7)));
        assert_eq!(arrange(vec![far]), Err(("a".to_owned(), "has an input that is not in the graph")));
    }
}
