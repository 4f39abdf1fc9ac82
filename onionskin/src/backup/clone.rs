//! Backups of MySQL by its clone plugin.
//!
//! The plugin copies the files of InnoDB while the server runs, together with the log that was
//! written meanwhile. A private server of the same version then starts on the copy once: that
//! applies the log, tells to which position of the binlog the copy has come, and shows that a
//! server starts on it. What is sealed is what that server leaves behind.
//!
//! - A server behind a Unix socket copies into a temporary folder itself
//!   (`CLONE LOCAL DATA DIRECTORY`).
//! - From one behind TCP the private server takes the copy (`CLONE INSTANCE`), so it may be on
//!   another machine.
//!
//! The plugin copies InnoDB alone. Rows of other engines would be missing, so such tables are an
//! error.

use std::{
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
};

use mysql::{Conn, Row, prelude::Queryable};
use onionskin_backup::{
    Manifest,
    folder::Folder,
    manifest::{BinlogPosition, Server},
    settings::option,
};
use onionskin_proxy::Backend;
use onionskin_rowstream::client::Client;
use tempfile::TempDir;

use crate::{
    error::CommandError,
    private::{Family, ServerProgram, Trial},
    stream_io::also_remove_at_signal,
    termination::Termination,
    trial_start::connect,
};

use super::reach::Reach;

/// Who asks whom, and where the copy goes.
pub struct Clone<'a> {
    /// The server.
    pub server: &'a Reach,
    /// Where temporary folders are made.
    pub work: &'a Path,
    /// Told what is to be removed at a signal.
    pub termination: &'a Termination,
}

/// A copy. Its files are removed when it is dropped.
pub struct Copied {
    /// The files.
    pub source: Folder,
    _folders: Vec<TempDir>,
}

/// What a server needs to read the copy, besides its version.
const SETTINGS: [&str; 3] = [
    "innodb_page_size",
    "innodb_data_file_path",
    "lower_case_table_names",
];

impl Clone<'_> {
    /// Copies the server's data.
    pub fn copy(&self) -> Result<Copied, CommandError> {
        let mut client = self.connect()?;
        let version = self.check(&mut client)?;
        let program = ServerProgram::of_family(Family::MySql)?;
        let ours = program.version.as_deref().unwrap_or_default();
        // A newer one would change the copy for good, an older one cannot read it.
        if ours
            != version
                .split_once("-log")
                .map_or(version.as_str(), |(v, _)| v)
        {
            return refused(format!(
                "the server is MySQL {version}, and {} is {ours}: set ONIONSKIN_MYSQLD to a mysqld of the server's version",
                program.path.display()
            ));
        }
        let mut manifest = Manifest::new("clone");
        let mut options = Vec::new();
        for name in SETTINGS {
            if let Some(value) = ask(&mut client, &format!("SELECT @@{name}"))? {
                // The server may say anything.
                options.push(option(name, &value).map_err(failed)?);
                manifest.settings.insert(name.to_owned(), value);
            }
        }
        manifest.server = Some(Server {
            // Of the original: the copy's server makes its own.
            uuid: ask(&mut client, "SELECT @@server_uuid")?,
            ..Server::new("mysql", version)
        });
        let (room, copy) = match &self.server.backend {
            Backend::Unix(_) => self.local(&mut client)?,
            Backend::Tcp { host, port } => self.remote(host, *port, &options)?,
        };
        client.quit();

        // Nothing but what is needed to apply the log.
        options.push("--innodb-redo-log-capacity=8M".into());
        // It has the table that tells the position.
        options.push("--plugin-load-add=mysql_clone.so".into());
        let folder = self.folder()?;
        let trial = Trial::start(
            folder.path(),
            Family::MySql,
            Some(&copy),
            &options,
            self.termination,
        )?;
        position(&mut connect(trial.socket()).map_err(failed)?, &mut manifest)?;
        let data = trial.stop();
        let source =
            Folder::new(&data, manifest, is_not_data).map_err(|source| CommandError::File {
                path: data.clone(),
                source,
            })?;
        Ok(Copied {
            source,
            _folders: vec![folder, room],
        })
    }

    fn connect(&self) -> Result<Client, CommandError> {
        let mut client = self.server.connect().map_err(failed)?;
        // Our texts are written for this.
        order(&mut client, "SET SESSION sql_mode = ''")?;
        // A copy takes as long as it takes.
        client.set_read_timeout(None).map_err(failed)?;
        Ok(client)
    }

    /// Whether the plugin can copy everything; the server's version.
    fn check(&self, client: &mut Client) -> Result<String, CommandError> {
        let version = ask(client, "SELECT @@version")?.unwrap_or_default();
        if version.contains("MariaDB") {
            return refused(format!(
                "the server is MariaDB {version}, which has no clone plugin: use --source mariadb-backup"
            ));
        }
        const PLUGIN: &str =
            "SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'clone'";
        let status = ask(client, PLUGIN)?;
        if status.as_deref() != Some("ACTIVE") {
            return refused(
                "the server's clone plugin is not active: INSTALL PLUGIN clone SONAME 'mysql_clone.so' \
                 (it is part of MySQL since 8.0.17)"
                    .into(),
            );
        }
        const OTHERS: &str = "SELECT CONCAT(table_schema, '.', table_name, ' (', engine, ')') \
            FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
            AND engine NOT IN ('InnoDB', 'MEMORY', 'BLACKHOLE', 'FEDERATED', 'PERFORMANCE_SCHEMA') \
            AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') \
            ORDER BY 1 LIMIT 5";
        let rows = client.query(OTHERS).map_err(failed)?;
        let cells = rows.into_iter().flatten().flatten();
        let others: Vec<String> = cells
            .map(|cell| String::from_utf8_lossy(&cell).into_owned())
            .collect();
        match others.is_empty() {
            true => Ok(version),
            false => refused(format!(
                "the clone plugin copies InnoDB tables only, and would leave these empty: {}: \
                 ALTER TABLE … ENGINE=InnoDB, or use --source dump",
                others.join(", ")
            )),
        }
    }

    /// A folder that disappears with this program.
    fn folder(&self) -> Result<TempDir, CommandError> {
        let folder = tempfile::Builder::new()
            .prefix("onionskin-")
            .tempdir_in(self.work)
            .map_err(|source| CommandError::File {
                path: self.work.to_owned(),
                source,
            })?;
        also_remove_at_signal(self.termination, folder.path());
        Ok(folder)
    }

    /// The server itself copies into a folder of ours.
    fn local(&self, client: &mut Client) -> Result<(TempDir, PathBuf), CommandError> {
        let room = self.folder()?;
        let path = room
            .path()
            .canonicalize()
            .map_err(|source| CommandError::File {
                path: room.path().to_owned(),
                source,
            })?;
        // Root can let the server write where nobody else can. Another user has to be the server's.
        let datadir = ask(client, "SELECT @@datadir")?;
        if let Some(owner) = datadir.and_then(|datadir| std::fs::metadata(datadir).ok())
            && rustix::process::geteuid().is_root()
        {
            chown(&path, Some(owner.uid()), Some(owner.gid())).map_err(|source| {
                CommandError::File {
                    path: path.clone(),
                    source,
                }
            })?;
        }
        let copy = path.join("copy");
        let statement = format!(
            "CLONE LOCAL DATA DIRECTORY = {}",
            quoted(&copy.to_string_lossy())
        );
        order(client, &statement)?;
        Ok((room, copy))
    }

    /// A private server takes the copy from the server.
    fn remote(
        &self,
        host: &str,
        port: u16,
        options: &[String],
    ) -> Result<(TempDir, PathBuf), CommandError> {
        let room = self.folder()?;
        let receiver = Trial::start(room.path(), Family::MySql, None, options, self.termination)?;
        let mut conn = connect(receiver.socket()).map_err(failed)?;
        run(&mut conn, "SET SESSION sql_mode = ''")?;
        run(&mut conn, "INSTALL PLUGIN clone SONAME 'mysql_clone.so'")?;
        let donor = format!("{host}:{port}");
        run(
            &mut conn,
            &format!("SET GLOBAL clone_valid_donor_list = {}", quoted(&donor)),
        )?;
        let (clause, authority) = self.server.clone_tls();
        if let Some(path) = authority {
            // The private server may run as a user who cannot read the configuration's.
            let copy = receiver.room().join("ca.pem");
            let copied = std::fs::read(path).and_then(|text| std::fs::write(&copy, text));
            copied.map_err(|source| CommandError::File {
                path: path.to_owned(),
                source,
            })?;
            let copy = quoted(&copy.to_string_lossy());
            run(&mut conn, &format!("SET GLOBAL clone_ssl_ca = {copy}"))?;
        }
        let copy = receiver.room().join("copy");
        let statement = format!(
            "CLONE INSTANCE FROM {}@{}:{port} IDENTIFIED BY {} DATA DIRECTORY = {} {clause}",
            quoted(self.server.user()),
            quoted(host),
            quoted(self.server.password()),
            quoted(&copy.to_string_lossy())
        );
        run(&mut conn, &statement)?;
        drop(conn);
        receiver.stop();
        Ok((room, copy))
    }
}

/// To which position of the binlog a copy has come; known once its log was applied.
fn position(conn: &mut Conn, manifest: &mut Manifest) -> Result<(), CommandError> {
    const STATUS: &str = "SELECT binlog_file, binlog_position, gtid_executed, state FROM performance_schema.clone_status";
    let row: Option<Row> = conn.query_first(STATUS).map_err(failed)?;
    let Some((file, position, gtid, state)) =
        row.and_then(|row| mysql::from_row_opt::<(String, u64, String, String)>(row).ok())
    else {
        return refused("the copy does not say what it is a copy of".into());
    };
    if state != "Completed" {
        return refused(format!("the copy says that it is {state}"));
    }
    // The server's binlog may be off.
    if !file.is_empty() {
        manifest.binlog = Some(BinlogPosition { file, position });
    }
    let gtid: String = gtid.split_whitespace().collect();
    if !gtid.is_empty() {
        manifest.gtid = Some(gtid);
    }
    Ok(())
}

/// Whether a file says who the server is, or what it did last, and not what it stores. A restored
/// server makes its own.
fn is_not_data(name: &str) -> bool {
    const OTHERS: [&str; 5] = [
        "auto.cnf",
        "ibtmp1",
        "#innodb_temp",
        "#clone",
        "mysql.sock.lock",
    ];
    OTHERS.contains(&name) || (!name.contains('/') && name.ends_with(".pem"))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// A question to the server itself; the first cell of the answer.
fn ask(client: &mut Client, question: &str) -> Result<Option<String>, CommandError> {
    client.query_text(question).map_err(failed)
}

fn order(client: &mut Client, statement: &str) -> Result<(), CommandError> {
    client.run(statement).map(|_| ()).map_err(failed)
}

fn run(conn: &mut Conn, statement: &str) -> Result<(), CommandError> {
    conn.query_drop(statement).map_err(failed)
}

// No statement is shown: it may hold a password.
fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::Clone(format!("the backup by clone failed: {error}"))
}

fn refused<T>(why: String) -> Result<T, CommandError> {
    Err(CommandError::Clone(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_of_a_copy() {
        for no in ["auto.cnf", "server-key.pem", "#innodb_temp", "#clone"] {
            assert!(is_not_data(no), "{no}");
        }
        for yes in [
            "mysql.ibd",
            "#innodb_redo",
            "app/auto.cnf",
            "app/x.pem",
            "undo_001",
        ] {
            assert!(!is_not_data(yes), "{yes}");
        }
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted(r"it's \ here"), r"'it\'s \\ here'");
    }
}
