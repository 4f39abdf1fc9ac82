//! `onionskin backup prune`: removes the backups of a folder that no rule wants to keep.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args;
use indicatif::BinaryBytes;
use onionskin_backup::retention::{Fate, Group, Keep, judge};

use super::list;
use crate::{
    chain::read_catalogue,
    error::CommandError,
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
    /// The folder
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// What to keep of each server and source: 7 (the newest seven), 30d (younger than that; h, d,
    /// w), daily=7 (one for each of seven days; weekly, monthly). May be given several times: what
    /// any of them names is kept
    #[arg(long, value_name = "RULE", required = true)]
    keep: Vec<Keep>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    /// Removes, and says what.
    pub fn run(self) -> Result<(), CommandError> {
        let finder = KeyFinder::new(&self.keys);
        let catalogue = read_catalogue(&self.to, &finder)?;
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
        let fates = judge(&catalogue, &self.keep, now);
        let group = |place: usize| {
            let content = entries[place].content.as_ref().ok()?;
            matches!(fates[place], Fate::Keep | Fate::KeepAsBase | Fate::Remove)
                .then(|| Group::of(&content.manifest))
        };
        let groups: BTreeSet<Group> = (0..entries.len()).filter_map(group).collect();
        list::print(&catalogue, |place| match group(place) {
            Some(group) if groups.len() > 1 => format!("{} ({group})", fates[place]),
            _ => fates[place].to_string(),
        });
        // The newest first, so that nothing lacks its base if this is interrupted.
        let (mut files, mut bytes) = (0, 0);
        for (place, entry) in entries.iter().enumerate().rev() {
            if fates[place] != Fate::Remove {
                continue;
            }
            if !self.dry_run {
                fs::remove_file(&entry.path).map_err(|source| file_error(&entry.path, source))?;
            }
            files += 1;
            bytes += entry.stream_len;
        }
        let removed = match self.dry_run {
            true => "would be removed (--dry-run)",
            false => "removed",
        };
        println!("{files} files, {} {removed}", BinaryBytes(bytes));
        if files > 0 && !self.dry_run {
            File::open(&self.to)
                .and_then(|folder| folder.sync_all())
                .map_err(|source| file_error(&self.to, source))?;
        }
        Ok(())
    }
}
