//! All that a running proxy tells of itself, in one piece: for the status page, for
//! `onionskin status`, and as JSON for programs.
//!
//! Nothing of it is a value. Names of databases, tables and columns are in it, and shapes of
//! statements.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use onionskin_schema::{Capabilities, Table};
use serde::{Deserialize, Serialize};

use crate::catalog::Accounts;
use crate::members::MemberState;
use crate::metrics::{KINDS, Metrics, TIERS};
use crate::refused::Refused;

/// See the module. The fields of the JSON have these names.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Status {
    /// The program's.
    pub version: Cow<'static, str>,
    /// When it was started, in seconds since 1970.
    pub started: f64,
    /// When this was told, likewise.
    pub now: f64,
    /// Number of the configuration in force: 0 is that of the start.
    pub configuration: u64,
    /// What new sessions need.
    pub parts: Vec<PartState>,
    /// What was last found of each server, where there are several.
    #[serde(default)]
    pub members: Vec<MemberState>,
    /// Sessions that are logged in.
    pub sessions: u64,
    /// Whether there is a scratch engine.
    pub engine: bool,
    /// What was counted; `None` where nothing is, for want of an administration address.
    pub counted: Option<Counted>,
    /// Protected tables that statements have named, by name.
    pub protected: Vec<ProtectedTable>,
    /// Statements that were refused, by shape; the most frequent first.
    pub refused: Vec<Refused>,
    /// Shapes of them for which there was no room.
    pub forgotten: u64,
}

/// A part of what new sessions need.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PartState {
    /// One word: `proxy`, `server`, `keys`, `scratch`.
    pub name: Cow<'static, str>,
    /// What is wrong with it, if anything.
    pub fault: Option<String>,
    /// What is worth to be known of it, and keeps no session out.
    #[serde(default)]
    pub note: Option<String>,
}

/// Counts since the start.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Counted {
    /// Upper bounds of the durations in `buckets`, in seconds; the last bucket has none.
    pub bounds: Vec<f64>,
    /// Those that there were.
    pub statements: Vec<Statements>,
    /// Seconds of statements spent waiting for the server.
    pub at_server: f64,
    /// The same for the scratch engine.
    pub at_engine: f64,
    /// The rest of their seconds.
    pub in_proxy: f64,
    /// Cells that were encrypted.
    pub sealed: u64,
    /// Cells that were decrypted.
    pub opened: u64,
}

/// Statements of one tier and kind.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Statements {
    /// Who did them.
    pub tier: Cow<'static, str>,
    /// What they were.
    pub kind: Cow<'static, str>,
    /// How many of each length there were.
    pub buckets: Vec<u64>,
    /// How long they took together.
    pub seconds: f64,
}

/// A table with protected columns.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ProtectedTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Why its definition cannot be trusted, if so.
    pub fault: Option<String>,
    /// The protected ones.
    pub columns: Vec<ProtectedColumn>,
}

/// A protected column.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ProtectedColumn {
    /// Its name.
    pub name: String,
    /// Its logical type.
    #[serde(rename = "type")]
    pub sql_type: String,
    /// What the server can do with it.
    pub capabilities: Vec<String>,
    /// What that shows the server.
    pub shows: String,
}

impl Counted {
    pub(crate) fn of(metrics: &Metrics) -> Counted {
        let seconds = |nanos| Duration::from_nanos(nanos).as_secs_f64();
        let (at_server, at_engine, in_proxy) = metrics.times();
        let (sealed, opened) = metrics.cells();
        let mut counted = Counted {
            bounds: Vec::new(),
            statements: Vec::new(),
            at_server: seconds(at_server),
            at_engine: seconds(at_engine),
            in_proxy: seconds(in_proxy),
            sealed,
            opened,
        };
        for (tier, tier_name) in TIERS {
            for (kind, kind_name) in KINDS {
                let reading = metrics.reading(tier, kind);
                if counted.bounds.is_empty() {
                    let bounds = reading.buckets.iter().map(|(bound, _)| *bound);
                    counted.bounds = bounds.filter(|bound| bound.is_finite()).collect();
                }
                if reading.count > 0 {
                    counted.statements.push(Statements {
                        tier: tier_name.into(),
                        kind: kind_name.into(),
                        buckets: reading.buckets.iter().map(|(_, count)| *count).collect(),
                        seconds: reading.seconds,
                    });
                }
            }
        }
        counted
    }
}

/// The protected tables that any account knows. Where accounts see different columns of one, those
/// of the account that sees most.
pub(crate) fn protected(accounts: &Accounts) -> Vec<ProtectedTable> {
    let mut all: BTreeMap<(String, String), ProtectedTable> = BTreeMap::new();
    for table in accounts.protected() {
        let seen = ProtectedTable::of(&table);
        let key = (seen.database.clone(), seen.name.clone());
        match all.get(&key) {
            Some(known) if known.columns.len() >= seen.columns.len() => {}
            _ => {
                all.insert(key, seen);
            }
        }
    }
    all.into_values().collect()
}

impl ProtectedTable {
    fn of(table: &Arc<Table>) -> ProtectedTable {
        let columns = table.protected_columns().map(|(column, protection)| {
            let capabilities = &protection.capabilities;
            ProtectedColumn {
                name: column.name.clone(),
                sql_type: column.type_text.clone(),
                capabilities: capabilities.list(),
                shows: shown_by(capabilities),
            }
        });
        ProtectedTable {
            database: table.database.clone(),
            name: table.name.clone(),
            fault: table.damaged.clone(),
            columns: columns.collect(),
        }
    }
}

/// What the server learns of a column's values.
pub(crate) fn shown_by(capabilities: &Capabilities) -> String {
    let list = capabilities.list();
    let of_values: Vec<&str> = list
        .iter()
        .map(|word| match word.as_str() {
            "range" => "their order",
            "like" => "which runs of three characters they share",
            "eq" => "which are equal",
            _ => "which are equal to those of the other columns of their group",
        })
        .collect();
    match of_values.as_slice() {
        [] => "nothing but lengths".to_owned(),
        several => several.join(", "),
    }
}
