//! What triggers of the table reach. A column that is protected before or after may not be among
//! it.
//!
//! The server runs a trigger and would give it ciphertext. It comes to a column by NEW and OLD, by
//! the table's name, and through views, routines and triggers of other tables, as many of them in a
//! row as there are. Their texts are not understood: a name that may be one of theirs counts as it.
//! Names are compared as the catalogue's collation does, for which `é` is `E`.

use std::collections::BTreeSet;

use onionskin_rowstream::checkpoint::Trigger;
use onionskin_rowstream::session::Session;
use onionskin_value::{SqlType, weight};

use crate::error::{MigrateError, Result};
use crate::facts::Facts;
use crate::statement::{Token, read as tokens};
use crate::trigger_text::head;

/// An error if a trigger has to do with a column that is protected before or after. `protected` are
/// the names of these columns.
pub(crate) fn must_not_see(
    session: &mut Session,
    triggers: &[Trigger],
    protected: &BTreeSet<String>,
    table: &Facts,
) -> Result<()> {
    let refused = |reason: String| {
        Err(MigrateError::Refused {
            table: format!("{}.{}", table.database, table.table),
            reason,
        })
    };
    let mut bodies = Vec::new();
    for trigger in triggers {
        let name = &trigger.name;
        if !["INSERT", "UPDATE", "DELETE"].contains(&trigger.event.as_str()) {
            return refused(format!("its trigger {name} is for {}", trigger.event));
        }
        let Some(head) = head(&trigger.statement) else {
            return refused(format!("the text of its trigger {name} is not understood"));
        };
        let body = String::from_utf8_lossy(&trigger.statement[head.body..]);
        let body = Text::read(&body);
        if let Some(column) = protected.iter().find(|c| body.sees(c, &table.table)) {
            return refused(format!(
                "its trigger {name} uses the column {column}, which is protected before or after and would be ciphertext there: \
                 drop the trigger first"
            ));
        }
        bodies.push((name, body));
    }
    if protected.is_empty() || bodies.is_empty() {
        return Ok(());
    }
    let objects = objects(session, table)?;
    for (name, body) in &bodies {
        let reached = reached(body, &table.database, &objects);
        let found = reached
            .into_iter()
            .find(|object| object.may_see(protected, &table.table));
        if let Some(object) = found {
            return refused(format!(
                "its trigger {name} may reach a column that is protected before or after, through the {} {}.{}, and would \
                 get ciphertext there: drop the trigger first",
                object.kind, object.database, object.name
            ));
        }
    }
    Ok(())
}

/// A name as the catalogue's collation sees it. Who has the same may be the same.
pub(crate) fn fold(text: &str) -> String {
    // Without accents and letter case, character by character.
    let ty = SqlType::parse("varchar(64)", Some("utf8mb4_general_ci")).ok();
    let folded = |c: char| {
        if c.is_ascii() {
            return c.to_ascii_uppercase();
        }
        let mut lower = c.to_lowercase();
        let c = match (lower.next(), lower.next()) {
            (Some(lower), None) => lower,
            _ => c,
        };
        let mut weights = Vec::new();
        let mut encoded = [0; 4];
        let payload = c.encode_utf8(&mut encoded).as_bytes();
        let weighed = ty.as_ref().map(|ty| weight(ty, payload, &mut weights));
        match (weighed, weights.as_slice()) {
            (Some(Ok(())), &[high, low]) => {
                char::from_u32(u32::from(high) << 8 | u32::from(low)).unwrap_or(c)
            }
            _ => c,
        }
    };
    text.chars().map(folded).collect()
}

/// The text of a body or of a definition.
struct Text {
    tokens: Vec<Token>,
    /// The tokens' names, folded.
    names: Vec<Option<String>>,
    /// All of it, folded, where what is text and what is a name cannot be told.
    unclear: Option<String>,
}

impl Text {
    fn read(text: &str) -> Text {
        let (tokens, unclear) = tokens(text);
        let name = |token: &Token| match token {
            Token::Word(name) | Token::Quoted(name) => Some(fold(name)),
            Token::Sign(_) => None,
        };
        Text {
            names: tokens.iter().map(name).collect(),
            tokens,
            unclear: unclear.then(|| fold(text)),
        }
    }

    /// Whether it may have this name.
    fn mentions(&self, name: &str) -> bool {
        let folded = fold(name);
        match &self.unclear {
            // A character that could not be read may be any, also an accent in an ASCII name.
            Some(text) => text.contains(&folded) || text.contains('\u{fffd}'),
            None => self.names.iter().flatten().any(|known| *known == folded),
        }
    }

    /// Whether a trigger's body may have to do with a column of its table by itself. Without the
    /// table's name it reaches it by NEW and OLD only.
    fn sees(&self, column: &str, table: &str) -> bool {
        if self.unclear.is_some() {
            return self.mentions(column);
        }
        let names_table = self.mentions(table);
        let column = fold(column);
        let is = |at: usize, name: &str| self.names[at].as_deref() == Some(name);
        self.tokens.iter().enumerate().any(|(at, token)| {
            let is_of_row = at >= 2
                && self.tokens[at - 1] == Token::Sign('.')
                && ["NEW", "OLD"].iter().any(|row| is(at - 2, row));
            // A table without a list of columns gives all of them.
            let is_all = *token == Token::Sign('*') || token.is_one_of(&["TABLE", "NATURAL"]);
            is(at, &column) && (names_table || is_of_row) || names_table && is_all
        })
    }
}

/// What a body may lead to.
struct Object {
    kind: &'static str,
    database: String,
    name: String,
    /// What has to be named so that it runs: its own name, or the table whose trigger it is.
    named: String,
    /// `None` where the account may not see it.
    text: Option<Text>,
}

impl Object {
    /// A view's text has all columns that it reads. Others have statements that name none.
    fn may_see(&self, protected: &BTreeSet<String>, table: &str) -> bool {
        self.text.as_ref().is_none_or(|text| {
            text.mentions(table)
                && (self.kind != "view" || protected.iter().any(|column| text.mentions(column)))
        })
    }
}

/// All views and routines, and triggers of other tables.
fn objects(session: &mut Session, table: &Facts) -> Result<Vec<Object>> {
    let own = crate::facts::names_table(
        ["EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE"],
        &table.database,
        &table.table,
    );
    let lists = [
        (
            "view",
            "TABLE_SCHEMA, TABLE_NAME, TABLE_NAME, VIEW_DEFINITION \
             FROM information_schema.VIEWS"
                .to_owned(),
        ),
        (
            "routine",
            "ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_NAME, ROUTINE_DEFINITION \
             FROM information_schema.ROUTINES"
                .to_owned(),
        ),
        (
            "trigger",
            format!(
                "EVENT_OBJECT_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT \
                 FROM information_schema.TRIGGERS WHERE NOT ({own})"
            ),
        ),
    ];
    let mut objects = Vec::new();
    for (kind, list) in lists {
        let rows = session
            .texts(&format!("SELECT {list}"))
            .map_err(MigrateError::sql("reading views, triggers and routines"))?;
        for row in rows {
            let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
            let text = cell(3);
            objects.push(Object {
                kind,
                database: cell(0),
                name: cell(1),
                named: cell(2),
                text: (!text.is_empty()).then(|| Text::read(&text)),
            });
        }
    }
    Ok(objects)
}

/// What a body may lead to, directly or through others. A database counts if it is that of the
/// text, or named in one.
fn reached<'a>(body: &'a Text, database: &str, objects: &'a [Object]) -> Vec<&'a Object> {
    let mut reached: Vec<&Object> = Vec::new();
    let mut left: Vec<&Object> = objects.iter().collect();
    loop {
        let texts: Vec<&Text> = std::iter::once(body)
            .chain(reached.iter().filter_map(|object| object.text.as_ref()))
            .collect();
        let mentions = |name: &str| texts.iter().any(|text| text.mentions(name));
        let is_here = |name: &str| {
            let own = reached.iter().map(|object| object.database.as_str());
            std::iter::once(database)
                .chain(own)
                .any(|known| fold(known) == fold(name))
        };
        let (new, others): (Vec<&Object>, Vec<&Object>) = left.into_iter().partition(|object| {
            mentions(&object.named) && (is_here(&object.database) || mentions(&object.database))
        });
        if new.is_empty() {
            return reached;
        }
        left = others;
        reached.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_sees_what_it_reaches_by_new_and_old_or_by_the_table() {
        for (body, is_seen) in [
            ("INSERT INTO a VALUES (NEW.name)", true),
            ("SET NEW.`Name` = 1", true),
            ("SET NEW.`nÄmé` = 1", true),
            ("SET NEW.`n\u{fffd}me` = 1", true),
            ("SET `new` . name = 1", true),
            ("INSERT INTO a (name) VALUES (NEW.id)", false),
            ("INSERT INTO a (x) SELECT name FROM t", true),
            ("INSERT INTO a (x) SELECT * FROM d.t", true),
            ("INSERT INTO a TABLE t", true),
            ("INSERT INTO a (x) VALUES (NEW.names, 'NEW.name')", false),
            ("INSERT INTO a (x) VALUES ('\\'', NEW.name)", true),
            ("INSERT INTO a (x) VALUES ('\\'', NEW.id)", false),
            ("INSERT INTO a (x) SELECT * FROM u", false),
        ] {
            assert_eq!(Text::read(body).sees("name", "t"), is_seen, "{body}");
        }
    }

    fn object(kind: &'static str, [database, name, named, text]: [&str; 4]) -> Object {
        Object {
            kind,
            database: database.into(),
            name: name.into(),
            named: named.into(),
            text: (!text.is_empty()).then(|| Text::read(text)),
        }
    }

    #[test]
    fn what_is_reached_through_others_counts() {
        let objects = [
            object(
                "view",
                ["d", "v", "v", "select `d`.`t`.`NÄME` AS `a` from `d`.`t`"],
            ),
            object(
                "view",
                ["e", "w", "w", "select `d`.`v`.`a` AS `b` from `d`.`v`"],
            ),
            object(
                "view",
                [
                    "d",
                    "ids",
                    "ids",
                    "select `d`.`t`.`id` AS `id` from `d`.`t`",
                ],
            ),
            object("routine", ["d", "f", "f", "RETURN (SELECT b FROM e.w)"]),
            object("trigger", ["d", "x", "other", "SET @a = f()"]),
            object("routine", ["d", "hidden", "hidden", ""]),
        ];
        let protected = BTreeSet::from(["name".to_owned()]);
        for (body, is_seen) in [
            ("SET @a = (SELECT MAX(a) FROM v)", true),
            ("SET @a = (SELECT MAX(a) FROM `V́`)", false),
            ("SET @a = (SELECT b FROM e.w)", true),
            ("SET @a = (SELECT b FROM w)", false),
            ("SET @a = (SELECT id FROM ids)", false),
            ("SET @a = F()", true),
            ("INSERT INTO öther VALUES (1)", true),
            ("CALL hidden()", true),
            ("SET @a = 'v f'", false),
        ] {
            let body_text = Text::read(body);
            let reached = reached(&body_text, "d", &objects);
            let sees = reached.iter().any(|object| object.may_see(&protected, "t"));
            assert_eq!(sees, is_seen, "{body}");
        }
    }
}
