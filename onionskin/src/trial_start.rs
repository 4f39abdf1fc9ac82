//! The last question about a backup: does a server start on it, and are its tables sound?
//!
//! A physical backup is restored into a temporary folder, a dump is loaded into an empty server
//! there. A private server of the backup's family is started on it, and every table must pass CHECK
//! TABLE. The folder is removed in the end.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use mysql::{Conn, OptsBuilder, Row, prelude::Queryable};
use onionskin_backup::{
    Manifest, Progress, SealedStream, StreamError,
    restore::{PHYSICAL, restore},
    settings::{SettingError, noted, options},
};
use tempfile::TempDir;

use crate::{
    chain::Chain,
    error::CommandError,
    private::{Family, PrivateError, Trial, foreign},
    stream_io::{Input, also_remove_at_signal, watch_signals},
    stream_keys::KeyFinder,
};

/// What is tried.
pub struct Start<'a> {
    /// The backup's file.
    pub file: &'a Path,
    /// Where its keys are.
    pub finder: &'a KeyFinder<'a>,
    /// Where the temporary folder is made.
    pub work: &'a Path,
    /// How many threads decrypt.
    pub threads: usize,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// `@@version` of the server that ran.
    pub version: String,
    /// How many tables passed.
    pub sound: usize,
    /// Tables whose engine knows no check.
    pub unknown: Vec<String>,
    /// Tables that did not pass, and what the server said.
    pub faulty: Vec<(String, String)>,
}

impl Start<'_> {
    /// Restores or loads, starts, checks.
    pub fn run(&self, progress: &Progress) -> Result<Checked, CommandError> {
        let chain = Chain::find(self.file, self.finder)?;
        let folder = tempfile::Builder::new()
            .prefix("onionskin-")
            .tempdir_in(self.work)
            .map_err(|source| CommandError::File {
                path: self.work.to_owned(),
                source,
            })?;
        match chain.manifest.source.as_str() {
            source if PHYSICAL.contains(&source) => self.physical(&chain, &folder, progress),
            "dump" => self.dump(&chain.manifest, &folder, progress),
            other => Err(CommandError::Arguments(format!(
                "--start: {} was made from {other:?}, and no server starts on that",
                self.file.display()
            ))),
        }
    }

    fn physical(
        &self,
        chain: &Chain,
        folder: &TempDir,
        progress: &Progress,
    ) -> Result<Checked, CommandError> {
        let termination = watch_signals()?;
        termination.on_signal(|| std::process::exit(1));
        also_remove_at_signal(&termination, folder.path());
        let restored = folder.path().join("restored");
        let links = chain.links(self.finder)?;
        let of_restore = |source| CommandError::Restore {
            name: self.name(),
            source,
        };
        let of_setting = |error: SettingError| of_restore(error.into());
        let footer = restore(links, &restored, self.threads, progress).map_err(of_restore)?;
        let (family, options) = needs(&footer.manifest, &restored).map_err(of_setting)?;
        let trial = Trial::start(
            folder.path(),
            family,
            Some(&restored),
            &options,
            &termination,
        )
        .map_err(|error| self.of_start(error))?;
        let mut conn = connect(trial.socket()).map_err(|error| self.fault(&error))?;
        self.check(&mut conn)
    }

    fn dump(
        &self,
        manifest: &Manifest,
        folder: &TempDir,
        progress: &Progress,
    ) -> Result<Checked, CommandError> {
        let termination = watch_signals()?;
        termination.on_signal(|| std::process::exit(1));
        also_remove_at_signal(&termination, folder.path());
        let family = match &manifest.server {
            Some(server) if server.family == "mysql" => Family::MySql,
            _ => Family::MariaDb,
        };
        let trial = Trial::start(folder.path(), family, None, &[], &termination)?;
        // Before the dump is loaded: it may hold root's password.
        let mut conn = connect(trial.socket()).map_err(|error| self.fault(&error))?;
        self.load(&trial, progress)?;
        self.check(&mut conn)
    }

    /// Gives the dump to the server's own client: a dump may hold commands of the client.
    fn load(&self, trial: &Trial, progress: &Progress) -> Result<(), CommandError> {
        let client = trial.program().client().ok_or_else(|| {
            CommandError::Arguments(
                "--start: the client that loads a dump is not installed: mariadb or mysql".into(),
            )
        })?;
        let mut socket = std::ffi::OsString::from("--socket=");
        socket.push(trial.socket());
        let mut child = foreign(&client)
            .args(["--no-defaults", "--user=root", "--batch"])
            // Whoever administers the server that was dumped writes what is in it: no commands of
            // the client but DELIMITER, and no files of ours.
            .args(["--binary-mode", "--local-infile=0"])
            .args(knows_sandbox(&client).then_some("--sandbox"))
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| {
                CommandError::Arguments(format!("{} cannot be started: {error}", client.display()))
            })?;
        let of_stream = |source| CommandError::Stream {
            name: self.name(),
            source,
        };
        let opened = child.stdin.take().map(|input| {
            let Input { file, .. } = Input::open(Some(self.file))?;
            let stream = SealedStream::begin(file).map_err(of_stream)?;
            let key = self.finder.find(stream.header());
            let key = self.finder.settle(key)?.map_err(of_stream)?;
            Ok::<_, CommandError>(stream.open(key, input, self.threads, progress))
        });
        let status = child.wait().map_err(|source| CommandError::System {
            doing: "waiting for the client that loads the dump",
            source,
        })?;
        match opened.transpose()? {
            // It is the client that did not want more.
            Some(Ok(_) | Err(StreamError::Write(_))) if !status.success() => {
                Err(self.fault(&format!("loading the dump ended with {status}")))
            }
            Some(Err(error)) => Err(of_stream(error)),
            _ => Ok(()),
        }
    }

    fn check(&self, conn: &mut Conn) -> Result<Checked, CommandError> {
        check_tables(conn).map_err(|error| self.fault(&error))
    }

    fn name(&self) -> String {
        self.file.display().to_string()
    }

    fn fault(&self, what: &dyn std::fmt::Display) -> CommandError {
        CommandError::Trial {
            name: self.name(),
            what: what.to_string(),
        }
    }

    fn of_start(&self, error: PrivateError) -> CommandError {
        match error {
            PrivateError::DoesNotStart { status, said, .. } => self.fault(&format!(
                "no server starts on it ({status}), its log ends with:\n{said}\n"
            )),
            other => other.into(),
        }
    }
}

/// The family of server that reads these files, and the options without which it cannot.
fn needs(manifest: &Manifest, data: &Path) -> Result<(Family, Vec<String>), SettingError> {
    if manifest.source == "clone" {
        return Ok((Family::MySql, options(&manifest.settings)?));
    }
    // mariadb-backup writes down more than the server takes today.
    const NEEDED: [&str; 3] = [
        "innodb_data_file_path",
        "innodb_page_size",
        "innodb_undo_tablespaces",
    ];
    Ok((Family::MariaDb, noted(data, &NEEDED)?))
}

/// Whether the client can be told to leave the system alone; MySQL's does unless it is told
/// otherwise.
fn knows_sandbox(client: &Path) -> bool {
    let output = foreign(client)
        .args(["--no-defaults", "--help"])
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| memchr::memmem::find(&output.stdout, b"--sandbox").is_some())
}

/// As root, over the socket.
pub fn connect(socket: &Path) -> Result<Conn, mysql::Error> {
    let options = OptsBuilder::new()
        .socket(Some(socket.to_string_lossy()))
        .user(Some("root"));
    Conn::new(options)
}

fn check_tables(conn: &mut Conn) -> Result<Checked, mysql::Error> {
    const TABLES: &str = "SELECT table_schema, table_name FROM information_schema.tables \
        WHERE table_type NOT IN ('VIEW', 'SYSTEM VIEW') \
        AND table_schema NOT IN ('information_schema', 'performance_schema') ORDER BY 1, 2";
    let mut checked = Checked {
        version: conn.query_first("SELECT @@version")?.unwrap_or_default(),
        ..Checked::default()
    };
    let tables: Vec<(String, String)> = conn.query(TABLES)?;
    for (database, table) in tables {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let statement = format!("CHECK TABLE {}.{}", quoted(&database), quoted(&table));
        let name = format!("{database}.{table}");
        // Of the answers the last is the verdict; those before say why.
        let answers: Vec<Row> = conn.query(statement)?;
        let answers: Vec<(String, String)> = answers
            .iter()
            .filter_map(|row| Some((row.get("Msg_type")?, row.get("Msg_text")?)))
            .collect();
        match answers.last() {
            Some((kind, text)) if kind == "status" && text == "OK" => {
                // A warning before it is not nothing: an index with another number of rows, for
                // example.
                match answers
                    .iter()
                    .find(|(kind, _)| kind == "error" || kind == "warning")
                {
                    Some((_, why)) => checked.faulty.push((name, why.clone())),
                    None => checked.sound += 1,
                }
            }
            Some((kind, _)) if kind == "note" => checked.unknown.push(name),
            _ => {
                let why = answers.into_iter().map(|(_, text)| text);
                checked
                    .faulty
                    .push((name, why.collect::<Vec<_>>().join("; ")));
            }
        }
    }
    Ok(checked)
}

/// Where temporary copies of a server's data go unless it is said otherwise.
pub fn default_work() -> PathBuf {
    std::env::temp_dir()
}
