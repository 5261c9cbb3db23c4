//! Timestamps with a meaning of their own, as BMF numbers them. All but [`UNSET`] sort behind every ordinary timestamp.

/// No timestamp; a task with it is refused.
pub const UNSET: i64 = -1;
/// A request to pause.
pub const PAUSE: i64 = i64::MAX - 5;
/// End of a stream that was added while the graph runs.
pub const DYN_EOS: i64 = i64::MAX - 4;
/// End of a file.
pub const EOF: i64 = i64::MAX - 3;
/// End of a stream.
pub const EOS: i64 = i64::MAX - 2;
/// A source that never ends: the lowest priority.
pub const INF_SRC: i64 = i64::MAX - 1;
/// Nothing comes any more.
pub const DONE: i64 = i64::MAX;
