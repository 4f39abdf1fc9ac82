//! `ALTER TABLE`: added, dropped and renamed columns, defaults, indexes, harmless options.

use std::sync::Arc;

use onionskin_schema::{DefaultLiteral, NewColumn, Table, same_name};
use onionskin_value::Family;

use super::collation::default_of;
use super::column::{column_definition, plain_type, take_encrypted};
use super::default::{self, Given};
use super::foreign_key::{self, Side};
use super::index::{Indexed, existing_lookup, is_key_element, key_element};
use super::migration::needed;
use super::reader::Reader;
use super::specs::{Specifications, guard, new_name};
use super::{Ddl, DdlPiece, Decided, Pieces, check_names, define, has_encrypted, schema_refusal};
use crate::errors::{self, Refusal};
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Known, Planned, Request, identifier, quoted, refuse};
use crate::scope::position;

pub(crate) fn alter_table<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let mut r = Reader::over(request, &tokens, 0..end);
    let bad = |about: &str| Refusal::new(&errors::ALTERATION, about.to_string());
    r.eat("alter");
    let mut ignore = false;
    while !r.done() && !r.eat("table") {
        ignore |= r.is("ignore");
        r.at += 1;
    }
    // MySQL does not have it, and says so
    if r.eat("if") {
        r.eat("exists");
    }
    let (database, name) = r.table().ok_or_else(|| bad("the table's name"))?;
    let Some(database) = database else {
        return Ok((Action::Relay, None));
    };
    let explicit = has_encrypted(sql, &tokens);
    let concerned = request.policy.concerns(&database, &name);
    let table = match request.catalog.table(&database, &name) {
        Known::Table(t) => Some(t),
        _ => None,
    };
    let target_near = near
        .iter()
        .any(|t| same_name(&t.name, &name) && same_name(&t.database, &database));
    if !explicit && !concerned && near.is_empty() {
        return Ok((Action::Relay, None));
    }
    let Some(table) = table else {
        if near.is_empty() {
            if concerned {
                unknown(&r, (&database, &name))?;
            }
            return Ok((Action::Relay, None));
        }
        // one that appears in this moment could exchange a partition with a protected table
        return Err(bad("a table that is not known, beside a protected one"));
    };
    if ignore {
        return Err(bad("IGNORE"));
    }
    let damaged = |t: &&Arc<Table>| t.damaged.is_some() && !Arc::ptr_eq(t, &table);
    if let Some(other) = near.iter().find(damaged) {
        return refuse(
            &errors::DAMAGED,
            format!("{}.{}", other.database, other.name),
        );
    }
    if let Some(reason) = &table.damaged {
        return refuse(&errors::DAMAGED, format!("{database}.{name} ({reason})"));
    }
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    check_names(sql, &tokens)?;
    let table_collation = default_of(request, &database, Some(&name));
    let lookup = existing_lookup(&table);
    let mut out = Pieces::default();
    out.sql(r.text(0..r.at));
    out.sql(b" ");
    out.0.push(DdlPiece::Renew);
    let mut new_columns = Vec::new();
    let mut taken = Vec::new();
    let mut references = Vec::new();
    let this = (database.as_str(), name.as_str());
    let local = |name: &str| -> Option<Side> {
        let index = position(&table, name)?;
        Side::existing(&table, index)
    };
    let specs = Specifications::read(&r, r.at..end, &table)?;
    for (i, (spec, listed)) in specs.list.iter().cloned().enumerate() {
        if i > 0 {
            out.sql(b", ");
        }
        let mut s = Reader::over(request, &tokens, spec.clone());
        let protected =
            |name: &str| position(&table, name).filter(|&i| table.columns[i].protection.is_some());
        if listed || s.eat("add") {
            if foreign_key::begins(&s, &(s.at..spec.end)) {
                out.sql(b"ADD ");
                let element = s.at..spec.end;
                foreign_key::foreign_key(&s, &element, this, &local, &mut references, &mut out)?;
                continue;
            }
            if is_key_element(&s, &(s.at..spec.end)) {
                if tokens[spec.clone()]
                    .iter()
                    .any(|t| t.is_word(sql, "primary"))
                {
                    // it would make them NOT NULL, whose cells and tokens allow NULL
                    let mut names = tokens[spec.clone()]
                        .iter()
                        .filter_map(|t| identifier(sql, t));
                    let is_new = |name: &str| {
                        let mut new = new_columns.iter();
                        new.any(|c: &NewColumn| c.nullable && same_name(&c.name, name))
                    };
                    let nullable = |name: &String| {
                        is_new(name) || protected(name).is_some_and(|i| table.columns[i].nullable)
                    };
                    if let Some(name) = names.find(nullable) {
                        let about = format!(
                            "PRIMARY KEY over the protected column {name}, which allows NULL"
                        );
                        return refuse(&errors::ALTERATION, about);
                    }
                }
                out.sql(b"ADD ");
                let freed = Some(specs.freed.as_slice());
                let added = |name: &str| {
                    new_columns
                        .iter()
                        .position(|c: &NewColumn| same_name(&c.name, name))
                };
                let lookup = |name: &str| match added(name) {
                    Some(new) => Ok(Indexed::New(new, new_columns[new].sql_type)),
                    None => match lookup(name)? {
                        Indexed::Plain(None) => {
                            Ok(Indexed::Plain(specs.list.iter().find_map(|(spec, _)| {
                                let mut s = Reader::over(request, &tokens, spec.clone());
                                s.eat("add");
                                s.eat("column");
                                let element = s.at..spec.end;
                                let named = s.name().is_some_and(|n| same_name(&n, name));
                                let of = |element| plain_type(&r, element, &table_collation);
                                named.then(|| of(element)).flatten()
                            })))
                        }
                        known => Ok(known),
                    },
                };
                key_element(&s, s.at..spec.end, &lookup, &mut taken, freed, &mut out)?;
                continue;
            }
            s.eat("column");
            let start = s.at;
            let column = s.name().ok_or_else(|| bad("ADD"))?;
            specs.free_name(&table, &column)?;
            // FIRST or AFTER at the end
            let mut stop = spec.end;
            let mut place = None;
            if stop > start + 1 && tokens[stop - 1].is_word(sql, "first") {
                place = Some(None);
                stop -= 1;
            } else if stop > start + 2 && tokens[stop - 2].is_word(sql, "after") {
                place = Some(identifier(sql, &tokens[stop - 1]));
                stop -= 2;
            }
            let auto = tokens[start..stop]
                .iter()
                .any(|t| t.is_word(sql, "auto_increment"));
            let (capabilities, parts) = match take_encrypted(&s, start..stop)? {
                Some((capabilities, before, after)) => (Some(capabilities), vec![before, after]),
                None => (
                    request
                        .policy
                        .capabilities(&database, &name, &column, auto)
                        .map_err(|e| schema_refusal(&e))?,
                    std::iter::once(start..stop).collect(),
                ),
            };
            let Some(capabilities) = capabilities else {
                for token in &tokens[(start + 2).min(stop)..stop] {
                    if identifier(sql, token).is_some_and(|n| protected(&n).is_some()) {
                        return Err(bad("an expression over a protected column"));
                    }
                }
                foreign_key::in_column(&s, &(start..stop), this, &local)?;
                out.sql(b"ADD COLUMN ");
                out.sql(s.text(start..stop));
                match place {
                    None => {}
                    Some(None) => out.sql(b" FIRST"),
                    Some(Some(after)) => out.sql(after_text(&table, &after).as_bytes()),
                }
                continue;
            };
            if auto {
                return refuse(
                    &errors::DEFINITION,
                    format!("column {column}: AUTO_INCREMENT"),
                );
            }
            let definition = column_definition(&s, &parts, capabilities, &table_collation)?;
            if definition.key.is_some() {
                return Err(bad("a key in the definition of an added column"));
            }
            onionskin_schema::check_protectable(&definition.column, request.settings.family)
                .map_err(|e| schema_refusal(&e))?;
            out.0.push(DdlPiece::Add {
                column: new_columns.len(),
                place,
            });
            new_columns.push(definition.column);
        } else if s.eat("drop") {
            const OTHERS: [&str; 7] = [
                "index",
                "key",
                "primary",
                "foreign",
                "constraint",
                "check",
                "partition",
            ];
            if OTHERS.iter().any(|w| s.is(w)) {
                let ours = tokens[spec.clone()]
                    .iter()
                    .filter_map(|t| identifier(sql, t))
                    .any(|n| onionskin_schema::is_our_constraint(&n));
                if ours {
                    return Err(bad("a constraint that belongs to a protected column"));
                }
                out.sql(s.text(spec));
                continue;
            }
            s.eat("column");
            guard(&mut s)?;
            let column = s.name().ok_or_else(|| bad("DROP"))?;
            match protected(&column) {
                Some(index) if s.done() => {
                    out.0.push(DdlPiece::Drop(index));
                }
                Some(_) => return Err(bad("DROP COLUMN with an option")),
                None => out.sql(s.text(spec)),
            }
        } else if s.eat("rename") {
            if s.eat("column") {
                guard(&mut s)?;
                let old = s.name().ok_or_else(|| bad("RENAME COLUMN"))?;
                s.eat("to");
                let new = s.name().ok_or_else(|| bad("RENAME COLUMN"))?;
                if !same_name(&old, &new) {
                    specs.free_name(&table, &new)?;
                }
                match protected(&old) {
                    Some(index) => {
                        out.0.push(DdlPiece::Rename(index, new));
                    }
                    None => {
                        unclaimed(request, this, &old, &new)?;
                        out.sql(s.text(spec));
                    }
                }
            } else {
                out.sql(s.text(spec));
            }
        } else if s.eat("alter") {
            s.eat("column");
            guard(&mut s)?;
            let column = s.name().ok_or_else(|| bad("ALTER"))?;
            match protected(&column) {
                None => out.sql(s.text(spec)),
                Some(index) => {
                    if table.columns[index].on_update {
                        // servers differ in whether it stays
                        return Err(bad("the default of a protected column with ON UPDATE"));
                    }
                    let default = if s.eat("set") && s.eat("default") {
                        let sql_type = table.columns[index]
                            .sql_type
                            .ok_or_else(|| bad("SET DEFAULT"))?;
                        let given = default::given(&mut s, &column, sql_type.is_bit())?;
                        let given = given.ok_or_else(|| bad("SET DEFAULT"))?;
                        if matches!(given, Given::Now(..))
                            && request.settings.family == Family::MySql
                        {
                            return Err(bad(
                                "SET DEFAULT CURRENT_TIMESTAMP, which MySQL takes in parentheses only, as an expression",
                            ));
                        }
                        let default = default::kept(given, &sql_type, &column, request)?;
                        if default == DefaultLiteral::Null && !table.columns[index].nullable {
                            let about =
                                format!("column {column}: DEFAULT NULL on a NOT NULL column");
                            return refuse(&errors::DEFINITION, about);
                        }
                        Some(default)
                    } else if s.eat("drop") && s.eat("default") {
                        None
                    } else {
                        return Err(bad("ALTER COLUMN"));
                    };
                    if !s.done() {
                        return Err(bad("ALTER COLUMN"));
                    }
                    out.0.push(DdlPiece::SetDefault(index, default));
                }
            }
        } else if s.is("modify") || s.is("change") {
            let change = s.eat("change");
            if !change {
                s.eat("modify");
            }
            s.eat("column");
            guard(&mut s)?;
            let column = s.name().ok_or_else(|| bad("MODIFY"))?;
            if change && let Some(new) = new_name(&s).filter(|new| !same_name(new, &column)) {
                specs.free_name(&table, &new)?;
                if protected(&column).is_none() {
                    unclaimed(request, this, &column, &new)?;
                }
            }
            let mentions = tokens[spec.clone()]
                .iter()
                .filter_map(|t| identifier(sql, t))
                .any(|n| protected(&n).is_some());
            let by_policy = request
                .policy
                .capabilities(&database, &name, &column, false)
                .is_ok_and(|c| c.is_some());
            let wanted = take_encrypted(&s, s.at..spec.end)?.map(|(capabilities, ..)| capabilities);
            if let Some(known) = table.column(&column)
                && (known.protection.is_some() || wanted.is_some())
            {
                return Err(needed(&table, known, wanted.as_ref()));
            }
            if mentions || wanted.is_some() || (by_policy && target_near) {
                return refuse(
                    &errors::ALTERATION,
                    format!("the definition of column {column}"),
                );
            }
            out.sql(s.text(spec));
        } else if s.is("convert") {
            // texts would have to be sealed anew, and other tokens be made of them
            let texts = table.protected_columns().map(|(column, _)| column);
            let texts: Vec<&str> = texts
                .filter(|c| c.sql_type.is_none_or(|t| t.collation.is_some()))
                .map(|c| c.name.as_str())
                .collect();
            if !texts.is_empty() {
                let about = format!(
                    "CONVERT TO over protected texts ({}): change the unprotected columns with MODIFY, and the default of columns to come with DEFAULT CHARACTER SET",
                    texts.join(", ")
                );
                return Err(bad(&about));
            }
            out.sql(s.text(spec));
        } else {
            // the default of columns to come: those that exist keep theirs
            const FINE: [&str; 22] = [
                "default",
                "character",
                "charset",
                "collate",
                "engine",
                "row_format",
                "auto_increment",
                "comment",
                "algorithm",
                "lock",
                "force",
                "enable",
                "disable",
                "key_block_size",
                "stats_persistent",
                "stats_auto_recalc",
                "stats_sample_pages",
                "checksum",
                "max_rows",
                "min_rows",
                "avg_row_length",
                "compression",
            ];
            let reads_protected = tokens[spec.clone()]
                .iter()
                .filter_map(|t| identifier(sql, t))
                .any(|n| protected(&n).is_some());
            let sorts = s.is("order") && !reads_protected;
            if !sorts && !FINE.iter().any(|w| s.is(w)) {
                let what = s.token().map_or(String::new(), |t| {
                    String::from_utf8_lossy(t.text(sql)).into_owned()
                });
                return Err(bad(&what));
            }
            out.sql(s.text(spec));
        }
    }
    let changes_set = |piece: &DdlPiece| {
        matches!(
            piece,
            DdlPiece::Add { .. }
                | DdlPiece::Drop(_)
                | DdlPiece::Rename(..)
                | DdlPiece::SetDefault(..)
        )
    };
    if !out.0.iter().any(changes_set) {
        out.0.retain(|piece| *piece != DdlPiece::Renew);
    }
    for column in specs.present {
        out.0.push(DdlPiece::Present(column));
    }
    let protected_table = table.table_id.is_some();
    if new_columns.is_empty() && !protected_table {
        return Ok((Action::Relay, None));
    }
    define(Ddl {
        pieces: out.0,
        new_columns,
        table: Some(table),
        references,
        temporary: None,
    })
}

/// Refuses new names of columns that `[protect]` gives to protected ones, in a table that is not known: it may be a temporary one,
/// which only the server sees. The reader stands behind the table's name.
fn unknown(r: &Reader, (database, table): (&str, &str)) -> Planned<()> {
    let comment = r.tokens.iter().any(|t| t.kind == TokenKind::Executable);
    if comment {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    for spec in r.split(r.at..r.end) {
        let mut s = Reader::over(r.request, r.tokens, spec.clone());
        let names = s.is("change")
            || (s.eat("add") && !is_key_element(&s, &(s.at..spec.end)))
            || (s.eat("rename") && s.is("column"));
        let words = &r.tokens[spec];
        let auto = words.iter().any(|t| t.is_word(r.sql(), "auto_increment"));
        let claims = |name: &String| {
            let found = r.request.policy.capabilities(database, table, name, auto);
            found.map_or(true, |c| c.is_some())
        };
        let mut words = words.iter().skip(1).filter_map(|t| identifier(r.sql(), t));
        if let (true, Some(name)) = (names, words.find(claims)) {
            let about = format!(
                "the column {name}, which [protect] protects, in a table whose columns are not known: a temporary one must have it from the beginning"
            );
            return refuse(&errors::ALTERATION, about);
        }
    }
    Ok(())
}

/// Refuses a name for an unprotected column that `[protect]` gives to a protected one: the column would look like one, and stay
/// plaintext.
fn unclaimed(request: &Request, table: (&str, &str), old: &str, new: &str) -> Planned<()> {
    let claims = |column: &str| {
        let capabilities = request.policy.capabilities(table.0, table.1, column, false);
        // what cannot be read is no reason to let it pass
        capabilities.map_or(true, |c| c.is_some())
    };
    if claims(new) && !claims(old) {
        let about = format!(
            "the name {new}, which [protect] has for a protected column; encrypt {old} first: onionskin migrate {}.{} --encrypt",
            table.0, table.1
        );
        return refuse(&errors::ALTERATION, about);
    }
    Ok(())
}

fn after_text(table: &Table, after: &str) -> String {
    let physical = table
        .column(after)
        .map_or(after, onionskin_schema::alter::last_physical_name);
    format!(" AFTER {}", quoted(physical))
}
