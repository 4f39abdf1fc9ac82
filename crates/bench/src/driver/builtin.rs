//! The driver of our own: threads with statements, as fast as they can or at a given rate.
//!
//! At a given rate, a statement's time counts from the moment at which it *should* have begun.
//! Otherwise a server that stands still would be measured once for each thread instead of once for
//! each statement that its clients wanted.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mysql::{Conn, OptsBuilder, Params, prelude::Queryable};

use super::{Histogram, Load, Loaded, Statements, Table, statements};
use crate::{error::BenchError, process::Stop, report::Series, server::Address};

/// Deadlock, lock wait timeout, row changed since it was read: to be tried again, as sysbench does.
const RETRIED: [u16; 3] = [1213, 1205, 1020];
/// The width of a point of the throughput over time, in seconds.
const SLOT: f64 = 0.1;

/// How fast.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// The next as soon as the last has ended.
    Unlimited,
    /// Iterations a second, of all threads together.
    Rate(f64),
}

/// How long.
#[derive(Clone, Debug)]
pub enum Until {
    /// That many seconds.
    Seconds(f64),
    /// That many iterations of all threads together.
    Events(Arc<AtomicU64>),
    /// Until it is set.
    Flag(Arc<AtomicBool>),
}

impl Until {
    /// What a load asks for.
    pub fn of(load: &Load) -> Self {
        match load.events {
            0 => Self::Seconds(load.seconds),
            events => Self::Events(Arc::new(AtomicU64::new(events))),
        }
    }
}

/// A load that runs.
pub struct BuiltIn {
    threads: Vec<JoinHandle<Result<Part, BenchError>>>,
    begin: Instant,
    stop: Stop,
    command: String,
}

/// What one thread has measured.
#[derive(Default)]
struct Part {
    histogram: Histogram,
    queries: u64,
    errors: u64,
    slots: Vec<u32>,
}

impl BuiltIn {
    /// Makes and fills the tables.
    pub fn prepare(address: &Address, load: &Load, stop: &Stop) -> Result<(), BenchError> {
        let mut connection = connect(address)?;
        let mut rng = rand::rng();
        let mut run = |sql: String| {
            if stop.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            connection
                .query_drop(&sql)
                .map_err(|error| failed(&sql, &error))
        };
        for n in 1..=load.tables {
            let table = Table::new(&load.database, n, load.rows);
            run(table.create())?;
            let mut left = load.rows;
            while left > 0 {
                let count = left.min(500);
                run(table.fill(count, &mut rng))?;
                left -= count;
            }
            run(format!("CREATE INDEX k_{n} ON {} (k)", table.name))?;
        }
        Ok(())
    }

    /// Starts the threads.
    pub fn start(address: &Address, load: &Load, pace: Pace, until: Until, stop: &Stop) -> Self {
        let begin = Instant::now();
        let threads = (0..load.threads.max(1))
            .map(|number| {
                let worker = Worker {
                    address: address.clone(),
                    load: load.clone(),
                    pace,
                    until: until.clone(),
                    stop: Arc::clone(stop),
                    begin,
                    number,
                };
                thread::spawn(move || worker.run())
            })
            .collect();
        let rate = match pace {
            Pace::Unlimited => String::new(),
            Pace::Rate(rate) => format!(" at {rate} a second"),
        };
        Self {
            threads,
            begin,
            stop: Arc::clone(stop),
            command: format!(
                "built-in driver: {}, {}, {} tables of {} rows, {} threads{rate}",
                load.workload,
                load.statements.name(),
                load.tables,
                load.rows,
                load.threads
            ),
        }
    }

    /// Waits for its end.
    pub fn join(self) -> Result<Loaded, BenchError> {
        let mut all = Part::default();
        let mut error = None;
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(part)) => {
                    all.histogram.merge(&part.histogram);
                    all.queries += part.queries;
                    all.errors += part.errors;
                    if all.slots.len() < part.slots.len() {
                        all.slots.resize(part.slots.len(), 0);
                    }
                    for (sum, count) in all.slots.iter_mut().zip(&part.slots) {
                        *sum += count;
                    }
                }
                Ok(Err(found)) => error = Some(found),
                Err(_) => {
                    error = Some(BenchError::Program {
                        program: "built-in driver".into(),
                        said: "a thread has panicked".into(),
                    });
                }
            }
        }
        let seconds = self.begin.elapsed().as_secs_f64();
        // The last slot is not over.
        all.slots.pop();
        if self.stop.load(Ordering::Relaxed) {
            return Err(BenchError::Interrupted);
        }
        if let Some(error) = error {
            return Err(error);
        }
        let histogram = &all.histogram;
        Ok(Loaded {
            transactions: histogram.count() as f64,
            queries: all.queries as f64,
            seconds,
            latency_ms: [
                histogram.mean() * 1e3,
                histogram.percentile(0.5) * 1e3,
                histogram.percentile(0.95) * 1e3,
                histogram.percentile(0.99) * 1e3,
            ],
            longest_ms: histogram.longest() * 1e3,
            errors: all.errors as f64,
            series: vec![Series {
                name: "statements".into(),
                unit: "1/s".into(),
                points: all
                    .slots
                    .iter()
                    .enumerate()
                    .map(|(slot, count)| (slot as f64 * SLOT, f64::from(*count) / SLOT))
                    .collect(),
            }],
            command: self.command,
        })
    }
}

struct Worker {
    address: Address,
    load: Load,
    pace: Pace,
    until: Until,
    stop: Stop,
    begin: Instant,
    number: u32,
}

impl Worker {
    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || match &self.until {
                Until::Seconds(seconds) => self.begin.elapsed().as_secs_f64() >= *seconds,
                // Each takes its next one when it asks, see `run`.
                Until::Events(left) => left.load(Ordering::Relaxed) == 0,
                Until::Flag(flag) => flag.load(Ordering::Relaxed),
            }
    }

    /// Takes one of a number of iterations; `false` if none is left.
    fn take(&self) -> bool {
        match &self.until {
            Until::Events(left) => left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok(),
            _ => true,
        }
    }

    fn run(self) -> Result<Part, BenchError> {
        let mut connection = connect(&self.address)?;
        let mut statements: HashMap<String, mysql::Statement> = HashMap::new();
        let mut rng = rand::rng();
        let mut part = Part::default();
        let tables: Vec<Table> = (1..=self.load.tables)
            .map(|n| Table::new(&self.load.database, n, self.load.rows))
            .collect();
        let mut done: u64 = 0;
        while !self.over() && self.take() {
            let intended = match self.pace {
                Pace::Unlimited => Instant::now(),
                Pace::Rate(rate) => {
                    let turn = done as f64 * f64::from(self.load.threads) + f64::from(self.number);
                    let at = self.begin + Duration::from_secs_f64(turn / rate);
                    // Short sleeps: the end of the load must not wait for a slow schedule.
                    while Instant::now() < at && !self.over() {
                        thread::sleep(
                            at.saturating_duration_since(Instant::now())
                                .min(Duration::from_millis(20)),
                        );
                    }
                    if Instant::now() < at {
                        break;
                    }
                    at
                }
            };
            let table = &tables[(done + u64::from(self.number)) as usize % tables.len()];
            let (list, transaction) =
                table
                    .iteration(&self.load.workload, &mut rng)
                    .ok_or_else(|| {
                        BenchError::Catalogue(format!("unknown workload {}", self.load.workload))
                    })?;
            let mut count = list.len() as u64;
            if transaction {
                count += 2;
            }
            // Until it succeeds, as an application would.
            loop {
                let prepared = match self.load.statements {
                    Statements::Text => None,
                    Statements::Prepared => Some(&mut statements),
                };
                match iterate(&mut connection, prepared, &list, transaction) {
                    Ok(()) => break,
                    Err(mysql::Error::MySqlError(error)) if RETRIED.contains(&error.code) => {
                        let _ = connection.query_drop("ROLLBACK");
                        if self.stop.load(Ordering::Relaxed) {
                            return Ok(part);
                        }
                    }
                    // What a tool does to an application is what is to be seen.
                    Err(mysql::Error::MySqlError(_)) if matches!(self.pace, Pace::Rate(_)) => {
                        part.errors += 1;
                        break;
                    }
                    Err(error) => return Err(failed(&self.load.workload, &error)),
                }
            }
            part.histogram.add(intended.elapsed().as_secs_f64());
            part.queries += count;
            let slot = (self.begin.elapsed().as_secs_f64() / SLOT) as usize;
            if part.slots.len() <= slot {
                part.slots.resize(slot + 1, 0);
            }
            part.slots[slot] += count as u32;
            done += 1;
        }
        Ok(part)
    }
}

/// Runs a list of statements: prepared ones, or their texts.
fn iterate(
    connection: &mut Conn,
    mut prepared: Option<&mut HashMap<String, mysql::Statement>>,
    list: &[(String, Vec<mysql::Value>)],
    transaction: bool,
) -> mysql::Result<()> {
    if transaction {
        connection.query_drop("BEGIN")?;
    }
    for (sql, values) in list {
        let Some(prepared) = prepared.as_deref_mut() else {
            connection.query_drop(statements::text(sql, values))?;
            continue;
        };
        if !prepared.contains_key(sql) {
            let statement = connection.prep(sql)?;
            prepared.insert(sql.clone(), statement);
        }
        connection.exec_drop(&prepared[sql], Params::Positional(values.clone()))?;
    }
    if transaction {
        connection.query_drop("COMMIT")?;
    }
    Ok(())
}

/// A session over TCP.
pub(crate) fn connect(address: &Address) -> Result<Conn, BenchError> {
    Conn::new(
        OptsBuilder::new()
            .ip_or_hostname(Some(address.host.clone()))
            .tcp_port(address.port)
            .prefer_socket(false)
            .user(Some(address.user.clone()))
            .pass(Some(address.password.clone()))
            .stmt_cache_size(0),
    )
    .map_err(|error| BenchError::Unreachable {
        server: address.text(),
        said: error.to_string(),
    })
}

fn failed(sql: &str, error: &mysql::Error) -> BenchError {
    BenchError::Statement {
        sql: sql.chars().take(120).collect(),
        said: error.to_string(),
    }
}
