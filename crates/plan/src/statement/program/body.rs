//! The statements of a stored program that hold others.

use super::part::{run, simple};
use super::reader::Reader;
use crate::errors::NotUnderstood;
use crate::planner::Planned;

/// How many blocks stand within each other at most. Reading one is a call within another.
const MOST_LEVELS: usize = 64;

/// One statement, up to its semicolon.
pub(super) fn statement(r: &mut Reader, level: usize) -> Planned<()> {
    if level > MOST_LEVELS {
        return NotUnderstood::TooMany(MOST_LEVELS, "blocks within each other").refuse();
    }
    const LABELLED: [&str; 4] = ["begin", "loop", "repeat", "while"];
    let is_label = r.name_at(r.at).is_some() && r.is_sign_at(r.at + 1, b':');
    if is_label {
        r.at += 2;
        if !r.is_one_of(&LABELLED) {
            return r.not_understood();
        }
    }
    match r.word().as_str() {
        "begin" => block(r, level),
        "if" => decision(r, level),
        "case" => case(r, level),
        "loop" => {
            r.step();
            statements(r, level, &["end"])?;
            end_of(r, "loop")
        }
        "repeat" => {
            r.step();
            statements(r, level, &["until"])?;
            r.must("until")?;
            run(r, &["end"], false)?;
            end_of(r, "repeat")
        }
        "while" => {
            r.step();
            run(r, &["do"], false)?;
            r.must("do")?;
            statements(r, level, &["end"])?;
            end_of(r, "while")
        }
        "declare" => declaration(r, level),
        _ => simple(r),
    }
}

/// Statements with their semicolons, up to one of these words.
fn statements(r: &mut Reader, level: usize, ends: &[&str]) -> Planned<()> {
    while !r.is_one_of(ends) {
        statement(r, level + 1)?;
        r.must_sign(b';')?;
    }
    Ok(())
}

fn end_of(r: &mut Reader, kind: &str) -> Planned<()> {
    r.must("end")?;
    r.must(kind)?;
    label_behind(r);
    Ok(())
}

fn label_behind(r: &mut Reader) {
    if r.name_at(r.at).is_some() {
        r.step();
    }
}

fn block(r: &mut Reader, level: usize) -> Planned<()> {
    r.step();
    if r.takes("not") {
        r.must("atomic")?;
    }
    let outer = r.declared.len();
    statements(r, level, &["end"])?;
    r.declared.truncate(outer);
    r.must("end")?;
    label_behind(r);
    Ok(())
}

fn decision(r: &mut Reader, level: usize) -> Planned<()> {
    loop {
        // IF or ELSEIF
        r.step();
        run(r, &["then"], false)?;
        r.must("then")?;
        statements(r, level, &["elseif", "else", "end"])?;
        if !r.is_word("elseif") {
            break;
        }
    }
    if r.takes("else") {
        statements(r, level, &["end"])?;
    }
    r.must("end")?;
    r.must("if")
}

fn case(r: &mut Reader, level: usize) -> Planned<()> {
    r.step();
    if !r.is_word("when") {
        run(r, &["when"], false)?;
    }
    while r.takes("when") {
        run(r, &["then"], false)?;
        r.must("then")?;
        statements(r, level, &["when", "else", "end"])?;
    }
    if r.takes("else") {
        statements(r, level, &["end"])?;
    }
    r.must("end")?;
    r.must("case")
}

fn declaration(r: &mut Reader, level: usize) -> Planned<()> {
    r.step();
    if r.is_one_of(&["continue", "exit", "undo"]) && r.is_word_at(r.at + 1, "handler") {
        r.at += 2;
        r.must("for")?;
        loop {
            condition(r)?;
            if !r.takes_sign(b',') {
                return statement(r, level + 1);
            }
        }
    }
    let mut names = vec![r.name()?];
    while r.takes_sign(b',') {
        names.push(r.name()?);
    }
    if r.is_word("condition") && names.len() == 1 {
        r.step();
        r.must("for")?;
        return condition(r);
    }
    if r.is_word("cursor") && names.len() == 1 {
        r.step();
        r.must("for")?;
        return match r.is_one_of(&["select", "with"]) {
            true => run(r, &[], false),
            false => r.not_understood(),
        };
    }
    r.data_type()?;
    if r.takes("default") {
        run(r, &[], false)?;
    }
    r.declared.append(&mut names);
    Ok(())
}

/// What a handler is for.
fn condition(r: &mut Reader) -> Planned<()> {
    if r.takes("sqlstate") {
        r.takes("value");
        return r.literal();
    }
    if r.takes("not") {
        return r.must("found");
    }
    match r.name_at(r.at) {
        Some(_) => {
            r.step();
            Ok(())
        }
        None => r.literal(),
    }
}
