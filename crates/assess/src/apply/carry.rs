//! How a step is carried out. Each can be ended at any moment, and asked for again.

use std::{
    thread,
    time::{Duration, Instant},
};

use onionskin_schema::identifier;

use super::{
    background, configuration, files,
    keys::KeyFiles,
    request::Request,
    state::{State, cell, rows},
    step::Step,
    steps, tables,
};
use crate::{AssessError, reader::Reader};

/// How long replicas may take to read what is to be removed.
const CATCH_UP: Duration = Duration::from_secs(10);

/// Does it, or says why it was left.
pub(super) fn out(
    step: &Step,
    state: &State,
    request: &Request,
    reader: &mut Reader,
    tell: &mut dyn FnMut(&str),
) -> Result<Option<String>, AssessError> {
    if !matches!(step, Step::Leave { .. } | Step::Note { .. }) {
        tell(&step.to_string());
    }
    match step {
        Step::MakeKeyFile { folder } => {
            files::folder(folder, state.owner)?;
            KeyFiles::of(folder).make(state.owner)?;
        }
        Step::MakeKeyringFolder { folder } => files::folder(folder, state.owner)?,
        Step::WriteManifest {
            path,
            text,
            for_server,
        } => {
            let owner = for_server.then_some(state.owner);
            files::create(path, text.as_bytes(), 0o644, owner)?;
        }
        Step::WriteOptions { path, lines } => configuration::write(path, lines)?,
        Step::Set { name, value } => set(name, value, state, reader)?,
        Step::Database { name, on } => {
            let word = letter(*on);
            reader.must_run(&format!(
                "ALTER DATABASE {} ENCRYPTION='{word}'",
                identifier(name)
            ))?;
        }
        Step::Tablespace { name, on } => {
            let word = letter(*on);
            let sql = format!("ALTER TABLESPACE {} ENCRYPTION='{word}'", identifier(name));
            return Ok(tables::patiently(reader, &sql)?.err());
        }
        Step::Table {
            database,
            name,
            bytes,
            on,
        } => {
            let sql = format!(
                "ALTER TABLE {}.{} ENCRYPTION='{}'",
                identifier(database),
                identifier(name),
                letter(*on)
            );
            return tables::rewrite(reader, &sql, *bytes, state, request.look.pace);
        }
        Step::Background { on, .. } => {
            background::wait(reader, state, *on, request.look.pace, tell)?;
        }
        Step::RotateLogs => reader.must_run("FLUSH BINARY LOGS")?,
        Step::PurgeLogs { .. } => purge(reader, request)?,
        Step::Restart { .. } | Step::Leave { .. } | Step::Note { .. } => {}
    }
    Ok(None)
}

fn letter(on: bool) -> char {
    match on {
        true => 'Y',
        false => 'N',
    }
}

/// MySQL keeps a setting in a file of its own; MariaDB has it in ours.
fn set(name: &str, value: &str, state: &State, reader: &mut Reader) -> Result<(), AssessError> {
    if state.is_mariadb() {
        return reader.must_run(&format!("SET GLOBAL {name} = {value}"));
    }
    let kept = state.data().join("mysqld-auto.cnf");
    if kept.exists() {
        files::keep(&kept)?;
    }
    if value == "ON" {
        return reader.must_run(&format!("SET PERSIST {name} = ON"));
    }
    reader.must_run(&format!("SET GLOBAL {name} = {value}"))?;
    reader.must_run(&format!("RESET PERSIST IF EXISTS {name}"))
}

/// Removes files of the binary log that are not as they shall be. Whoever reads the log has to have
/// read them.
fn purge(reader: &mut Reader, request: &Request) -> Result<(), AssessError> {
    let state = State::read(request)?;
    let wrong = steps::wrong_logs(&state, !request.revert)?;
    let Some(last) = wrong.last else {
        return Ok(());
    };
    let Some(to) = last.next else {
        return Err(AssessError::State(
            "the newest file of the binary log is not as it shall be, and cannot be removed".into(),
        ));
    };
    let begun = Instant::now();
    loop {
        let sql = "SELECT USER, COALESCE(STATE, '') FROM information_schema.PROCESSLIST \
                   WHERE COMMAND LIKE 'Binlog Dump%'";
        let behind = rows(reader, sql)?
            .iter()
            .filter(|row| !cell(row, 1).contains("has sent all binlog"))
            .count();
        if behind == 0 {
            break;
        }
        if begun.elapsed() > CATCH_UP {
            return Err(AssessError::State(format!(
                "{} of the binary log still to read: nothing was removed",
                match behind {
                    1 => "1 replica or archive has parts".to_owned(),
                    n => format!("{n} replicas or archives have parts"),
                }
            )));
        }
        thread::sleep(Duration::from_millis(500));
    }
    reader.must_run(&format!(
        "PURGE BINARY LOGS TO {}",
        quoted(&to).ok_or_else(|| AssessError::State(
            "the binary log's name is not one that is understood".into()
        ))?
    ))?;
    let left = steps::wrong_logs(&State::read(request)?, !request.revert)?;
    match left.files {
        0 => Ok(()),
        files => Err(AssessError::State(format!(
            "the server has kept {files} files of the binary log: somebody reads them"
        ))),
    }
}

/// PURGE takes a literal only.
fn quoted(name: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    name.chars().all(plain).then(|| format!("'{name}'"))
}
