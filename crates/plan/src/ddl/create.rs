//! `CREATE TABLE`.

use std::sync::Arc;

use onionskin_schema::{NewColumn, Table, TableName, same_name};

use super::body::Body;
use super::collation::default_of;
use super::index::is_key_element;
use super::inline_reference::{self, Defined};
use super::options::{Options, versioned};
use super::reader::Reader;
use super::select::{self, Head, check_comments};
use super::{Ddl, Decided, Pieces, check_names, define, has_encrypted, planned_anew};
use crate::errors::{self, NotUnderstood};
use crate::lex::{self, Token};
use crate::plan::{Action, OfDatabase};
use crate::planner::{Planned, Request, refuse};

/// Plans it.
pub(crate) fn create_table<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let mut r = Reader::whole(request, &tokens);
    let end = r.end;
    let Some(head) = head(&mut r)? else {
        return Ok((Action::Relay, None));
    };
    let is_target =
        |t: &Arc<Table>| same_name(&t.name, &head.name) && same_name(&t.database, &head.database);
    let has_others = near.iter().any(|t| !is_target(t));
    let is_damaged = |t: &&Arc<Table>| !is_target(t) && t.damaged.is_some();
    if let Some(other) = near.iter().find(is_damaged) {
        let about = format!("{}.{}", other.database, other.name);
        return refuse(&errors::DAMAGED, about);
    }
    let hides = head.temporary && near.iter().any(is_target);
    let is_claimed = request.policy.concerns(&head.database, &head.name);
    let behind_name = r.at..end;
    let here = Reader::over(request, &tokens, behind_name.clone());
    if let Some(action) = super::copy::like(here, hides, is_claimed, !near.is_empty())? {
        return Ok((action, None));
    }
    if !is_claimed && !has_others && !has_encrypted(request.sql, &tokens) {
        return unprotected(hides);
    }
    check_names(request.sql, &tokens)?;
    if let Some(parts) = select::parts(Reader::over(request, &tokens, behind_name)) {
        return select::create_select(request, tokens, near, head, parts);
    }
    if let Some(text) = as_executed(request, &tokens) {
        let action = planned_anew(request, &text, |request, tokens| {
            match create_table(request, tokens, near)? {
                (action, None) => Ok(action),
                // a query that stands in the comment
                (_, Some(_)) => refuse(&errors::EXECUTABLE_COMMENT, ""),
            }
        })?;
        return Ok((action, None));
    }
    let Some(list) = r.parenthesized() else {
        return refuse(
            &errors::STATEMENT,
            "CREATE TABLE … LIKE or AS SELECT with a protected table",
        );
    };
    let columns = r.split(list.clone()).into_iter();
    let columns = columns.filter(|element| !is_key_element(&r, element));
    let defined = columns.map(|tokens| Defined { tokens, begin: "" });
    if let Some(text) = inline_reference::as_elements(&r, defined) {
        let action = planned_anew(request, &text, |request, tokens| {
            Ok(create_table(request, tokens, near)?.0)
        })?;
        return Ok((action, None));
    }
    let options = r.at..end;
    check_comments(&r, &options)?;
    let first = Reader::over(request, &tokens, list.clone());
    if first.is("like") || first.is("select") {
        let about = "CREATE TABLE … LIKE with a protected table";
        return refuse(&errors::STATEMENT, about);
    }
    let told = Options::read(Reader::over(request, &tokens, options.clone()))?;
    // a table's name can stand behind REFERENCES, which `foreign_key` looks at, and in UNION = (…)
    if has_others && told.is_union {
        return refuse(&errors::STATEMENT, "a union of protected tables");
    }
    let (collation, is_own) = match told.collation(&r)? {
        Some(collation) => (collation, true),
        None => (default_of(request, &head.database, None), false),
    };
    let names = (head.database.as_str(), head.name.as_str());
    let keeps_keys = !head.temporary && !told.other_engine;
    let mut body = Body::read(&r, list.clone(), names, collation.clone(), keeps_keys)?;
    let rests_on_keys = body.rests_on_keys;
    if body.columns.is_empty() && (hides || !has_others) && !rests_on_keys {
        return unprotected(hides);
    }
    body.settle()?;
    let mut out = Pieces::default();
    out.sql(r.text(0..list.start));
    let references = body.write(&mut out)?;
    if body.columns.is_empty() && !rests_on_keys {
        return Ok((Action::Relay, None));
    }
    body.write_guards(&mut out);
    if told.is_versioned && !body.columns.is_empty() {
        return versioned(&errors::DEFINITION);
    }
    if let Some(partitions) = &told.partitions {
        body.check_partitions(partitions)?;
    }
    out.sql(b") ");
    out.sql(r.text(list.end + 1..end));
    let is_text = |column: &NewColumn| column.sql_type.collation.is_some();
    let follows = !is_own && body.columns.iter().any(is_text);
    define(Ddl {
        of_database: follows.then(|| OfDatabase {
            database: head.database.clone(),
            collation,
        }),
        pieces: out.0,
        new_columns: body.columns,
        table: None,
        references,
        temporary: head
            .temporary
            .then(|| TableName::new(head.database, head.name)),
        rests_on_keys,
        kept_plain: Vec::new(),
    })
}

/// The statement as the server reads it, where it has comments of which that is known. Dumps have
/// words in them that older versions do not know, such as `/*!80023 INVISIBLE */`.
fn as_executed(request: &Request, tokens: &[Token]) -> Option<Vec<u8>> {
    let settings = request.settings;
    lex::as_executed(
        request.sql,
        tokens,
        settings.family,
        settings.least_version(),
    )
}

/// Reads up to the table's name. `None`: no database is selected, which the server says.
fn head(r: &mut Reader) -> Planned<Option<Head>> {
    r.eat("create");
    let or_replace = r.eat("or") && r.eat("replace");
    let temporary = r.eat("temporary");
    r.eat("table");
    let if_absent = r.eat("if") && r.eat("not") && r.eat("exists");
    let (database, name) = r.table().ok_or(NotUnderstood::NameOf("the table"))?;
    match database {
        Some(database) => Ok(Some(Head {
            database,
            name,
            or_replace,
            temporary,
            if_absent,
        })),
        None if has_encrypted(r.sql(), r.tokens) => {
            refuse(&errors::DEFINITION, "no database is selected")
        }
        None => Ok(None),
    }
}

/// A table without protected columns is the server's. `hides`: it is a temporary one with the name
/// of a protected table.
fn unprotected<'a>(hides: bool) -> Planned<Decided<'a>> {
    match hides {
        true => refuse(
            &errors::STATEMENT,
            "a temporary table without protected columns that hides a protected one",
        ),
        false => Ok((Action::Relay, None)),
    }
}
