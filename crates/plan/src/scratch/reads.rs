//! The statements that fetch what the scratch engine needs.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Column, Default, DefaultLiteral, KeyRole, Table, TableName, folded};

use super::walk::Reference;
use super::{Carried, NamedBy, Renamed, ScratchColumn, ScratchRead, TOO_LONG};
use crate::errors::{self, NotUnderstood};
use crate::lex::{Token, TokenKind};
use crate::plan::{ColumnUse, OpenFrom, ResultItem};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};

/// The user variables that the statement reads. Assignments and variables of the system are
/// refused.
pub(super) fn variables(planner: &Planner<'_>) -> Planned<Vec<Vec<u8>>> {
    let sql = planner.sql();
    let mut found: Vec<Vec<u8>> = Vec::new();
    for (i, token) in planner.tokens.iter().enumerate() {
        let behind = planner.tokens.get(i + 1);
        if token.is(b':') && behind.is_some_and(|t| t.is(b'=')) {
            return refuse(&errors::SCRATCH_FUNCTION, ":=");
        }
        for word in ["current_user", "current_role"] {
            if token.is_word(sql, word) {
                return refuse(&errors::SCRATCH_FUNCTION, word);
            }
        }
        if token.kind != TokenKind::Variable {
            continue;
        }
        let text = token.text(sql);
        if text.starts_with(b"@@") {
            return refuse(&errors::SCRATCH_FUNCTION, "a variable of the system");
        }
        if !found.iter().any(|v| v == text) {
            found.push(text.to_vec());
        }
    }
    Ok(found)
}

/// Which columns a statement names.
struct Named {
    words: HashSet<String>,
    all: bool,
}

impl Named {
    fn of(planner: &Planner<'_>, tokens: Range<usize>) -> Self {
        let words = planner.tokens[tokens.clone()]
            .iter()
            .filter_map(|t| planner.name_of(t))
            .map(|n| folded(&n))
            .collect::<HashSet<_>>();
        let stars = tokens.clone().any(|at| is_wildcard(planner, at));
        Named {
            all: stars || words.contains("natural"),
            words,
        }
    }

    fn columns(&self, table: &Table, written: &[usize]) -> Vec<usize> {
        let named = |name: &str| self.all || self.words.contains(&folded(name));
        let columns = &table.columns;
        let mut wanted: Vec<bool> = columns
            .iter()
            .enumerate()
            .map(|(i, c)| named(&c.name) || written.contains(&i))
            .collect();
        let in_key = |i: usize| columns[i].key == KeyRole::Primary;
        // a key that is read in part is no key
        if (0..columns.len()).any(|i| in_key(i) && wanted[i]) {
            for (i, wanted) in wanted.iter_mut().enumerate() {
                *wanted |= in_key(i);
            }
        }
        (0..columns.len()).filter(|&i| wanted[i]).collect()
    }
}

/// Whether a star stands for columns. It multiplies behind an operand, and counts in `COUNT(*)`.
fn is_wildcard(planner: &Planner<'_>, at: usize) -> bool {
    const BEFORE_LIST: [&str; 12] = [
        "select",
        "all",
        "distinct",
        "distinctrow",
        "high_priority",
        "straight_join",
        "sql_small_result",
        "sql_big_result",
        "sql_buffer_result",
        "sql_cache",
        "sql_no_cache",
        "sql_calc_found_rows",
    ];
    let sql = planner.sql();
    if !planner.tokens[at].is(b'*') {
        return false;
    }
    let Some(before) = at.checked_sub(1).and_then(|i| planner.tokens.get(i)) else {
        return true;
    };
    match before.kind {
        TokenKind::Word => BEFORE_LIST.iter().any(|w| before.is_word(sql, w)),
        TokenKind::Quoted | TokenKind::Literal(_) | TokenKind::Variable => false,
        _ => !before.is(b')') && !before.is(b'('),
    }
}

/// The columns that stand in `DEFAULT(column)`, in lower case; `None` if it is not called.
fn defaulted(planner: &Planner<'_>, tokens: Range<usize>) -> Option<Vec<String>> {
    let sql = planner.sql();
    let mut found = None;
    for at in tokens {
        let is_call = planner.tokens[at].is_word(sql, "default")
            && planner.tokens.get(at + 1).is_some_and(|t| t.is(b'('));
        if is_call {
            let inside = planner.tokens[at + 2..].iter().take_while(|t| !t.is(b')'));
            let names = inside.filter_map(|t| planner.name_of(t));
            let names = names.map(|name| folded(&name));
            found.get_or_insert_with(Vec::new).extend(names);
        }
    }
    found
}

/// Whether a temporary table's column has the same default. It has not if that is an expression, or
/// a moment: a moment is shown in the time zone of the session that asks.
pub(super) fn has_same_default(column: &Column) -> bool {
    let text = match &column.default {
        Some(Default::Server(text)) => text,
        Some(Default::Literal(DefaultLiteral::Expression(text))) => text,
        _ => return !column.generated && !column.has_lost_default(),
    };
    let text = text.to_ascii_lowercase();
    let now = text.starts_with("current_timestamp");
    let begins_with_year = || {
        let mut digits = text.bytes().filter(|b| *b != b'\'');
        digits.next().is_some_and(|b| b.is_ascii_digit()) && !text.contains("0000-00-00")
    };
    let moment = column
        .type_text
        .to_ascii_lowercase()
        .starts_with("timestamp");
    if column.generated || (moment && begins_with_year()) {
        return false;
    }
    now || !text.contains('(')
}

/// In which form a column is asked for, and its text. `None`: values of its type cannot be carried
/// exactly.
fn carried(table: &Table, index: usize) -> Option<(Carried, String)> {
    let column = &table.columns[index];
    match column.enc_name() {
        Some(sealed) => Some((Carried::Sealed, quoted(sealed))),
        None => in_the_clear(column),
    }
}

/// The same for a column that holds its values in the clear: a plain one, or any in a temporary
/// table of the scratch engine.
pub(super) fn in_the_clear(column: &Column) -> Option<(Carried, String)> {
    let name = quoted(&column.name);
    let text = column.type_text.to_ascii_lowercase();
    let word: &str = text.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    Some(match word {
        // a FLOAT is shown in six digits, FLOAT(m,d) and DOUBLE(m,d) in as many as the type says
        "double" if text.contains('(') => (Carried::Number, format!("({name} * 1e0)")),
        "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "decimal"
        | "numeric" | "double" | "year" => (Carried::Number, name),
        "float" => (Carried::Number, format!("({name} * 1e0)")),
        "bit" => (Carried::Number, format!("({name} + 0)")),
        "date" | "datetime" | "time" | "uuid" | "inet4" | "inet6" => (Carried::Quoted, name),
        "timestamp" => (Carried::Epoch, format!("UNIX_TIMESTAMP({name})")),
        "char" | "varchar" | "tinytext" | "enum" | "set" | "binary" | "varbinary" | "tinyblob"
            if column.sql_type.is_some() =>
        {
            (Carried::Hex, format!("HEX({name})"))
        }
        "text" | "mediumtext" | "longtext" | "blob" | "mediumblob" | "longblob"
            if column.sql_type.is_some() =>
        {
            (Carried::Hex, long_digits(&name))
        }
        "json" => (Carried::Hex, long_digits(&name)),
        _ => return None,
    })
}

/// The digits of a value that may be long. Where they are longer than `max_allowed_packet`, HEX()
/// is NULL, which is another value.
fn long_digits(name: &str) -> String {
    let mark = String::from_utf8_lossy(TOO_LONG);
    format!("IFNULL(HEX({name}), IF({name} IS NULL, NULL, '{mark}'))")
}

/// A read for each reference, of the columns that are named among `tokens`. The first reference to
/// a table keeps its name, the others are renamed. Index hints go to the server.
pub(super) fn reads(
    planner: &mut Planner<'_>,
    found: Vec<Reference>,
    tokens: Range<usize>,
) -> Planned<(Vec<ScratchRead>, Vec<Renamed>)> {
    let defaulted = defaulted(planner, tokens.clone());
    let named = Named::of(planner, tokens);
    let mut seen: HashMap<TableName, usize> = HashMap::new();
    let mut reads = Vec::new();
    let mut renamed: Vec<Renamed> = Vec::new();
    for reference in found {
        let table = Arc::clone(&reference.table);
        let key = TableName::folded(&table.database, &table.name);
        let number = seen.entry(key).or_insert(0);
        *number += 1;
        let mut name = table.name.clone();
        if *number > 1 {
            name = format!("onionskin${}", reads.len() + 1);
            if reference.names_column {
                let named = named_as_before(planner, &reference)?;
                if renamed.iter().all(|other| other.tokens != named.tokens) {
                    renamed.push(named);
                }
            }
            let text = other_name(planner, &reference, &name)?;
            let tokens = (reference.name.start, reference.name.end);
            renamed.push(Renamed { tokens, text });
        }
        let indexes = named.columns(&table, &reference.written);
        let list = read_columns(planner, &table, indexes, defaulted.as_deref())?;
        let mut source = format!("{}.{}", quoted(&table.database), quoted(&table.name));
        if let Some(alias) = &reference.alias {
            source.push_str(" AS ");
            source.push_str(&quoted(alias));
        }
        source.push_str(&planner.hint_for(&table)?);
        if let Some(hints) = &reference.hints {
            for token in &planner.tokens[hints.clone()] {
                source.push(' ');
                source.push_str(&String::from_utf8_lossy(token.text(planner.sql())));
            }
            let tokens = (hints.start, hints.end);
            let text = String::new();
            renamed.push(Renamed { tokens, text });
        }
        let mut text = TextBuilder::default();
        text.sql(format!("SELECT {} FROM {source}", list.text).as_bytes());
        reads.push(ScratchRead {
            table,
            name,
            columns: list.columns,
            fetch: list.fetch,
            source,
            text: text.finish(),
            conditions: reference.conditions,
            lock: reference.lock,
            seconds: None,
            key: Vec::new(),
            named_by: NamedBy::Key,
            defines: defaulted.is_some(),
            collation: None,
        });
    }
    Ok((reads, renamed))
}

/// The select list of a read.
struct ReadList {
    columns: Vec<ScratchColumn>,
    fetch: Vec<ResultItem>,
    text: String,
}

/// What is read of these columns of a table. `defaulted`: the columns of which the statement asks
/// the default, see [`defaulted`].
fn read_columns(
    planner: &mut Planner<'_>,
    table: &Arc<Table>,
    indexes: Vec<usize>,
    defaulted: Option<&[String]>,
) -> Planned<ReadList> {
    let (mut columns, mut fetch, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for index in indexes {
        let column = &table.columns[index];
        let path = || format!("{}.{}.{}", table.database, table.name, column.name);
        let Some((carried, sql)) = carried(table, index) else {
            return refuse(&errors::SCRATCH_TYPE, path());
        };
        let open = (carried == Carried::Sealed).then(|| {
            let used = ColumnUse {
                table: table.clone(),
                index,
            };
            (planner.column_index(&used), OpenFrom::Sealed)
        });
        fetch.push(ResultItem {
            open,
            ..ResultItem::plain()
        });
        let is_asked = |names: &[String]| names.contains(&folded(&column.name));
        if defaulted.is_some_and(is_asked) && !has_same_default(column) {
            let about = format!("DEFAULT({}), an expression or a moment", path());
            return refuse(&errors::SCRATCH_FUNCTION, about);
        }
        texts.push(sql);
        columns.push(ScratchColumn { index, carried });
    }
    if columns.is_empty() {
        // rows are counted
        texts.push("1".to_owned());
        fetch.push(ResultItem::plain());
    }
    Ok(ReadList {
        columns,
        fetch,
        text: texts.join(", "),
    })
}

/// What stands for a reference to a table that was referred to before: a table of this name.
fn other_name(planner: &Planner<'_>, reference: &Reference, name: &str) -> Planned<String> {
    if reference.alias.is_none() && has_long_names(planner) {
        return NotUnderstood::Beside(
            "columns named with their database",
            "a table that is used twice",
        )
        .refuse();
    }
    let table = &reference.table;
    let mut text = format!("{}.{}", quoted(&table.database), quoted(name));
    if reference.alias.is_none() {
        text.push_str(" AS ");
        text.push_str(&quoted(&table.name));
    }
    Ok(text)
}

/// Gives the column of the result in which a table stands the name that it would have if the table
/// were not renamed: its text. The statement must be one SELECT.
fn named_as_before(planner: &mut Planner<'_>, reference: &Reference) -> Planned<Renamed> {
    /// What servers take as an alias, in characters; more than that is cut in other names.
    const MAX_NAME: usize = 255;
    let unnamed = || NotUnderstood::UsedTwiceUnnamed.into();
    let item = item_around(planner, reference.name.start).ok_or_else(unnamed)?;
    let last = item.end - 1;
    let bytes = planner.tokens[item.start].start..planner.tokens[last].end;
    let name = std::str::from_utf8(&planner.sql()[bytes.clone()]).unwrap_or_default();
    // Servers differ in what of blanks and comments is in a name.
    let is_plain = name.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) && !name.contains("/*");
    if !reference.names_result || !is_plain || name.is_empty() || name.len() > MAX_NAME {
        return Err(unnamed());
    }
    let end = planner.tokens[last].start - bytes.start;
    let text = format!("{} AS {}", &name[end..], quoted(name));
    planner.pin_within(&bytes);
    Ok(Renamed {
        tokens: (last, item.end),
        text,
    })
}

/// The tokens of the item of the select list around a token, if the statement is one SELECT.
fn item_around(planner: &Planner<'_>, place: usize) -> Option<Range<usize>> {
    let is_select = planner.tokens.first()?.is_word(planner.sql(), "select");
    let clauses = planner.clauses(0).ok().filter(|_| is_select)?;
    let mut behind = planner.tokens.get(clauses.end..)?.iter();
    if !behind.all(|token| token.is(b';')) {
        return None;
    }
    clauses.items.into_iter().find(|item| item.contains(&place))
}

/// The read of all columns of a table but the generated ones, which follow from others.
pub(super) fn whole(planner: &mut Planner<'_>, table: &Arc<Table>) -> Planned<ScratchRead> {
    let (mut columns, mut fetch) = (Vec::new(), Vec::new());
    for index in (0..table.columns.len()).filter(|&i| !table.columns[i].generated) {
        let used = ColumnUse {
            table: Arc::clone(table),
            index,
        };
        let Some((carried, _)) = carried(table, index) else {
            return refuse(&errors::SCRATCH_TYPE, used.path());
        };
        let sealed = carried == Carried::Sealed;
        fetch.push(ResultItem {
            open: sealed.then(|| (planner.column_index(&used), OpenFrom::Sealed)),
            ..ResultItem::plain()
        });
        columns.push(ScratchColumn { index, carried });
    }
    Ok(ScratchRead {
        table: Arc::clone(table),
        name: table.name.clone(),
        columns,
        fetch,
        source: format!("{}.{}", quoted(&table.database), quoted(&table.name)),
        text: TextBuilder::default().finish(),
        conditions: Vec::new(),
        lock: "",
        seconds: None,
        key: Vec::new(),
        named_by: NamedBy::Key,
        defines: false,
        collation: None,
    })
}

/// Whether a name of three parts stands in the statement.
fn has_long_names(planner: &Planner<'_>) -> bool {
    let is_name = |t: &Token| matches!(t.kind, TokenKind::Word | TokenKind::Quoted);
    planner
        .tokens
        .windows(4)
        .any(|w| is_name(&w[0]) && w[1].is(b'.') && is_name(&w[2]) && w[3].is(b'.'))
}
