//! The kinds of experiments that `scenarios.toml` describes.

mod backup;
mod companion;
mod functions;
mod load;
mod network;
mod replica;
mod sides;
mod table_change;

pub use backup::Backup;
pub use functions::Functions;
pub use load::LoadExperiment;
pub use table_change::TableChange;

use std::collections::BTreeMap;

use crate::{
    catalogue::{Extent, Path, Spec, VariantSpec},
    driver::Driver,
    error::BenchError,
    process::{MemorySampler, cpu_seconds},
    relay::{Relay, missing},
    report::{Proof, Series},
    server::{Address, Configuration, Dsn, Family, Given, Private, Server, Workshop},
};

/// What all experiments of a call share.
pub struct Setting<'a> {
    /// Where servers are made.
    pub workshop: &'a Workshop,
    /// Which family to start, if no server is given.
    pub family: Family,
    /// A server that somebody runs.
    pub given: Option<&'a Dsn>,
    /// Other proxies before it, by name.
    pub peers: &'a [(String, Dsn)],
    /// What makes the load.
    pub driver: Driver,
}

impl Setting<'_> {
    /// Why a variant cannot be run, if so.
    fn unavailable(&self, variant: &VariantSpec) -> Option<String> {
        let setting = variant.setting(self.family);
        setting
            .unavailable
            .clone()
            .or_else(|| missing(&variant.needs, self.workshop))
    }

    /// A server with the settings of a scenario and a variant; the given one if there is one.
    fn server(&self, spec: &Spec, variant: Option<&VariantSpec>) -> Result<Server, BenchError> {
        match self.given {
            Some(dsn) => Given::open(dsn.clone()).map(Server::Given),
            None => {
                let configuration = configuration(spec, variant, self.family);
                Private::start(self.workshop, self.family, &configuration)
                    .map(Box::new)
                    .map(Server::Private)
            }
        }
    }
}

/// What a variant's server is started with.
pub fn configuration(spec: &Spec, variant: Option<&VariantSpec>, family: Family) -> Configuration {
    let common = spec.setting(family);
    let own = variant.map(|variant| variant.setting(family));
    let join = |a: &[String], b: Option<&Vec<String>>| -> Vec<String> {
        a.iter().chain(b.into_iter().flatten()).cloned().collect()
    };
    Configuration {
        options: join(&common.options, own.map(|own| &own.options)),
        keys: variant.is_some_and(|variant| variant.keys),
        setup: join(&common.setup, own.map(|own| &own.setup)),
    }
}

/// The relay of a variant, and where the load goes then.
fn relay(
    setting: &Setting<'_>,
    variant: &VariantSpec,
    server: &Address,
    database: &str,
    scratch: Option<&std::path::Path>,
) -> Result<(Option<Relay>, Address), BenchError> {
    let relay = match variant.path {
        Path::Direct | Path::Peer => return Ok((None, server.clone())),
        Path::Haproxy => Relay::haproxy(setting.workshop, server)?,
        Path::Onionskin => {
            let protect = variant.protect.as_deref().map(|lines| (database, lines));
            Relay::onionskin(setting.workshop, server, protect, scratch)?
        }
    };
    let address = server.through(relay.port());
    Ok((Some(relay), address))
}

/// The database of a variant.
fn database(variant: &str) -> String {
    format!("onionskin_bench_{}", variant.replace(['-', '.'], "_"))
}

fn parameters(list: &[(&str, String)]) -> BTreeMap<String, String> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

/// CPU time and memory of the server and the relay during a load.
struct Watch {
    server: Option<(u32, f64)>,
    relay: Option<(u32, f64, MemorySampler)>,
}

impl Watch {
    fn start(server: &Server, relay: Option<&Relay>) -> Self {
        let cpu = |pid| cpu_seconds(pid).unwrap_or(0.0);
        Self {
            server: server.pid().map(|pid| (pid, cpu(pid))),
            relay: relay.map(|relay| {
                let pid = relay.pid();
                (pid, cpu(pid), MemorySampler::start(pid))
            }),
        }
    }

    /// Adds CPU for each of `queries` statements and the relay's memory; a relay that did nothing
    /// was not passed.
    fn end(
        self,
        queries: f64,
        metrics: &mut BTreeMap<String, f64>,
        series: &mut Vec<Series>,
        proofs: &mut Vec<Proof>,
    ) {
        let each = |pid: u32, before: f64| {
            (cpu_seconds(pid).unwrap_or(before) - before) * 1e6 / queries.max(1.0)
        };
        let mut total = 0.0;
        if let Some((pid, before, memory)) = self.relay {
            let cpu = each(pid, before);
            let points = memory.end();
            let used = cpu > 0.0;
            proofs.push(Proof {
                what: "CPU time of the relay".into(),
                expected: "more than none".into(),
                found: format!("{:.2} s", cpu * queries / 1e6),
                holds: used,
            });
            metrics.insert("relay_cpu_us".into(), cpu);
            total += cpu;
            let highest = points.iter().map(|(_, mib)| *mib).fold(0.0, f64::max);
            if let (Some((_, first)), Some((_, last))) = (points.first(), points.last()) {
                metrics.insert("relay_memory_mib".into(), highest);
                metrics.insert("relay_growth_mib".into(), last - first);
            }
            series.push(Series {
                name: "memory of the relay".into(),
                unit: "MiB".into(),
                points: thinned(points),
            });
        }
        if let Some((pid, before)) = self.server {
            let cpu = each(pid, before);
            metrics.insert("server_cpu_us".into(), cpu);
            metrics.insert("cpu_us".into(), total + cpu);
        }
    }
}

/// At most a few hundred points, so that a report of hours stays small.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(400).max(1);
    points.into_iter().step_by(step).collect()
}

/// How long a scenario with that many variants will take, in seconds, without knowing the machine.
pub fn estimate(spec: &Spec, extent: &Extent, variants: usize) -> f64 {
    use crate::catalogue::Kind;
    let variants = variants as f64;
    let rounds = extent.rounds as f64;
    let tables = f64::from(extent.tables) * f64::from(extent.rows);
    // Rows a second that a filling reaches.
    let fill = tables / 60_000.0 + 0.2;
    match spec.kind {
        Kind::Backup => variants * rounds * 2.0 * (extent.mib as f64 / 120.0 + 0.1),
        Kind::Load => {
            let trips = &extent.round_trips_ms;
            let groups = [
                extent.workloads.len(),
                extent.threads.len(),
                extent.pool_mib.len().max(1),
                extent.statements.len().max(1),
                trips.len().max(1),
            ]
            .iter()
            .product::<usize>() as f64;
            // Near and far tables; pings before and after each run.
            let ways = match trips.contains(&0.0) && trips.len() > 1 {
                true => 2.0,
                false => 1.0,
            };
            let pings = if trips.is_empty() { 0.0 } else { 0.2 };
            let turns = if spec.grows { rounds } else { 1.0 };
            let inserts = turns * extent.insert_events as f64 / 10_000.0;
            5.0 + variants
                * (rounds * (ways * fill + groups * (extent.seconds + 0.2 + pings))
                    + groups * extent.warmup
                    + inserts)
        }
        Kind::TableChange => {
            5.0 + variants * rounds * extent.rates.len() as f64 * (fill + tables / 40_000.0 + 2.0)
        }
        Kind::Functions => 5.0 + variants * rounds * (3.0 * extent.seconds + 0.5),
    }
}
