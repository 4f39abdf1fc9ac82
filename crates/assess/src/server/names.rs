//! Names that changes of tables leave behind: ours, and those of other tools.

use super::facts::Seen;
use crate::{
    AssessError,
    reader::{MAX_ROWS, Reader, Refusal},
};

/// What a name says about a table: a copy of the one whose name is within.
pub(super) fn leftover(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let ours = [
        ("_onionskin_old", "the rows before an onionskin migrate"),
        ("_onionskin_new", "an unfinished onionskin migrate"),
        ("_onionskin_trial", "an unfinished onionskin migrate"),
        (
            "_onionskin",
            "the progress of an unfinished onionskin migrate",
        ),
    ];
    if let Some((_, what)) = ours.iter().find(|(end, _)| lower.ends_with(end)) {
        return Some(what);
    }
    if lower.starts_with('_') {
        let others = [
            ("_gho", "gh-ost"),
            ("_ghc", "gh-ost"),
            ("_del", "gh-ost"),
            ("_old", "pt-online-schema-change"),
            ("_new", "pt-online-schema-change"),
        ];
        if let Some((_, tool)) = others.iter().find(|(end, _)| lower.ends_with(end)) {
            return Some(tool);
        }
    }
    let stem = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let is_copy = [
        "_old", "_bak", "_backup", "_bkp", "_copy", "_orig", "_tmp", "_save",
    ]
    .iter()
    .any(|end| stem.ends_with(end));
    is_copy.then_some("a copy, by its name")
}

/// Whether a trigger is one of an unfinished migration.
fn is_ours(trigger: &str) -> bool {
    let Some((_, end)) = trigger.rsplit_once("_onionskin_") else {
        return false;
    };
    matches!(end, "gi" | "gu" | "gd")
        || end
            .strip_prefix('t')
            .is_some_and(|n| n.parse::<u32>().is_ok())
}

/// Tables and triggers that look so.
pub(super) fn leftovers(reader: &mut Reader) -> Result<Seen<Vec<String>>, AssessError> {
    let needs = "GRANT SELECT ON *.*";
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' \
         AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') \
         AND TABLE_NAME REGEXP 'onionskin|_gho$|_ghc$|_del$|_new$|(_old|_bak|_backup|_bkp|_copy|_orig|_tmp|_save)[0-9_]*$' \
         LIMIT {MAX_ROWS}"
    );
    let tables = match reader.rows(&sql)? {
        Ok(rows) if rows.len() < MAX_ROWS => rows,
        Err(Refusal::Denied(_)) => return Ok(Seen::Hidden(needs.into())),
        _ => {
            return Ok(Seen::Hidden(
                "an answer of information_schema.TABLES".into(),
            ));
        }
    };
    let text =
        |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let mut found: Vec<String> = tables
        .iter()
        .filter_map(|row| {
            let name = text(row, 1);
            let what = leftover(&name)?;
            Some(format!("{}.{name}: {what}", text(row, 0)))
        })
        .collect();
    let sql = "SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS \
               WHERE TRIGGER_NAME LIKE '%\\_onionskin\\_%' LIMIT 1000";
    for row in reader.rows(sql)?.unwrap_or_default() {
        let name = text(&row, 1);
        if is_ours(&name) {
            found.push(format!(
                "{}.{name}: a trigger of an unfinished onionskin migrate",
                text(&row, 0)
            ));
        }
    }
    Ok(Seen::Known(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_known_by_their_names() {
        for name in [
            "users_onionskin_old",
            "users_onionskin",
            "_users_gho",
            "_users_old",
            "users_backup_2024",
            "users_bak",
        ] {
            assert!(leftover(name).is_some(), "{name}");
        }
        for name in [
            "users",
            "threshold",
            "folder",
            "household",
            "unfold",
            "news",
        ] {
            assert!(leftover(name).is_none(), "{name}");
        }
        assert!(is_ours("users_onionskin_gi") && is_ours("users_onionskin_t0"));
        assert!(!is_ours("users_onionskin_tx"));
    }
}
