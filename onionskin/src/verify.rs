//! `onionskin verify`: is this backup what was written? It says what was looked at, and what was not.

use std::{cell::RefCell, path::PathBuf};

use chrono::DateTime;
use clap::Args;
use onionskin_backup::{
    Header, KeySource, Manifest, StreamError, Verified, default_threads, innodb::PageReport, verify,
};
use onionskin_keys::StreamKey;

use crate::{
    error::CommandError,
    meter::Meter,
    seal::parse_threads,
    stream_io::Input,
    stream_keys::{KeyArguments, StreamKeyError},
};

/// Verify a sealed file: header and footer in a moment, with --deep every frame
///
/// Exit code 0: everything that was looked at is what was written. 3: it is not.
#[derive(Args)]
pub struct Verify {
    #[command(flatten)]
    keys: KeyArguments,
    /// Open every frame
    #[arg(long)]
    deep: bool,
    /// How many threads open frames [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,
    /// The file
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
        let threads = self
            .deep
            .then(|| self.threads.unwrap_or_else(default_threads));
        let meter = Meter::start("verifying", Some(len), self.quiet || !self.deep);
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
        print(&input.name, &verified);
        match verified.pages.map_or(0, |pages| pages.damaged_pages) {
            0 => Ok(()),
            pages => Err(CommandError::DamagedPages {
                name: input.name,
                pages,
            }),
        }
    }
}

/// Finds the key of a stream for [`verify`], and keeps an error about keys apart from those of the stream.
pub struct KeyFinder<'a> {
    keys: &'a KeyArguments,
    failed: RefCell<Option<CommandError>>,
}

impl<'a> KeyFinder<'a> {
    /// Looks where `keys` say.
    pub fn new(keys: &'a KeyArguments) -> Self {
        Self {
            keys,
            failed: RefCell::default(),
        }
    }

    /// The key that a header asks for. Without one the result must go through [`KeyFinder::settle`].
    pub fn find(&self, header: &Header) -> Result<StreamKey, StreamError> {
        self.keys.key_for(header).map_err(|error| match error {
            StreamKeyError::Stream(error) => error,
            StreamKeyError::Command(error) => {
                self.failed.replace(Some(error));
                StreamError::WrongKey("key")
            }
        })
    }

    /// The error about keys, if there was one, else what came of it.
    pub fn settle<T>(
        &self,
        result: Result<T, StreamError>,
    ) -> Result<Result<T, StreamError>, CommandError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }
}

fn print(name: &str, verified: &Verified) {
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
    };
    let frames = footer.body_lens.len();
    println!("{name}: what was looked at is what was written");
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
        false => println!("frames    NOT looked at: --deep opens them"),
    }
    if let Some(pages) = pages {
        print_pages(pages);
    }
    print_manifest(&footer.manifest);
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
    if !report.unchecked.is_empty() {
        println!(
            "          NOT checked, in another format than full_crc32 or too new to have one: {}",
            report.unchecked.join(", ")
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
    if !manifest.tables.is_empty() {
        println!("tables    {}", manifest.tables.len());
    }
    if !manifest.members.is_empty() {
        println!("files     {}", manifest.members.len());
    }
}
