//! Columns that the proxy protects, and what lies plain beside them.

use onionskin_schema::identifier;

use crate::server::check::{Check, known};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Facts, ProtectedTable, Seen},
    text::{count, shell_word},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "no-protected-columns",
        layer: Layer::Columns,
        title: "whether any column is protected",
        judge: any,
    },
    Check {
        code: "plain-columns",
        layer: Layer::Columns,
        title: "columns that lie plain in tables with protected ones",
        judge: beside,
    },
    Check {
        code: "damaged-metadata",
        layer: Layer::Columns,
        title: "metadata of protected columns",
        judge: damaged,
    },
];

fn any(facts: &Facts) -> Verdict {
    known(&facts.protected, "", |protected| {
        let tables = match facts.tables {
            Seen::Known(tables) => tables,
            _ => return Verdict::hidden("GRANT SELECT ON *.*"),
        };
        let all = format!(
            "{} of {tables} visible tables have protected columns",
            protected.len()
        );
        let verdict = match (protected.is_empty(), tables) {
            (false, _) => Verdict::closed(all),
            (true, 0) => Verdict::closed("there are no tables"),
            (true, _) => Verdict::open(
                Severity::Medium,
                "The server, its disks and its backups show every value of these tables.",
                vec![all],
                "onionskin migrate DATABASE.TABLE --encrypt \"COLUMN: eq\"",
            ),
        };
        verdict.seen_in_part(facts.missing_tables())
    })
}

fn beside(facts: &Facts) -> Verdict {
    known(&facts.protected, "", |protected| {
        let with_plain: Vec<&ProtectedTable> = protected
            .iter()
            .filter(|table| !table.plain.is_empty())
            .collect();
        let line = |table: &&ProtectedTable| {
            format!(
                "{}: sealed {}; plain {}",
                table.name,
                table.sealed.join(", "),
                table.plain.join(", ")
            )
        };
        let verdict = match with_plain.first() {
            None => Verdict::closed(count(protected.len(), "table") + " with protected columns"),
            Some(first) => Verdict::open(
                Severity::Low,
                "Keys and columns that the server computes with have to be plain. Whether the others \
                 are personal is for you to say; onionskin assess data helps.",
                with_plain.iter().map(line).collect(),
                migrate(first),
            ),
        };
        verdict.seen_in_part(facts.missing_tables())
    })
}

/// For one table, as an example of all.
fn migrate(table: &ProtectedTable) -> String {
    let columns: Vec<String> = table.plain.iter().map(|c| format!("{c}:")).collect();
    format!(
        "onionskin migrate {} --encrypt {}",
        shell_word(&table.name),
        shell_word(&columns.join(" ").replace(": ", ":; "))
    )
}

fn damaged(facts: &Facts) -> Verdict {
    known(&facts.protected, "", |protected| {
        let damaged: Vec<&ProtectedTable> = protected
            .iter()
            .filter(|table| table.damaged.is_some())
            .collect();
        let line = |table: &&ProtectedTable| {
            format!(
                "{}: {}",
                table.name,
                table.damaged.as_deref().unwrap_or_default()
            )
        };
        let verdict = match damaged.first() {
            None => Verdict::closed("no definition is damaged, as the server shows them"),
            Some(first) => {
                let (database, name) = first.name.split_once('.').unwrap_or_default();
                Verdict::open(
                    Severity::High,
                    "The proxy refuses these tables. Somebody has changed their definitions past it.",
                    damaged.iter().map(line).collect(),
                    format!(
                        "SHOW CREATE TABLE {}.{};",
                        identifier(database),
                        identifier(name)
                    ),
                )
            }
        };
        verdict.seen_in_part(facts.missing_tables())
    })
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::samples::facts;

    #[test]
    fn a_hostile_name_stays_a_word() {
        let mut facts = facts(Family::MySql, &[]);
        facts.protected = Seen::Known(vec![ProtectedTable {
            name: "app.a'; rm -rf ~ #".into(),
            sealed: vec!["x".into()],
            plain: vec!["id".into(), "$(y)".into()],
            damaged: None,
            made: None,
        }]);
        let Verdict::Open { mend, .. } = beside(&facts) else {
            panic!("open");
        };
        assert_eq!(
            mend,
            "onionskin migrate 'app.a'\\''; rm -rf ~ #' --encrypt 'id:; $(y):'"
        );
    }
}
