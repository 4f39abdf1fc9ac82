//! Reserved: the phases of a table change. No code yet.
