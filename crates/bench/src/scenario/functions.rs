//! Encryption functions in statements, against plaintext and against columns that the proxy
//! encrypts.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use mysql::{Conn, OptsBuilder, Params, Value, prelude::Queryable};
use rand::RngExt;

use super::{Setting, Watch, database, parameters, relay};
use crate::{
    catalogue::{Extent, Spec, VariantSpec},
    driver::Histogram,
    error::BenchError,
    experiment::{Experiment, GroupPlan, Measured, VariantPlan},
    proof,
    relay::Relay,
    report::{Proof, ServerInfo},
    server::{Address, Server, Session},
};

/// Evaluations in one call of BENCHMARK().
const CALLS: u32 = 100_000;
/// The key of the functions, and the initialization vector of all modes but ECB.
const KEY: &str = "0123456789abcdef0123456789abcdef";
const IV: &str = "fedcba9876543210";

/// See the module.
pub struct Functions<'a> {
    setting: &'a Setting<'a>,
    spec: &'a Spec,
    extent: &'a Extent,
    sides: Vec<Side>,
    /// Modes whose evaluation is timed alone.
    modes: Vec<(String, Option<String>)>,
    // Dropped after the relays.
    server: Server,
    info: ServerInfo,
}

struct Side {
    spec: VariantSpec,
    unavailable: Option<String>,
    relay: Option<Relay>,
    address: Address,
    database: String,
}

impl<'a> Functions<'a> {
    /// Starts the server, and tries each mode on it.
    pub fn prepare(
        setting: &'a Setting<'a>,
        spec: &'a Spec,
        extent: &'a Extent,
    ) -> Result<Self, BenchError> {
        let server = setting.server(spec, None)?;
        let info = server.info(Vec::new())?;
        let mut sides = Vec::new();
        for variant in &spec.variants {
            let database = database(&variant.name);
            let mut unavailable = setting.unavailable(variant);
            if let (None, Some(mode)) = (&unavailable, variant.mode.as_deref().and_then(aes)) {
                unavailable = refused(&server, mode)?;
            }
            let (relay, address) = match unavailable {
                None => relay(setting, variant, server.address(), &database, None)?,
                Some(_) => (None, server.address().clone()),
            };
            sides.push(Side {
                spec: variant.clone(),
                unavailable,
                relay,
                address,
                database,
            });
        }
        let mut modes = Vec::new();
        for bits in [128, 192, 256] {
            for mode in ["ecb", "cbc", "cfb1", "cfb8", "cfb128", "ofb"] {
                let mode = format!("aes-{bits}-{mode}");
                let refused = refused(&server, &mode)?;
                modes.push((mode, refused));
            }
        }
        Ok(Self {
            setting,
            spec,
            extent,
            sides,
            modes,
            server,
            info,
        })
    }

    fn threads(&self) -> &[u32] {
        &self.extent.threads
    }

    /// (write, threads) of a group; `None` is the group of single evaluations.
    fn group(&self, group: usize) -> Option<(bool, u32)> {
        let threads = self.threads();
        let n = group.checked_sub(1)?;
        Some((n % 2 == 0, threads[n / 2]))
    }
}

/// A mode of the functions.
fn aes(mode: &str) -> Option<&str> {
    mode.starts_with("aes-").then_some(mode)
}

/// `AES_ENCRYPT(what, key[, iv])`
fn call(function: &str, what: &str, key: &str, mode: &str) -> String {
    match mode.ends_with("-ecb") {
        true => format!("{function}({what}, '{key}')"),
        false => format!("{function}({what}, '{key}', '{IV}')"),
    }
}

fn set_mode(session: &mut Session, mode: &str) -> Result<(), String> {
    match session.attempt(&format!("SET SESSION block_encryption_mode = '{mode}'")) {
        // MariaDB before 11.2 has this mode alone.
        Err(said) if mode == "aes-128-ecb" && said.contains("Unknown system variable") => Ok(()),
        other => other,
    }
}

/// Why the server has no such mode, if so.
fn refused(server: &Server, mode: &str) -> Result<Option<String>, BenchError> {
    let mut session = server.session()?;
    Ok(set_mode(&mut session, mode).err().map(|said| {
        match said.contains("Unknown system variable") {
            true => "this server has aes-128-ecb only".into(),
            false => said,
        }
    }))
}

/// The function returns the text with the right key and not with a wrong one, and the length is the
/// documented one.
fn prove(session: &mut Session, mode: &str) -> Result<Vec<Proof>, BenchError> {
    let text = "x".repeat(64);
    let sealed = call("AES_ENCRYPT", &format!("'{text}'"), KEY, mode);
    let opened = call("AES_DECRYPT", &sealed, KEY, mode);
    let wrong = call("AES_DECRYPT", &sealed, "another key of the same sort", mode);
    // Stream modes add nothing: 16 × (trunc(n / 16) + 1) holds for those with padding.
    let length = match mode.ends_with("cbc") || mode.ends_with("ecb") {
        true => 16 * (text.len() / 16 + 1),
        false => text.len(),
    };
    let proof = |what: &str, expected: String, found: String| Proof {
        what: format!("before: {mode}: {what}"),
        holds: expected == found,
        expected,
        found,
    };
    let in_force = session.rows("SHOW SESSION VARIABLES LIKE 'block_encryption_mode'")?;
    let mut proofs = Vec::new();
    if let Some(row) = in_force.first() {
        proofs.push(proof("block_encryption_mode", mode.into(), row[1].clone()));
    }
    proofs.push(proof(
        "opens with the key",
        "1".into(),
        session.text(&format!("SELECT {opened} = '{text}'"))?,
    ));
    proofs.push(proof(
        "opens with another key",
        "0".into(),
        session.text(&format!("SELECT COALESCE({wrong} = '{text}', 0)"))?,
    ));
    proofs.push(proof(
        "length",
        length.to_string(),
        session.text(&format!("SELECT LENGTH({sealed})"))?,
    ));
    Ok(proofs)
}

impl Experiment for Functions<'_> {
    fn server(&self) -> Option<ServerInfo> {
        Some(self.info.clone())
    }

    fn groups(&self) -> Vec<GroupPlan> {
        let mut groups = vec![GroupPlan {
            label: "call: one evaluation of AES_ENCRYPT on 64 bytes".into(),
            parameters: parameters(&[("what", "call".into())]),
            baseline: "call-aes-128-ecb".into(),
            variants: self
                .modes
                .iter()
                .map(|(mode, refused)| VariantPlan {
                    name: format!("call-{mode}"),
                    label: mode.clone(),
                    driver: "BENCHMARK()".into(),
                    unavailable: refused.clone(),
                    settings: Vec::new(),
                })
                .collect(),
        }];
        for threads in self.threads() {
            for what in ["write", "read"] {
                groups.push(GroupPlan {
                    label: format!("{what}, {threads} threads"),
                    parameters: parameters(&[
                        ("what", what.into()),
                        ("threads", threads.to_string()),
                    ]),
                    baseline: self.spec.baseline.clone(),
                    variants: self
                        .sides
                        .iter()
                        .map(|side| VariantPlan {
                            name: side.spec.name.clone(),
                            label: side.spec.label.clone(),
                            driver: "built-in driver".into(),
                            unavailable: side.unavailable.clone(),
                            settings: side.spec.protect.iter().cloned().collect(),
                        })
                        .collect(),
                });
            }
        }
        groups
    }

    fn begin_round(&mut self, _round: usize) -> Result<(), BenchError> {
        for side in self.sides.iter().filter(|side| side.unavailable.is_none()) {
            let mut direct = self.server.session()?;
            direct.run(&format!("DROP DATABASE IF EXISTS `{}`", side.database))?;
            direct.run(&format!("CREATE DATABASE `{}`", side.database))?;
            let mut session = Session::open(options(&side.address)).map_err(unreachable)?;
            let kind = match side.spec.mode.as_deref().and_then(aes) {
                Some(_) => "VARBINARY(255)",
                None => "VARCHAR(200)",
            };
            session.run(&format!(
                "CREATE TABLE `{}`.t (id INT AUTO_INCREMENT PRIMARY KEY, v {kind} NOT NULL)",
                side.database
            ))?;
            if let Some(mode) = side.spec.mode.as_deref().and_then(aes) {
                set_mode(&mut session, mode)
                    .map_err(|said| failed("block_encryption_mode", said))?;
            }
            let mut left = self.extent.rows;
            while left > 0 {
                let rows = left.min(500);
                let values: Vec<String> = (0..rows)
                    .map(|_| {
                        let text = format!("'{}'", text());
                        let value = match side.spec.mode.as_deref().and_then(aes) {
                            Some(mode) => call("AES_ENCRYPT", &text, KEY, mode),
                            None => text,
                        };
                        format!("({value})")
                    })
                    .collect();
                session.run(&format!(
                    "INSERT INTO `{}`.t (v) VALUES {}",
                    side.database,
                    values.join(", ")
                ))?;
                left -= rows;
            }
        }
        Ok(())
    }

    fn measure(
        &mut self,
        group: usize,
        variant: usize,
        _round: usize,
    ) -> Result<Measured, BenchError> {
        let Some((write, threads)) = self.group(group) else {
            return self.evaluate(variant);
        };
        let side = &self.sides[variant];
        let mode = side.spec.mode.as_deref().and_then(aes);
        let mut direct = self.server.session()?;
        let mut proofs = proof::columns(&mut direct, &side.database, "t", &side.spec)?;
        if let Some(mode) = mode {
            set_mode(&mut direct, mode).map_err(|said| failed("block_encryption_mode", said))?;
            proofs.extend(prove(&mut direct, mode)?);
        }
        let watch = Watch::start(&self.server, side.relay.as_ref());
        let part = self.load(side, mode, write, threads)?;
        let queries = part.histogram.count() as f64;
        let mut metrics = [
            ("queries_per_s", queries / part.seconds),
            ("latency_mean_ms", part.histogram.mean() * 1e3),
            ("latency_p95_ms", part.histogram.percentile(0.95) * 1e3),
            ("latency_p99_ms", part.histogram.percentile(0.99) * 1e3),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let mut series = Vec::new();
        watch.end(queries, &mut metrics, &mut series, &mut proofs);
        if let (Some(data), true) = (self.server.data(), self.extent.rows >= 5000) {
            let file = data.join(&side.database).join("t.ibd");
            let rows: f64 = direct
                .text(&format!("SELECT COUNT(*) FROM `{}`.t", side.database))?
                .parse()
                .unwrap_or(0.0);
            if let (Ok(file), true) = (file.metadata(), rows > 0.0) {
                metrics.insert("bytes_per_row".into(), file.len() as f64 / rows);
            }
        }
        Ok(Measured {
            metrics,
            series: Vec::new(),
            proofs,
            command: part.command,
        })
    }
}

/// What a load of the functions has measured.
struct Part {
    histogram: Histogram,
    seconds: f64,
    command: String,
}

impl Functions<'_> {
    /// One mode alone, in the server.
    fn evaluate(&self, variant: usize) -> Result<Measured, BenchError> {
        let (mode, _) = &self.modes[variant];
        let mut session = self.server.session()?;
        set_mode(&mut session, mode).map_err(|said| failed("block_encryption_mode", said))?;
        let proofs = prove(&mut session, mode)?;
        let text = format!("'{}'", text());
        let sql = format!(
            "SELECT BENCHMARK({CALLS}, {})",
            call("AES_ENCRYPT", &text, KEY, mode)
        );
        let begin = Instant::now();
        session.run(&sql)?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Measured {
            metrics: [("call_us".to_owned(), seconds * 1e6 / f64::from(CALLS))].into(),
            series: Vec::new(),
            proofs,
            command: sql,
        })
    }

    fn load(
        &self,
        side: &Side,
        mode: Option<&str>,
        write: bool,
        threads: u32,
    ) -> Result<Part, BenchError> {
        let table = format!("`{}`.t", side.database);
        let sql = match (write, mode) {
            (true, None) => format!("INSERT INTO {table} (v) VALUES (?)"),
            (true, Some(mode)) => format!(
                "INSERT INTO {table} (v) VALUES ({})",
                call("AES_ENCRYPT", "?", KEY, mode)
            ),
            (false, None) => format!("SELECT v FROM {table} WHERE id = ?"),
            (false, Some(mode)) => format!(
                "SELECT {} FROM {table} WHERE id = ?",
                call("AES_DECRYPT", "v", KEY, mode)
            ),
        };
        let stop = &self.setting.workshop.stop;
        let all = Arc::new(Mutex::new(Histogram::default()));
        let begin = Instant::now();
        let seconds = self.extent.seconds;
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (sql, mode) = (sql.clone(), mode.map(String::from));
                let (address, stop) = (side.address.clone(), Arc::clone(stop));
                let (all, rows) = (Arc::clone(&all), self.extent.rows.max(1));
                thread::spawn(move || -> Result<(), BenchError> {
                    let broken = |error: mysql::Error| failed(&sql, error.to_string());
                    let mut connection = Conn::new(options(&address)).map_err(broken)?;
                    if let Some(mode) = mode.filter(|mode| mode != "aes-128-ecb") {
                        connection
                            .query_drop(format!("SET SESSION block_encryption_mode = '{mode}'"))
                            .map_err(broken)?;
                    }
                    let statement = connection.prep(&sql).map_err(broken)?;
                    let mut histogram = Histogram::default();
                    while begin.elapsed().as_secs_f64() < seconds
                        && !stop.load(std::sync::atomic::Ordering::Relaxed)
                    {
                        let value: Value = match write {
                            true => text().into(),
                            false => rand::rng().random_range(1..=rows).into(),
                        };
                        let started = Instant::now();
                        connection
                            .exec_drop(&statement, Params::Positional(vec![value]))
                            .map_err(broken)?;
                        histogram.add(started.elapsed().as_secs_f64());
                    }
                    if let Ok(mut all) = all.lock() {
                        all.merge(&histogram);
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(ended) => ended?,
                Err(_) => return Err(failed(&sql, "a thread has panicked".into())),
            }
        }
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(BenchError::Interrupted);
        }
        let histogram = all.lock().map(|all| all.clone()).unwrap_or_default();
        Ok(Part {
            histogram,
            seconds: begin.elapsed().as_secs_f64(),
            command: format!("built-in driver, {threads} threads: {sql}"),
        })
    }
}

impl Drop for Functions<'_> {
    fn drop(&mut self) {
        for side in &mut self.sides {
            side.relay = None;
            if let (Server::Given(_), Ok(mut session)) = (&self.server, self.server.session()) {
                let _ = session.attempt(&format!("DROP DATABASE IF EXISTS `{}`", side.database));
            }
        }
    }
}

/// 64 characters.
fn text() -> String {
    crate::driver::groups(&mut rand::rng(), 6)
        .chars()
        .take(64)
        .collect()
}

fn options(address: &Address) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some(address.host.clone()))
        .tcp_port(address.port)
        .prefer_socket(false)
        .user(Some(address.user.clone()))
        .pass(Some(address.password.clone()))
}

fn unreachable(error: mysql::Error) -> BenchError {
    BenchError::Unreachable {
        server: "the relay".into(),
        said: error.to_string(),
    }
}

fn failed(sql: &str, said: String) -> BenchError {
    BenchError::Statement {
        sql: sql.chars().take(120).collect(),
        said,
    }
}
