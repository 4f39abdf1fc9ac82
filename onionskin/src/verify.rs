//! `onionskin verify`: is this backup what was written? It says what was looked at, and what was
//! not.

use std::path::PathBuf;

use chrono::DateTime;
use clap::Args;
use onionskin_backup::{
    KeySource, Manifest, Verified, default_threads, innodb::PageReport, verify,
};

use crate::{
    error::CommandError,
    meter::Meter,
    seal::parse_threads,
    stream_io::Input,
    stream_keys::{KeyFinder, OpeningKeys},
    trial_start::{self, Start},
};

/// Verify a sealed file: every frame, with --footer only header and footer in a moment, with
/// --start that a server runs on it
///
/// Exit code 0: everything that was looked at is what was written. 3: it is not.
#[derive(Args)]
pub struct Verify {
    #[command(flatten)]
    keys: OpeningKeys,
    /// Look at header and footer only, not at what lies between
    #[arg(long)]
    footer: bool,
    /// What is done without it, too
    #[arg(long, hide = true, conflicts_with = "footer")]
    deep: bool,
    /// Restore it into a temporary folder, start a private server on it, and check every table. A
    /// dump is loaded into an empty server
    #[arg(long)]
    start: bool,
    /// Where --start makes its temporary folder, which needs room for all data [default: the
    /// system's]
    #[arg(long, value_name = "FOLDER", requires = "start")]
    work: Option<PathBuf>,
    /// How many threads open frames [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,
    /// The file, or s3://BUCKET/NAME
    file: PathBuf,
}

impl Verify {
    /// Verifies, and prints what was found.
    pub fn run(self) -> Result<(), CommandError> {
        let input = Input::open(Some(&self.file))?;
        let Some(len) = input.len else {
            return Err(CommandError::Arguments(format!(
                "{} is not a regular file: use `onionskin open` with its output to /dev/null",
                self.file.display()
            )));
        };
        let threads = (!self.footer).then(|| self.threads.unwrap_or_else(default_threads));
        let meter = Meter::start("verifying", Some(len), self.quiet || self.footer);
        let finder = KeyFinder::new(&self.keys);
        let verified = verify(
            input.file,
            |header| finder.find(header),
            threads,
            meter.progress(),
        );
        let verified = finder.settle(verified)?;
        let verified = verified.map_err(|source| CommandError::Stream {
            name: input.name.clone(),
            source,
        })?;
        drop(meter);
        print(&input.name, &verified, self.start);
        if let Some(pages) = verified.pages.filter(|pages| pages.damaged_pages > 0) {
            return Err(CommandError::DamagedPages {
                name: input.name,
                pages: pages.damaged_pages,
            });
        }
        match self.start {
            true => self.start(&finder, len),
            false => Ok(()),
        }
    }

    fn start(&self, finder: &KeyFinder, len: u64) -> Result<(), CommandError> {
        let work = self.work.clone().unwrap_or_else(trial_start::default_work);
        let meter = Meter::start("restoring for a trial", Some(len), self.quiet);
        let start = Start {
            file: &self.file,
            finder,
            work: &work,
            threads: self.threads.unwrap_or_else(default_threads),
        };
        let checked = start.run(meter.progress())?;
        drop(meter);
        println!(
            "started   {} runs on it: {} tables pass CHECK TABLE",
            checked.version, checked.sound
        );
        if !checked.unknown.is_empty() {
            println!(
                "          NOT checked, their engines know no check: {}",
                checked.unknown.join(", ")
            );
        }
        for (table, why) in &checked.faulty {
            println!("          FAULTY: {table}: {why}");
        }
        match checked.faulty.len() {
            0 => Ok(()),
            faulty => Err(CommandError::Trial {
                name: self.file.display().to_string(),
                what: format!("{faulty} of its tables do not pass CHECK TABLE"),
            }),
        }
    }
}

fn print(name: &str, verified: &Verified, start: bool) {
    let Verified {
        header,
        footer,
        stream_len,
        deep,
        pages,
    } = verified;
    let key = match header.key_source {
        KeySource::KeyFile(id) => format!("data key {id}"),
        KeySource::Passphrase(cost) => format!(
            "a passphrase (Argon2id, {} KiB, {} passes)",
            cost.memory_kib, cost.passes
        ),
        KeySource::Recipients(1) => "a key that one recipient has".to_owned(),
        KeySource::Recipients(count) => format!("a key that {count} recipients have"),
    };
    let frames = footer.body_lens.len();
    match deep {
        true => println!("{name}: it is what was written"),
        false => {
            println!("{name}: header and footer are what was written; the content was NOT read")
        }
    }
    println!(
        "header    authentic: suite {}, frames of {} KiB, under {key}",
        header.suite,
        header.frame_size.bytes() >> 10
    );
    println!(
        "footer    authentic: {} bytes in {frames} frames, and the file has the length that this gives, {stream_len} bytes",
        footer.plain_len
    );
    match deep {
        true => println!(
            "frames    all {frames} opened: authentic, complete, in order, and they decompress"
        ),
        false => println!("frames    NOT read: without --footer they are"),
    }
    if let Some(pages) = pages {
        print_pages(pages);
    }
    print_manifest(&footer.manifest);
    if !start {
        println!("started   no server was: --start does it");
    }
}

fn print_pages(report: &PageReport) {
    println!(
        "pages     {} InnoDB pages in {} tablespaces: {}",
        report.pages,
        report.tablespaces,
        match report.damaged_pages {
            0 => "all have their checksums".to_owned(),
            damaged => format!("{damaged} DAMAGED"),
        }
    );
    for (path, number) in &report.damaged {
        println!("          damaged: {path}, page {number}");
    }
    for (why, pages) in &report.unchecked_pages {
        println!(
            "          NOT checked: {pages} pages that are {}",
            why.as_str()
        );
    }
    if !report.unchecked.is_empty() {
        println!(
            "          NOT checked, {} tablespaces in a format that is not known, or too new to have one: {}",
            report.unchecked.len(),
            report.unchecked.join(", ")
        );
    }
    if report.deltas > 0 {
        println!(
            "          NOT checked, the changed pages of {} tablespaces in an incremental backup",
            report.deltas
        );
    }
}

/// What is known of a backup's content.
pub fn print_manifest(manifest: &Manifest) {
    let created = i64::try_from(manifest.created)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let created = created.map_or_else(|| "at an unknown time".to_owned(), |time| time.to_string());
    println!("source    {}, {created}", manifest.source);
    if let Some(server) = &manifest.server {
        println!("server    {} {}", server.family, server.version);
    }
    if let Some(binlog) = &manifest.binlog {
        println!("binlog    {} at {}", binlog.file, binlog.position);
    }
    if let Some(gtid) = &manifest.gtid {
        println!("gtid      {gtid}");
    }
    if let Some(base) = &manifest.base {
        println!(
            "base      {}: this holds only what changed since",
            base.name
        );
    }
    if !manifest.tables.is_empty() {
        println!("tables    {}", manifest.tables.len());
    }
    if !manifest.members.is_empty() {
        println!("files     {}", manifest.members.len());
    }
}
