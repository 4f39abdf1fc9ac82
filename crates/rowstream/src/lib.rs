//! Reserved: binlog → transactions → rows; copy, apply, checksum, checkpoint. No code yet.
