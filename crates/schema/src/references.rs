//! Foreign keys and views that keep a column plaintext.
//!
//! A wildcard of `[protect]` does not mean AUTO_INCREMENT columns, because the server makes their
//! values. So a column that refers to one cannot be protected either: the server compares the two.
//! It stays plaintext, as does a column that refers to it in turn. A section that names the column
//! means it all the same, and its foreign key is an error.
//!
//! A view's column is what it shows: the same holds for one that shows such a column, or counts
//! rows.
//!
//! Keys and views are asked for only where a wildcard protects a plaintext column, so most tables
//! cost no question.

use crate::{
    folding::same_name,
    plain_mark::marks_column,
    policy::Policy,
    protection::{split_companion, split_enc},
    quote::text_as_hex_literal,
    show_create::{Token, tokens},
    table::Table,
};

/// How many foreign keys and views are followed from one column.
const MAX_LINKS: usize = 16;

/// A column as a foreign key or a view names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    database: String,
    table: String,
    column: String,
}

/// What a column refers to, or shows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Column(Target),
    /// A number of rows.
    Count,
}

type Rows = Vec<Vec<Option<String>>>;

/// Finds out which plaintext columns of a table stay so under the wildcards of the policy because
/// of what they refer to: sets [`Column::refers_to_plaintext`](crate::Column). `ask` sends a query
/// to the server and answers with its rows as UTF-8. `tag` is that of the metadata key, for columns
/// whose key was dropped.
pub fn mark_references<E>(
    policy: &Policy,
    table: &mut Table,
    mut ask: impl FnMut(&str) -> Result<Rows, E>,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<(), E> {
    let (database, name) = (table.database.clone(), table.name.clone());
    let (database, name) = (database.as_str(), name.as_str());
    let by_wildcard = |column: &str| {
        let found = policy.find(database, name, column);
        found.is_some_and(|found| !found.named)
    };
    let concerned: Vec<usize> = (0..table.columns.len())
        .filter(|index| {
            let column = &table.columns[*index];
            let is_plain = column.protection.is_none() && !column.auto_increment;
            // what shows or refers to a number that the server makes is a number
            let is_number = column.sql_type.is_some_and(|ty| ty.is_integer());
            is_plain && is_number && by_wildcard(&column.name)
        })
        .collect();
    if concerned.is_empty() || table.damaged.is_some() {
        return Ok(());
    }
    let sources = sources_of(&mut ask, database, name)?;
    let mut look = Look {
        policy,
        ask: &mut ask,
        tag: &tag,
    };
    let mut marks = None;
    for index in concerned {
        let column = &mut table.columns[index];
        for (name, source) in &sources {
            if same_name(name, &column.name) {
                column.refers_to_plaintext |= look.stays_plaintext(source, &mut Vec::new())?;
            }
        }
        if !column.refers_to_plaintext {
            let marks = match &marks {
                Some(marks) => marks,
                None => marks.insert(look.marks_of(database, name)?),
            };
            column.refers_to_plaintext = look.is_marked(marks, &column.name);
        }
    }
    Ok(())
}

/// A look at what keeps columns plaintext.
struct Look<'a, A, T> {
    policy: &'a Policy,
    ask: &'a mut A,
    tag: &'a T,
}

impl<E, A: FnMut(&str) -> Result<Rows, E>, T: Fn(&[u8]) -> [u8; 16]> Look<'_, A, T> {
    /// Whether what a column refers to, or shows, is plaintext by right: AUTO_INCREMENT, at the
    /// end. That `[protect]` says nothing of a column is no reason: whoever administers the server
    /// could put a view of such a column behind the name of a protected table.
    fn stays_plaintext(&mut self, source: &Source, seen: &mut Vec<Target>) -> Result<bool, E> {
        let Source::Column(target) = source else {
            return Ok(true);
        };
        let Target {
            database,
            table,
            column,
        } = target;
        if split_enc(column).is_some() || split_companion(column).is_some() {
            return Ok(false);
        }
        // an account that does not see the column gets no row
        let rows = (self.ask)(&format!(
            "SELECT CAST(EXTRA AS BINARY), CAST(DATA_TYPE AS BINARY) FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND COLUMN_NAME = {}",
            text_as_hex_literal(database),
            text_as_hex_literal(table),
            text_as_hex_literal(column)
        ))?;
        let Some([Some(extra), Some(ty), ..]) = rows.first().map(Vec::as_slice) else {
            return Ok(false);
        };
        if extra.to_ascii_lowercase().contains("auto_increment") {
            return Ok(true);
        }
        let found = self.policy.find(database, table, column);
        let is_named = found.is_some_and(|found| found.named);
        if is_named || seen.len() >= MAX_LINKS || seen.contains(target) {
            return Ok(false);
        }
        seen.push(target.clone());
        for (name, next) in sources_of(self.ask, database, table)? {
            if same_name(&name, column) && self.stays_plaintext(&next, seen)? {
                return Ok(true);
            }
        }
        if !ty.to_ascii_lowercase().ends_with("int") {
            return Ok(false);
        }
        let marks = self.marks_of(database, table)?;
        Ok(self.is_marked(&marks, column))
    }

    /// The names of the constraints that may be marks.
    fn marks_of(&mut self, database: &str, table: &str) -> Result<Vec<String>, E> {
        let rows = (self.ask)(&format!(
            "SELECT CAST(CONSTRAINT_NAME AS BINARY) FROM information_schema.TABLE_CONSTRAINTS \
             WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND CONSTRAINT_TYPE = 'CHECK'",
            text_as_hex_literal(database),
            text_as_hex_literal(table)
        ))?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    fn is_marked(&self, marks: &[String], column: &str) -> bool {
        marks
            .iter()
            .any(|mark| marks_column(mark, column, self.tag))
    }
}

/// What columns of a table refer to or, of a view, show.
fn sources_of<E>(
    ask: &mut impl FnMut(&str) -> Result<Rows, E>,
    database: &str,
    table: &str,
) -> Result<Vec<(String, Source)>, E> {
    let keys = keys_of(ask, database, table)?;
    if !keys.is_empty() {
        return Ok(keys);
    }
    let of_table = format!(
        "WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        text_as_hex_literal(database),
        text_as_hex_literal(table)
    );
    let rows = ask(&format!(
        "SELECT CAST(VIEW_DEFINITION AS BINARY) FROM information_schema.VIEWS {of_table}"
    ))?;
    let definition = rows.first().and_then(|row| row.first()?.as_deref());
    let Some(shown) = definition.and_then(shown_columns) else {
        return Ok(Vec::new());
    };
    // the text may have other names than a view that was made with a list of names
    let rows = ask(&format!(
        "SELECT CAST(COLUMN_NAME AS BINARY) FROM information_schema.COLUMNS {of_table} ORDER BY ORDINAL_POSITION"
    ))?;
    let names: Vec<String> = rows.into_iter().flatten().flatten().collect();
    if names.len() != shown.len() {
        return Ok(Vec::new());
    }
    let sources = names.into_iter().zip(shown);
    Ok(sources
        .filter_map(|(name, source)| Some((name, source?)))
        .collect())
}

/// What each column of a view shows, by its VIEW_DEFINITION; `None` for what is neither a column
/// nor a count of rows. Names stand in backquotes there: without these, nothing is understood.
fn shown_columns(definition: &str) -> Option<Vec<Option<Source>>> {
    let words: Vec<Token<'_>> = tokens(definition)
        .filter(|token| !matches!(token, Token::Space(_)))
        .collect();
    let is = |token: &Token<'_>, word: &str| matches!(token, Token::Word(text) if text.eq_ignore_ascii_case(word));
    let (first, words) = words.split_first()?;
    if !is(first, "select") {
        return None;
    }
    let mut depth = 0usize;
    let mut items = vec![Vec::new()];
    let mut behind = &words[..0];
    for (at, token) in words.iter().enumerate() {
        match token {
            Token::Word("(") => depth += 1,
            Token::Word(")") => depth = depth.checked_sub(1)?,
            token if depth == 0 && is(token, "from") => {
                behind = &words[at..];
                break;
            }
            Token::Word(",") if depth == 0 => {
                items.push(Vec::new());
                continue;
            }
            _ => {}
        }
        items.last_mut()?.push(*token);
    }
    // another SELECT, behind it or in it, has columns and tables of its own
    if words.iter().any(|token| is(token, "select")) {
        return None;
    }
    let tables = tables_behind(behind);
    let shown = items.iter().map(|item| {
        let (front, [word, Token::Quoted(_)]) = item.split_last_chunk::<2>()? else {
            return None;
        };
        if !is(word, "as") {
            return None;
        }
        if let [
            call,
            Token::Word("("),
            Token::Word("0" | "*"),
            Token::Word(")"),
        ] = front
            && is(call, "count")
        {
            return Some(Source::Count);
        }
        let (table, column) = match chain(front)?.as_slice() {
            [database, table, column] => ((database.clone(), table.clone()), column.clone()),
            [table, column] => {
                let mut named = tables.iter().filter(|(name, _)| same_name(name, table));
                let (_, found) = named.next()?;
                if named.any(|(_, other)| other != found) {
                    return None;
                }
                (found.clone(), column.clone())
            }
            _ => return None,
        };
        Some(Source::Column(Target {
            database: table.0,
            table: table.1,
            column,
        }))
    });
    Some(shown.collect())
}

/// Names with dots between them, if these tokens are no more.
fn chain(tokens: &[Token<'_>]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Quoted(_) if at % 2 == 0 => names.push(token.name()),
            Token::Word(".") if at % 2 == 1 => {}
            _ => return None,
        }
    }
    (tokens.len() % 2 == 1).then_some(names)
}

/// The tables behind FROM by the names that the statement has for them. What stands in the
/// parentheses behind ON is left out, and everything from WHERE on.
fn tables_behind(tokens: &[Token<'_>]) -> Vec<(String, (String, String))> {
    let is = |token: &Token<'_>, words: &[&str]| matches!(token, Token::Word(text) if words.iter().any(|w| text.eq_ignore_ascii_case(w)));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() && !is(&tokens[at], &["where", "group", "having", "order", "limit"]) {
        if is(&tokens[at], &["on"]) {
            let mut depth = 0usize;
            let end = tokens[at..].iter().position(|token| {
                depth += usize::from(token.text() == "(");
                let closes = token.text() == ")";
                depth = depth.saturating_sub(usize::from(closes));
                closes && depth == 0
            });
            at = end.map_or(tokens.len(), |end| at + end + 1);
            continue;
        }
        let names: usize = tokens[at..]
            .iter()
            .take_while(|token| matches!(token, Token::Quoted(_) | Token::Word(".")))
            .count();
        if let [
            database @ Token::Quoted(_),
            Token::Word("."),
            table @ Token::Quoted(_),
            alias @ ..,
        ] = &tokens[at..at + names]
        {
            let name = match alias {
                [] => Some(table.name()),
                [alias @ Token::Quoted(_)] => Some(alias.name()),
                _ => None,
            };
            found.extend(name.map(|name| (name, (database.name(), table.name()))));
        }
        at += names.max(1);
    }
    found
}

/// The columns of a table that refer to others, and to which.
fn keys_of<E>(
    ask: &mut impl FnMut(&str) -> Result<Rows, E>,
    database: &str,
    table: &str,
) -> Result<Vec<(String, Source)>, E> {
    let rows = ask(&format!(
        "SELECT CAST(COLUMN_NAME AS BINARY), CAST(REFERENCED_TABLE_SCHEMA AS BINARY), CAST(REFERENCED_TABLE_NAME AS BINARY), \
         CAST(REFERENCED_COLUMN_NAME AS BINARY) FROM information_schema.KEY_COLUMN_USAGE \
         WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND REFERENCED_COLUMN_NAME IS NOT NULL",
        text_as_hex_literal(database),
        text_as_hex_literal(table)
    ))?;
    let keys = rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter().flatten();
        let column = cells.next()?;
        let target = Target {
            database: cells.next()?,
            table: cells.next()?,
            column: cells.next()?,
        };
        Some((column, Source::Column(target)))
    });
    Ok(keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(database: &str, table: &str, column: &str) -> Option<Source> {
        Some(Source::Column(Target {
            database: database.into(),
            table: table.into(),
            column: column.into(),
        }))
    }

    #[test]
    fn views_show_columns_of_their_tables() {
        let simple = "select `a`.`t`.`id` AS `id`,`a`.`t`.`x` AS `y`,count(0) AS `n` from `a`.`t` where (`a`.`t`.`x` > 1)";
        let expected = vec![
            column("a", "t", "id"),
            column("a", "t", "x"),
            Some(Source::Count),
        ];
        assert_eq!(shown_columns(simple), Some(expected));
        let joined = "select `b`.`id` AS `id`,`u`.`n` AS `n`,concat(`u`.`n`,1) AS `m` \
                      from (`a`.`book` `b` join `a`.`u` on((`b`.`u` = `u`.`id`)))";
        let expected = vec![column("a", "book", "id"), column("a", "u", "n"), None];
        assert_eq!(shown_columns(joined), Some(expected));
    }

    #[test]
    fn what_is_not_understood_shows_nothing() {
        for sql in [
            "select a.t.id AS id from a.t",
            "select `x`.`id` AS `id` from (`a`.`t` `x` join `b`.`u` `x`)",
            "select `a`.`t`.`id` + 1 AS `id` from `a`.`t`",
            "select 1 AS `id`",
        ] {
            assert_eq!(shown_columns(sql), Some(vec![None]), "{sql}");
        }
        for sql in [
            "select `a`.`t`.`id` AS `id` from `a`.`t` union select `a`.`u`.`x` AS `x` from `a`.`u`",
            "select `x`.`id` AS `id` from (select `a`.`t`.`id` AS `id` from `a`.`t`) `x`",
            "select `x`.`id` AS `e` from (select `x`.`mail` AS `id` from `evil`.`t` `x`) `x`",
            "select (select `a`.`t`.`id` from `a`.`t`) AS `id` from `a`.`u`",
        ] {
            assert_eq!(shown_columns(sql), None, "{sql}");
        }
    }
}
