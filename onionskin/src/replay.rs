//! What `restore --binlogs` does after the backup: the archived transactions up to a point in time, on a server of its own.
//!
//! The server runs on the restored directory, reachable through a socket in a private folder only. Events are sent through the
//! server's own tools (see [`onionskin_backup::archive::replay`]), because a QUERY event needs a dozen session settings that
//! only they know to set for every version; row events pass as BINLOG statements either way. Everything happens in a
//! directory beside the wanted one, which gets its name when the replay has succeeded.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use chrono::{DateTime, NaiveDateTime};
use clap::Args;
use onionskin_backup::{
    Header, Manifest, StreamError,
    archive::{
        folder::place_text,
        replay::{Done, Plan, Point, Replayed},
    },
};
use onionskin_keys::{KeySet, StreamKey};
use onionskin_rowstream::{
    binlog::Gtid,
    client::{Address, Client, ConnectOptions},
};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::{
    archive::{parse_place, reading_threads, time},
    error::CommandError,
    private::{Family, ServerProgram, foreign, without_ours},
    tied,
};

/// How often a server is looked after.
const LOOK: Duration = Duration::from_millis(50);

/// Point-in-time recovery.
#[derive(Args)]
pub struct ReplayArguments {
    /// Replay the binlog archive in this folder behind the backup
    #[arg(long, value_name = "DIR")]
    binlogs: Option<PathBuf>,
    /// Where to stop: before the first transaction committed at "2026-11-21 12:00:00" (UTC, or with an offset) or later; behind a
    /// GTID; or before FILE:POSITION [default: the end of the archive]
    #[arg(long, value_name = "POINT", requires = "binlogs", value_parser = parse_point)]
    until: Option<Point>,
}

/// A replay that can begin.
pub struct Replay {
    plan: Plan,
    keys: KeySet,
    /// Options without which no server reads the files, from the manifest.
    options: Vec<String>,
}

impl ReplayArguments {
    /// Whether there is anything to replay.
    pub fn is_wanted(&self) -> bool {
        self.binlogs.is_some()
    }

    /// Looks whether the archive has all that is needed; `None` if none is wanted.
    pub fn plan(&self, keys: KeySet, backup: &Manifest) -> Result<Option<Replay>, CommandError> {
        let Some(folder) = &self.binlogs else {
            return Ok(None);
        };
        let point = self.until.clone().unwrap_or(Point::End);
        let plan = Plan::new(folder, backup, point, &|header: &Header| header.key(&keys))?;
        let settings = backup.settings.iter();
        let options = settings.map(|(name, value)| format!("--{name}={value}"));
        Ok(Some(Replay {
            plan,
            keys,
            options: options.collect(),
        }))
    }
}

impl Replay {
    /// Where the backup is to be restored before the replay: beside `datadir`.
    pub fn staging(&self, datadir: &Path) -> Result<Staging, CommandError> {
        let empty = fs::read_dir(datadir).map_or(true, |mut entries| entries.next().is_none());
        let name = datadir.file_name().filter(|_| empty).ok_or_else(|| {
            CommandError::Replay(format!(
                "{} is not empty: restore into an empty or a new directory",
                datadir.display()
            ))
        })?;
        // Without a dot in front: MySQL does not look for tablespaces in hidden directories.
        let mut prefix = name.to_owned();
        prefix.push(".");
        report_leftovers(datadir, &prefix);
        let mut staging = prefix;
        staging.push(format!("{:016x}{REPLAYING}", rand::random::<u64>()));
        Ok(Staging {
            path: datadir.with_file_name(staging),
            finished: false,
        })
    }

    /// Replays on the server of the directory.
    pub fn run(&self, datadir: &Path) -> Result<Replayed, CommandError> {
        let program = ServerProgram::find(datadir)?;
        let (tool, client) = tools(program.family)?;
        let folder = TempDir::new().map_err(|source| CommandError::System {
            doing: "making a temporary folder",
            source,
        })?;
        let mut options = settings(datadir);
        options.extend(self.options.iter().cloned());
        let gtids = self.plan.has_gtids();
        let server = Server::start(&program, datadir, folder.path(), &options, gtids)?;
        let socket = format!("--socket={}", server.socket.display());
        let find = |header: &Header| -> Result<StreamKey, StreamError> { header.key(&self.keys) };
        let tool = || {
            let mut command = foreign(&tool);
            command.args(["--no-defaults", "-"]);
            command
        };
        let mut send = foreign(&client);
        send.args(["--no-defaults", "--user=root", "--binary-mode"]);
        send.args(["--max-allowed-packet=1G", &socket]);
        let replayed = self.plan.run(&find, &tool, send, reading_threads());
        server.stop()?;
        Ok(replayed?)
    }
}

/// The end of the name of a directory in which a replay goes on.
const REPLAYING: &str = ".replaying";

/// Directories of restores that were killed hold opened data, and nobody else would find them. They are not removed: another
/// restore may be writing there.
fn report_leftovers(datadir: &Path, prefix: &OsStr) {
    let parent = parent_of(datadir);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(prefix.as_encoded_bytes()) && bytes.ends_with(REPLAYING.as_bytes()) {
            eprintln!(
                "onionskin: {} holds the opened data of a restore that was killed, unless one is at work there: remove it",
                parent.join(name).display()
            );
        }
    }
}

fn parent_of(datadir: &Path) -> &Path {
    match datadir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What was done, for people.
pub fn print_replayed(replayed: &Replayed) {
    let named = |done: &Done| match &done.gtid {
        Some(gtid) => format!("{gtid}, committed at {}", time(done.time)),
        None => format!("committed at {}", time(done.time)),
    };
    println!("replayed  {} transactions", replayed.transactions);
    if let Some(last) = &replayed.last {
        println!(
            "last      {}, ends at {}",
            named(last),
            place_text(&replayed.end)
        );
    }
    match &replayed.next {
        Some(next) => println!("stopped   before {}", named(next)),
        None => println!("stopped   at the end of the archive"),
    }
}

/// The directory while it is not finished; removed with all its content unless it is.
pub struct Staging {
    path: PathBuf,
    finished: bool,
}

impl Staging {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name.
    pub fn finish(mut self, datadir: &Path) -> Result<(), CommandError> {
        let failed = |source| CommandError::File {
            path: datadir.to_owned(),
            source,
        };
        // A directory takes the place of an empty one, and of nothing else.
        fs::rename(&self.path, datadir).map_err(failed)?;
        self.finished = true;
        fs::File::open(parent_of(datadir))
            .and_then(|parent| parent.sync_all())
            .map_err(failed)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The server of the restored directory, while it is being written to.
struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    fn start(
        program: &ServerProgram,
        datadir: &Path,
        folder: &Path,
        options: &[String],
        gtids: bool,
    ) -> Result<Self, CommandError> {
        let failed =
            |what: String| CommandError::Replay(format!("{}: {what}", program.path.display()));
        let socket = folder.join("s");
        let log = folder.join("log");
        let path = |option: &str, path: &Path| format!("--{option}={}", path.display());
        // Absolute, because a server changes into it.
        let datadir = datadir
            .canonicalize()
            .map_err(|error| failed(error.to_string()))?;
        let mut command = tied::command(&program.path);
        command
            .arg("--no-defaults")
            .arg(path("datadir", &datadir))
            .arg(path("socket", &socket))
            .arg(path("pid-file", &folder.join("pid")))
            .arg(path("tmpdir", folder))
            // The default of MySQL is a folder of an installed server.
            .arg(path("secure-file-priv", folder));
        command.args([
            "--skip-networking",
            "--skip-grant-tables",
            "--skip-log-bin",
            "--event-scheduler=OFF",
            "--max-allowed-packet=1G",
        ]);
        command.args(options);
        match program.family {
            Family::MariaDb => {
                command.arg("--skip-slave-start");
            }
            Family::MySql => {
                command.args(["--skip-replica-start", "--mysqlx=OFF"]);
                if gtids {
                    command.args(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
                }
            }
        }
        if geteuid().is_root() {
            command.arg("--user=root");
        }
        without_ours(&mut command);
        let file = fs::File::create(&log).map_err(|error| failed(error.to_string()))?;
        let errors = file
            .try_clone()
            .map_err(|error| failed(error.to_string()))?;
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut server = Self { child, socket };
        let options = ConnectOptions {
            address: Address::Unix(server.socket.clone()),
            user: "root".into(),
            password: String::new(),
            tls: None,
            identity: None,
        };
        // Recovery may take its time; the server's end does not.
        while Client::connect(&options).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let errors: Vec<&str> =
                    said.lines().filter(|line| line.contains("ERROR")).collect();
                // The very last one says only that it gives up.
                let errors = match errors.len() {
                    0 => "it says nothing".to_owned(),
                    count => errors[count.saturating_sub(3)..].join("; "),
                };
                return Err(failed(format!(
                    "does not start on the restored directory ({status}): {errors}"
                )));
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }

    /// Asks it to end, and waits for that: its buffers may be large.
    fn stop(mut self) -> Result<(), CommandError> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(CommandError::Replay(format!(
                "the server on the restored directory ended with {status}"
            ))),
            Err(source) => Err(CommandError::System {
                doing: "waiting for the server",
                source,
            }),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings without which no server reads the files, as mariadb-backup leaves them beside the data.
fn settings(datadir: &Path) -> Vec<String> {
    const NEEDED: [&str; 4] = [
        "innodb_page_size",
        "innodb_data_file_path",
        "innodb_undo_tablespaces",
        "innodb_checksum_algorithm",
    ];
    let text = fs::read_to_string(datadir.join("backup-my.cnf")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| NEEDED.contains(&name.trim()))
        .map(|(name, value)| format!("--{}={}", name.trim(), value.trim()))
        .collect()
}

/// The family's own reader of binlogs and client.
fn tools(family: Family) -> Result<(PathBuf, PathBuf), CommandError> {
    let find = |names: [&str; 2]| -> Result<PathBuf, CommandError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let candidates = env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .flat_map(|folder| names.map(|name| folder.join(name)));
        candidates
            .filter(|candidate| candidate.is_file())
            .find(|candidate| family_of(candidate) == Some(family))
            .ok_or_else(|| {
                CommandError::Replay(format!(
                    "replaying needs {} of {family}, which is not in the PATH: install the client programs of the server's version",
                    names.join(" or ")
                ))
            })
    };
    match family {
        Family::MariaDb => Ok((
            find(["mariadb-binlog", "mysqlbinlog"])?,
            find(["mariadb", "mysql"])?,
        )),
        Family::MySql => Ok((
            find(["mysqlbinlog", "mysqlbinlog"])?,
            find(["mysql", "mysql"])?,
        )),
    }
}

/// Distributions install MariaDB's programs under MySQL's names, too; and not every version says in `--version` whose it is.
fn family_of(program: &Path) -> Option<Family> {
    let output = Command::new(program)
        .args(["--no-defaults", "--help"])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    match String::from_utf8_lossy(&output.stdout).contains("MariaDB") {
        true => Some(Family::MariaDb),
        false => Some(Family::MySql),
    }
}

/// A time, a GTID or a place.
fn parse_point(text: &str) -> Result<Point, String> {
    let micros = |time: DateTime<chrono::Utc>| u64::try_from(time.timestamp_micros()).ok();
    if let Ok(time) = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1))
        && let Some(micros) = micros(time.to_utc())
    {
        return Ok(Point::Time(micros));
    }
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format)
            && let Some(micros) = micros(time.and_utc())
        {
            return Ok(Point::Time(micros));
        }
    }
    // A day alone looks like a GTID of MariaDB; who means that GTID writes 02026-11-21.
    let day = text.len() == 10 && text.parse::<chrono::NaiveDate>().is_ok();
    if let Ok(gtid) = text.parse::<Gtid>()
        && !day
    {
        return Ok(Point::Gtid(gtid));
    }
    if let Ok(place) = parse_place(text) {
        return Ok(Point::Place(place));
    }
    Err("write a time (\"2026-11-21 12:00:00\", in UTC), a GTID (0-1-42 or UUID:42), or a place (binlog.000003:4711)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_told_apart() {
        let point = |text: &str| parse_point(text).unwrap();
        assert_eq!(point("1970-01-01 00:00:01.5"), Point::Time(1_500_000));
        assert_eq!(point("1970-01-01 01:00:01+01:00"), Point::Time(1_000_000));
        assert_eq!(point("1970-01-01T00:00:01Z"), Point::Time(1_000_000));
        assert!(matches!(point("0-1-42"), Point::Gtid(Gtid::MariaDb { .. })));
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23";
        assert!(matches!(point(uuid), Point::Gtid(Gtid::MySql { .. })));
        assert!(matches!(point("binlog.000003:4711"), Point::Place(_)));
        for wrong in ["", "yesterday", "2026-11-21", "binlog.000003", "0-1", "b:1"] {
            assert!(parse_point(wrong).is_err(), "{wrong}");
        }
    }
}
