//! `onionskin archive`: a server's binlog, followed as a replica does and sealed in segments.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use clap::Args;
use onionskin_backup::{
    Header, Level, SealKey, SealOptions,
    archive::{
        ArchiveKeys, ArchiveOptions, Segment, archive,
        folder::{Found, check_link, outlived, place_text, read_segments, segments},
    },
    default_threads,
    manifest::BinlogPosition,
    retention::Keep,
    store::Store,
};
use onionskin_keys::{Suite, recipient_file::suite_of};
use onionskin_rowstream::client::ConnectOptions;

use crate::{
    config_file::ConfigFile,
    error::CommandError,
    place,
    seal::{parse_level, parse_threads},
    serve::parse_backend,
    stream_io::file_error,
    stream_keys::{KeyFinder, OpeningKeys, RecipientArguments, wanted_suite},
    termination::Termination,
    tls,
};

/// Follow a server's binlog as a replica does, and seal it in segments; `restore --binlogs` replays
/// them
///
/// Goes on where the last whole segment in the folder ends. Runs until SIGTERM or SIGINT, which
/// seal what there is. The account needs REPLICATION SLAVE and, on MySQL, REPLICATION CLIENT.
#[derive(Args)]
pub struct Archive {
    #[command(flatten)]
    keys: OpeningKeys,
    #[command(flatten)]
    recipients: RecipientArguments,
    /// The server, where there is no configuration: HOST:PORT or unix:PATH, without TLS
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    backend: Option<String>,
    /// The folder of the segments, for one server; or s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Only list the segments of the folder, and whether any is missing between them
    #[arg(long)]
    list: bool,
    /// Only remove segments, the oldest first, in which everything was committed longer ago: 12h,
    /// 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = parse_age, conflicts_with = "list")]
    keep: Option<u64>,
    /// Say what --keep would remove, and remove nothing
    #[arg(long, requires = "keep")]
    dry_run: bool,
    /// End at the end of the binlog instead of waiting for more
    #[arg(long)]
    once: bool,
    /// Begin a new archive here [default: the oldest file that the server has]
    #[arg(long, value_name = "FILE:POSITION", value_parser = parse_place)]
    from: Option<BinlogPosition>,
    /// A segment ends after so many seconds, and holds what a lost server would take with it
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    segment_age: u64,
    /// A segment ends after so many MiB, between two transactions
    #[arg(long, value_name = "MIB", default_value = "256")]
    segment_size: u64,
    /// Our id among the server's replicas [default: a random one]
    #[arg(long, value_name = "ID")]
    server_id: Option<u32>,
    /// Account of the server that may read the binlog
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// aes (AES-256-GCM) or sm (SM4-GCM, SM3) [default: that of the recipients or the
    /// configuration]
    #[arg(long)]
    suite: Option<Suite>,
    /// How many threads compress and encrypt
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_threads)]
    threads: usize,
    /// Compression: 0 none, 1 fast to 19 small
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_level)]
    level: Level,
}

impl Archive {
    /// Archives until it is told to end, or lists.
    pub fn run(self) -> Result<(), CommandError> {
        if self.list {
            return self.print_list();
        }
        if let Some(seconds) = self.keep {
            return self.prune(seconds);
        }
        let finder = KeyFinder::new(&self.keys);
        let recipients = self.recipients.read()?;
        let config = self.keys.keys().config_if_there()?;
        let is_of_config = |file: &&ConfigFile| self.backend.is_none() || file.has_members();
        let config = config.as_ref().filter(is_of_config);
        let (key, suite) = if recipients.is_empty() {
            let loaded = finder.loaded()?;
            let suite = self.suite.unwrap_or(loaded.suite);
            (SealKey::KeySet(&loaded.keys), suite)
        } else {
            let suite = suite_of(&recipients, wanted_suite(self.suite, config))?;
            (SealKey::Recipients(&recipients), suite)
        };
        let connect = self.connect_options(config)?;
        let options = ArchiveOptions {
            seal: SealOptions {
                level: self.level,
                threads: self.threads,
                ..SealOptions::new(suite)
            },
            size: self.segment_size.max(1) << 20,
            age: Duration::from_secs(self.segment_age.max(1)),
            server_id: self
                .server_id
                .unwrap_or_else(|| rand::random_range(1 << 31..u32::MAX)),
            begin: self.from.clone(),
            once: self.once,
        };
        if !place::is_bucket(&self.to) {
            std::fs::create_dir_all(&self.to).map_err(|source| file_error(&self.to, source))?;
        }
        let store = place::folder(&self.to)?;
        let termination = Termination::watch().map_err(|source| CommandError::System {
            doing: "watching for signals",
            source,
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        termination.on_signal(move || asked.store(true, Ordering::Relaxed));
        let keys = ArchiveKeys {
            seal: key,
            open: &|header| finder.find(header),
        };
        let ended = archive(
            &connect,
            &*store,
            keys,
            &options,
            &stop,
            |path: &Path, _| println!("{}", path.display()),
            |error| eprintln!("onionskin: {error}; connecting again"),
        );
        // No keys at all is another matter than a segment under other keys.
        finder.check()?;
        Ok(ended?)
    }

    /// The server that the argument or the configuration names.
    fn connect_options(&self, file: Option<&ConfigFile>) -> Result<ConnectOptions, CommandError> {
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let named = self.backend.as_deref().map(parse_backend).transpose()?;
        let backend = match (&named, file) {
            (Some(backend), _) => backend,
            (None, Some(file)) => file.one_backend()?,
            (None, None) => {
                return Err(CommandError::Arguments(
                    "name the server: a configuration with -c, or its address with --backend"
                        .into(),
                ));
            }
        };
        Ok(tls::login(file, backend, self.user.clone(), password)?)
    }

    /// The folder's segments in order; a gap is an error.
    fn whole(&self, store: &dyn Store) -> Result<Vec<(Found, Segment)>, CommandError> {
        let finder = KeyFinder::new(&self.keys);
        let keys = |header: &Header| finder.find(header);
        let mut whole: Vec<(Found, Segment)> = Vec::new();
        for read in read_segments(store, segments(store)?, &keys) {
            finder.check()?;
            let (found, segment) = read?;
            if let Some((_, before)) = whole.last() {
                check_link(before, &segment)?;
            }
            whole.push((found, segment));
        }
        Ok(whole)
    }

    /// Removes what is older than so many seconds. An interruption leaves no gap, because the
    /// oldest go first.
    fn prune(&self, seconds: u64) -> Result<(), CommandError> {
        let store = place::folder(&self.to)?;
        let whole = self.whole(&*store)?;
        let now = u64::try_from(Utc::now().timestamp_micros()).unwrap_or_default();
        let limit = now.saturating_sub(seconds.saturating_mul(1_000_000));
        let all: Vec<Segment> = whole.iter().map(|(_, segment)| segment.clone()).collect();
        let mut removed = 0;
        for (found, _) in &whole[..outlived(&all, limit)] {
            let name = &found.file.name;
            let path = store.path(name);
            let failed = |source| file_error(&path, source);
            // What comes behind it stays, too: else there were a gap.
            if let Some(retention) = store.retention(name).map_err(failed)? {
                println!("{}  {retention}", path.display());
                break;
            }
            if !self.dry_run {
                store.remove(name).map_err(failed)?;
            }
            println!("{}  remove", path.display());
            removed += 1;
        }
        if !self.dry_run {
            store
                .settle()
                .map_err(|source| file_error(&self.to, source))?;
        }
        println!("{} of {} segments stay", whole.len() - removed, whole.len());
        Ok(())
    }

    fn print_list(&self) -> Result<(), CommandError> {
        let mut before: Option<Segment> = None;
        let store = place::folder(&self.to)?;
        for (_, segment) in self.whole(&*store)? {
            println!(
                "{}  to {}  {} transactions{}",
                place_text(&segment.first),
                place_text(&segment.next),
                segment.transactions,
                match (segment.first_commit, segment.last_commit) {
                    (Some(first), Some(last)) => format!("  {} to {}", time(first), time(last)),
                    _ => String::new(),
                }
            );
            before = Some(segment);
        }
        match before {
            Some(last) => println!(
                "no gap; of {}, up to {}{}",
                last.server(),
                place_text(&last.next),
                last.gtid_after
                    .filter(|set| !set.is_empty())
                    .map(|set| format!(", GTIDs {set}"))
                    .unwrap_or_default()
            ),
            None => println!("no segments"),
        }
        Ok(())
    }
}

/// `12h`, `30d`, `8w` in seconds.
pub fn parse_age(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(Keep::Younger(seconds)) => Ok(seconds),
        _ => Err("write 12h, 30d or 8w".into()),
    }
}

/// `FILE:POSITION`
pub fn parse_place(text: &str) -> Result<BinlogPosition, String> {
    let parsed = text.rsplit_once(':').and_then(|(file, position)| {
        Some(BinlogPosition {
            file: (!file.is_empty()).then(|| file.to_owned())?,
            position: position.parse().ok().filter(|position| *position >= 4)?,
        })
    });
    parsed.ok_or_else(|| "write a binlog file and a position from 4 on: binlog.000001:4".into())
}

/// Microseconds since 1970 as people read them, in UTC.
pub fn time(micros: u64) -> String {
    i64::try_from(micros)
        .ok()
        .and_then(DateTime::from_timestamp_micros)
        .map_or_else(|| "an unknown time".into(), |time| time.to_string())
}

/// One for each processor, for whoever reads segments.
pub fn reading_threads() -> usize {
    default_threads()
}
