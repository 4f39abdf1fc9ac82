//! Workloads on tables: paths to a server, settings of servers, numbers of threads.
//!
//! Variants with the same server settings share a server; others run side by side and are loaded in
//! turns. Every variant has a database of its own, filled anew in every round.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use super::{
    Setting, Watch,
    companion::Companion,
    configuration, database, parameters, relay,
    replica::{CATCH_UP_SECONDS, attach_replica, catch_up},
};
use crate::{
    catalogue::{Extent, Path, Spec, VariantSpec},
    driver::{Load, Loaded},
    error::BenchError,
    experiment::{Experiment, GroupPlan, Measured, VariantPlan},
    proof,
    relay::{Relay, SCRATCH_USER},
    report::{Proof, ServerInfo},
    server::{Address, Configuration, Family, Private, Server, Session},
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
    places: Vec<Place>,
    variants: Vec<Side>,
    /// The scratch engine of the relays that have one.
    engine: Option<Private>,
    groups: Vec<Cell>,
    info: Option<ServerInfo>,
}

/// A server, with its replica if it has one.
struct Place {
    configuration: Configuration,
    companion: Option<Companion>,
    // Ended first: it would look for its source.
    replica: Option<Private>,
    server: Server,
    pool_mib: Option<u32>,
}

/// A variant that may be run.
struct Side {
    spec: VariantSpec,
    unavailable: Option<String>,
    place: usize,
    relay: Option<Relay>,
    address: Option<Address>,
    database: String,
    bytes_per_row: Option<f64>,
}

struct Cell {
    workload: String,
    threads: u32,
    pool_mib: Option<u32>,
}

impl<'a> LoadExperiment<'a> {
    /// Starts servers and relays.
    pub fn prepare(
        setting: &'a Setting<'a>,
        spec: &'a Spec,
        extent: &'a Extent,
    ) -> Result<Self, BenchError> {
        let mut experiment = Self {
            setting,
            spec,
            extent,
            places: Vec::new(),
            variants: Vec::new(),
            engine: None,
            groups: groups(extent),
            info: None,
        };
        for variant in &spec.variants {
            match (variant.path, setting.peers) {
                (Path::Peer, []) => experiment.add(variant.clone(), None)?,
                (Path::Peer, peers) => {
                    for (name, dsn) in peers {
                        let peer = VariantSpec {
                            name: format!("peer-{name}"),
                            label: format!("{name} (--peer)"),
                            ..variant.clone()
                        };
                        experiment.add(peer, Some(dsn.address().clone()))?;
                    }
                }
                _ => experiment.add(variant.clone(), None)?,
            }
        }
        if let Some(place) = experiment.places.first() {
            let mut settings = place.configuration.options.clone();
            if setting.given.is_none() {
                settings.push("--innodb-buffer-pool-size=256M".into());
                settings.push("--innodb-flush-log-at-trx-commit=2".into());
            }
            experiment.info = Some(place.server.info(settings)?);
        }
        Ok(experiment)
    }

    fn add(&mut self, variant: VariantSpec, peer: Option<Address>) -> Result<(), BenchError> {
        let mut unavailable = self.setting.unavailable(&variant);
        if variant.path == Path::Peer && peer.is_none() {
            unavailable = Some("no other proxy was named with --peer NAME=DSN".into());
        }
        let database = database(&variant.name);
        let mut side = Side {
            spec: variant,
            unavailable,
            place: 0,
            relay: None,
            address: None,
            database,
            bytes_per_row: None,
        };
        if side.unavailable.is_none() {
            side.place = self.place(&side.spec)?;
            let server = self.places[side.place].server.address().clone();
            let scratch = match side.spec.scratch {
                true => self.engine()?,
                false => None,
            };
            let (setting, scratch) = (self.setting, scratch.as_deref());
            let (relay, address) = relay(setting, &side.spec, &server, &side.database, scratch)?;
            side.relay = relay;
            side.address = Some(peer.unwrap_or(address));
        }
        self.variants.push(side);
        Ok(())
    }

    /// The socket of the scratch engine, a private server; none where no server program is
    /// installed.
    fn engine(&mut self) -> Result<Option<PathBuf>, BenchError> {
        let Setting {
            workshop, family, ..
        } = *self.setting;
        if workshop.program(family).is_none() {
            return Ok(None);
        }
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let account = format!("'{SCRATCH_USER}'@'localhost'");
                let setup = [
                    format!("CREATE USER {account}"),
                    format!("GRANT ALL PRIVILEGES ON *.* TO {account}"),
                ];
                let configuration = Configuration {
                    setup: setup.into(),
                    ..Configuration::default()
                };
                Private::start(workshop, family, &configuration)?
            }
        };
        let socket = engine.socket();
        self.engine = Some(engine);
        Ok(Some(socket))
    }

    /// The server for a variant; started if there is none with its settings.
    fn place(&mut self, variant: &VariantSpec) -> Result<usize, BenchError> {
        let configuration = configuration(self.spec, Some(variant), self.setting.family);
        let shared = self.places.iter().position(|place| {
            place.configuration == configuration && place.companion.is_none() && !self.spec.grows
        });
        if let (Some(place), None) = (shared, &variant.beside) {
            return Ok(place);
        }
        let server = self.setting.server(self.spec, Some(variant))?;
        let replica = match (&server, self.spec.replica) {
            (Server::Private(source), true) => Some(attach_replica(self.setting.workshop, source)?),
            _ => None,
        };
        let companion = match &variant.beside {
            None => None,
            Some(arguments) => Some(Companion::start(
                self.setting.workshop,
                server.address(),
                arguments,
            )?),
        };
        self.places.push(Place {
            configuration,
            companion,
            server,
            replica,
            pool_mib: None,
        });
        Ok(self.places.len() - 1)
    }

    fn load(&self, side: &Side, cell: &Cell, seconds: f64) -> Load {
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
            database: side.database.clone(),
            tables,
            rows,
            threads: cell.threads,
            seconds,
            events,
        }
    }

    /// Waits until no server works off what earlier runs changed: it would take time from the run
    /// that comes.
    fn settled(&self) -> Result<Proof, BenchError> {
        let begin = Instant::now();
        let mut left = 0;
        for place in &self.places {
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

    fn proofs(&self, side: &Side, when: &str) -> Result<Vec<Proof>, BenchError> {
        let server = &self.places[side.place].server;
        let mut session = server.session()?;
        let setting = side.spec.setting(self.setting.family);
        let mut proofs = proof::status(&mut session, setting, &side.database, when)?;
        proofs.extend(proof::columns(
            &mut session,
            &side.database,
            "sbtest1",
            &side.spec,
        )?);
        if let (Some(canary), Some(found)) = (self.spec.canary, side.spec.canary_found) {
            proofs.push(proof::canary(server, canary, &side.database, found, when)?);
        }
        Ok(proofs)
    }
}

fn groups(extent: &Extent) -> Vec<Cell> {
    let pools: Vec<Option<u32>> = match extent.pool_mib.as_slice() {
        [] => vec![None],
        pools => pools.iter().copied().map(Some).collect(),
    };
    let mut groups = Vec::new();
    for pool_mib in pools {
        for workload in &extent.workloads {
            for threads in &extent.threads {
                groups.push(Cell {
                    workload: workload.clone(),
                    threads: *threads,
                    pool_mib,
                });
            }
        }
    }
    groups
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
            .variants
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
                let mut label = format!("{}, {threads}", cell.workload);
                if let Some(pool) = cell.pool_mib {
                    list.push(("buffer pool", format!("{pool} MiB")));
                    label += &format!(", {pool} MiB buffer pool");
                }
                GroupPlan {
                    label,
                    parameters: parameters(&list),
                    baseline: self.spec.baseline.clone(),
                    variants: variants.clone(),
                }
            })
            .collect()
    }

    fn begin_round(&mut self, _round: usize) -> Result<(), BenchError> {
        for n in 0..self.variants.len() {
            let side = &self.variants[n];
            let Some(address) = side.address.clone() else {
                continue;
            };
            let server = &self.places[side.place].server;
            let mut session = server.session()?;
            session.run(&format!("DROP DATABASE IF EXISTS `{}`", side.database))?;
            session.run(&format!("CREATE DATABASE `{}`", side.database))?;
            let cell = &self.groups[0];
            let load = self.load(side, cell, 0.0);
            self.setting
                .driver
                .prepare(&address, &load, &self.setting.workshop.stop)?;
            if self.spec.canary.is_some() {
                proof::prepare_canary(&mut session, &side.database)?;
            }
            let file = server
                .data()
                .map(|data| data.join(&side.database).join("sbtest1.ibd"));
            let size = file
                .and_then(|file| file.metadata().ok())
                .map(|file| file.len());
            // The first extents of a file are there whatever is in it.
            self.variants[n].bytes_per_row = size
                .filter(|_| self.extent.rows >= 5000)
                .map(|size| size as f64 / f64::from(self.extent.rows));
        }
        Ok(())
    }

    fn begin_group(&mut self, group: usize) -> Result<(), BenchError> {
        let Some(pool) = self.groups[group].pool_mib else {
            return Ok(());
        };
        for place in &mut self.places {
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
        let (side, cell) = (&self.variants[variant], &self.groups[group]);
        let place = &self.places[side.place];
        let address = side.address.as_ref().ok_or(BenchError::Interrupted)?;
        let stop = &self.setting.workshop.stop;
        if round == 0 && self.extent.warmup > 0.0 && self.extent.insert_events == 0 {
            let load = self.load(side, cell, self.extent.warmup);
            self.setting.driver.run(address, &load, stop)?;
        }
        let mut proofs = self.proofs(side, "before")?;
        if self.spec.grows {
            proofs.push(self.settled()?);
        }
        let load = self.load(side, cell, self.extent.seconds);
        let written = place.companion.as_ref().map(Companion::bytes);
        let watch = Watch::start(&place.server, side.relay.as_ref());
        let loaded = self.setting.driver.run(address, &load, stop)?;
        let mut metrics = metrics_of(&loaded);
        let mut series = loaded.series.clone();
        watch.end(loaded.queries, &mut metrics, &mut series, &mut proofs);
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
        if let (Some(companion), Some(before)) = (&place.companion, written) {
            proofs.push(companion.proof(before));
        }
        proofs.extend(self.proofs(side, "after")?);
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

impl Drop for LoadExperiment<'_> {
    fn drop(&mut self) {
        // Relays before the servers behind them; and a given server keeps nothing of ours.
        for side in &mut self.variants {
            side.relay = None;
            if side.unavailable.is_some() {
                continue;
            }
            let server = &self.places[side.place].server;
            if let (Server::Given(_), Ok(mut session)) = (server, server.session()) {
                let _ = session.attempt(&format!("DROP DATABASE IF EXISTS `{}`", side.database));
            }
        }
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
