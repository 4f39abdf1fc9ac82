//! The server that commands about keys look at, and the account that they do it with.

use clap::Args;
use onionskin_proxy::Backend;
use onionskin_rowstream::session::Login;

use crate::{config_file::ConfigFile, error::CommandError, serve::parse_backend, tls};

/// See the module.
#[derive(Args)]
pub struct Account {
    /// The server, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that sees the definitions of all tables
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
}

impl Account {
    /// At the server itself.
    pub fn login(&self, file: &ConfigFile) -> Result<Login, CommandError> {
        match &self.backend {
            Some(given) => self.login_at(file, &parse_backend(given)?),
            None => self.login_at(file, file.one_backend()?),
        }
    }

    /// The same account at another server.
    pub fn login_at(&self, file: &ConfigFile, backend: &Backend) -> Result<Login, CommandError> {
        let password = std::env::var(&self.password_env).unwrap_or_default();
        Ok(tls::login(
            Some(file),
            backend,
            self.user.clone(),
            password,
        )?)
    }
}
