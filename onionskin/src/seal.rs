//! `onionskin seal`: a filter that compresses, encrypts and authenticates whatever comes in.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use onionskin_backup::{
    Level, SealKey, SealOptions, Sealed, StreamError, default_threads, source::Plain,
};
use onionskin_keys::{PassphraseCost, Suite, recipient_file::suite_of};

use crate::{
    error::CommandError,
    meter::Meter,
    stream_io::{Input, Output, Secret, start_source},
    stream_keys::{KeyArguments, needed_passphrase, recipients},
};

/// Compress, encrypt and authenticate standard input, a file, or what a command prints
///
/// Without a key argument the keys of ./onionskin.toml are used. With --to no keys are needed here.
/// A command after -- must end with exit code 0: in a pipe nobody would notice that it failed, here
/// nothing whole is written then.
#[derive(Args)]
pub struct Seal {
    #[command(flatten)]
    keys: KeyArguments,
    /// Seal under the passphrase in ONIONSKIN_PASSPHRASE (Argon2id) instead of a key file
    #[arg(long, conflicts_with_all = ["config", "keys"])]
    passphrase: bool,
    /// Seal to this recipient, age1… or sm2pub1…, and with no keys: its identity opens it
    /// (onionskin identity makes one). May be given several times
    #[arg(long, value_name = "RECIPIENT", conflicts_with_all = ["config", "keys", "passphrase"])]
    to: Vec<String>,
    /// Seal to the recipients in this file, one on each line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "keys", "passphrase"])]
    recipients: Vec<PathBuf>,
    /// aes (AES-256-GCM) or sm (SM4-GCM, SM3) [default: that of the recipients or the
    /// configuration, else aes]
    #[arg(long)]
    suite: Option<Suite>,
    /// How many threads compress and encrypt [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Compression: 0 none, 1 fast to 19 small
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_level)]
    level: Level,
    /// Write to this new file, which appears when it is whole, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No progress and no summary on standard error
    #[arg(short, long)]
    quiet: bool,
    /// What to seal; standard input if it is left out
    #[arg(conflicts_with = "command")]
    file: Option<PathBuf>,
    /// A command whose output is sealed
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Seal {
    /// Seals.
    pub fn run(mut self) -> Result<(), CommandError> {
        if self.passphrase {
            let passphrase = needed_passphrase()?;
            let key = SealKey::Passphrase {
                passphrase: &passphrase,
                cost: PassphraseCost::DEFAULT,
            };
            self.seal(key, Suite::Aes)
        } else if !(self.to.is_empty() && self.recipients.is_empty()) {
            let recipients = recipients(&self.to, &self.recipients)?;
            let suite = suite_of(&recipients, self.suite)?;
            self.seal(SealKey::Recipients(&recipients), suite)
        } else {
            let loaded = self.keys.load()?;
            self.seal(SealKey::KeySet(&loaded.keys), loaded.suite)
        }
    }

    fn seal(&mut self, key: SealKey<'_>, preferred: Suite) -> Result<(), CommandError> {
        let options = SealOptions {
            level: self.level,
            threads: self.threads.unwrap_or_else(default_threads),
            ..SealOptions::new(self.suite.unwrap_or(preferred))
        };
        let command = std::mem::take(&mut self.command);
        let output = self.output.as_deref();
        match command.split_first() {
            None => {
                let input = Input::open(self.file.as_deref())?;
                let mut output = Output::create(output, Secret::Sealed)?;
                let meter = Meter::start("sealing", input.len, self.quiet);
                let source = match input.len {
                    Some(_) => Plain::file(input.file),
                    None => Plain::stdin(input.file),
                };
                let sealed =
                    onionskin_backup::seal(source, &mut output, key, &options, meter.progress());
                finish(&input.name, sealed, output, meter)
            }
            Some((program, arguments)) => {
                let mut output = Output::create(output, Secret::Sealed)?;
                let name = program.to_string_lossy();
                let source = start_source(program, arguments, None)?;
                let meter = Meter::start("sealing", None, self.quiet);
                let sealed =
                    onionskin_backup::seal(source, &mut output, key, &options, meter.progress());
                finish(&name, sealed, output, meter)
            }
        }
    }
}

/// Makes the output whole if the sealing has succeeded.
pub fn finish(
    name: &str,
    sealed: Result<Sealed, StreamError>,
    output: Output,
    meter: Meter,
) -> Result<(), CommandError> {
    sealed.map_err(|source| CommandError::Stream {
        name: name.to_owned(),
        source,
    })?;
    output.finish()?;
    meter.finish("sealed");
    Ok(())
}

/// One to 1024.
pub fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("a number from 1 to 1024".into()),
    }
}

/// 0 to 19.
pub fn parse_level(text: &str) -> Result<Level, String> {
    let level = text.parse().ok().and_then(Level::new);
    level.ok_or_else(|| "a number from 0 to 19".into())
}
