//! The entry points of all fuzzing: one function for each decoder that reads what an attacker may
//! have written, with seeds to start from.
//!
//! They run in two ways. `fuzz_targets/` hands them to libFuzzer, which needs a nightly compiler
//! (`make fuzz`). The test `onionskin/tests/fuzz_short.rs` includes this file and runs them on any
//! compiler for a few seconds each, with simple mutations of the seeds, as part of `make test`.
//!
//! A target fails by panicking: from inside a decoder, or because a promise stated here does not
//! hold.

pub mod ciphertext;
pub mod comments;
pub mod deep;
pub mod packets;
pub mod recipients;
pub mod statements;
pub mod streams;

/// A fuzz target.
pub struct Target {
    /// Its name, and that of its file in `fuzz_targets/`.
    pub name: &'static str,
    /// Decodes the input; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs worth starting from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "packets",
        run: packets::run,
        seeds: packets::seeds,
    },
    Target {
        name: "splitter",
        run: statements::splitter,
        seeds: statements::seeds,
    },
    Target {
        name: "plans",
        run: statements::plans,
        seeds: statements::seeds,
    },
    Target {
        name: "functions",
        run: statements::functions,
        seeds: statements::function_seeds,
    },
    Target {
        name: "deep",
        run: deep::run,
        seeds: deep::seeds,
    },
    Target {
        name: "ciphertext",
        run: ciphertext::run,
        seeds: ciphertext::seeds,
    },
    Target {
        name: "comments",
        run: comments::run,
        seeds: comments::seeds,
    },
    Target {
        name: "stream_header",
        run: streams::header,
        seeds: streams::header_seeds,
    },
    Target {
        name: "stream_frames",
        run: streams::frames,
        seeds: streams::frame_seeds,
    },
    Target {
        name: "stream_footer",
        run: streams::footer,
        seeds: streams::footer_seeds,
    },
    Target {
        name: "recipients",
        run: recipients::run,
        seeds: recipients::seeds,
    },
];
