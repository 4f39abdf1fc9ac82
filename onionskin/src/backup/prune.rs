//! `onionskin backup prune`: removes the backups of a folder that no rule wants to keep.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Args;
use indicatif::BinaryBytes;
use onionskin_backup::{
    retention::{Fate, Group, Keep, hold, judge},
    store::Removed,
};

use super::{ABANDONED, list};
use crate::{
    archive::parse_age,
    chain::read_catalogue,
    error::CommandError,
    place,
    stream_io::file_error,
    stream_keys::{KeyFinder, OpeningKeys},
};

/// Remove the sealed backups of a folder that are not to be kept
///
/// Rules hold for each server and each source by itself: seven dumps do not take the place of a
/// physical backup, nor backups of one server that of another's. The newest one of each is always
/// kept, and so is every backup that a kept incremental one needs. What is damaged, or lacks what
/// it continues, is left alone. Nothing is removed while a file cannot be verified with the keys at
/// hand, for it is not known then what that file needs.
#[derive(Args)]
pub struct Prune {
    #[command(flatten)]
    keys: OpeningKeys,
    /// The folder, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// What to keep of each server and source: 7 (the newest seven), 30d (younger than that; h, d,
    /// w), daily=7 (one for each of seven days; weekly, monthly). May be given several times: what
    /// any of them names is kept
    #[arg(long, value_name = "RULE", required = true)]
    keep: Vec<Keep>,
    /// In a bucket, also end the uploads into it that nobody has gone on with for so long: 12h, 3d,
    /// or now, if no backup is being made [default: 1d]
    #[arg(long, value_name = "AGE", value_parser = parse_idle)]
    unfinished: Option<u64>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    /// Removes, and says what.
    pub fn run(self) -> Result<(), CommandError> {
        let finder = KeyFinder::new(&self.keys);
        let store = place::folder(&self.to)?;
        let catalogue = read_catalogue(&*store, &finder)?;
        let entries = &catalogue.entries;
        let under_other_keys = entries.iter().any(|entry| {
            let error = entry.content.as_ref().err();
            error.is_some_and(|error| !error.is_damage())
        });
        if under_other_keys {
            list::print(&catalogue, |_| String::new());
            list::check(&catalogue, &self.to)?;
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let mut fates = judge(&catalogue, &self.keep, now);
        let failed = |name: &str| {
            let path = store.path(name);
            move |source| file_error(&path, source)
        };
        hold(&catalogue, &mut fates, |entry| {
            let retention = store.retention(&entry.name);
            retention.map_err(failed(&entry.name))
        })?;
        let group = |place: usize| {
            let content = entries[place].content.as_ref().ok()?;
            let is_judged = !matches!(fates[place], Fate::LeaveAlone(_));
            is_judged.then(|| Group::of(&content.manifest))
        };
        let groups: BTreeSet<Group> = (0..entries.len()).filter_map(group).collect();
        list::print(&catalogue, |place| match group(place) {
            Some(group) if groups.len() > 1 => format!("{} ({group})", fates[place]),
            _ => fates[place].to_string(),
        });
        // The newest first, so that nothing lacks its base if this is interrupted.
        let (mut files, mut bytes, mut hidden) = (0, 0, 0);
        for (place, entry) in entries.iter().enumerate().rev() {
            if fates[place] != Fate::Remove {
                continue;
            }
            if !self.dry_run {
                let removed = store.remove(&entry.name).map_err(failed(&entry.name))?;
                hidden += usize::from(removed == Removed::Hidden);
            }
            files += 1;
            bytes += entry.stream_len;
        }
        let removed = match self.dry_run {
            true => "would be removed (--dry-run)",
            false => "removed",
        };
        println!("{files} files, {} {removed}", BinaryBytes(bytes));
        if hidden > 0 {
            println!(
                "{hidden} of them are kept by the bucket as older versions: its lifecycle rules say until when"
            );
        }
        if self.dry_run {
            return Ok(());
        }
        if files > 0 {
            store.settle().map_err(failed(""))?;
        }
        let idle = self.unfinished.map_or(ABANDONED, Duration::from_secs);
        let ended = store.clear_unfinished(idle, &|_| false);
        match ended.map_err(failed(""))? {
            0 => {}
            ended => println!("{ended} unfinished uploads were ended"),
        }
        Ok(())
    }
}

/// `now`, or an age in seconds.
fn parse_idle(text: &str) -> Result<u64, String> {
    match text {
        "now" => Ok(0),
        age => parse_age(age).map_err(|what| format!("{what}, or now")),
    }
}
