//! The metrics as text: OpenMetrics, or Prometheus' older form.
//!
//! [`METRICS`] lists them all. docs/metrics.md has the same list, which a test compares.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::members::MemberState;

use super::{KINDS, LOGINS, Metrics, RELOADS, TIERS, WAITS};

/// In which form metrics are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Exposition {
    /// The `Content-Type` of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Exposition::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What a metric is.
#[derive(Clone, Copy, Debug)]
pub struct MetricHelp {
    /// Without the prefix `onionskin_`, the unit, and the suffix of its type.
    name: &'static str,
    /// As it is in the text, except for what a histogram adds.
    pub full_name: &'static str,
    /// `counter`, `gauge`, `histogram`, `info`.
    pub kind: &'static str,
    /// Names of labels, with the values that they have.
    pub labels: &'static str,
    /// One sentence without its full stop.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($name:ident = $short:literal, $full:literal, $kind:literal, $labels:literal, $help:literal;)*) => {
        $(const $name: MetricHelp = MetricHelp {
            name: $short, full_name: $full, kind: $kind, labels: $labels, help: $help,
        };)*
        /// All of them.
        pub const METRICS: &[MetricHelp] = &[$($name),*];
    };
}

metrics! {
    BUILD = "build", "onionskin_build_info", "info", "`version`",
        "The program's version; the value is 1";
    START = "start_time", "onionskin_start_time_seconds", "gauge", "",
        "When the proxy was started, in seconds since 1970";
    READY = "ready", "onionskin_ready", "gauge", "`part`: proxy, keys, server, scratch, audit",
        "1 if the part is as new sessions need it, 0 if it is not";
    STATEMENTS = "statement_duration", "onionskin_statement_duration_seconds", "histogram",
        "`tier`: proxy, relay, 1, 2, 3, definition, refused; `kind`: select, insert, update, delete, definition, transaction, other",
        "Time from the arrival of a statement to the end of its answer";
    TIME = "statement_time", "onionskin_statement_time_seconds_total", "counter",
        "`where`: server, scratch, proxy",
        "The same time by where it was spent: waiting for the server, waiting for the scratch engine, and the rest";
    REFUSALS = "refusals", "onionskin_refusals_total", "counter", "`code`: those of errors.md",
        "Errors of the proxy's own that sessions got";
    CELLS = "cells", "onionskin_cells_total", "counter", "`operation`: sealed, opened",
        "Cells that were encrypted, and cells that were decrypted and found authentic";
    PLANS = "plans", "onionskin_plans_total", "counter", "`cache`: hit, miss",
        "Plans that were found in the plan cache, and plans that were made";
    ENTRIES = "plan_cache_entries", "onionskin_plan_cache_entries", "gauge", "",
        "Plans in the plan cache";
    OPEN = "sessions_open", "onionskin_sessions_open", "gauge", "",
        "Sessions that are logged in";
    SESSIONS = "sessions", "onionskin_sessions_total", "counter", "",
        "Sessions that have been logged in";
    LOGIN = "logins", "onionskin_logins_total", "counter",
        "`outcome`: ok, refused, error, turned_away",
        "Logins; refused: by the server, or the client left; error: the server cannot be reached, or the login not be relayed; turned_away: too many";
    RELOAD = "reloads", "onionskin_reloads_total", "counter", "`outcome`: ok, refused",
        "Times that the configuration was read anew; refused: nothing was changed";
    UP = "member_up", "onionskin_member_up", "gauge", "`member`: as in `backend`",
        "1 if the member answered when it was last asked, 0 if it did not; only where `backend` is a list";
    PRIMARY = "member_primary", "onionskin_member_primary", "gauge", "`member`: as in `backend`",
        "1 for the member that new sessions go to, 0 for the others; only where `backend` is a list";
    LEADS = "primary_changes", "onionskin_primary_changes_total", "counter", "",
        "Times that new sessions began to go to another member; the first one after the start counts";
    READS = "member_reads", "onionskin_member_reads", "gauge", "`member`: as in `backend`",
        "1 if sessions of `listen_read` go to the member, 0 if they do not; only where there is `listen_read`";
    LAG = "member_lag", "onionskin_member_lag_seconds", "gauge", "`member`: as in `backend`",
        "How far the member is behind the primary, at least, in seconds, where that is known; only where there is `listen_read`";
    WAITED = "causal_waits", "onionskin_causal_waits_total", "counter", "`outcome`: late, in_time",
        "Statements of `listen_read` that waited for what was written before; late: not run, since it did not come within `causal_seconds`";
    WAIT = "causal_wait", "onionskin_causal_wait_seconds_total", "counter", "",
        "Time that they waited";
    HELD = "finish_memory", "onionskin_finish_memory_bytes", "gauge", "",
        "Memory that statements hold now whose rows the proxy finishes";
    EDITION = "configuration", "onionskin_configuration", "gauge", "",
        "Number of the configuration in force: 0 is that of the start, each reload that was done adds 1";
    AUDITED = "audit_statements", "onionskin_audit_statements_total", "counter",
        "`outcome`: written, lost",
        "Statements on protected columns that have a line in the audit log, and such that could not be given one";
    CERTIFICATES = "certificate_end", "onionskin_certificate_end_seconds", "gauge",
        "`of`: tls.cert, tls.client_ca, backend_ca, backend_cert",
        "When the first certificate in the file of this setting ends, in seconds since 1970";
    KEY = "active_key", "onionskin_active_key_seconds", "gauge", "",
        "When the active data key was made, in seconds since 1970";
    PROVIDER = "keys_provider_up", "onionskin_keys_provider_up", "gauge", "",
        "1 if the provider of the root key answered when it was last asked, 0 if it did not; only where one is configured";
    ANSWERED = "keys_provider_answered", "onionskin_keys_provider_answered_seconds", "gauge", "",
        "When the provider of the root key last answered, in seconds since 1970; only where one is configured";
    COPIES = "audit_copies_lost", "onionskin_audit_copies_lost_total", "counter", "",
        "Lines of the audit log that the syslog daemon has not got";
}

/// What is not counted and looked up for each exposition.
pub(crate) struct Gauges {
    /// Since 1970.
    pub started: f64,
    /// By part.
    pub ready: Vec<(&'static str, bool)>,
    pub plans: u64,
    pub sessions: u64,
    /// Bytes of statements that are finished.
    pub held: u64,
    /// Of the configuration.
    pub edition: u64,
    /// Statements that the audit log has, and such that it could not take.
    pub audited: (u64, u64),
    /// Lines that the syslog daemon has not got.
    pub copies_lost: u64,
    /// By setting.
    pub certificates: Vec<(&'static str, i64)>,
    /// Where there are several servers.
    pub members: Vec<MemberState>,
    pub active_key: u64,
    /// Whether the provider of the root key answered when it was last asked, and when it last did.
    pub keys_provider: Option<(bool, u64)>,
}

/// All metrics as text.
pub(crate) fn encode(metrics: &Arc<Metrics>, gauges: Gauges, form: Exposition) -> String {
    let mut registry = Registry::with_prefix("onionskin");
    registry.register_collector(Box::new(Shown {
        metrics: metrics.clone(),
        gauges,
    }));
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = match form {
        Exposition::OpenMetrics => text::encode(&mut text, &registry),
        Exposition::Prometheus => prometheus_text::encode(&mut text, &registry),
    };
    text
}

struct Shown {
    metrics: Arc<Metrics>,
    gauges: Gauges,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

/// Says what a metric is, and has its values written.
fn put(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &MetricHelp,
    values: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    let kind = match metric.kind {
        "counter" => MetricType::Counter,
        "histogram" => MetricType::Histogram,
        "info" => MetricType::Info,
        _ => MetricType::Gauge,
    };
    let units = [("_seconds", &Unit::Seconds), ("_bytes", &Unit::Bytes)];
    let mut units = units.into_iter();
    let unit = units.find(|(name, _)| metric.full_name.contains(name));
    let unit = unit.map(|(_, unit)| unit);
    // The older form adds no full stop where it finds one.
    let help = format!("{}.", metric.help);
    values(&mut encoder.encode_descriptor(metric.name, &help, unit, kind)?)
}

fn counter(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn read(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// Counters with one label.
fn counters<'a>(
    encoder: &mut MetricEncoder<'_>,
    label: &'static str,
    values: impl Iterator<Item = (&'static str, &'a AtomicU64)>,
) -> fmt::Result {
    for (value, number) in values {
        counter(&mut encoder.encode_family(&[(label, value)])?, read(number))?;
    }
    Ok(())
}

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Shown { metrics, gauges } = self;
        let encoder = &mut encoder;
        put(encoder, &BUILD, |to| {
            to.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
        })?;
        put(encoder, &START, |to| to.encode_gauge(&gauges.started))?;
        put(encoder, &READY, |to| {
            for (part, ready) in &gauges.ready {
                to.encode_family(&[("part", *part)])?
                    .encode_gauge(&u64::from(*ready))?;
            }
            Ok(())
        })?;
        put(encoder, &STATEMENTS, |to| statements(to, metrics))?;
        put(encoder, &TIME, |to| {
            for (place, number) in [
                ("server", &metrics.at_server),
                ("scratch", &metrics.at_engine),
                ("proxy", &metrics.in_proxy),
            ] {
                let seconds = std::time::Duration::from_nanos(read(number)).as_secs_f64();
                to.encode_family(&[("where", place)])?
                    .encode_counter::<NoLabelSet, _, u64>(&seconds, None)?;
            }
            Ok(())
        })?;
        put(encoder, &REFUSALS, |to| {
            counters(to, "code", metrics.refusals.iter().map(|(c, n)| (*c, n)))
        })?;
        put(encoder, &CELLS, |to| {
            let cells = [("sealed", &metrics.sealed), ("opened", &metrics.opened)];
            counters(to, "operation", cells.into_iter())
        })?;
        put(encoder, &PLANS, |to| {
            let plans = [("hit", &metrics.recalled), ("miss", &metrics.made)];
            counters(to, "cache", plans.into_iter())
        })?;
        put(encoder, &ENTRIES, |to| to.encode_gauge(&gauges.plans))?;
        put(encoder, &OPEN, |to| to.encode_gauge(&gauges.sessions))?;
        put(encoder, &SESSIONS, |to| {
            counter(to, read(&metrics.sessions))
        })?;
        put(encoder, &LOGIN, |to| {
            let names = LOGINS.iter().map(|(_, name)| *name);
            counters(to, "outcome", names.zip(&metrics.logins))
        })?;
        put(encoder, &RELOAD, |to| {
            counters(to, "outcome", RELOADS.into_iter().zip(&metrics.reloads))
        })?;
        if !gauges.members.is_empty() {
            put(encoder, &UP, |to| of_members(to, gauges, |m| m.up))?;
            put(encoder, &PRIMARY, |to| {
                of_members(to, gauges, |m| m.primary)
            })?;
        }
        put(encoder, &LEADS, |to| counter(to, read(&metrics.leads)))?;
        if gauges.members.iter().any(|member| member.reads.is_some()) {
            put(encoder, &READS, |to| {
                of_members(to, gauges, |m| m.reads == Some(true))
            })?;
            put(encoder, &LAG, |to| {
                for member in &gauges.members {
                    if let Some(lag) = member.lag {
                        to.encode_family(&[("member", member.member.as_str())])?
                            .encode_gauge(&lag)?;
                    }
                }
                Ok(())
            })?;
        }
        put(encoder, &WAITED, |to| {
            counters(to, "outcome", WAITS.into_iter().zip(&metrics.waits))
        })?;
        put(encoder, &WAIT, |to| {
            let seconds = std::time::Duration::from_nanos(read(&metrics.waited)).as_secs_f64();
            to.encode_counter::<NoLabelSet, _, u64>(&seconds, None)
        })?;
        put(encoder, &HELD, |to| to.encode_gauge(&gauges.held))?;
        put(encoder, &EDITION, |to| to.encode_gauge(&gauges.edition))?;
        put(encoder, &AUDITED, |to| {
            let (written, lost) = gauges.audited;
            let (written, lost) = (AtomicU64::new(written), AtomicU64::new(lost));
            counters(
                to,
                "outcome",
                [("written", &written), ("lost", &lost)].into_iter(),
            )
        })?;
        put(encoder, &CERTIFICATES, |to| {
            for (setting, end) in &gauges.certificates {
                to.encode_family(&[("of", *setting)])?.encode_gauge(end)?;
            }
            Ok(())
        })?;
        put(encoder, &KEY, |to| to.encode_gauge(&gauges.active_key))?;
        if let Some((is_up, answered)) = &gauges.keys_provider {
            put(encoder, &PROVIDER, |to| to.encode_gauge(&u64::from(*is_up)))?;
            put(encoder, &ANSWERED, |to| to.encode_gauge(answered))?;
        }
        put(encoder, &COPIES, |to| counter(to, gauges.copies_lost))
    }
}

fn of_members(
    to: &mut MetricEncoder<'_>,
    gauges: &Gauges,
    is_it: impl Fn(&MemberState) -> bool,
) -> fmt::Result {
    for member in &gauges.members {
        to.encode_family(&[("member", member.member.as_str())])?
            .encode_gauge(&u64::from(is_it(member)))?;
    }
    Ok(())
}

/// The combinations that have been met: most never are.
fn statements(to: &mut MetricEncoder<'_>, metrics: &Metrics) -> fmt::Result {
    for ((_, tier), kinds) in TIERS.iter().zip(&metrics.statements) {
        for ((_, kind), latency) in KINDS.iter().zip(kinds) {
            let reading = latency.read();
            if reading.count == 0 {
                continue;
            }
            to.encode_family(&[("tier", *tier), ("kind", *kind)])?
                .encode_histogram::<NoLabelSet>(
                    reading.seconds,
                    reading.count,
                    &reading.buckets,
                    None,
                )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: Exposition) -> String {
        let metrics = Arc::new(Metrics::new());
        for (tier, _) in TIERS {
            let latency = &metrics.statements[tier as usize][0];
            latency.observe(3_000_000);
        }
        let gauges = Gauges {
            started: 1.5,
            ready: vec![("proxy", true), ("server", false)],
            plans: 7,
            sessions: 3,
            held: 65_536,
            edition: 2,
            audited: (9, 1),
            copies_lost: 4,
            certificates: vec![("tls.cert", 1_893_456_000)],
            active_key: 1_700_000_000,
            keys_provider: Some((true, 1_700_000_001)),
            members: vec![MemberState {
                member: "a:3306".into(),
                primary: true,
                reads: Some(true),
                lag: Some(0.5),
                up: true,
                state: "primary".into(),
                version: None,
            }],
        };
        encode(&metrics, gauges, form)
    }

    #[test]
    fn every_metric_is_told_under_its_name() {
        for form in [Exposition::OpenMetrics, Exposition::Prometheus] {
            let text = shown(form);
            for metric in METRICS {
                let sample = match metric.kind {
                    "histogram" => format!("\n{}_count{{", metric.full_name),
                    _ => format!("\n{}", metric.full_name),
                };
                assert!(text.contains(&sample), "{sample} {form:?}\n{text}");
            }
            let described = text.lines().filter(|l| l.starts_with("# TYPE ")).count();
            assert_eq!(described, METRICS.len());
            let ends = text.ends_with("# EOF\n");
            assert_eq!(ends, form == Exposition::OpenMetrics);
        }
        let text = shown(Exposition::Prometheus);
        let bucket = "onionskin_statement_duration_seconds_bucket{tier=\"3\",kind=\"select\",le=\"0.005\"} 1\n";
        assert!(text.contains(bucket), "{text}");
        assert!(
            text.contains("onionskin_ready{part=\"server\"} 0\n"),
            "{text}"
        );
    }

    /// `docs/metrics.md` has the table. `ONIONSKIN_UPDATE=1` writes it.
    #[test]
    fn the_page_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).expect("the page");
        const BEGIN: &str = "<!-- made by crates/proxy/src/metrics/exposition.rs -->\n";
        const END: &str = "<!-- end of what is made by the list of metrics -->\n";
        let (head, rest) = page.split_once(BEGIN).expect("a mark");
        let (_, tail) = rest.split_once(END).expect("a mark");
        let mut table = String::from("\n| metric | type | labels | says |\n|---|---|---|---|\n");
        for metric in METRICS {
            let MetricHelp {
                full_name,
                kind,
                labels,
                help,
                ..
            } = metric;
            table += &format!("| `{full_name}` | {kind} | {labels} | {help} |\n");
        }
        let wanted = format!("{head}{BEGIN}{table}\n{END}{tail}");
        if std::env::var_os("ONIONSKIN_UPDATE").is_some() {
            std::fs::write(path, wanted).expect("written");
        } else {
            assert!(
                page == wanted,
                "docs/metrics.md is old: run with ONIONSKIN_UPDATE=1"
            );
        }
    }
}
