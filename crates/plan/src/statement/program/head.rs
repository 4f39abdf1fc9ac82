//! What stands before the body of a stored program.

use super::part::run;
use super::reader::{Reader, unsafe_part};
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::Planned;

/// Kinds of program, as far as their names mean different things.
pub(super) enum Kind {
    /// Where the name of its table begins.
    Trigger {
        table: usize,
    },
    Other,
}

/// The word for the kind of program, behind what may stand before it: `None` of other statements.
pub(super) fn kind(r: &mut Reader) -> Planned<Option<String>> {
    r.must("create")?;
    if r.takes("or") {
        r.must("replace")?;
    }
    if r.takes("definer") {
        r.must_sign(b'=')?;
        user(r)?;
    }
    const KINDS: [&str; 4] = ["trigger", "procedure", "function", "event"];
    let word = r.word();
    r.step();
    Ok(KINDS.contains(&word.as_str()).then_some(word))
}

/// Who a program runs as.
fn user(r: &mut Reader) -> Planned<()> {
    if r.takes("current_user") || r.takes("current_role") {
        if r.takes_sign(b'(') {
            r.must_sign(b')')?;
        }
        return Ok(());
    }
    match r.token().map(|token| token.kind) {
        Some(TokenKind::Word | TokenKind::Quoted) => r.step(),
        Some(TokenKind::Literal(LiteralKind::String)) => r.step(),
        _ => return r.not_understood(),
    }
    if r.token()
        .is_some_and(|token| token.kind == TokenKind::Variable)
    {
        r.step();
    }
    Ok(())
}

/// Reads to the body.
pub(super) fn head(r: &mut Reader) -> Planned<Kind> {
    let Some(kind) = kind(r)? else {
        return r.not_understood();
    };
    if r.takes("if") {
        r.must("not")?;
        r.must("exists")?;
    }
    r.path()?;
    match kind.as_str() {
        "trigger" => trigger(r),
        "event" => event(r),
        _ => routine(r, kind == "function"),
    }
}

fn trigger(r: &mut Reader) -> Planned<Kind> {
    if !r.takes("before") {
        r.must("after")?;
    }
    if !r.is_one_of(&["insert", "update", "delete"]) {
        return r.not_understood();
    }
    r.step();
    r.must("on")?;
    let table = r.at;
    r.path()?;
    for word in ["for", "each", "row"] {
        r.must(word)?;
    }
    if r.is_one_of(&["follows", "precedes"]) {
        r.step();
        r.path()?;
    }
    r.is_trigger = true;
    Ok(Kind::Trigger { table })
}

fn event(r: &mut Reader) -> Planned<Kind> {
    r.must("on")?;
    r.must("schedule")?;
    run(r, &["do"], false)?;
    r.must("do")?;
    Ok(Kind::Other)
}

fn routine(r: &mut Reader, is_function: bool) -> Planned<Kind> {
    r.must_sign(b'(')?;
    if !r.takes_sign(b')') {
        loop {
            if r.is_one_of(&["in", "out", "inout"]) {
                r.step();
            }
            let name = r.name()?;
            r.declared.push(name);
            r.data_type()?;
            if !r.takes_sign(b',') {
                break;
            }
        }
        r.must_sign(b')')?;
    }
    if is_function {
        r.must("returns")?;
        r.data_type()?;
    }
    while characteristic(r)? {}
    Ok(Kind::Other)
}

/// DETERMINISTIC and so on; `false` if there is none.
fn characteristic(r: &mut Reader) -> Planned<bool> {
    const FORMS: [&[&str]; 9] = [
        &["deterministic"],
        &["not", "deterministic"],
        &["contains", "sql"],
        &["no", "sql"],
        &["reads", "sql", "data"],
        &["modifies", "sql", "data"],
        &["sql", "security", "definer"],
        &["sql", "security", "invoker"],
        &["language", "sql"],
    ];
    if r.takes("comment") {
        r.literal()?;
        return Ok(true);
    }
    let fits = |form: &&&[&str]| {
        let mut words = form.iter().enumerate();
        words.all(|(n, word)| r.is_word_at(r.at + n, word))
    };
    match FORMS.iter().find(fits) {
        Some(form) => {
            r.at += form.len();
            Ok(true)
        }
        None if r.is_word("language") => unsafe_part("a program in another language"),
        None => Ok(false),
    }
}
