//! What there is to do: from the state, and from the files that the server reads at its start.

use super::{configuration, keyring, keys::KeyFiles, request::Request, state::State, step::Step};
use crate::{
    AssessError,
    server::facts::Seen,
    text::{count, shell_word, shown},
};

/// MariaDB's settings, each with its value.
const MARIADB_TDE: [(&str, &str); 6] = [
    ("innodb_encrypt_tables", "ON"),
    ("innodb_encryption_threads", "4"),
    ("innodb_encrypt_log", "ON"),
    ("innodb_encrypt_temporary_tables", "ON"),
    ("encrypt_tmp_disk_tables", "ON"),
    ("encrypt_tmp_files", "ON"),
];
/// Of large transactions there are temporary files, too.
const MARIADB_BINLOG: [(&str, &str); 2] = [("encrypt_binlog", "ON"), ("encrypt_tmp_files", "ON")];
/// MySQL's settings, all of which can be changed while it runs.
const MYSQL_TDE: [&str; 2] = ["innodb_redo_log_encrypt", "innodb_undo_log_encrypt"];
const NEW_DATABASES: &str = "default_table_encryption";
const MYSQL_BINLOG: &str = "binlog_encryption";

/// What there is to do, in its order.
pub(super) fn of(state: &State, request: &Request) -> Result<Vec<Step>, AssessError> {
    match (state.is_mariadb(), request.revert) {
        (true, false) => mariadb_on(state, request),
        (true, true) => mariadb_off(state, request),
        (false, false) => mysql_on(state, request),
        (false, true) => mysql_off(state, request),
    }
}

fn in_force(state: &State, name: &str) -> bool {
    match name {
        "innodb_encryption_threads" => state.facts.variable(name).is_some_and(|n| n != "0"),
        name => state.facts.is_on(name),
    }
}

fn mariadb_settings(request: &Request) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    if request.tde {
        wanted.extend(MARIADB_TDE);
    }
    if request.binlog {
        wanted.extend(MARIADB_BINLOG);
    }
    wanted.dedup();
    wanted
}

fn options_file(state: &State, request: &Request) -> Result<std::path::PathBuf, AssessError> {
    let arguments = match &state.process {
        Ok(process) => process.arguments.as_slice(),
        Err(_) => &[],
    };
    configuration::place(arguments, request.configuration.as_deref()).map_err(AssessError::State)
}

fn mariadb_on(state: &State, request: &Request) -> Result<Vec<Step>, AssessError> {
    let mut steps = Vec::new();
    let mut missing = Vec::new();
    if state.active_keys().is_empty() {
        let folder = state.keys_folder(request);
        let files = KeyFiles::of(&folder);
        if !files.are_there()? {
            steps.push(Step::MakeKeyFile { folder });
        }
        missing.extend(files.options());
    }
    for (name, value) in mariadb_settings(request) {
        let line = format!("{name} = {value}");
        if !in_force(state, name) && !missing.contains(&line) {
            missing.push(line);
        }
    }
    if !missing.is_empty() {
        let path = options_file(state, request)?;
        let there = configuration::lines(&path)?;
        let mut lines = there.clone();
        lines.extend(missing.iter().filter(|line| !there.contains(line)).cloned());
        if lines != there {
            steps.push(Step::WriteOptions {
                path: path.clone(),
                lines,
            });
        } else if state.started_after(&path) {
            return Err(AssessError::State(format!(
                "the server was started behind {} was written, and these are not in force: {}. Either it does not \
                 read that file, or another one says otherwise, or its error log says why",
                path.display(),
                missing.join(", ")
            )));
        }
        steps.push(Step::Restart {
            why: format!("it reads {} at its start only", path.display()),
        });
    }
    if request.tde {
        background(state, true, &mut steps);
        let plain = state.says_no.len();
        if plain > 0 {
            steps.push(Step::Leave {
                what: format!("{} stay plain", count(plain, "table")),
                why: "they say ENCRYPTED=NO; ALTER TABLE … ENCRYPTED=DEFAULT changes that".into(),
            });
        }
        other_engines(state, &mut steps);
    }
    if request.binlog {
        logs(
            state,
            request,
            true,
            in_force(state, "encrypt_binlog"),
            &mut steps,
        )?;
    }
    Ok(steps)
}

fn background(state: &State, on: bool, steps: &mut Vec<Step>) {
    let spaces = state.facts.tablespaces.known();
    let left = spaces.map_or(0, |spaces| state.others_than(on, spaces));
    if left > 0 {
        steps.push(Step::Background { left, on });
    }
}

fn mariadb_off(state: &State, request: &Request) -> Result<Vec<Step>, AssessError> {
    let mut steps = Vec::new();
    if state.active_keys().is_empty() {
        let path = options_file(state, request)?;
        if !configuration::lines(&path)?.is_empty() {
            steps.push(Step::WriteOptions {
                path,
                lines: Vec::new(),
            });
        }
        return Ok(steps);
    }
    let path = options_file(state, request)?;
    let ours = configuration::lines(&path)?;
    let settings = mariadb_settings(request);
    let is_setting = |line: &String| {
        let name = line.split(" = ").next().unwrap_or_default();
        settings.iter().any(|(setting, _)| *setting == name)
    };
    let kept: Vec<String> = ours
        .iter()
        .filter(|line| !is_setting(line))
        .cloned()
        .collect();
    if kept != ours && !kept.is_empty() {
        steps.push(Step::WriteOptions {
            path: path.clone(),
            lines: kept.clone(),
        });
    }
    if request.tde {
        if state.facts.is_on("innodb_encrypt_tables") {
            steps.push(Step::Set {
                name: "innodb_encrypt_tables",
                value: "OFF".into(),
            });
        }
        background(state, false, &mut steps);
    }
    let on: Vec<&str> = settings
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !matches!(*name, "innodb_encryption_threads" | "innodb_encrypt_tables"))
        .filter(|name| in_force(state, name))
        .collect();
    if !on.is_empty() {
        let ours_say = |name: &&str| ours.iter().any(|line| line.starts_with(*name));
        if kept == ours && state.started_after(&path) && !on.iter().any(ours_say) {
            return Err(AssessError::State(format!(
                "these are on, and not by what onionskin has written into {}: {}. If it was written into another \
                 file, name that with --options-file",
                path.display(),
                on.join(", ")
            )));
        }
        steps.push(Step::Restart {
            why: format!("{} can be changed at its start only", on.join(", ")),
        });
    }
    if request.binlog {
        logs(
            state,
            request,
            false,
            !in_force(state, "encrypt_binlog"),
            &mut steps,
        )?;
    }
    if steps.is_empty() && !ours.is_empty() {
        match still_encrypted(state) {
            None => steps.push(Step::WriteOptions {
                path,
                lines: Vec::new(),
            }),
            Some(what) => steps.push(Step::Note {
                text: format!("{} stays: {what}", path.display()),
            }),
        }
    }
    Ok(steps)
}

/// What of a MariaDB server needs its keys, whoever has encrypted it.
fn still_encrypted(state: &State) -> Option<String> {
    let mut settings = MARIADB_TDE.iter().chain(&MARIADB_BINLOG);
    let by_setting =
        settings.find(|(name, _)| *name != "innodb_encryption_threads" && in_force(state, name));
    if let Some((name, _)) = by_setting {
        return Some(format!("{name} is on"));
    }
    if state.facts.is_on("aria_encrypt_tables") {
        return Some("aria_encrypt_tables is on".into());
    }
    let spaces = state.facts.tablespaces.known().into_iter().flatten();
    let encrypted = spaces.filter(|s| s.encrypted || s.rotating).count();
    if encrypted > 0 || !state.says_yes.is_empty() {
        return Some(format!(
            "{} need the keys",
            count(encrypted.max(state.says_yes.len()), "tablespace")
        ));
    }
    let logs = state.facts.machine.as_ref().map_or(&[][..], |m| &m.logs);
    let encrypted = logs.iter().filter(|log| log.encrypted).count();
    (encrypted > 0).then(|| {
        format!(
            "{} of the binary log need the keys",
            count(encrypted, "file")
        )
    })
}

fn mysql_on(state: &State, request: &Request) -> Result<Vec<Step>, AssessError> {
    let mut steps = Vec::new();
    if state.active_keys().is_empty() {
        steps.extend(keyring_steps(state, request)?);
        steps.push(Step::Restart {
            why: "it loads its keyring at its start only".into(),
        });
    }
    if request.tde {
        for name in MYSQL_TDE {
            turn(state, name, true, &mut steps);
        }
        match state.followers() {
            [] => new_tables(state, true, &mut steps),
            followers => steps.push(Step::Leave {
                what: "whether new tables are encrypted stays as it is".into(),
                why: format!(
                    "{} is told of it by some statements, and stops if it has no keys: set {NEW_DATABASES}, and \
                     ALTER DATABASE … ENCRYPTION='Y', when all have keys",
                    count(followers.len(), "connected replica or archive")
                ),
            }),
        }
        mysql_tables(state, request, true, &mut steps);
        other_engines(state, &mut steps);
    }
    if request.binlog {
        let on = state.facts.is_on(MYSQL_BINLOG);
        turn(state, MYSQL_BINLOG, true, &mut steps);
        logs(state, request, true, on, &mut steps)?;
    }
    Ok(steps)
}

fn keyring_steps(state: &State, request: &Request) -> Result<Vec<Step>, AssessError> {
    let named = request.program.clone();
    let found = state.process.as_ref().ok().and_then(|p| p.program.clone());
    let program = named.or(found).ok_or_else(|| {
        AssessError::State("the server's program is not visible: name it with --program".into())
    })?;
    let plugins = state.facts.variable("plugin_dir").unwrap_or_default();
    let folder = state.keys_folder(request);
    let places = keyring::Places {
        program: &program,
        plugins: std::path::Path::new(plugins),
        data: state.data(),
        folder: &folder,
    };
    let steps = places.steps()?;
    if steps.is_empty() && state.started_after(&places.last()) {
        return Err(AssessError::State(format!(
            "the server was started behind {} was written, and no keyring is active: look into its error log, and \
             whether it runs from there (--program)",
            places.last().display()
        )));
    }
    Ok(steps)
}

fn turn(state: &State, name: &'static str, on: bool, steps: &mut Vec<Step>) {
    if state.facts.is_on(name) != on {
        let value = match on {
            true => "ON",
            false => "OFF",
        };
        steps.push(Step::Set {
            name,
            value: value.into(),
        });
    }
}

/// The default of new databases, and of those that are there.
fn new_tables(state: &State, on: bool, steps: &mut Vec<Step>) {
    turn(state, NEW_DATABASES, on, steps);
    for (name, encrypted) in &state.databases {
        if *encrypted != on {
            steps.push(Step::Database {
                name: name.clone(),
                on,
            });
        }
    }
}

fn mysql_tables(state: &State, request: &Request, on: bool, steps: &mut Vec<Step>) {
    for (name, encrypted) in &state.spaces {
        if *encrypted != on {
            steps.push(Step::Tablespace {
                name: name.clone(),
                on,
            });
        }
    }
    for table in state.tables.iter().filter(|table| table.encrypted != on) {
        let letter = match on {
            true => 'Y',
            false => 'N',
        };
        let name = format!("{}.{}", shown(&table.database), shown(&table.name));
        let mib = table.bytes.div_ceil(1 << 20);
        steps.push(match mib > request.writers_wait {
            true => Step::Leave {
                what: format!("{name} ({mib} MiB) stays as it is"),
                why: format!(
                    "its writers would wait for it. --writers-wait {mib} allows that; they go on with onionskin \
                     migrate {} --alter \"ENCRYPTION='{letter}'\"",
                    shell_word(&name)
                ),
            },
            false => Step::Table {
                database: table.database.clone(),
                name: table.name.clone(),
                bytes: table.bytes,
                on,
            },
        });
    }
}

fn mysql_off(state: &State, request: &Request) -> Result<Vec<Step>, AssessError> {
    let mut steps = Vec::new();
    if request.tde {
        for name in MYSQL_TDE {
            turn(state, name, false, &mut steps);
        }
        new_tables(state, false, &mut steps);
        mysql_tables(state, request, false, &mut steps);
    }
    if request.binlog {
        let off = !state.facts.is_on(MYSQL_BINLOG);
        turn(state, MYSQL_BINLOG, false, &mut steps);
        logs(state, request, false, off, &mut steps)?;
    }
    if !state.active_keys().is_empty() {
        steps.push(Step::Note {
            text: "the keyring and its manifest stay: undo logs may name its keys in their heads, and the server \
                   does not start without them"
                .into(),
        });
    }
    Ok(steps)
}

fn other_engines(state: &State, steps: &mut Vec<Step>) {
    let tables = state.facts.foreign_tables.known();
    let plain: Vec<&str> = tables
        .into_iter()
        .flatten()
        .filter(|t| !(t.engine == "Aria" && state.facts.is_on("aria_encrypt_tables")))
        .map(|t| t.name.as_str())
        .collect();
    if !plain.is_empty() {
        let some = plain.iter().take(5).copied().collect::<Vec<_>>().join(", ");
        steps.push(Step::Leave {
            what: format!(
                "{} of other engines stay plain: {some}",
                count(plain.len(), "table")
            ),
            why: "only InnoDB is encrypted; ALTER TABLE … ENGINE=InnoDB changes that".into(),
        });
    }
}

/// The binary log. `is_set`: new files are as they shall be.
fn logs(
    state: &State,
    request: &Request,
    encrypted: bool,
    is_set: bool,
    steps: &mut Vec<Step>,
) -> Result<(), AssessError> {
    if matches!(state.facts.binary_logs, Seen::Absent) {
        steps.push(Step::Note {
            text: "the server writes no binary log".into(),
        });
        return Ok(());
    }
    let wrong = wrong_logs(state, encrypted)?;
    let Some(last) = wrong.last else {
        return Ok(());
    };
    if last.is_newest && is_set {
        steps.push(Step::RotateLogs);
    }
    let how = match encrypted {
        true => "not encrypted",
        false => "encrypted",
    };
    match request.purge_logs {
        true => steps.push(Step::PurgeLogs {
            files: last.position + 1,
        }),
        false => steps.push(Step::Leave {
            what: format!("{} of the binary log: {how}", count(wrong.files, "file")),
            why: "--purge-logs removes them, for good, once no replica that is connected has still to read them"
                .into(),
        }),
    }
    Ok(())
}

/// Files of the binary log that are not as they shall be.
pub(super) struct WrongLogs {
    pub files: usize,
    pub last: Option<LastLog>,
}

/// The last one of them.
pub(super) struct LastLog {
    /// From 0.
    pub position: usize,
    /// The server writes to it.
    pub is_newest: bool,
    /// The file behind it.
    pub next: Option<String>,
}

pub(super) fn wrong_logs(state: &State, encrypted: bool) -> Result<WrongLogs, AssessError> {
    let Seen::Known(names) = &state.facts.binary_logs else {
        return Err(AssessError::State("the binary logs are not visible".into()));
    };
    let files = state.facts.machine.as_ref().map_or(&[][..], |m| &m.logs);
    let mut wrong = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let file = files.iter().find(|file| file.name == name.name);
        match (name.encrypted, file.map(|file| file.encrypted)) {
            (Some(is), _) | (None, Some(is)) if is == encrypted => {}
            (None, None) => {
                return Err(AssessError::State(format!(
                    "{} of the binary log cannot be read here",
                    name.name
                )));
            }
            _ => wrong.push(position),
        }
    }
    Ok(WrongLogs {
        files: wrong.len(),
        last: wrong.last().map(|position| LastLog {
            position: *position,
            is_newest: position + 1 == names.len(),
            next: names.get(position + 1).map(|name| name.name.clone()),
        }),
    })
}
