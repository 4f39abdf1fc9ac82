//! `onionskin restore`: from a sealed physical backup to a data directory.

use std::path::PathBuf;

use clap::Args;
use onionskin_backup::{
    default_threads,
    restore::{check_source, restore},
};

use crate::{
    chain::Chain,
    error::CommandError,
    meter::Meter,
    replay::{ReplayArguments, print_replayed},
    seal::parse_threads,
    stream_keys::{KeyFinder, OpeningKeys},
    verify::print_manifest,
};

/// Restore a physical backup into an empty or a new directory, ready for a server to start on
///
/// The directory appears when it is whole. What an incremental backup continues is found beside it.
/// Backups by mariadb-backup need mariadb-backup of the server's version.
#[derive(Args)]
pub struct Restore {
    #[command(flatten)]
    keys: OpeningKeys,
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
    /// The sealed file, or s3://BUCKET/NAME
    from: PathBuf,
}

impl Restore {
    /// Restores.
    pub fn run(self) -> Result<(), CommandError> {
        let failed = |source| CommandError::Restore {
            name: self.from.display().to_string(),
            source,
        };
        // A look at the footers first: it costs a moment, and says whether this is a backup at all.
        let finder = KeyFinder::new(&self.keys);
        let chain = Chain::find(&self.from, &finder)?;
        check_source(&chain.manifest).map_err(failed)?;
        let replay = match self.replay.is_wanted() {
            true => self.replay.plan(&finder, &chain.manifest)?,
            false => None,
        };
        let staging = match &replay {
            Some(replay) => Some(replay.staging(&self.to)?),
            None => None,
        };
        let target = staging.as_ref().map_or(self.to.as_path(), |s| s.path());

        let links = chain.links(&finder)?;
        let threads = self.threads.unwrap_or_else(default_threads);
        let meter = Meter::start("restoring", Some(chain.len), self.quiet);
        let footer = restore(links, target, threads, meter.progress()).map_err(failed)?;
        meter.finish("restored");
        let mut replayed = None;
        if let (Some(replay), Some(staging)) = (replay, staging) {
            replayed = Some(replay.run(staging.path())?);
            replay.finish(staging, &self.to)?;
        }
        println!("{}: ready for a server to start on", self.to.display());
        print_manifest(&footer.manifest);
        if let Some(replayed) = &replayed {
            print_replayed(replayed);
        }
        Ok(())
    }
}
