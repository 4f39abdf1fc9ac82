//! Statement texts inside of statements: only what is visible and harmless.

use super::near::collect;
use crate::errors;
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Known, Planned, Request, refuse};

/// `PREPARE s FROM 'text'`, `EXECUTE IMMEDIATE 'text'`: only what is visible and harmless.
pub(super) fn dynamic(request: &Request, tokens: &[Token]) -> Planned<Action> {
    let sql = request.sql;
    let immediate = tokens.get(1).is_some_and(|t| t.is_word(sql, "immediate"));
    let prepare = tokens.first().is_some_and(|t| t.is_word(sql, "prepare"));
    if !immediate && !prepare {
        return Ok(Action::Relay);
    }
    let text = match tokens.last() {
        Some(t) if t.kind == TokenKind::Literal(crate::lex::LiteralKind::String) => t,
        _ => return refuse(&errors::DYNAMIC, "a statement text in a variable"),
    };
    let mut scratch = Vec::new();
    let decoded = crate::literal::decode(
        text.text(sql),
        crate::lex::LiteralKind::String,
        false,
        request.settings.lex,
        onionskin_value::Charset::Utf8mb4,
        &mut scratch,
    );
    let Some(onionskin_value::Input::Text { bytes, .. }) = decoded else {
        return refuse(&errors::DYNAMIC, "a statement text");
    };
    let Ok(inner) = crate::lex::tokens(bytes, request.settings.lex) else {
        return refuse(&errors::DYNAMIC, "a statement text");
    };
    if !super::settings::places(bytes, &inner).is_empty() {
        return refuse(&errors::TRACKING, "SET @@… in a statement text");
    }
    let mut names = Vec::new();
    let database = request.settings.database.as_deref();
    if collect(bytes, &inner, request.settings.lex, database, &mut names).is_err() {
        return refuse(&errors::DYNAMIC, "a statement text");
    }
    if super::definitions::concern(request, &names)
        && super::definitions::defines_table(bytes, &inner, request.settings.lex)
    {
        return refuse(
            &errors::DYNAMIC,
            "a table's definition, by a name that [protect] matches",
        );
    }
    for (database, name) in names {
        // a name that was not looked up cannot be asked for from here, so it counts as near
        match request.catalog.table(&database, &name) {
            Known::Table(t) if !t.is_protected() => {}
            Known::Absent => {}
            _ => return refuse(&errors::DYNAMIC, name),
        }
    }
    Ok(Action::Relay)
}
