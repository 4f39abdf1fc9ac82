//! `onionskin backup list`: what a folder of backups holds.

use std::path::{Path, PathBuf};

use chrono::DateTime;
use clap::Args;
use indicatif::BinaryBytes;
use onionskin_backup::catalogue::{Catalogue, Content, Entry};

use crate::{
    chain::read_catalogue,
    error::CommandError,
    place,
    stream_keys::{KeyFinder, OpeningKeys},
};

/// List the sealed backups in a folder, the oldest first, and check their headers and footers
///
/// What lies between is not read: `onionskin verify FILE` reads it. Exit code 3: a header or footer
/// is damaged. 2: one cannot be checked with the keys at hand.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    keys: OpeningKeys,
    /// The folder, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

impl List {
    /// Prints a line for each.
    pub fn run(self) -> Result<(), CommandError> {
        let finder = KeyFinder::new(&self.keys);
        let catalogue = read_catalogue(&*place::folder(&self.to)?, &finder)?;
        print(&catalogue, |_| String::new());
        let total = catalogue.entries.iter().map(|entry| entry.stream_len).sum();
        println!(
            "{} sealed files, {}; what lies before a footer was not read: onionskin verify FILE",
            catalogue.entries.len(),
            BinaryBytes(total)
        );
        check(&catalogue, &self.to)
    }
}

/// An error if anything does not verify.
pub fn check(catalogue: &Catalogue, folder: &Path) -> Result<(), CommandError> {
    let failed = || {
        let entries = catalogue.entries.iter();
        entries.filter_map(|entry| entry.content.as_ref().err())
    };
    match failed().count() {
        0 => Ok(()),
        streams => Err(CommandError::Unverified {
            folder: folder.to_owned(),
            streams,
            damaged: failed().any(|error| error.is_damage()),
        }),
    }
}

/// A table with a line for each entry; `more`, called with its place, stands at the line's end.
pub fn print(catalogue: &Catalogue, more: impl Fn(usize) -> String) {
    let head = [
        "NAME",
        "TIME (UTC)",
        "SOURCE",
        "SERVER",
        "DATA",
        "FILE",
        "STATE",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (place, entry) in catalogue.entries.iter().enumerate() {
        let mut line = line(catalogue, place, entry);
        let more = more(place);
        if !more.is_empty() {
            line.push(more);
        }
        lines.push(line);
    }
    let columns = head.len();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in &lines {
        let cells = line.iter().enumerate();
        let cells = cells.map(|(column, cell)| match widths.get(column) {
            Some(width) => format!("{cell:width$}"),
            None => cell.clone(),
        });
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn line(catalogue: &Catalogue, place: usize, entry: &Entry) -> Vec<String> {
    let unknown = || "-".to_owned();
    let file = BinaryBytes(entry.stream_len).to_string();
    match &entry.content {
        Err(error) => {
            let state = format!("FOOTER NOT VERIFIED: {error}");
            let [time, source, server, data] = [(); 4].map(|()| unknown());
            vec![entry.name.clone(), time, source, server, data, file, state]
        }
        Ok(content) => vec![
            entry.name.clone(),
            time(content.manifest.created).unwrap_or_else(unknown),
            content.manifest.source.clone(),
            content
                .manifest
                .server
                .as_ref()
                .map_or_else(unknown, |server| {
                    format!("{} {}", server.family, server.version)
                }),
            BinaryBytes(content.plain_len).to_string(),
            file,
            state(catalogue, place, content),
        ],
    }
}

fn time(seconds: u64) -> Option<String> {
    let time = DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
    (seconds > 0).then(|| time.naive_utc().to_string())
}

/// Full or incremental, by a footer that is authentic; whether what it continues is there.
fn state(catalogue: &Catalogue, place: usize, content: &Content) -> String {
    match catalogue.chain(place) {
        Some(Err(error)) => format!("footer checked, CANNOT BE RESTORED: {error}"),
        Some(Ok(chain)) if content.manifest.base.is_some() => {
            let base = chain
                .iter()
                .rev()
                .nth(1)
                .map(|base| &catalogue.entries[*base].name);
            format!(
                "footer checked, incremental on {}",
                base.map_or("-", String::as_str)
            )
        }
        _ => "footer checked, full".into(),
    }
}
