//! `onionskin open`: the reverse of `seal`; and what `openssl enc` wrote, so that old backups stay
//! restorable.

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Args, ValueEnum};
use onionskin_backup::{
    SealedStream, default_threads,
    openssl::{LegacyAlgorithm, LegacyDigest, OpensslOptions, open_openssl},
};

use crate::{
    error::CommandError,
    meter::Meter,
    seal::parse_threads,
    stream_io::{Input, Output, Secret},
    stream_keys::{OpeningKeys, needed_passphrase},
};

/// Open a sealed stream from standard input or a file
///
/// Nothing leaves before it was verified, and the last part only when the whole stream was. Any
/// exit code but 0 means that the output is not whole; -o then leaves no file.
#[derive(Args)]
pub struct Open {
    #[command(flatten)]
    keys: OpeningKeys,
    /// How many threads decrypt and decompress [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Write to this new file, which appears when it is whole, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// openssl: what `openssl enc -pbkdf2` wrote, under the passphrase in ONIONSKIN_PASSPHRASE
    #[arg(long, default_value = "sealed")]
    format: Format,
    /// Of --format openssl: aes-128-cbc, aes-192-cbc, aes-256-cbc, aes-128-ctr, aes-192-ctr,
    /// aes-256-ctr or sm4-cbc
    #[arg(long, value_name = "NAME", required_if_eq("format", "openssl"))]
    cipher: Option<LegacyAlgorithm>,
    /// Of --format openssl: what -iter was
    #[arg(long, value_name = "N", default_value = "10000")]
    iter: NonZeroU32,
    /// Of --format openssl: what -md was
    #[arg(long, value_name = "NAME", default_value = "sha256")]
    md: LegacyDigest,
    /// No progress and no summary on standard error
    #[arg(short, long)]
    quiet: bool,
    /// What to open, also s3://BUCKET/NAME; standard input if it is left out
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Sealed,
    Openssl,
}

impl Open {
    /// Opens.
    pub fn run(self) -> Result<(), CommandError> {
        match (self.format, self.cipher) {
            (Format::Sealed, None) => self.open_sealed(),
            (Format::Openssl, Some(algorithm)) => self.open_openssl(algorithm),
            (Format::Sealed, Some(_)) => Err(CommandError::Arguments(
                "--cipher is for --format openssl: a sealed stream says itself how it was sealed"
                    .into(),
            )),
            (Format::Openssl, None) => Err(CommandError::Arguments(
                "--format openssl needs --cipher: the file does not say it".into(),
            )),
        }
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(default_threads)
    }

    fn open_sealed(&self) -> Result<(), CommandError> {
        self.keys.leave_stdin_to(self.file.as_deref())?;
        let Input { file, name, len } = Input::open(self.file.as_deref())?;
        let failed = |source| CommandError::Stream {
            name: name.clone(),
            source,
        };
        let stream = SealedStream::begin(file).map_err(failed)?;
        let key = self
            .keys
            .key_for(stream.header())
            .map_err(|error| error.of(&name))?;
        let mut output = Output::create(self.output.as_deref(), Secret::Opened)?;
        let meter = Meter::start("opening", len, self.quiet);
        stream
            .open(key, &mut output, self.threads(), meter.progress())
            .map_err(failed)?;
        output.finish()?;
        meter.finish("opened");
        Ok(())
    }

    fn open_openssl(&self, algorithm: LegacyAlgorithm) -> Result<(), CommandError> {
        if self.keys.are_given() {
            return Err(CommandError::Arguments(
                "--format openssl takes its passphrase from ONIONSKIN_PASSPHRASE and no keys"
                    .into(),
            ));
        }
        let passphrase = needed_passphrase()?;
        let Input { file, name, len } = Input::open(self.file.as_deref())?;
        let mut output = Output::create(self.output.as_deref(), Secret::Opened)?;
        eprintln!(
            "onionskin: warning: openssl's format authenticates nothing: {name} may have been changed, and what comes out may \
             be wrong without any error. Seal it again with `onionskin seal`."
        );
        let options = OpensslOptions {
            algorithm,
            digest: self.md,
            iterations: self.iter,
        };
        let meter = Meter::start("decrypting", len, self.quiet);
        let threads = self.threads();
        open_openssl(
            file,
            &mut output,
            &passphrase,
            options,
            threads,
            meter.progress(),
        )
        .map_err(|source| CommandError::Stream { name, source })?;
        output.finish()?;
        meter.finish("decrypted, NOT authenticated");
        Ok(())
    }
}
