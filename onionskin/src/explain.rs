//! `onionskin explain`: what the proxy would do with a statement, and what the server would learn from it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use clap::Args;
use mysql::{Conn, OptsBuilder, Row, prelude::Queryable};
use onionskin_keys::KeySet;
use onionskin_proxy::{Backend, BackendTls, Config, LoginLimits, explain};
use onionskin_schema::{
    ColumnRow, Table, catalog_query, identifier, is_rightly_part, tables_from_rows,
};
use onionskin_value::Family;

use crate::{
    config_file::{BackendTlsMode, ConfigFile},
    error::CommandError,
    home,
    serve::{MAX_SESSIONS, parse_backend, pins},
};

/// Show at which tier a statement runs, the text that the server gets, and what it learns
///
/// Nothing is executed. The definitions of the tables are read from the server, hence the account. Tier 1 is done by
/// the server, tier 2 is finished by the proxy.
#[derive(Args)]
pub struct Explain {
    /// The configuration
    #[arg(short = 'c', value_name = "FILE", default_value = home::CONFIG)]
    config: PathBuf,
    /// The server, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that may read the definitions of the tables
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// The database that names without one belong to
    #[arg(long)]
    database: Option<String>,
    /// The statement
    sql: String,
}

impl Explain {
    /// Prints the explanation.
    pub fn run(self) -> Result<(), CommandError> {
        let file = ConfigFile::read(&self.config)?;
        let keys = home::load_keys(&file)?;
        let backend = match &self.backend {
            Some(given) => parse_backend(given)?,
            None => {
                refuse_plain_connection(&file)?;
                file.backend.clone()
            }
        };
        let mut definitions = Definitions::connect(&backend, &self.user, &self.password_env)?;
        let family = definitions.family()?;
        let scratch = file.scratch_engine(None);
        let pins = pins(&file, &keys)?;
        let config = Config {
            listen: file.listen,
            backend,
            keys: Arc::new(keys),
            suite: file.suite,
            policy: file.policy,
            pins,
            client_tls: None,
            backend_tls: BackendTls::Never,
            backend_rsa_key: None,
            login: LoginLimits::default(),
            trace: false,
            max_sessions: MAX_SESSIONS,
            scratch,
            like_index: file.like_index,
        };
        let mut failed = None;
        let explained = explain(
            &config,
            &self.sql,
            self.database.as_deref(),
            family,
            &mut |names| match definitions.tables(names, &config.keys) {
                Ok(tables) => tables,
                Err(error) => {
                    failed.get_or_insert(error);
                    Vec::new()
                }
            },
        );
        if let Some(error) = failed {
            return Err(CommandError::Explain(error.to_string()));
        }
        let explained = explained.map_err(CommandError::Explain)?;
        println!("{}", explained.what);
        if explained.tier > 0 {
            println!("tier    {}", explained.tier);
        }
        if !explained.server_text.is_empty() {
            println!("server  {}", explained.server_text);
        }
        match explained.learns.as_slice() {
            [] if explained.tier > 0 && !explained.server_text.is_empty() => {
                println!("learns  nothing of any protected value")
            }
            lines => lines.iter().for_each(|line| println!("learns  {line}")),
        }
        for line in &explained.findings {
            println!("warning {line}");
        }
        Ok(())
    }
}

/// The client in here speaks no TLS, and must not send a password where the configuration wants it.
fn refuse_plain_connection(file: &ConfigFile) -> Result<(), CommandError> {
    let wanted = matches!(
        file.backend_tls,
        Some(BackendTlsMode::Required | BackendTlsMode::Verify)
    );
    match &file.backend {
        Backend::Tcp { .. } if wanted => Err(CommandError::Explain(
            "explain reads definitions over a connection without TLS, and the configuration requires TLS: \
             name a way that needs none with --backend, for example unix:/path on the server's machine"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// Reads definitions from the server.
struct Definitions(Conn);

impl Definitions {
    fn connect(backend: &Backend, user: &str, password_env: &str) -> Result<Self, CommandError> {
        let options = OptsBuilder::new()
            .user(Some(user))
            .pass(std::env::var(password_env).ok());
        let options = match backend {
            Backend::Unix(path) => options.socket(Some(path.to_string_lossy())),
            Backend::Tcp { host, port } => options
                .ip_or_hostname(Some(host.clone()))
                .tcp_port(*port)
                .prefer_socket(false),
        };
        Conn::new(options).map(Self).map_err(|error| {
            let reason = match error {
                mysql::Error::MySqlError(error) => error.message,
                other => other.to_string(),
            };
            CommandError::Explain(format!(
                "the definitions of the tables cannot be read as {user} from {backend}: {reason}; \
                 see --user, --password-env and --backend"
            ))
        })
    }

    fn family(&mut self) -> Result<Family, CommandError> {
        let version: Option<String> = self
            .0
            .query_first("SELECT VERSION()")
            .map_err(|error| CommandError::Explain(error.to_string()))?;
        Ok(match version.unwrap_or_default().contains("MariaDB") {
            true => Family::MariaDb,
            false => Family::MySql,
        })
    }

    /// Tables by database and name. The name that is empty asks for the collation of the database, which is
    /// answered with a table without columns whose name it is.
    fn tables(&mut self, names: &[(String, String)], keys: &KeySet) -> mysql::Result<Vec<Table>> {
        let mut by_database: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut found = Vec::new();
        for (database, name) in names {
            if name.is_empty() {
                found.extend(self.collation(database)?);
            } else {
                by_database.entry(database).or_default().push(name);
            }
        }
        let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
        for (database, names) in by_database {
            let rows: Vec<Vec<Option<String>>> =
                self.0.query_map(catalog_query(database, &names), texts)?;
            let mut tables = tables_from_rows(rows.iter().map(|row| ColumnRow::of(row)), verify);
            for table in tables.iter_mut().filter(|table| table.is_part()) {
                let sql = format!(
                    "SHOW CREATE TABLE {}.{}",
                    identifier(&table.database),
                    identifier(&table.name)
                );
                let shown: Vec<Row> = self.0.query(sql)?;
                let text = shown
                    .into_iter()
                    .next()
                    .and_then(|row| texts(row).into_iter().nth(1));
                if is_rightly_part(table, Some(&text.flatten().unwrap_or_default())) {
                    table.damaged = None;
                }
            }
            found.append(&mut tables);
        }
        Ok(found)
    }

    fn collation(&mut self, database: &str) -> mysql::Result<Option<Table>> {
        let name: Option<String> = self.0.exec_first(
            "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = ?",
            (database,),
        )?;
        Ok(name.map(|name| Table {
            database: database.to_owned(),
            name,
            columns: Vec::new(),
            table_id: None,
            view: false,
            base: None,
            damaged: None,
        }))
    }
}

fn texts(row: Row) -> Vec<Option<String>> {
    row.unwrap()
        .into_iter()
        .map(|value| match value {
            mysql::Value::NULL => None,
            mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            other => Some(other.as_sql(true)),
        })
        .collect()
}
