//! What an operator is told to do. Needs nothing of the node but its directory, so that it can be part of any error.

use std::path::Path;

/// What an operator does with a node that must give up its data, exactly.
pub(crate) fn rejoin(data: &Path) -> String {
    let data = data.display();
    format!(
        "To let it rejoin without its data, stop it, run `mv {data} {data}.damaged`, and start it again with the \
         same flags while all other nodes run: it takes everything from them and votes only after that. (The data \
         of a cluster of one node is nowhere else: restore a copy of the directory instead.)"
    )
}
