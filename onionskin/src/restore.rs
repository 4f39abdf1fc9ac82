//! `onionskin restore`: from a sealed physical backup to a data directory.

use std::{fs::File, io::Seek, path::PathBuf};

use clap::Args;
use onionskin_backup::{
    Progress, SealedStream, StreamError, default_threads,
    restore::{RestoreError, check_source, restore},
    verify,
};

use crate::{
    error::CommandError,
    meter::Meter,
    replay::{ReplayArguments, print_replayed},
    seal::parse_threads,
    stream_io::{Input, file_error},
    stream_keys::KeyArguments,
    verify::{KeyFinder, print_manifest},
};

/// Restore a physical backup into an empty or a new directory, ready for a server to start on
///
/// The directory appears when it is whole. Needs mbstream and mariadb-backup of the server's version.
#[derive(Args)]
pub struct Restore {
    #[command(flatten)]
    keys: KeyArguments,
    /// The data directory to be
    #[arg(long, value_name = "DATADIR")]
    to: PathBuf,
    #[command(flatten)]
    replay: ReplayArguments,
    /// How many threads decrypt and decompress [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// No progress and no summary on standard error
    #[arg(short, long)]
    quiet: bool,
    /// The sealed file
    from: PathBuf,
}

impl Restore {
    /// Restores.
    pub fn run(self) -> Result<(), CommandError> {
        let Input { file, name, len } = Input::open(Some(&self.from))?;
        let failed = |source| CommandError::Restore {
            name: name.clone(),
            source,
        };
        let of_stream = |source: StreamError| failed(RestoreError::Stream(source));

        // A look at the footer first: it costs a moment, and says whether this is a backup at all.
        let finder = KeyFinder::new(&self.keys);
        let looked_at = verify(
            self.reopened(&file)?,
            |header| finder.find(header),
            None,
            &Progress::new(),
        );
        let looked_at = finder.settle(looked_at)?.map_err(of_stream)?;
        check_source(&looked_at.footer.manifest).map_err(failed)?;
        let replay = match self.replay.is_wanted() {
            true => self
                .replay
                .plan(self.keys.load()?.keys, &looked_at.footer.manifest)?,
            false => None,
        };
        let staging = match &replay {
            Some(replay) => Some(replay.staging(&self.to)?),
            None => None,
        };
        let target = staging.as_ref().map_or(self.to.as_path(), |s| s.path());

        let stream = SealedStream::begin(self.reopened(&file)?).map_err(of_stream)?;
        let key = finder.find(stream.header());
        let key = finder.settle(key)?.map_err(of_stream)?;
        let threads = self.threads.unwrap_or_else(default_threads);
        let meter = Meter::start("restoring", len, self.quiet);
        let footer = restore(stream, key, target, threads, meter.progress()).map_err(failed)?;
        meter.finish("restored");
        let mut replayed = None;
        if let (Some(replay), Some(staging)) = (replay, staging) {
            replayed = Some(replay.run(staging.path())?);
            staging.finish(&self.to)?;
        }
        println!("{}: ready for a server to start on", self.to.display());
        print_manifest(&footer.manifest);
        if let Some(replayed) = &replayed {
            print_replayed(replayed);
        }
        Ok(())
    }

    /// The same file, from its beginning.
    fn reopened(&self, file: &File) -> Result<File, CommandError> {
        file.try_clone()
            .and_then(|mut file| file.rewind().map(|()| file))
            .map_err(|source| file_error(&self.from, source))
    }
}
