//! How fast tables are changed, and for whom that waits.

use clap::Args;
use onionskin_migrate::{Limits, MAX_THREADS, parse_load};
use onionskin_proxy::Backend;
use onionskin_rowstream::session::Login;

use crate::{error::CommandError, serve::parse_backend};

/// See the module.
#[derive(Args)]
pub struct Pace {
    /// How many threads copy and write
    #[arg(long, value_name = "N", default_value = "4", value_parser = parse_threads)]
    threads: usize,
    /// Wait while a replica is more seconds behind than this
    #[arg(long, value_name = "SECONDS", requires = "replica")]
    max_lag: Option<u64>,
    /// A replica that --max-lag looks at, with the same account: host:port or unix:/path
    #[arg(long, value_name = "ADDR", requires = "max_lag")]
    replica: Vec<String>,
    /// Wait while a status variable is greater, for example Threads_running=50
    #[arg(long, value_name = "NAME=N", value_parser = parse_load)]
    max_load: Option<(String, u64)>,
}

impl Pace {
    /// `--threads`
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// When to wait. `login` says how a replica is logged in to.
    pub fn limits(
        &self,
        login: impl Fn(&Backend) -> Result<Login, CommandError>,
    ) -> Result<Limits, CommandError> {
        let max_lag = match self.max_lag {
            None => None,
            Some(seconds) => {
                let logins = self.replica.iter();
                let logins = logins.map(|address| login(&parse_backend(address)?));
                Some((logins.collect::<Result<_, _>>()?, seconds))
            }
        };
        Ok(Limits {
            max_load: self.max_load.clone(),
            max_lag,
        })
    }
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..MAX_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("1 to {}", MAX_THREADS - 1)),
    }
}
