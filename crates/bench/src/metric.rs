//! What is measured: names, units, and which direction is better.

/// The parameter of groups that says how far the server is, behind its value.
pub const ROUND_TRIP: &str = "ms round trip";

/// Whether more of it is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Time, memory, bytes.
    Lower,
}

/// A quantity of a run.
#[derive(Debug)]
pub struct Metric {
    /// Its key in `report.json`.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// The column of the decision table that it belongs to, if any.
    pub decides: Option<Column>,
}

/// The columns of the decision table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Work done in a time.
    Throughput,
    /// How long the whole takes.
    Duration,
    /// How long one waits.
    Latency,
    /// CPU time for the same work, of all processes.
    Cpu,
    /// Size on disk.
    Bytes,
}

impl Column {
    /// In the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Throughput,
        Self::Duration,
        Self::Latency,
        Self::Cpu,
        Self::Bytes,
    ];

    /// The head of the column.
    pub fn label(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Duration => "duration",
            Self::Latency => "latency (95 %)",
            Self::Cpu => "CPU, same work",
            Self::Bytes => "bytes",
        }
    }
}

const fn metric(
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    better: Better,
    decides: Option<Column>,
) -> Metric {
    Metric {
        name,
        label,
        unit,
        better,
        decides,
    }
}

use Better::{Higher, Lower};

/// Every metric; the report knows no others. The order is that of tables.
pub const METRICS: &[Metric] = &[
    metric("transactions_per_s", "transactions", "1/s", Higher, None),
    metric(
        "queries_per_s",
        "statements",
        "1/s",
        Higher,
        Some(Column::Throughput),
    ),
    metric(
        "mb_per_s",
        "speed",
        "MB/s",
        Higher,
        Some(Column::Throughput),
    ),
    metric("seconds", "duration", "s", Lower, Some(Column::Duration)),
    metric("latency_mean_ms", "mean latency", "ms", Lower, None),
    metric("latency_p50_ms", "latency 50 %", "ms", Lower, None),
    metric(
        "latency_p95_ms",
        "latency 95 %",
        "ms",
        Lower,
        Some(Column::Latency),
    ),
    metric("latency_p99_ms", "latency 99 %", "ms", Lower, None),
    metric("stall_ms", "longest wait of a statement", "ms", Lower, None),
    metric("errors", "application errors", "", Lower, None),
    metric("load_kept", "load kept", "of 1", Higher, None),
    metric("round_trips", "round trips a statement", "", Lower, None),
    metric("ping_ms", "round trip of a ping", "ms", Lower, None),
    metric("link_off_us", "link, off its time", "µs", Lower, None),
    metric("link_cpu_us", "link CPU a statement", "µs", Lower, None),
    metric("server_cpu_us", "server CPU a statement", "µs", Lower, None),
    metric("relay_cpu_us", "relay CPU a statement", "µs", Lower, None),
    metric("cpu_us", "CPU a statement", "µs", Lower, Some(Column::Cpu)),
    metric("cpu_s", "CPU", "s", Lower, Some(Column::Cpu)),
    metric(
        "relay_memory_mib",
        "relay memory, highest",
        "MiB",
        Lower,
        None,
    ),
    metric(
        "relay_growth_mib",
        "relay memory, growth",
        "MiB",
        Lower,
        None,
    ),
    metric("replica_catch_up_s", "replica catches up", "s", Lower, None),
    metric("call_us", "one call", "µs", Lower, None),
    metric("bytes", "size", "bytes", Lower, Some(Column::Bytes)),
    metric(
        "bytes_per_row",
        "table file, bytes a row",
        "bytes",
        Lower,
        Some(Column::Bytes),
    ),
];

/// The metric of a name.
pub fn metric_of(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (n, metric) in METRICS.iter().enumerate() {
            assert!(
                METRICS[..n].iter().all(|other| other.name != metric.name),
                "{}",
                metric.name
            );
        }
    }
}
