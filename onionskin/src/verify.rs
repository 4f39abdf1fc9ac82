//! `onionskin verify`: is this backup what was written? It says what was looked at, and what was not.

use std::path::PathBuf;

use chrono::DateTime;
use clap::Args;
use onionskin_backup::{KeySource, Manifest, StreamError, Verified, default_threads, verify};

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
        // Kept aside, because an error about keys is no error of the stream.
        let mut no_keys = None;
        let key = |header: &_| {
            self.keys.key_for(header).map_err(|error| match error {
                StreamKeyError::Stream(error) => error,
                StreamKeyError::Command(error) => {
                    no_keys = Some(error);
                    StreamError::WrongKey("key")
                }
            })
        };
        let verified = verify(input.file, key, threads, meter.progress());
        if let Some(error) = no_keys {
            return Err(error);
        }
        let verified = verified.map_err(|source| CommandError::Stream {
            name: input.name.clone(),
            source,
        })?;
        drop(meter);
        print(&input.name, &verified);
        Ok(())
    }
}

fn print(name: &str, verified: &Verified) {
    let Verified {
        header,
        footer,
        stream_len,
        deep,
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
    print_manifest(&footer.manifest);
}

fn print_manifest(manifest: &Manifest) {
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
