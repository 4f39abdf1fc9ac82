//! Texts of statements in memory, and memory that becomes a file.

use crate::server::check::{Check, known};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Facts, Seen},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "statement-history",
        layer: Layer::Memory,
        title: "texts of statements in performance_schema",
        judge: history,
    },
    Check {
        code: "query-cache",
        layer: Layer::Memory,
        title: "query cache",
        judge: query_cache,
    },
    Check {
        code: "core-dumps",
        layer: Layer::Memory,
        title: "core dumps",
        judge: core_dumps,
    },
];

fn history(facts: &Facts) -> Verdict {
    match &facts.consumers {
        Seen::Absent => Verdict::closed("performance_schema = OFF"),
        seen => known(seen, "", |consumers| {
            let texts: Vec<String> = consumers
                .iter()
                .filter(|name| *name != "events_statements_cpu")
                .map(|name| format!("{name} = YES"))
                .collect();
            match texts.is_empty() {
                true => Verdict::closed("no consumer of statements is on"),
                false => Verdict::open(
                    Severity::Low,
                    "Who may read performance_schema reads the statements of others with their constants, and a \
                     sample of each kind. Through the proxy, those of protected columns are tokens.",
                    texts,
                    "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME LIKE 'events\\_statements%' OR NAME = 'statements_digest';\n\
                     performance-schema-consumer-events-statements-history = OFF",
                ),
            }
        }),
    }
}

fn query_cache(facts: &Facts) -> Verdict {
    match facts.variable("query_cache_type") {
        None if facts.is_mariadb() => {
            Verdict::hidden("a server that shows the variable query_cache_type")
        }
        None => Verdict::NotHere("MySQL has none since 8.0".into()),
        Some(kind) if kind.eq_ignore_ascii_case("OFF") => Verdict::closed("query_cache_type = OFF"),
        Some(kind) => Verdict::open(
            Severity::Low,
            "Statements and their rows stay in the server's memory, and in its core dumps.",
            vec![format!("query_cache_type = {kind}")],
            "query_cache_type = OFF",
        ),
    }
}

fn core_dumps(facts: &Facts) -> Verdict {
    match facts.variable("core_file") {
        None => Verdict::hidden("a server that shows the variable core_file"),
        Some(_) if !facts.is_on("core_file") => Verdict::closed("core_file = OFF"),
        Some(_) => Verdict::open(
            Severity::Medium,
            "A core dump holds the server's memory: rows, statements, and the keys of its own encryption.",
            vec!["core_file = ON".into()],
            "remove core-file from the server's options",
        ),
    }
}
