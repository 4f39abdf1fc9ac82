//! The checkpoint's phases: how far a migration has come, for whoever goes on with it.

use onionskin_rowstream::checkpoint::State;

/// The new table may not be there, and holds nothing that is needed.
pub(crate) const PREPARE: &str = "prepare";
/// Rows are copied.
pub(crate) const COPY: &str = "copy";
/// The tables are compared.
pub(crate) const CHECK: &str = "check";
/// The tables are exchanged. If the new one is missing, they have been.
pub(crate) const SWITCH: &str = "switch";
/// The old table is fed.
pub(crate) const REVERSE: &str = "reverse";
/// The tables are switched back.
pub(crate) const ROLL_BACK: &str = "roll back";
/// The old table is about to be dropped or given up, so that it may be missing.
pub(crate) const FINISH: &str = "finish";
/// The new table may have been dropped.
pub(crate) const ABORT: &str = "abort";

/// Whether a checkpoint is one of a table that has been switched and is fed back.
pub(crate) fn is_reverse(state: &State) -> bool {
    [REVERSE, ROLL_BACK, FINISH].contains(&state.phase.as_str())
}
