//! A table is changed by different tools while sessions write to it at a given rate.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{Setting, database, parameters};
use crate::{
    catalogue::{Extent, Spec, VariantSpec},
    driver::{BuiltIn, Load, Pace, Statements, Until},
    error::BenchError,
    experiment::{Experiment, GroupPlan, Measured, VariantPlan},
    process::{self, Ended},
    relay::{home, missing},
    report::{Proof, ServerInfo},
    server::Server,
};

/// How long the load runs before and after the change.
const BEFORE: Duration = Duration::from_millis(1000);

/// See the module.
pub struct TableChange<'a> {
    setting: &'a Setting<'a>,
    spec: &'a Spec,
    extent: &'a Extent,
    server: Server,
    info: ServerInfo,
    unavailable: Vec<Option<String>>,
}

impl<'a> TableChange<'a> {
    /// Starts the server.
    pub fn prepare(
        setting: &'a Setting<'a>,
        spec: &'a Spec,
        extent: &'a Extent,
    ) -> Result<Self, BenchError> {
        let server = setting.server(spec, None)?;
        let info = server.info(spec.setting(setting.family).options.clone())?;
        Ok(Self {
            unavailable: spec
                .variants
                .iter()
                .map(|variant| missing(&variant.needs, setting.workshop))
                .collect(),
            setting,
            spec,
            extent,
            server,
            info,
        })
    }

    fn load(&self, database: &str) -> Load {
        Load {
            workload: "oltp_update_non_index".into(),
            database: database.into(),
            tables: 1,
            rows: self.extent.rows,
            threads: self.extent.threads.first().copied().unwrap_or(4),
            statements: Statements::Prepared,
            seconds: 0.0,
            events: 0,
        }
    }

    /// Runs the change and returns how it ended.
    fn change(&self, variant: &VariantSpec, database: &str) -> Result<Ended, BenchError> {
        let folder = self.setting.workshop.new_folder("t")?;
        let address = self.server.address();
        let defaults = folder.join("defaults.cnf");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&defaults)
            .map_err(BenchError::system(defaults.display().to_string()))?;
        write!(
            file,
            "[client]\nhost={}\nport={}\nuser={}\npassword={}\n",
            address.host, address.port, address.user, address.password
        )
        .map_err(BenchError::system(defaults.display().to_string()))?;
        let mut text = variant
            .change
            .clone()
            .unwrap_or_default()
            .replace("{database}", database);
        if variant.needs.is_empty() {
            let begin = Instant::now();
            let done = self.server.session()?.attempt(&text);
            return Ok(Ended {
                success: done.is_ok(),
                text: done.err().unwrap_or_default(),
                seconds: begin.elapsed().as_secs_f64(),
                cpu_seconds: 0.0,
                timed_out: false,
            });
        }
        if text.contains("{home}") {
            let home = home(self.setting.workshop, address, None)?;
            text = text.replace("{home}", &home.display().to_string());
        }
        text = text
            .replace("{defaults}", &defaults.display().to_string())
            .replace("{folder}", &folder.display().to_string())
            .replace("{port}", &address.port.to_string())
            .replace("{user}", &address.user)
            .replace(
                "{onionskin}",
                &self.setting.workshop.onionskin.display().to_string(),
            );
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!("exec {text}")])
            .env("ONIONSKIN_PASSWORD", &address.password);
        process::run(
            &mut command,
            &self.setting.workshop.stop,
            Duration::from_secs_f64(self.extent.seconds),
        )
    }
}

impl Experiment for TableChange<'_> {
    fn server(&self) -> Option<ServerInfo> {
        Some(self.info.clone())
    }

    fn groups(&self) -> Vec<GroupPlan> {
        self.extent
            .rates
            .iter()
            .map(|rate| GroupPlan {
                label: match rate {
                    0 => format!("{} rows, no load", self.extent.rows),
                    rate => format!("{} rows, {rate} updates/s", self.extent.rows),
                },
                parameters: parameters(&[
                    ("updates a second", rate.to_string()),
                    ("rows", self.extent.rows.to_string()),
                ]),
                baseline: self.spec.baseline.clone(),
                variants: self
                    .spec
                    .variants
                    .iter()
                    .zip(&self.unavailable)
                    .map(|(variant, unavailable)| VariantPlan {
                        name: variant.name.clone(),
                        label: variant.label.clone(),
                        driver: "built-in driver at a given rate".into(),
                        unavailable: unavailable.clone(),
                        settings: variant.change.iter().cloned().collect(),
                    })
                    .collect(),
            })
            .collect()
    }

    fn measure(
        &mut self,
        group: usize,
        variant: usize,
        _round: usize,
    ) -> Result<Measured, BenchError> {
        let variant = &self.spec.variants[variant];
        let rate = self.extent.rates[group];
        let stop = &self.setting.workshop.stop;
        let database = database(&variant.name);
        let mut session = self.server.session()?;
        session.run(&format!("DROP DATABASE IF EXISTS `{database}`"))?;
        session.run(&format!("CREATE DATABASE `{database}`"))?;
        let load = self.load(&database);
        BuiltIn::prepare(self.server.address(), &load, stop)?;
        let over = Arc::new(AtomicBool::new(false));
        let writers = (rate > 0).then(|| {
            BuiltIn::start(
                self.server.address(),
                &load,
                Pace::Rate(f64::from(rate)),
                Until::Flag(Arc::clone(&over)),
                stop,
            )
        });
        let begin = Instant::now();
        if writers.is_some() {
            thread::sleep(BEFORE);
        }
        let from = begin.elapsed().as_secs_f64();
        let ended = self.change(variant, &database);
        let until = begin.elapsed().as_secs_f64();
        if writers.is_some() {
            thread::sleep(BEFORE);
        }
        over.store(true, Ordering::Relaxed);
        let loaded = writers.map(BuiltIn::join).transpose();
        // The change's own failure explains the load's.
        let ended = ended?;
        let loaded = loaded?;
        if !ended.success {
            let said = match ended.timed_out {
                true => format!("it does not end within {} s", self.extent.seconds),
                false => ended.last_words(),
            };
            return Err(BenchError::Program {
                program: variant.label.clone(),
                said,
            });
        }
        let columns = session.text(&format!(
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = '{database}' AND table_name = 'sbtest1' AND column_name = 'c1'"
        ))?;
        let rows = session.text(&format!(
            "SELECT COUNT(*) FROM `{database}`.sbtest1 WHERE c1 = 'x'"
        ))?;
        let proof = |what: &str, expected: String, found: String| Proof {
            what: what.into(),
            holds: expected == found,
            expected,
            found,
        };
        let mut measured = Measured {
            metrics: [("seconds".to_owned(), ended.seconds)].into(),
            series: Vec::new(),
            proofs: vec![
                proof("after: the new column is there", "1".into(), columns),
                proof(
                    "after: rows with its default",
                    self.extent.rows.to_string(),
                    rows,
                ),
            ],
            command: variant.change.clone().unwrap_or_default(),
        };
        if let Some(loaded) = loaded {
            let points = loaded.series.first().map(|series| series.points.as_slice());
            let during = area(points.unwrap_or_default(), from, until);
            let wanted = f64::from(rate) * (until - from);
            measured.metrics.extend([
                ("latency_p95_ms".to_owned(), loaded.latency_ms[2]),
                ("latency_p99_ms".to_owned(), loaded.latency_ms[3]),
                ("stall_ms".to_owned(), loaded.longest_ms),
                ("errors".to_owned(), loaded.errors),
                ("load_kept".to_owned(), (during / wanted).min(1.0)),
            ]);
            measured.series = loaded.series;
        }
        session.run(&format!("DROP DATABASE `{database}`"))?;
        Ok(measured)
    }
}

/// What a rate over time, in pieces of 0.1 s, amounts to between two moments.
fn area(points: &[(f64, f64)], from: f64, until: f64) -> f64 {
    points
        .iter()
        .map(|(at, rate)| rate * ((at + 0.1).min(until) - at.max(from)).max(0.0))
        .sum()
}

impl Drop for TableChange<'_> {
    fn drop(&mut self) {
        if let (Server::Given(_), Ok(mut session)) = (&self.server, self.server.session()) {
            for variant in &self.spec.variants {
                let _ = session.attempt(&format!(
                    "DROP DATABASE IF EXISTS `{}`",
                    database(&variant.name)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_count_as_far_as_they_lie_between() {
        let points = [(0.0, 100.0), (0.1, 100.0), (0.2, 0.0), (0.3, 100.0)];
        for (from, until, expected) in [(0.0, 0.2, 20.0), (0.05, 0.1, 5.0), (0.15, 0.35, 10.0)] {
            let found = area(&points, from, until);
            assert!(
                (found - expected).abs() < 1e-9,
                "{from} to {until}: {found}"
            );
        }
    }
}
