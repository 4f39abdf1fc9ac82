//! `CREATE TABLE`.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{NewColumn, Table, same_name};

use super::collation::{default_of, table_collation};
use super::column::{column_definition, plain_type, take_encrypted};
use super::foreign_key::{self, Side};
use super::index::{Indexed, is_key_element, key_element};
use super::reader::Reader;
use super::select::{self, Head};
use super::{Ddl, DdlPiece, Decided, Pieces, check_names, define, has_encrypted, schema_refusal};
use crate::errors::{self, Refusal};
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Planned, Request, identifier, quoted, refuse};

pub(crate) fn create_table<'a>(
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
    let bad = |about: &str| Refusal::new(&errors::NOT_UNDERSTOOD, about.to_string());
    r.eat("create");
    let or_replace = r.eat("or") && r.eat("replace");
    let temporary = r.eat("temporary");
    r.eat("table");
    let if_absent = r.eat("if") && r.eat("not") && r.eat("exists");
    let (database, name) = r.table().ok_or_else(|| bad("the table's name"))?;
    let explicit = has_encrypted(sql, &tokens);
    let Some(database) = database else {
        return if explicit {
            refuse(&errors::DEFINITION, "no database is selected")
        } else {
            Ok((Action::Relay, None))
        };
    };
    let concerned = request.policy.concerns(&database, &name);
    let is_target = |t: &Arc<Table>| same_name(&t.name, &name) && same_name(&t.database, &database);
    let others = near.iter().any(|t| !is_target(t));
    if let Some(other) = near.iter().find(|t| !is_target(t) && t.damaged.is_some()) {
        return refuse(
            &errors::DAMAGED,
            format!("{}.{}", other.database, other.name),
        );
    }
    let hides = temporary && near.iter().any(is_target);
    let here = Reader::over(request, &tokens, r.at..end);
    if let Some(action) = super::copy::like(here, hides, concerned, !near.is_empty())? {
        return Ok((action, None));
    }
    if !explicit && !concerned && !others {
        if hides {
            return refuse(
                &errors::STATEMENT,
                "a temporary table without protected columns that hides a protected one",
            );
        }
        return Ok((Action::Relay, None));
    }
    check_names(sql, &tokens)?;
    if let Some(parts) = select::parts(Reader::over(request, &tokens, r.at..end)) {
        let head = Head {
            database,
            name,
            or_replace,
            temporary,
            if_absent,
        };
        return select::create_select(request, tokens, near, head, parts);
    }
    let Some(list) = r.parenthesized() else {
        return refuse(
            &errors::STATEMENT,
            "CREATE TABLE … LIKE or AS SELECT with a protected table",
        );
    };
    let options = r.at..end;
    // tools write options into them, such as `/*! ENGINE = innodb */`
    let plain = |at: usize, t: &Token| {
        t.kind != TokenKind::Executable
            || (options.contains(&at)
                && crate::statement::holds_options(sql, t, request.settings.lex))
    };
    if !tokens.iter().enumerate().all(|(at, t)| plain(at, t)) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    for i in options.clone() {
        if ["select", "as", "like", "with", "table", "values"]
            .iter()
            .any(|w| tokens[i].is_word(sql, w))
        {
            return refuse(
                &errors::STATEMENT,
                "CREATE TABLE … SELECT with a protected table",
            );
        }
    }
    if tokens[list.clone()]
        .first()
        .is_some_and(|t| t.is_word(sql, "like") || t.is_word(sql, "select"))
    {
        return refuse(
            &errors::STATEMENT,
            "CREATE TABLE … LIKE with a protected table",
        );
    }
    // a table's name can stand behind REFERENCES, which `foreign_key` looks at, and in UNION = (…)
    if others
        && tokens[options.clone()]
            .iter()
            .any(|t| t.is_word(sql, "union"))
    {
        return refuse(&errors::STATEMENT, "a union of protected tables");
    }
    let table_collation = match table_collation(request, &tokens, options.clone())? {
        Some(collation) => collation,
        None => default_of(request, &database, None),
    };

    let elements = r.split(list.clone());
    let mut columns: Vec<Option<usize>> = Vec::new();
    let mut new_columns: Vec<NewColumn> = Vec::new();
    let mut extra_keys = Vec::new();
    for element in &elements {
        if is_key_element(&r, element) {
            columns.push(None);
            continue;
        }
        let name_token = tokens.get(element.start).ok_or_else(|| bad("a column"))?;
        let column = identifier(sql, name_token).ok_or_else(|| bad("a column's name"))?;
        let auto = tokens[element.clone()]
            .iter()
            .any(|t| t.is_word(sql, "auto_increment"));
        let encrypted = take_encrypted(&r, element.clone())?;
        let (capabilities, parts) = match encrypted {
            Some((capabilities, before, after)) => (Some(capabilities), vec![before, after]),
            None => {
                let found = request
                    .policy
                    .capabilities(&database, &name, &column, auto)
                    .map_err(|e| schema_refusal(&e))?;
                (found, vec![element.clone()])
            }
        };
        let Some(capabilities) = capabilities else {
            columns.push(None);
            continue;
        };
        if auto {
            return refuse(
                &errors::DEFINITION,
                format!("column {column}: AUTO_INCREMENT"),
            );
        }
        let definition = column_definition(&r, &parts, capabilities, &table_collation)?;
        columns.push(Some(new_columns.len()));
        if let Some(kind) = definition.key {
            extra_keys.push((kind, new_columns.len()));
        }
        new_columns.push(definition.column);
    }
    if new_columns.is_empty() && hides {
        return refuse(
            &errors::STATEMENT,
            "a temporary table without protected columns that hides a protected one",
        );
    }
    if new_columns.is_empty() && !others {
        return Ok((Action::Relay, None));
    }
    let place = (database.as_str(), name.as_str());
    foreign_key::inherit_groups(&r, &elements, place, &mut new_columns)?;
    // columns of the primary key are NOT NULL
    for element in elements.iter().filter(|e| is_key_element(&r, e)) {
        let words = &tokens[element.clone()];
        if words.iter().any(|t| t.is_word(sql, "primary")) {
            for column in &mut new_columns {
                let named = words
                    .iter()
                    .filter_map(|t| identifier(sql, t))
                    .any(|n| n.eq_ignore_ascii_case(&column.name));
                if named {
                    column.nullable = false;
                }
            }
        }
    }
    for column in &new_columns {
        onionskin_schema::check_protectable(column, request.settings.family)
            .map_err(|e| schema_refusal(&e))?;
    }
    let lookup = |name: &str| -> Planned<Indexed> {
        let found = new_columns
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case(name));
        match found {
            None => {
                let plain = |element: &&Range<usize>| {
                    let first = tokens.get(element.start);
                    !is_key_element(&r, element)
                        && first
                            .and_then(|t| identifier(sql, t))
                            .is_some_and(|n| n.eq_ignore_ascii_case(name))
                };
                let element = elements.iter().find(plain);
                Ok(Indexed::Plain(element.and_then(|element| {
                    plain_type(&r, element.clone(), &table_collation)
                })))
            }
            Some(i) => {
                new_columns[i]
                    .index_column_name()
                    .map_err(|e| schema_refusal(&e))?;
                Ok(Indexed::New(i, new_columns[i].sql_type))
            }
        }
    };
    let mentions = |range: Range<usize>| {
        tokens[range]
            .iter()
            .filter_map(|t| identifier(sql, t))
            .find(|n| new_columns.iter().any(|c| c.name.eq_ignore_ascii_case(n)))
    };
    let mut out = Pieces::default();
    out.sql(r.text(0..list.start));
    let mut taken = Vec::new();
    let mut references = Vec::new();
    let local = |name: &str| -> Option<Side> {
        let column = new_columns
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case(name))?;
        Some(Side::new(&new_columns[column], column))
    };
    for (i, (element, column)) in elements.iter().zip(&columns).enumerate() {
        if i > 0 {
            out.sql(b", ");
        }
        match column {
            Some(column) => out.0.push(DdlPiece::Definitions(*column)),
            None if foreign_key::begins(&r, element) => {
                foreign_key::foreign_key(&r, element, place, &local, &mut references, &mut out)?;
            }
            None if is_key_element(&r, element) => {
                key_element(&r, element.clone(), &lookup, &mut taken, None, &mut out)?;
            }
            None => {
                // generated columns and defaults must not read protected columns; behind the name stands the type, which
                // may be a column's name, too
                let behind_type = (element.start + 2).min(element.end);
                if let Some(name) = mentions(behind_type..element.end) {
                    return refuse(
                        &errors::DEFINITION,
                        format!("an expression reads column {name}"),
                    );
                }
                foreign_key::in_column(&r, element, place, &local)?;
                out.sql(r.text(element.clone()));
            }
        }
    }
    if new_columns.is_empty() {
        return Ok((Action::Relay, None));
    }
    for (kind, column) in extra_keys {
        new_columns[column]
            .index_column_name()
            .map_err(|e| schema_refusal(&e))?;
        let name = &new_columns[column].name;
        let key_name = if kind == "UNIQUE KEY" {
            quoted(name)
        } else {
            String::new()
        };
        out.sql(format!(", {kind} {key_name}(").as_bytes());
        out.0.push(DdlPiece::IndexColumn(column));
        out.sql(b")");
    }
    if let Some(name) = mentions(options.clone()) {
        return refuse(
            &errors::DEFINITION,
            format!("partitions or options read column {name}"),
        );
    }
    out.sql(b") ");
    out.sql(r.text(list.end + 1..end));
    define(Ddl {
        pieces: out.0,
        new_columns,
        table: None,
        references,
        temporary: temporary.then_some((database, name)),
    })
}
