//! Binary, relay, general, slow and error logs, and what audit plugins write.

use crate::server::check::{Check, known, must_be_on};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Facts, Seen},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "binary-log",
        layer: Layer::Logs,
        title: "binary and relay logs from now on",
        judge: binary_log,
    },
    Check {
        code: "old-binary-logs",
        layer: Layer::Logs,
        title: "files of the binary log that are there",
        judge: old_binary_logs,
    },
    Check {
        code: "row-statements",
        layer: Layer::Logs,
        title: "texts of statements in the binary log",
        judge: row_statements,
    },
    Check {
        code: "general-log",
        layer: Layer::Logs,
        title: "general log",
        judge: general_log,
    },
    Check {
        code: "slow-log",
        layer: Layer::Logs,
        title: "slow log",
        judge: slow_log,
    },
    Check {
        code: "log-tables",
        layer: Layer::Logs,
        title: "statements that were logged into tables",
        judge: log_tables,
    },
    Check {
        code: "passwords-in-logs",
        layer: Layer::Logs,
        title: "passwords in logs (log_raw)",
        judge: raw,
    },
    Check {
        code: "error-log",
        layer: Layer::Logs,
        title: "statements in the error log",
        judge: error_log,
    },
    Check {
        code: "audit-plugins",
        layer: Layer::Logs,
        title: "plugins that write statements",
        judge: audit_plugins,
    },
];

fn binary_log(facts: &Facts) -> Verdict {
    let name = match facts.is_mariadb() {
        true => "encrypt_binlog",
        false => "binlog_encryption",
    };
    match facts.variable("log_bin") {
        None => return Verdict::hidden("a server that shows the variable log_bin"),
        Some(value) if value.eq_ignore_ascii_case("OFF") => {
            let is_replica = facts.channels.known().is_some_and(|c| !c.is_empty());
            if !is_replica {
                return Verdict::closed("log_bin = OFF, and the server is no replica");
            }
        }
        Some(_) => {}
    }
    must_be_on(facts, name, |seen| {
        let mend = match facts.is_mariadb() {
            true => "encrypt_binlog = ON",
            false => "SET PERSIST binlog_encryption = ON;",
        };
        Verdict::open(
            Severity::Medium,
            "Every change of a plain column stands there, with the row as it was before.",
            vec![seen],
            mend,
        )
    })
}

fn old_binary_logs(facts: &Facts) -> Verdict {
    let purge = "PURGE BINARY LOGS BEFORE NOW();";
    let on_disk = facts.machine.as_ref().ok().map(|machine| &machine.logs);
    known(
        &facts.binary_logs,
        "the server writes no binary log",
        |logs| {
            let oldest_table = facts
                .protected
                .known()
                .and_then(|tables| tables.iter().filter_map(|table| table.made).max());
            let mut evidence = Vec::new();
            let mut hidden = None;
            for log in logs {
                let file =
                    on_disk.and_then(|files| files.iter().find(|file| file.name == log.name));
                let encrypted = log.encrypted.or(file.map(|file| file.encrypted));
                let begun = file.and_then(|file| file.begun);
                match encrypted {
                    None => hidden = facts.missing_machine(),
                    Some(true) => {}
                    Some(false) => evidence.push(format!("{}: not encrypted", log.name)),
                }
                match (oldest_table, begun) {
                (Some(made), Some(begun)) if begun < made => evidence.push(format!(
                    "{}: begun before the latest protected table was made, so it may hold that table's values from before",
                    log.name
                )),
                (Some(_), None) => hidden = facts.missing_machine().or(hidden),
                _ => {}
            }
            }
            let verdict = match evidence.is_empty() {
                true => Verdict::closed(crate::text::count(logs.len(), "file")),
                false => Verdict::open(
                    Severity::Medium,
                    "A file keeps what it was written with: encryption that is turned on later does not reach it, \
                 and what was plain before a migration stands in it. Replicas and backups have copies.",
                    evidence,
                    purge,
                ),
            };
            verdict.seen_in_part(hidden)
        },
    )
}

fn row_statements(facts: &Facts) -> Verdict {
    let name = match facts.is_mariadb() {
        true => "binlog_annotate_row_events",
        false => "binlog_rows_query_log_events",
    };
    match facts.variable("log_bin") {
        None => return Verdict::hidden("a server that shows the variable log_bin"),
        Some(value) if value.eq_ignore_ascii_case("OFF") => {
            return Verdict::NotHere("the server writes no binary log".into());
        }
        Some(_) => {}
    }
    let format = facts.variable("binlog_format").unwrap_or("not shown");
    let mut evidence = Vec::new();
    if facts.is_on(name) {
        evidence.push(format!("{name} = ON"));
    }
    if !format.eq_ignore_ascii_case("ROW") {
        evidence.push(format!("binlog_format = {format}"));
    }
    match evidence.is_empty() {
        true => Verdict::closed(format!("{name} = OFF, binlog_format = {format}")),
        false => Verdict::open(
            Severity::Low,
            "Statements stand there with their constants, also of conditions. Through the proxy, those of \
             protected columns are tokens.",
            evidence,
            match facts.is_mariadb() {
                true => "binlog_annotate_row_events = OFF\nbinlog_format = ROW",
                false => "SET PERSIST binlog_rows_query_log_events = OFF;",
            },
        ),
    }
}

/// Where general and slow log go: into files, or into tables that no engine encrypts.
fn destination(facts: &Facts, file: &str) -> String {
    let output = facts.variable("log_output").unwrap_or("FILE");
    let file = facts.variable(file).unwrap_or_default();
    match (output.contains("TABLE"), output.contains("FILE")) {
        (true, true) => format!("log_output = {output}: {file} and tables of mysql"),
        (true, false) => format!("log_output = {output}: tables of mysql, in the engine CSV"),
        (false, true) => format!("log_output = {output}: {file}"),
        (false, false) => format!("log_output = {output}: nowhere"),
    }
}

fn statement_log(facts: &Facts, name: &str, file: &str, severity: Severity) -> Verdict {
    match facts.variable(name) {
        None => Verdict::hidden(format!("a server that shows the variable {name}")),
        Some(_) if !facts.is_on(name) => Verdict::closed(format!("{name} = OFF")),
        Some(_) if facts.variable("log_output") == Some("NONE") => {
            Verdict::closed(format!("{name} = ON, log_output = NONE"))
        }
        Some(_) => Verdict::open(
            severity,
            "Statements are written there with their constants, and no server encrypts these logs. Through the \
             proxy, constants of protected columns are tokens; those of plain columns are values.",
            vec![format!("{name} = ON"), destination(facts, file)],
            format!("SET GLOBAL {name} = OFF;"),
        ),
    }
}

fn general_log(facts: &Facts) -> Verdict {
    statement_log(facts, "general_log", "general_log_file", Severity::High)
}

fn slow_log(facts: &Facts) -> Verdict {
    statement_log(
        facts,
        "slow_query_log",
        "slow_query_log_file",
        Severity::Medium,
    )
}

fn log_tables(facts: &Facts) -> Verdict {
    known(&facts.logged_in_tables, "", |tables| {
        match tables.is_empty() {
            true => Verdict::closed("mysql.general_log and mysql.slow_log are empty"),
            false => Verdict::open(
                Severity::Medium,
                "What was logged stays when the log is turned off, and is in every dump of mysql.",
                tables
                    .iter()
                    .map(|table| format!("{table} has rows"))
                    .collect(),
                tables
                    .iter()
                    .map(|table| format!("TRUNCATE TABLE {table};"))
                    .collect::<Vec<_>>()
                    .join("\n"),
            ),
        }
    })
}

fn raw(facts: &Facts) -> Verdict {
    match facts.variable("log_raw") {
        // MariaDB has no such option, and hides passwords always.
        None if facts.is_mariadb() => Verdict::NotHere("MariaDB hides passwords always".into()),
        None => Verdict::hidden("a server that shows the variable log_raw"),
        Some(_) if !facts.is_on("log_raw") => Verdict::closed("log_raw = OFF"),
        Some(_) => Verdict::open(
            Severity::High,
            "Passwords of CREATE USER and of logins as SQL stand in the general log.",
            vec!["log_raw = ON".into()],
            "SET PERSIST log_raw = OFF;",
        ),
    }
}

fn error_log(facts: &Facts) -> Verdict {
    let mut evidence = Vec::new();
    for name in [
        "innodb_print_all_deadlocks",
        "log_statements_unsafe_for_binlog",
    ] {
        let applies = name != "log_statements_unsafe_for_binlog"
            || facts
                .variable("binlog_format")
                .is_some_and(|f| !f.eq_ignore_ascii_case("ROW"));
        if applies && facts.is_on(name) {
            evidence.push(format!("{name} = ON"));
        }
    }
    let path = facts.variable("log_error").unwrap_or("not shown");
    match (
        evidence.is_empty(),
        facts.variable("innodb_print_all_deadlocks"),
    ) {
        (true, None) => Verdict::hidden("a server that shows its variables"),
        (true, Some(_)) => Verdict::closed(format!("log_error = {path}")),
        (false, _) => {
            evidence.push(format!("log_error = {path}"));
            Verdict::open(
                Severity::Low,
                "Statements with their constants are written to the error log, which is not encrypted.",
                evidence,
                "SET GLOBAL innodb_print_all_deadlocks = OFF;",
            )
        }
    }
}

fn audit_plugins(facts: &Facts) -> Verdict {
    // These see statements, and write none.
    let harmless = [
        "user_variables",
        "query_response_time_audit",
        "mysqlx_cache_cleaner",
    ];
    let judge = |plugins: &Vec<String>| {
        let writing: Vec<String> = plugins
            .iter()
            .filter(|name| !harmless.contains(&name.to_lowercase().as_str()))
            .filter(|name| *name != "SERVER_AUDIT" || facts.is_on("server_audit_logging"))
            .map(|name| format!("{name} is active"))
            .collect();
        match writing.is_empty() {
            true => Verdict::closed("none is active"),
            false => Verdict::open(
                Severity::Medium,
                "Such a plugin may write statements with their constants to a file that is not encrypted.",
                writing,
                "have it leave out texts of statements, for example:\nserver_audit_events = CONNECT",
            ),
        }
    };
    known(&facts.audit_plugins, "", judge)
}

/// Whether changes of rows leave the server in plain.
pub(super) fn binary_log_is_plain(facts: &Facts) -> bool {
    let name = match facts.is_mariadb() {
        true => "encrypt_binlog",
        false => "binlog_encryption",
    };
    !facts.is_on(name) && !matches!(facts.binary_logs, Seen::Absent)
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::{BinaryLog, LogFile, Machine, ProtectedTable, samples::facts};

    #[test]
    fn a_log_into_nothing_is_closed() {
        let on = |output| {
            facts(
                Family::MySql,
                &[("general_log", "ON"), ("log_output", output)],
            )
        };
        assert!(matches!(general_log(&on("NONE")), Verdict::Closed(_)));
        for output in ["FILE", "TABLE", "FILE,TABLE"] {
            assert!(
                matches!(general_log(&on(output)), Verdict::Open { .. }),
                "{output}"
            );
        }
    }

    #[test]
    fn logs_from_before_a_migration_are_told_where_it_can_be_told() {
        let mut facts = facts(
            Family::MariaDb,
            &[("log_bin", "ON"), ("encrypt_binlog", "ON")],
        );
        let log = |name: &str| BinaryLog {
            name: name.into(),
            encrypted: None,
        };
        facts.binary_logs = Seen::Known(vec![log("binlog.1"), log("binlog.2")]);
        assert!(
            matches!(old_binary_logs(&facts), Verdict::NotVisible { .. }),
            "MariaDB does not say which files are encrypted"
        );
        let file = |name: &str, begun| LogFile {
            name: name.into(),
            encrypted: true,
            begun: Some(begun),
        };
        facts.machine = Ok(Machine {
            logs: vec![file("binlog.1", 100), file("binlog.2", 300)],
            ..Machine::default()
        });
        facts.protected = Seen::Known(Vec::new());
        assert!(matches!(old_binary_logs(&facts), Verdict::Closed(_)));
        facts.protected = Seen::Known(vec![ProtectedTable {
            name: "app.users".into(),
            sealed: Vec::new(),
            plain: Vec::new(),
            damaged: None,
            made: Some(200),
        }]);
        let Verdict::Open { evidence, .. } = old_binary_logs(&facts) else {
            panic!("open");
        };
        assert_eq!(evidence.len(), 1, "{evidence:?}");
        assert!(evidence[0].starts_with("binlog.1: begun before"));
    }
}
