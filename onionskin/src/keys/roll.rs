//! `keys roll`: a new data key for everything.
//!
//! It keeps no state of its own. What has been done is in the key file, in the definitions of the
//! tables and in the checkpoints of migrations; so whatever moment it is killed at, the same
//! command looks where things are and goes on:
//!
//! | what it finds | what it does |
//! |---|---|
//! | a key that is next | makes it the active one |
//! | a key that is leaving, or tables under another key than the active one | rotates them |
//! | neither | adds a key |

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use clap::Args;
use onionskin_keys::{KeyChange, KeyEntry, KeyId, KeyState};
use onionskin_migrate::{
    Consent, Done, Job, Keys, Limits, MigrateError, Operation, Progress, Running, status,
};
use onionskin_rowstream::{
    checkpoint::COMMENT,
    session::{Login, Session},
};
use onionskin_schema::TableName;

use crate::{
    config_file::ConfigFile,
    definitions::{Definitions, is_of_migration},
    error::CommandError,
    key_place::KeyPlace,
    keys::{
        account::Account,
        proxy::{self, Told},
        usage::{Usage, protected_tables, tables_to_rotate},
    },
    migrate::{self, Pace, Shown, printable, renew_pins},
    pin,
    termination::Termination,
};

/// The server's lock: one roll at a time. Its session lives as long as the command.
const LOCK: &str = "onionskin keys roll";
/// For so long the session may be silent, in seconds: about a month. A table may take days.
const SILENCE: u32 = 2_147_483;

/// See the module.
#[derive(Args)]
pub struct Roll {
    #[command(flatten)]
    account: Account,
    #[command(flatten)]
    pace: Pace,
    /// Make another key even where an earlier roll has not ended
    #[arg(long)]
    new: bool,
    /// Stop when the new key is in the file, to give that to proxies on other machines
    #[arg(long)]
    pause: bool,
    /// All proxies have read the key file as it is now: go on where none could be told
    #[arg(long, conflicts_with = "pause")]
    known: bool,
    /// Drop each old table when its rotated one is in place
    #[arg(long)]
    drop_old: bool,
    /// Say what would be done; nothing is changed
    #[arg(long, conflicts_with = "status")]
    dry_run: bool,
    /// Say how far it has come
    #[arg(long)]
    status: bool,
    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// What a roll begins with.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// The active key is the one: tables are on their way to it.
    GoOn(KeyId),
    /// A key that is there becomes the active one.
    Use(KeyId),
    /// There is none yet.
    Add,
}

impl Start {
    /// By what is there. `is_behind`: tables are under another key than the active one.
    fn of(entries: &[KeyEntry], is_behind: bool, new: bool) -> Start {
        let in_state = |state| entries.iter().rev().find(move |key| key.state == state);
        let is_unfinished = is_behind || in_state(KeyState::Leaving).is_some();
        match (in_state(KeyState::Next), in_state(KeyState::Active)) {
            (Some(next), _) => Start::Use(next.id),
            (None, Some(active)) if is_unfinished && !new => Start::GoOn(active.id),
            _ => Start::Add,
        }
    }
}

/// What has come of the tables.
#[derive(Default)]
struct Report {
    moved: Vec<TableName>,
    rows: u64,
    changes: u64,
    old: Vec<String>,
    /// Tables that are left, and why.
    left: Vec<(String, String)>,
}

/// The server, and what is known of it.
struct Place<'a> {
    file: &'a ConfigFile,
    keys: &'a KeyPlace,
    login: Login,
    definitions: Definitions,
}

impl Roll {
    /// Does it, and says what has been done.
    pub fn run(
        self,
        file: &ConfigFile,
        keys: &KeyPlace,
        same_config: &str,
    ) -> Result<(), CommandError> {
        let login = self.account.login(file)?;
        let definitions = Definitions::connect(&login).map_err(CommandError::Explain)?;
        let mut place = Place {
            file,
            keys,
            login,
            definitions,
        };
        let entries = keys.entries()?;
        let start = self.start(&mut place, &entries)?;
        if self.status {
            return place.tell_status(&start);
        }
        if self.dry_run {
            return self.rehearse(&mut place, &start);
        }
        let mut lock = Lock::take(&place.login)?;
        // Another roll may have ended meanwhile.
        let entries = keys.entries()?;
        let start = self.start(&mut place, &entries)?;
        let begun = Instant::now();
        let active = self.activate(&place, start, same_config)?;
        tell_at_signal(same_config)?;
        let report = self.rotate(&mut place, &mut lock)?;
        lock.must_be_held()?;
        let rested = place.lay_to_rest(&report)?;
        self.print(&report, (active, &rested), begun.elapsed(), same_config);
        match report.left.len() {
            0 => Ok(()),
            left => Err(CommandError::RollUnfinished(format!(
                "{left} tables are not under key {active}, for the reasons above: onionskin keys{same_config} roll tries them again"
            ))),
        }
    }

    fn start(&self, place: &mut Place<'_>, entries: &[KeyEntry]) -> Result<Start, CommandError> {
        let loaded = migrate::keys(place.file)?;
        let tables = protected_tables(&mut place.definitions, place.file, &loaded.set)?;
        // Under other keys than these, tables are damaged; without any, there is nothing to roll.
        if !tables.iter().any(|table| table.damaged.is_none()) {
            return Err(CommandError::KeyInUse(format!(
                "no table of this server is protected under the keys of this file, so nothing was done: is it the right server (--backend), \
                 and does the account see all tables (--user)?{}",
                tables
                    .first()
                    .and_then(|table| table.damaged.as_ref())
                    .map_or_else(String::new, |reason| format!(
                        " The first of {} others: {reason}",
                        tables.len()
                    ))
            )));
        }
        let behind = tables_to_rotate(&tables, loaded.set.active_key());
        Ok(Start::of(entries, !behind.is_empty(), self.new))
    }

    /// Makes a key the active one, and returns its number. Every proxy has to know it before.
    fn activate(
        &self,
        place: &Place<'_>,
        start: Start,
        same_config: &str,
    ) -> Result<KeyId, CommandError> {
        let change = |what: KeyChange<'_>| place.keys.change(&place.keys.opening()?, what);
        let next = match start {
            Start::GoOn(active) => {
                println!("Going on: tables that are under other keys are moved to key {active}.");
                proxy::tell_if_there(place.file);
                return Ok(active);
            }
            Start::Use(next) => {
                println!("Going on with key {next}, which is in the file and not used yet.");
                next
            }
            Start::Add => {
                let entries = change(KeyChange::Add)?;
                let next = entries.last().map_or(0, |key| key.id);
                println!("Key {next} was added. Copy the key file to a safe place.");
                next
            }
        };
        let path = place.keys.path()?;
        let ways = format!(
            "give {} to all proxies of the server, run onionskin reload for each, and then onionskin keys{same_config} roll",
            path.display()
        );
        match proxy::tell(place.file)? {
            _ if self.pause => {
                return Err(CommandError::RollUnfinished(format!(
                    "stopped, as --pause says, before key {next} is used: {ways}"
                )));
            }
            Told::Reloaded => println!("The proxy here knows key {next}."),
            Told::Nobody(_) if self.known => {}
            Told::Nobody(why) => {
                return Err(CommandError::RollUnfinished(format!(
                    "no proxy could be told of key {next}, because {why}; it is not used before all of them know it: {ways} --known"
                )));
            }
        }
        change(KeyChange::Activate(next))?;
        println!("Key {next} is the active one: new tables and streams are sealed under it.");
        proxy::tell_if_there(place.file);
        Ok(next)
    }

    fn job(&self, place: &Place<'_>, keys: &Keys, table: &TableName) -> Result<Job, CommandError> {
        let TableName { database, name } = table;
        let limits: Limits = self
            .pace
            .limits(|address| self.account.login_at(place.file, address))?;
        Ok(Job {
            login: place.login.clone(),
            nodes: place
                .file
                .nodes()
                .map(|address| self.account.login_at(place.file, address))
                .collect::<Result<_, _>>()?,
            database: database.clone(),
            table: name.clone(),
            keys: Some(keys.clone()),
            threads: self.pace.threads(),
            limits,
            switch: true,
            reverse: false,
            drop_old: self.drop_old,
            consent: Consent::default(),
            pinned: pin::pinned(place.file, &keys.set, (database, name))?,
            id: None,
        })
    }

    /// Moves one table after the other. What cannot be moved stops none of the others.
    fn rotate(&self, place: &mut Place<'_>, lock: &mut Lock) -> Result<Report, CommandError> {
        // As the file is now.
        let keys = migrate::keys(place.file)?;
        let work = place.work(&keys)?;
        let mut report = Report {
            left: work.damaged,
            ..Report::default()
        };
        let count = work.tables.len();
        for (at, (table, begun)) in work.tables.into_iter().enumerate() {
            lock.must_be_held()?;
            let name = format!("{}.{}", table.database, table.name);
            let job = self.job(place, &keys, &table)?;
            let progress = Progress::default();
            let shown = Shown::start(&progress, self.quiet);
            let done = carry_out(&job, &begun, &progress);
            drop(shown);
            match done {
                Ok(done) => {
                    println!(
                        "{name}: under key {} ({} rows copied, {} changes written; table {} of {count})",
                        keys.set.active_key(),
                        done.rows,
                        done.changes,
                        at + 1
                    );
                    report.add(table, &done);
                    if done.switched.is_some() || done.table.is_some() {
                        renew_pins(place.file, &job, &done)?;
                    }
                }
                // Without the server the others would be refused one by one.
                Err(error @ MigrateError::Lost(_)) => return Err(error.into()),
                Err(error) => {
                    let reason = printable(&error.to_string());
                    eprintln!("onionskin: {name} is left: {reason}");
                    report.left.push((name, reason));
                }
            }
        }
        Ok(report)
    }

    /// `--dry-run`
    fn rehearse(&self, place: &mut Place<'_>, start: &Start) -> Result<(), CommandError> {
        match start {
            Start::GoOn(active) => println!("Tables would go on moving to key {active}."),
            Start::Use(next) => println!("Key {next} would become the active one."),
            Start::Add => {
                println!("A key would be added, told to the proxy, and made the active one.")
            }
        }
        let keys = migrate::keys(place.file)?;
        let mut work = place.work(&keys)?;
        if !matches!(start, Start::GoOn(_)) {
            // Under a key that is not there yet, all of them.
            let tables = protected_tables(&mut place.definitions, place.file, &keys.set)?;
            for table in tables_to_rotate(&tables, 0) {
                work.tables.entry(table).or_insert(Begun::Not);
            }
        }
        for (table, begun) in &work.tables {
            let name = format!("{}.{}", table.database, table.name);
            let job = self.job(place, &keys, table)?;
            match (begun, job.dry_run(&Operation::Rotate)) {
                (Begun::Rotation, _) => {
                    println!("  {name}: its rotation has begun, and would go on")
                }
                (Begun::Other(what), _) => println!("  {name}: would be left: {what}"),
                (_, Ok(_)) => println!("  {name}: would be rotated"),
                (_, Err(error)) => {
                    let reason = printable(&error.to_string());
                    println!("  {name}: would be left: {reason}");
                }
            }
        }
        for (name, reason) in &work.damaged {
            println!("  {name}: would be left: {reason}");
        }
        Ok(())
    }

    fn print(
        &self,
        report: &Report,
        (active, rested): (KeyId, &[KeyId]),
        time: Duration,
        same_config: &str,
    ) {
        println!(
            "\nTables under key {active} now: {} more, {} rows copied and {} changes written in {:.1} s.",
            report.moved.len(),
            report.rows,
            report.changes,
            time.as_secs_f64()
        );
        for (name, reason) in &report.left {
            println!("  left: {name}: {reason}");
        }
        for old in &report.old {
            println!("  old table, under its old key until you drop it: {old}");
        }
        for key in rested {
            println!("Key {key} is read-only: no table of this server is under it any more.");
        }
        let numbers: Vec<String> = rested.iter().map(ToString::to_string).collect();
        println!(
            "Next:
  1. Copy the key file to a safe place, give it to all proxies of the server, and run onionskin reload for each.
  2. Purge and destroy the binary logs up to now, and make new backups: those from before hold rows under the old keys."
        );
        match numbers.is_empty() {
            true => println!(
                "  3. When nothing is left and the old tables are dropped, onionskin keys{same_config} roll makes the old keys read-only."
            ),
            false => println!(
                "  3. When older backups are not needed any more: onionskin keys{same_config} retire {} --folder BACKUPS, and later destroy.",
                numbers.join(" or ")
            ),
        }
    }
}

impl Report {
    fn add(&mut self, table: TableName, done: &Done) {
        if let Some(old) = &done.old {
            self.old.push(format!("{}.{old}", table.database));
        }
        self.rows += done.rows;
        self.changes += done.changes;
        self.moved.push(table);
    }
}

/// What has begun with a table.
enum Begun {
    Not,
    /// A checkpoint without a state: a process was killed in its first moment.
    Barely,
    Rotation,
    /// Another change, or one that another process works on.
    Other(String),
}

/// What there is to do.
struct Work {
    tables: BTreeMap<TableName, Begun>,
    damaged: Vec<(String, String)>,
}

fn carry_out(job: &Job, begun: &Begun, progress: &Progress) -> Result<Done, MigrateError> {
    match begun {
        Begun::Not => job.run(&Operation::Rotate, progress),
        Begun::Barely => {
            // It finds that nothing was made, removes the checkpoint, and says so as an error.
            drop(job.resume(progress));
            job.run(&Operation::Rotate, progress)
        }
        Begun::Rotation => job.resume(progress),
        Begun::Other(what) => Err(MigrateError::Request(what.clone())),
    }
}

impl Place<'_> {
    /// Tables under other keys than the active one, and those whose rotation has begun.
    fn work(&mut self, keys: &Keys) -> Result<Work, CommandError> {
        let tables = protected_tables(&mut self.definitions, self.file, &keys.set)?;
        let behind = tables_to_rotate(&tables, keys.set.active_key());
        let mut work = Work {
            tables: behind.into_iter().map(|name| (name, Begun::Not)).collect(),
            damaged: Vec::new(),
        };
        for table in &tables {
            let name = TableName::new(&table.database, &table.name);
            if let Some(reason) = &table.damaged
                && !is_of_migration(&name)
            {
                let name = format!("{}.{}", table.database, table.name);
                work.damaged.push((name, reason.clone()));
            }
        }
        for name in self.checkpoints()? {
            if let Some(begun) = work.tables.get_mut(&name) {
                *begun = Begun::Barely;
            }
        }
        let (running, unread) = status(&self.login, Some(&keys.set))?;
        for running in running {
            let name = TableName::new(&running.database, &running.table);
            let is_rotation = running.operation == Operation::Rotate.shown();
            if is_rotation || work.tables.contains_key(&name) {
                work.tables.insert(name, Begun::of(&running, is_rotation));
            }
        }
        work.damaged.extend(
            unread
                .into_iter()
                .map(|line| ("a migration".to_owned(), printable(&line))),
        );
        Ok(work)
    }

    /// Tables that have a checkpoint beside them.
    fn checkpoints(&mut self) -> Result<Vec<TableName>, CommandError> {
        let rows = self.definitions.texts(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_COMMENT = '{COMMENT}'"
        ));
        let rows = rows.map_err(|error| CommandError::Explain(error.to_string()))?;
        let names = rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter();
            let (database, name) = (cells.next()??, cells.next()??);
            Some(TableName::new(database, name.strip_suffix("_onionskin")?))
        });
        Ok(names.collect())
    }

    /// Makes keys read-only that no table is under any more, and returns their numbers.
    fn lay_to_rest(&mut self, report: &Report) -> Result<Vec<KeyId>, CommandError> {
        let entries = self.keys.entries()?;
        let loaded = migrate::keys(self.file)?;
        let mut usage = Usage::of(&entries);
        let of_file = (self.file, &*loaded.set);
        usage.look_at_server(&mut self.definitions, of_file, false)?;
        let mut rested = Vec::new();
        // What is not known may be under any of them.
        if !usage.unknown.is_empty() || !report.left.is_empty() {
            return Ok(rested);
        }
        let leaving = usage.keys.iter();
        let leaving = leaving.filter(|key| key.state == KeyState::Leaving.word());
        for key in leaving.filter(|key| key.tables.is_empty()) {
            let change = KeyChange::MakeReadOnly(key.number);
            self.keys.change(&self.keys.opening()?, change)?;
            rested.push(key.number);
        }
        if !rested.is_empty() {
            proxy::tell_if_there(self.file);
        }
        Ok(rested)
    }

    /// `--status`
    fn tell_status(&mut self, start: &Start) -> Result<(), CommandError> {
        let keys = migrate::keys(self.file)?;
        match start {
            Start::GoOn(active) => println!("A roll to key {active} has begun and not ended."),
            Start::Use(next) => println!("Key {next} is in the file and not used yet."),
            Start::Add => println!("Everything is under key {}.", keys.set.active_key()),
        }
        let entries = self.keys.entries()?;
        let mut usage = Usage::of(&entries);
        usage.look_at_server(&mut self.definitions, (self.file, &keys.set), false)?;
        for key in usage.keys.iter().filter(|key| !key.tables.is_empty()) {
            let (number, state) = (key.number, key.state);
            println!("  {} tables under key {number}, {state}", key.tables.len());
        }
        for reason in &usage.unknown {
            println!("  not known: {}", printable(reason));
        }
        let (running, unread) = status(&self.login, Some(&keys.set))?;
        for running in running {
            println!(
                "  {}.{}: {}, phase {}, {} of about {} rows copied",
                running.database,
                running.table,
                running.begun(),
                running.phase,
                running.rows,
                running.estimate
            );
        }
        for line in unread {
            println!("  not known: {}", printable(&line));
        }
        Ok(())
    }
}

impl Begun {
    fn of(running: &Running, is_rotation: bool) -> Begun {
        match (is_rotation, running.is_worked_on) {
            (true, false) => Begun::Rotation,
            (_, true) => Begun::Other("another process is migrating it".into()),
            (false, false) => Begun::Other(format!(
                "another migration of it has begun and not ended ({}): onionskin migrate --resume goes on with that, --abort gives it up",
                running.operation
            )),
        }
    }
}

/// The right to roll on a server.
struct Lock(Session);

impl Lock {
    fn take(login: &Login) -> Result<Lock, CommandError> {
        let failed = |error| CommandError::Explain(format!("the server's lock: {error}"));
        let mut session = Session::connect(login).map_err(failed)?;
        session
            .run(&format!("SET SESSION wait_timeout = {SILENCE}"))
            .map_err(failed)?;
        let got = session.text(&format!("SELECT GET_LOCK('{LOCK}', 5)"));
        match got.map_err(failed)? == "1" {
            true => Ok(Lock(session)),
            false => Err(CommandError::RollUnfinished(
                "another onionskin keys roll runs on this server: --status tells how far it is"
                    .into(),
            )),
        }
    }

    fn must_be_held(&mut self) -> Result<(), CommandError> {
        let held = format!("SELECT COALESCE(IS_USED_LOCK('{LOCK}') = CONNECTION_ID(), 0)");
        match self.0.text(&held) {
            Ok(held) if held == "1" => Ok(()),
            _ => Err(CommandError::RollUnfinished(
                "the connection to the server broke: no row is lost, and the same command goes on"
                    .into(),
            )),
        }
    }
}

/// A signal ends the command as a kill does, which harms nothing.
fn tell_at_signal(same_config: &str) -> Result<(), CommandError> {
    let termination = Termination::watch().map_err(|source| CommandError::System {
        doing: "watching for signals",
        source,
    })?;
    let same_config = same_config.to_owned();
    termination.on_signal(move || {
        eprintln!(
            "\nonionskin: ended by a signal; nothing is lost: onionskin keys{same_config} roll goes on, --status tells how far it is"
        );
        std::process::exit(1);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: KeyId, state: KeyState) -> KeyEntry {
        KeyEntry {
            id,
            created: 0,
            is_active: state == KeyState::Active,
            state,
            rests_since: None,
        }
    }

    #[test]
    fn it_goes_on_where_it_was() {
        use KeyState::{Active, At, Leaving, Next};
        let rested = At(onionskin_keys::Rest::ReadOnly);
        let cases = [
            (vec![key(1, Active)], false, false, Start::Add),
            (
                vec![key(1, Active), key(2, Next)],
                false,
                false,
                Start::Use(2),
            ),
            (
                vec![key(1, Active), key(2, Next)],
                false,
                true,
                Start::Use(2),
            ),
            (
                vec![key(1, Leaving), key(2, Active)],
                true,
                false,
                Start::GoOn(2),
            ),
            // killed behind the last table, before the old key was made read-only
            (
                vec![key(1, Leaving), key(2, Active)],
                false,
                false,
                Start::GoOn(2),
            ),
            (
                vec![key(1, Leaving), key(2, Active)],
                true,
                true,
                Start::Add,
            ),
            (
                vec![key(1, rested), key(2, Active)],
                false,
                false,
                Start::Add,
            ),
            // a proxy with an older file has made a table under the old key
            (
                vec![key(1, rested), key(2, Active)],
                true,
                false,
                Start::GoOn(2),
            ),
        ];
        for (entries, is_behind, new, start) in cases {
            assert_eq!(Start::of(&entries, is_behind, new), start, "{entries:?}");
        }
    }
}
