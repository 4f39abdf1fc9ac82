//! `onionskin explain`: what the proxy would do with a statement, and what the server would learn
//! from it.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use onionskin_keys::KeySet;
use onionskin_proxy::{BackendTls, Config, LoginLimits, explain};
use onionskin_rowstream::session::SqlError;
use onionskin_schema::{Table, TableName};

use crate::{
    config_file::ConfigFile,
    definitions::Definitions,
    error::CommandError,
    home,
    serve::{MAX_SESSIONS, parse_backend, pins},
    tls,
};

/// Show at which tier a statement runs, the text that the server gets, and what it learns
///
/// Nothing is executed. The definitions of the tables are read from the server, hence the account.
/// Tier 1 is done by the server, tier 2 is finished by the proxy.
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
            None => file.backend.clone(),
        };
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let login = tls::login(Some(&file), &backend, self.user, password)?;
        let mut definitions = Definitions::connect(&login).map_err(CommandError::Explain)?;
        let failed = |error: SqlError| CommandError::Explain(error.to_string());
        let family = definitions.family().map_err(failed)?;
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
            &mut |names| match tables(&mut definitions, names, &config.keys) {
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

/// Tables by their names. An empty name in a database asks for the database's collation: the answer
/// is a table without columns that has the collation as its name.
fn tables(
    definitions: &mut Definitions,
    names: &[TableName],
    keys: &KeySet,
) -> Result<Vec<Table>, SqlError> {
    let (databases, names): (Vec<_>, Vec<_>) = names
        .iter()
        .cloned()
        .partition(|table| table.name.is_empty());
    let mut found = definitions.tables(&names, keys)?;
    for TableName { database, .. } in databases {
        let collation = definitions.collation(&database)?;
        found.extend(collation.map(|name| Table {
            database,
            name,
            columns: Vec::new(),
            table_id: None,
            view: false,
            base: None,
            damaged: None,
        }));
    }
    Ok(found)
}
