//! Workloads on tables: paths to a server, settings of servers, numbers of threads, how far the
//! server is.
//!
//! Variants are loaded in turns. Every variant has a database of its own, filled anew in every
//! round. What they run on is prepared by [`super::sides`].

use std::{
    collections::BTreeMap,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use super::{
    Setting, Watch,
    companion::Companion,
    network::{LinkWatch, prove, set},
    parameters,
    replica::{CATCH_UP_SECONDS, catch_up},
    sides::{Side, Sides, Way},
};
use crate::{
    catalogue::{Extent, Spec},
    driver::{Load, Loaded, Statements},
    error::BenchError,
    experiment::{Experiment, GroupPlan, Measured, VariantPlan},
    metric::ROUND_TRIP,
    proof,
    report::{Proof, ServerInfo},
    server::{Family, Server, Session},
};

/// What a server may have left to purge when a run begins; some of it is only removed once more is
/// written.
const TO_PURGE: u64 = 1000;
const PURGE_LIMIT: Duration = Duration::from_secs(300);

/// See the module.
pub struct LoadExperiment<'a> {
    setting: &'a Setting<'a>,
    spec: &'a Spec,
    extent: &'a Extent,
    sides: Sides<'a>,
    groups: Vec<Cell>,
    info: Option<ServerInfo>,
}

/// A comparison.
struct Cell {
    workload: String,
    threads: u32,
    pool_mib: Option<u32>,
    statements: Option<Statements>,
    round_trip_ms: Option<f64>,
}

impl Cell {
    /// Whether the load goes over the link.
    fn is_far(&self) -> bool {
        self.round_trip_ms.is_some_and(|ms| ms > 0.0)
    }
}

impl<'a> LoadExperiment<'a> {
    /// Starts servers and relays.
    pub fn prepare(
        setting: &'a Setting<'a>,
        spec: &'a Spec,
        extent: &'a Extent,
    ) -> Result<Self, BenchError> {
        let sides = Sides::prepare(setting, spec, extent)?;
        let mut info = None;
        if let Some(place) = sides.places.first() {
            let mut settings = place.configuration.options.clone();
            if setting.given.is_none() {
                settings.push("--innodb-buffer-pool-size=256M".into());
                settings.push("--innodb-flush-log-at-trx-commit=2".into());
            }
            info = Some(place.server.info(settings)?);
        }
        Ok(Self {
            setting,
            spec,
            extent,
            sides,
            groups: groups(extent),
            info,
        })
    }

    fn load(&self, way: &Way, cell: &Cell, seconds: f64) -> Load {
        let Extent {
            tables,
            rows,
            insert_events,
            ..
        } = *self.extent;
        // Tables that an earlier cell filled are used as a whole: inserts choose a table at random.
        let (rows, events) = match cell.workload.as_str() {
            "oltp_insert" => (rows, insert_events),
            _ => {
                let rounds = if self.spec.grows {
                    self.extent.rounds
                } else {
                    1
                };
                let inserted = insert_events * rounds as u64 / u64::from(tables.max(1));
                (rows + u32::try_from(inserted).unwrap_or(u32::MAX - rows), 0)
            }
        };
        Load {
            workload: cell.workload.clone(),
            database: way.database.clone(),
            tables,
            rows,
            threads: cell.threads,
            statements: cell.statements.unwrap_or_default(),
            seconds,
            events,
        }
    }

    /// Waits until no server works off what earlier runs changed: it would take time from the run
    /// that comes.
    fn settled(&self) -> Result<Proof, BenchError> {
        let begin = Instant::now();
        let mut left = 0;
        for place in &self.sides.places {
            let mut session = place.server.session()?;
            loop {
                left = to_purge(&mut session, self.setting.family)?;
                if left <= TO_PURGE || begin.elapsed() > PURGE_LIMIT {
                    break;
                }
                if self.setting.workshop.stop.load(Ordering::Relaxed) {
                    return Err(BenchError::Interrupted);
                }
                thread::sleep(Duration::from_millis(200));
            }
            if left > TO_PURGE {
                break;
            }
        }
        Ok(Proof {
            what: "before: transactions that servers have to purge yet".into(),
            expected: format!("at most {TO_PURGE}"),
            found: left.to_string(),
            holds: left <= TO_PURGE,
        })
    }

    fn proofs(&self, side: &Side, way: &Way, when: &str) -> Result<Vec<Proof>, BenchError> {
        let server = &self.sides.places[side.place].server;
        let mut session = server.session()?;
        let setting = side.spec.setting(self.setting.family);
        let mut proofs = proof::status(&mut session, setting, &way.database, when)?;
        proofs.extend(proof::columns(
            &mut session,
            &way.database,
            "sbtest1",
            &side.spec,
        )?);
        if let (Some(canary), Some(found)) = (self.spec.canary, side.spec.canary_found) {
            proofs.push(proof::canary(server, canary, &way.database, found, when)?);
        }
        Ok(proofs)
    }
}

fn groups(extent: &Extent) -> Vec<Cell> {
    let pools = each(&extent.pool_mib);
    let mut groups = Vec::new();
    for round_trip_ms in each(&extent.round_trips_ms) {
        for pool_mib in &pools {
            for workload in &extent.workloads {
                for statements in each(&extent.statements) {
                    for threads in &extent.threads {
                        groups.push(Cell {
                            workload: workload.clone(),
                            threads: *threads,
                            pool_mib: *pool_mib,
                            statements,
                            round_trip_ms,
                        });
                    }
                }
            }
        }
    }
    groups
}

/// Each of a list, or once nothing.
fn each<T: Copy>(list: &[T]) -> Vec<Option<T>> {
    match list {
        [] => vec![None],
        list => list.iter().copied().map(Some).collect(),
    }
}

impl Experiment for LoadExperiment<'_> {
    fn server(&self) -> Option<ServerInfo> {
        self.info.clone()
    }

    fn grows(&self) -> bool {
        self.spec.grows
    }

    fn groups(&self) -> Vec<GroupPlan> {
        let variants: Vec<VariantPlan> = self
            .sides
            .sides
            .iter()
            .map(|side| {
                let mut settings = side.spec.setting(self.setting.family).options.clone();
                settings.extend(side.spec.setting(self.setting.family).setup.iter().cloned());
                settings.extend(side.spec.protect.iter().cloned());
                VariantPlan {
                    name: side.spec.name.clone(),
                    label: side.spec.label.clone(),
                    driver: self.setting.driver.name(),
                    unavailable: side.unavailable.clone(),
                    settings,
                }
            })
            .collect();
        // A relay that is not installed cannot be compared with; a direct connection always can.
        let is_there = |v: &&VariantPlan| v.unavailable.is_none();
        let named = |v: &&VariantPlan| v.name == self.spec.baseline;
        let baseline = match variants.iter().find(named).filter(is_there) {
            Some(variant) => variant.name.clone(),
            None => variants
                .iter()
                .find(is_there)
                .map_or_else(|| self.spec.baseline.clone(), |v| v.name.clone()),
        };
        self.groups
            .iter()
            .map(|cell| {
                let threads = match cell.threads {
                    1 => "1 thread".to_owned(),
                    n => format!("{n} threads"),
                };
                let mut list = vec![
                    ("workload", cell.workload.clone()),
                    ("threads", cell.threads.to_string()),
                ];
                let mut label = cell.workload.clone();
                if let Some(statements) = cell.statements {
                    list.push(("statements", statements.name().into()));
                    label += &format!(", {}", statements.name());
                }
                label += &format!(", {threads}");
                if let Some(ms) = cell.round_trip_ms {
                    list.push((ROUND_TRIP, ms.to_string()));
                    label += &format!(", {ms} {ROUND_TRIP}");
                }
                if let Some(pool) = cell.pool_mib {
                    list.push(("buffer pool", format!("{pool} MiB")));
                    label += &format!(", {pool} MiB buffer pool");
                }
                GroupPlan {
                    label,
                    parameters: parameters(&list),
                    baseline: baseline.clone(),
                    variants: variants.clone(),
                }
            })
            .collect()
    }

    fn begin_round(&mut self, _round: usize) -> Result<(), BenchError> {
        // Tables are filled without a delay.
        set(&self.sides.places, 0.0)?;
        for n in 0..self.sides.sides.len() {
            let side = &self.sides.sides[n];
            let server = &self.sides.places.get(side.place);
            let Some(server) = server.map(|place| &place.server) else {
                continue;
            };
            let mut file = None;
            for way in side.ways() {
                let mut session = server.session()?;
                session.run(&format!("DROP DATABASE IF EXISTS `{}`", way.database))?;
                session.run(&format!("CREATE DATABASE `{}`", way.database))?;
                let load = self.load(way, &self.groups[0], 0.0);
                self.setting
                    .driver
                    .prepare(&way.address, &load, &self.setting.workshop.stop)?;
                if self.spec.canary.is_some() {
                    proof::prepare_canary(&mut session, &way.database)?;
                }
                file = server
                    .data()
                    .map(|data| data.join(&way.database).join("sbtest1.ibd"));
            }
            let size = file
                .and_then(|file| file.metadata().ok())
                .map(|file| file.len());
            // The first extents of a file are there whatever is in it.
            self.sides.sides[n].bytes_per_row = size
                .filter(|_| self.extent.rows >= 5000)
                .map(|size| size as f64 / f64::from(self.extent.rows));
        }
        Ok(())
    }

    fn begin_group(&mut self, group: usize) -> Result<(), BenchError> {
        let cell = &self.groups[group];
        set(&self.sides.places, cell.round_trip_ms.unwrap_or_default())?;
        let Some(pool) = cell.pool_mib else {
            return Ok(());
        };
        for place in &mut self.sides.places {
            if place.pool_mib != Some(pool) {
                resize_pool(&place.server, pool)?;
                place.pool_mib = Some(pool);
            }
        }
        Ok(())
    }

    fn measure(
        &mut self,
        group: usize,
        variant: usize,
        round: usize,
    ) -> Result<Measured, BenchError> {
        let (side, cell) = (&self.sides.sides[variant], &self.groups[group]);
        let place = &self.sides.places[side.place];
        let way = side.way(cell.is_far()).ok_or(BenchError::Interrupted)?;
        let stop = &self.setting.workshop.stop;
        if round == 0 && self.extent.warmup > 0.0 && self.extent.insert_events == 0 {
            let load = self.load(way, cell, self.extent.warmup);
            self.setting.driver.run(&way.address, &load, stop)?;
        }
        let mut proofs = self.proofs(side, way, "before")?;
        if self.spec.grows {
            proofs.push(self.settled()?);
        }
        let mut pings = Vec::new();
        if let Some(ms) = cell.round_trip_ms {
            pings.push(prove(place, ms, "before", &mut proofs)?);
        }
        let load = self.load(way, cell, self.extent.seconds);
        let written = place.companion.as_ref().map(Companion::settled);
        let link = place.link.as_ref().map(LinkWatch::start);
        let watch = Watch::start(&place.server, way.relay.as_ref());
        let loaded = self.setting.driver.run(&way.address, &load, stop)?;
        let mut metrics = metrics_of(&loaded);
        let mut series = loaded.series.clone();
        watch.end(loaded.queries, &mut metrics, &mut series, &mut proofs);
        if let Some(link) = link {
            link.end(cell.is_far(), loaded.queries, &mut metrics, &mut proofs);
        }
        if let Some(ms) = cell.round_trip_ms {
            pings.push(prove(place, ms, "after", &mut proofs)?);
            let mean = pings.iter().sum::<f64>() / pings.len() as f64;
            metrics.insert("ping_ms".into(), mean);
        }
        if let Some(replica) = &place.replica {
            let seconds = catch_up(&place.server, replica)?;
            proofs.push(Proof {
                what: "after: the replica has applied everything".into(),
                expected: format!("within {CATCH_UP_SECONDS} s"),
                found: seconds.map_or_else(|| "no".into(), |s| format!("after {s:.2} s")),
                holds: seconds.is_some(),
            });
            metrics.extend(seconds.map(|seconds| ("replica_catch_up_s".to_owned(), seconds)));
        }
        proofs.extend(self.proofs(side, way, "after")?);
        // Behind the proof that has the server end its file: before that, a short load may still
        // lie in the command's buffers.
        if let (Some(companion), Some(before)) = (&place.companion, written) {
            proofs.push(companion.proof(before));
        }
        metrics.extend(
            side.bytes_per_row
                .map(|bytes| ("bytes_per_row".to_owned(), bytes)),
        );
        Ok(Measured {
            metrics,
            series,
            proofs,
            command: loaded.command,
        })
    }
}

/// Transactions whose old rows the server has yet to remove.
fn to_purge(session: &mut Session, family: Family) -> Result<u64, BenchError> {
    let sql = match family {
        Family::MariaDb => "SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'",
        Family::MySql => {
            "SELECT NAME, `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"
        }
    };
    let rows = session.rows(sql)?;
    rows.first()
        .and_then(|row| row.get(1)?.parse().ok())
        .ok_or_else(|| BenchError::Statement {
            sql: sql.into(),
            said: "no number".into(),
        })
}

/// The metrics that every load has.
pub fn metrics_of(loaded: &Loaded) -> BTreeMap<String, f64> {
    let seconds = loaded.seconds.max(1e-3);
    let [mean, p50, p95, p99] = loaded.latency_ms;
    [
        ("transactions_per_s", loaded.transactions / seconds),
        ("queries_per_s", loaded.queries / seconds),
        ("latency_mean_ms", mean),
        ("latency_p50_ms", p50),
        ("latency_p95_ms", p95),
        ("latency_p99_ms", p99),
        ("errors", loaded.errors),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Both servers change the pool's size while they run, and take a moment.
fn resize_pool(server: &Server, mib: u32) -> Result<(), BenchError> {
    let mut session = server.session()?;
    let bytes = u64::from(mib) << 20;
    session.run(&format!("SET GLOBAL innodb_buffer_pool_size = {bytes}"))?;
    for _ in 0..600 {
        let rows = session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_total'")?;
        let pages: u64 = rows
            .first()
            .and_then(|row| row.get(1)?.parse().ok())
            .unwrap_or(0);
        // Some pages describe others.
        if (pages * 16384).abs_diff(bytes) < bytes / 8 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(BenchError::Statement {
        sql: "SET GLOBAL innodb_buffer_pool_size".into(),
        said: format!("the buffer pool does not become {mib} MiB"),
    })
}
