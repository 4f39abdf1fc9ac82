//! Structured logs on standard error. They hold events, names and numbers; never a value, a key or
//! a password.
//!
//! `RUST_LOG` chooses what is logged, `ONIONSKIN_LOG=json` makes every line a JSON object.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// Called once, before anything is logged. `level` holds where RUST_LOG says nothing.
pub fn start(level: LevelFilter) {
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .from_env_lossy();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    if std::env::var_os("ONIONSKIN_LOG").is_some_and(|form| form == "json") {
        lines.json().init();
    } else {
        lines.init();
    }
}
