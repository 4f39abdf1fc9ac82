//! How far a stream has come, for whoever shows it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts bytes while a stream is sealed or opened. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
}

impl Progress {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of input so far.
    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    /// Bytes of output so far.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    pub(crate) fn add_read(&self, bytes: usize) {
        self.0.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_written(&self, bytes: usize) {
        self.0.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
