//! Settings of a session that statements or their answers depend on, with values for them. Those
//! that only choose a plan (`sql_buffer_result`, `optimizer_switch`) are not among them: flags of
//! columns depend on the plan, see `plans.rs`.

use super::modes;
use super::random::Random;
use onionskin_testkit::Kind;

/// Names and values, of both servers.
const COMMON: &[(&str, &[&str])] = &[
    ("div_precision_increment", &["0", "1", "9", "30"]),
    ("group_concat_max_len", &["4", "16", "1024"]),
    ("max_sort_length", &["8", "64"]),
    ("lc_time_names", &["'de_DE'", "'ja_JP'", "'en_US'"]),
    ("default_week_format", &["1", "3", "7"]),
    ("sql_auto_is_null", &["0", "1"]),
    ("sql_notes", &["0", "1"]),
    ("sql_warnings", &["0", "1"]),
    ("max_error_count", &["0", "1", "2"]),
    ("foreign_key_checks", &["0", "1"]),
    ("unique_checks", &["0", "1"]),
    ("sql_quote_show_create", &["0", "1"]),
    ("net_read_timeout", &["20", "77"]),
    ("net_write_timeout", &["20", "77"]),
    ("wait_timeout", &["600", "28800"]),
    ("lock_wait_timeout", &["50", "100"]),
    ("innodb_lock_wait_timeout", &["5", "50"]),
    ("completion_type", &["0", "1", "'NO_CHAIN'"]),
    ("auto_increment_increment", &["1", "3"]),
    ("auto_increment_offset", &["1", "2"]),
    ("explicit_defaults_for_timestamp", &["0", "1"]),
    (
        "character_set_results",
        &["latin1", "utf8mb4", "NULL", "binary"],
    ),
    (
        "collation_connection",
        &["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"],
    ),
    ("sql_select_limit", &["1", "3", "DEFAULT"]),
    ("sql_safe_updates", &["1", "0"]),
    ("sql_big_selects", &["1"]),
    ("insert_id", &["500", "700"]),
    ("last_insert_id", &["5", "77"]),
    ("timestamp", &["1700000777", "1600000000.5"]),
    (
        "time_zone",
        &["'+00:00'", "'+05:30'", "'-08:00'", "'SYSTEM'"],
    ),
    ("sql_mode", &[]),
];

const OF_MARIADB: &[(&str, &[&str])] = &[
    (
        "old_mode",
        &[
            "'NO_DUP_KEY_WARNINGS_WITH_IGNORE'",
            "''",
            "'UTF8_IS_UTF8MB3'",
        ],
    ),
    ("max_statement_time", &["0", "100"]),
    ("sql_if_exists", &["0", "1"]),
    ("standard_compliant_cte", &["0", "1"]),
];

const OF_MYSQL: &[(&str, &[&str])] = &[
    ("windowing_use_high_precision", &["0", "1"]),
    ("max_execution_time", &["0", "100000"]),
    ("sql_require_primary_key", &["0", "1"]),
    ("sql_generate_invisible_primary_key", &["0", "1"]),
    ("information_schema_stats_expiry", &["0", "100"]),
    ("cte_max_recursion_depth", &["5", "1000"]),
];

fn all(kind: Kind) -> Vec<(&'static str, &'static [&'static str])> {
    let own = match kind {
        Kind::MariaDb => OF_MARIADB,
        Kind::MySql => OF_MYSQL,
    };
    COMMON.iter().chain(own).copied().collect()
}

/// One setting, and a value.
pub fn random(random: &mut Random, kind: Kind) -> (&'static str, String) {
    let (name, values) = random.pick(&all(kind));
    match values {
        [] => (name, format!("'{}'", modes::words(random, kind))),
        values => (name, random.pick(values).to_owned()),
    }
}

/// Some of the names.
pub fn names(random: &mut Random, kind: Kind) -> Vec<&'static str> {
    let all = all(kind);
    let chosen = random.sample(all.len(), 8);
    chosen.into_iter().map(|at| all[at].0).collect()
}
