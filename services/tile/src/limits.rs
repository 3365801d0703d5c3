//! Every bound of tiling, with its unit and its reason.

/// Tileables of one graph: clients send what one expression builds, and loops of hundreds of steps.
pub const TILEABLES_MAX: usize = 100_000;
/// Inputs of one tileable: tensors that are concatenated.
pub const INPUTS_MAX: usize = 10_000;
/// Inputs of all tileables of one graph.
pub const TILEABLE_EDGES_MAX: usize = 1 << 20;
/// Nodes of one chunk graph.
pub const CHUNKS_MAX: usize = 1 << 20;
/// Inputs of all nodes of one chunk graph: a rechunk reads some chunks for each that it makes.
pub const CHUNK_EDGES_MAX: usize = 1 << 23;
/// Chunks of all tileables of one graph. Those that are shared count for each, because each lists them.
pub const PLACES_MAX: usize = 1 << 22;
/// Ranges and indexes in the operators of one chunk graph.
pub const ATTRIBUTES_MAX: usize = 1 << 23;
/// Dimensions of a tensor: numpy's own bound until 2.0.
pub const DIMS_MAX: usize = 32;
/// Elements along one dimension, and bytes of one tileable: a pebibyte, below which no sum here overflows.
pub const BYTES_MAX: u64 = 1 << 50;
/// Inline bytes of one graph.
pub const DATA_BYTES_MAX: usize = 1 << 30;
/// Bytes of an operator's attributes, as they are sent.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Indexes of one `take`.
pub const INDICES_MAX: usize = 1 << 20;
/// Characters of the key of a tileable.
pub const KEY_CHARS_MAX: usize = 128;
/// Bytes of the key of a chunk that is fetched: the longest that tiling makes, and room for those of others.
pub const CHUNK_KEY_BYTES_MAX: usize = 512;
/// Columns of a frame.
pub const COLUMNS_MAX: usize = 4096;
/// Bytes of the name of a column.
pub const COLUMN_NAME_BYTES_MAX: usize = 256;
/// Into how many parts rows are shuffled.
pub const REDUCERS_MAX: u32 = 4096;
/// Bytes of the message of a test helper.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// Bytes of a chunk where the client says nothing of chunks.
pub const CHUNK_BYTES_DEFAULT: u64 = 64 << 20;
/// Steps that make one chunk: each that is lost is computed again with all of them.
pub const STEPS_MAX: usize = 16;
/// Ranges and indexes in the steps of one chunk, together: a fraction of what a task may bring.
pub const STEPS_WEIGHT_MAX: usize = 4_096;
/// Inline bytes that the first of several steps may have, for the same reason.
pub const STEPS_DATA_BYTES_MAX: usize = 256 << 10;
/// Columns of a frame between steps: each step names them.
pub const STEP_COLUMNS_MAX: usize = 64;
/// Chunks that make a source again for themselves, instead of reading it from a store: about as many as cost no more than
/// writing it, with its checksum, and reading it.
pub const SOURCE_READERS_MAX: usize = 3;
/// Products that one chunk computes and sums: each that is lost is computed again with all of them.
pub const PRODUCTS_MAX: usize = 16;
/// Sums that a graph must have for each to compute its own products: below it, workers would have nothing to do.
pub const SUMS_MIN: usize = 8;
/// Bytes of a partial result that shares a chunk with others: whoever wants one of them reads all.
pub const PARTIAL_BYTES_MAX: u64 = 8 << 10;
/// Reductions of one chunk that are one chunk. With the bound above it has 64 KiB.
pub const SEVERAL_MAX: usize = 8;
/// Partial results that one chunk merges, and so its inputs at most. As each may share its chunk with others, these are
/// 8 MiB with the bounds above, and each of `SEVERAL_MAX` merges may read the same.
pub const LEAVES_MAX: usize = 128;
/// Chunks without inputs whose partial results are made by one: each that is lost is computed again with all of them.
pub const GROUP_CHAINS_MAX: usize = 16;
/// Steps of those together.
pub const GROUP_STEPS_MAX: usize = 128;
/// Bytes of all tensors on the way of those together. That is some ten milliseconds of one worker, a few times what a task
/// costs the nodes.
pub const GROUP_BYTES_MAX: u64 = 32 << 20;
/// Groups of such chunks that a graph must be left with: with fewer, workers would have nothing to do.
pub const GROUPS_MIN: usize = 16;
/// How many partial results are merged at a time, along each reduced axis. It is part of what results mean: sums of
/// fractions depend on it.
pub const COMBINE_SIZE: usize = 4;
