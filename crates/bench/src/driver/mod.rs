//! What makes the load: the installed sysbench, unmodified, or a driver of our own with the same
//! statements.

mod builtin;
mod histogram;
mod statements;
mod sysbench;

pub(crate) use builtin::connect;
pub use builtin::{BuiltIn, Pace, Until};
pub use histogram::Histogram;
pub use statements::{Statements, Table, WORKLOADS, groups};
pub use sysbench::Sysbench;

use crate::{error::BenchError, process::Stop, report::Series, server::Address};

/// A load of the tables `sbtest1` … in a database.
#[derive(Clone, Debug)]
pub struct Load {
    /// One of [`WORKLOADS`].
    pub workload: String,
    /// Where the tables are.
    pub database: String,
    /// How many there are.
    pub tables: u32,
    /// Rows that each had in the beginning.
    pub rows: u32,
    /// Sessions at once.
    pub threads: u32,
    /// How its statements travel.
    pub statements: Statements,
    /// How long.
    pub seconds: f64,
    /// That many transactions instead, however long they take; 0: by time.
    pub events: u64,
}

/// What a load has measured.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Iterations of the workload.
    pub transactions: f64,
    /// Statements.
    pub queries: f64,
    /// Wall time.
    pub seconds: f64,
    /// Milliseconds of a transaction: mean, 50 %, 95 %, 99 %.
    pub latency_ms: [f64; 4],
    /// The longest one.
    pub longest_ms: f64,
    /// Errors that an application would have had to deal with: deadlocks and the like; after any
    /// other only a load at a given rate goes on.
    pub errors: f64,
    /// Statements a second, over time.
    pub series: Vec<Series>,
    /// What was run, without the password.
    pub command: String,
}

/// Either driver.
#[derive(Clone, Debug)]
pub enum Driver {
    /// The installed one.
    Sysbench(Sysbench),
    /// Ours.
    BuiltIn,
}

impl Driver {
    /// sysbench if it is installed.
    pub fn find() -> Self {
        Sysbench::find().map_or(Self::BuiltIn, Self::Sysbench)
    }

    /// For the report.
    pub fn name(&self) -> String {
        match self {
            Self::Sysbench(sysbench) => sysbench.version.clone(),
            Self::BuiltIn => "built-in driver".into(),
        }
    }

    /// Makes and fills the tables of a load.
    pub fn prepare(&self, address: &Address, load: &Load, stop: &Stop) -> Result<(), BenchError> {
        match self {
            Self::Sysbench(sysbench) => sysbench.prepare(address, load, stop),
            Self::BuiltIn => BuiltIn::prepare(address, load, stop),
        }
    }

    /// Runs it.
    pub fn run(&self, address: &Address, load: &Load, stop: &Stop) -> Result<Loaded, BenchError> {
        match self {
            Self::Sysbench(sysbench) => sysbench.run(address, load, stop),
            Self::BuiltIn => {
                BuiltIn::start(address, load, Pace::Unlimited, Until::of(load), stop).join()
            }
        }
    }
}
