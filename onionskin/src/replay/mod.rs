//! What `restore --binlogs` does after the backup: the archived transactions up to a point in time,
//! on a server of its own.
//!
//! The server runs on the restored directory, reachable through a socket in a private folder only.
//! Events are sent through the server's own tools (see [`onionskin_backup::archive::replay`]),
//! because a QUERY event needs a dozen session settings that only they know to set for every
//! version; row events pass as BINLOG statements either way. Everything happens in a directory
//! beside the wanted one, which gets its name when the replay has succeeded.
//!
//! Whoever administers the archived server can write anything into its binlog, and this is run with
//! the rights of whoever restores. So statements are looked at twice, when events leave a segment
//! and when the client sends them: see [`onionskin_backup::archive::statements`] and `relay`. The
//! server finds no plugins, and follows no links.
//!
//! Opened transactions go through pipes. Where server and tools need files all the same, these lie
//! beside that directory, in a [`WorkFolder`], and nowhere else: on the file system that the data
//! are restored to, and removed in the end. Such files are those of LOAD DATA in a binlog of
//! statements (the tool writes them, the client sends them to the server), and parts of
//! transactions that are too large for the memory that a program sets apart.
//!
//! | file | what it holds |
//! |---|---|
//! | `staging` | directories beside the wanted one, and what a killed restore left |
//! | `server` | the server of the restored directory |
//! | `relay` | between client and server: what no binlog holds is not passed on |
//! | `tools` | the server's own programs |

mod relay;
mod server;
mod staging;
mod tools;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
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
use onionskin_keys::StreamKey;
use onionskin_rowstream::binlog::Gtid;

use self::{
    relay::Relay,
    server::Server,
    staging::{Staging, WorkFolder},
    tools::Tools,
};
use crate::{
    archive::{parse_place, reading_threads, time},
    error::CommandError,
    place,
    private::ServerProgram,
    stream_keys::KeyFinder,
};

/// Point-in-time recovery.
#[derive(Args)]
pub struct ReplayArguments {
    /// Replay the binlog archive in this folder (or s3://BUCKET/PREFIX) behind the backup
    #[arg(long, value_name = "DIR")]
    binlogs: Option<PathBuf>,
    /// Where to stop: before the first transaction committed at "2026-11-21 12:00:00" (UTC, or with
    /// an offset) or later; behind a GTID; or before FILE:POSITION [default: the end of the
    /// archive]
    #[arg(long, value_name = "POINT", requires = "binlogs", value_parser = parse_point)]
    until: Option<Point>,
}

/// A replay that can begin.
pub struct Replay<'a> {
    plan: Plan,
    finder: &'a KeyFinder<'a>,
    /// Those without which no server reads the files, from the manifest.
    settings: BTreeMap<String, String>,
}

impl ReplayArguments {
    /// Whether there is anything to replay.
    pub fn is_wanted(&self) -> bool {
        self.binlogs.is_some()
    }

    /// Looks whether the archive has all that is needed; `None` if none is wanted.
    pub fn plan<'a>(
        &self,
        finder: &'a KeyFinder<'a>,
        backup: &Manifest,
    ) -> Result<Option<Replay<'a>>, CommandError> {
        let Some(folder) = &self.binlogs else {
            return Ok(None);
        };
        let point = self.until.clone().unwrap_or(Point::End);
        let plan = Plan::new(place::folder(folder)?, backup, point, &|header| {
            finder.find(header)
        });
        // No keys at all is another matter than a segment under other keys.
        finder.check()?;
        Ok(Some(Replay {
            plan: plan?,
            finder,
            settings: backup.settings.clone(),
        }))
    }
}

impl Replay<'_> {
    /// Where the backup is to be restored before the replay: beside `datadir`, or inside it if it
    /// is a mount point.
    pub fn staging(&self, datadir: &Path) -> Result<Staging, CommandError> {
        Staging::new(datadir)
    }

    /// Replays on the server of the directory.
    pub fn run(&self, datadir: &Path) -> Result<Replayed, CommandError> {
        let program = ServerProgram::find(datadir)?;
        let tools = Tools::find(program.family)?;
        let folder = WorkFolder::beside(datadir)?;
        let server = Server::start(&program, datadir, &folder, &self.settings)?;
        let relay = Relay::start(&folder, &server.socket)?;
        let find = |header: &Header| -> Result<StreamKey, StreamError> { self.finder.find(header) };
        let replayed = self.plan.run(
            &find,
            &|| tools.reader(&folder),
            tools.client(&folder, &relay.socket),
            reading_threads(),
            relay.loads(),
        );
        // The client says only that it has lost the server.
        if let Some(refused) = relay.refused() {
            return Err(refused);
        }
        server.stop()?;
        Ok(replayed?)
    }

    /// Gives the directory its name.
    pub fn finish(&self, staging: Staging, datadir: &Path) -> Result<(), CommandError> {
        staging.finish(datadir, &self.settings)
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
