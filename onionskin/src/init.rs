//! `onionskin init`: a configuration and keys.

use std::path::PathBuf;

use clap::Args;
use onionskin_proxy::{Backend, server_at};

use crate::{
    config_file::{ConfigFile, DEFAULT_BACKEND},
    error::CommandError,
    home,
    key_place::KeyPlace,
    passphrase::passphrase,
    private::{Family, ServerProgram},
};

/// Write onionskin.toml and keys.json into a folder
///
/// The keys are put under a passphrase if the environment variable ONIONSKIN_PASSPHRASE holds one,
/// or ONIONSKIN_PASSPHRASE_FILE names the file of one.
#[derive(Args)]
pub struct Init {
    /// The folder; made if it is missing
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The server: host:port or unix:/path
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_BACKEND)]
    backend: String,
    /// Make the key file alone, as the onionskin.toml in the folder says: a provider that it names
    /// wraps the root key from the beginning
    #[arg(long, conflicts_with = "backend")]
    keys_only: bool,
}

impl Init {
    /// Makes both files and says what to do next.
    pub fn run(self) -> Result<(), CommandError> {
        if self.keys_only {
            return self.make_keys();
        }
        let backend = match self.backend.parse::<Backend>() {
            Ok(backend) => backend,
            Err(error) => return Err(CommandError::BackendAddress(error.to_string())),
        };
        let engine = engine(&backend);
        home::create(&self.dir, &self.backend, engine.is_ok())?;
        let config = self.dir.join(home::CONFIG);
        let protection = match passphrase()? {
            Some(_) => "under the passphrase, which serve needs as well",
            None => {
                "readable by you only; set ONIONSKIN_PASSPHRASE before init to put it under a passphrase"
            }
        };
        println!(
            "Wrote {config}
  and {keys} ({protection}).

Next:
  1. Copy {keys} to a safe place. Without it nothing that is encrypted can be read again.
  2. MySQL on TCP: set backend_tls and backend_ca in {config}, or logins may be refused.
  3. Say there which columns to protect in new tables. Those that are there: onionskin migrate.
  4. onionskin serve -c {config}
  5. Connect your application to 127.0.0.1:3307, with the users and passwords it has.",
            config = config.display(),
            keys = self.dir.join(home::KEYS).display(),
        );
        if let Err(missing) = engine {
            println!(
                "
Without a scratch engine functions of protected columns and much else are refused, and none can be
started here: {missing}. Then set engine = \"auto\" under [scratch]."
            );
        }
        Ok(())
    }
}

impl Init {
    fn make_keys(&self) -> Result<(), CommandError> {
        let file = ConfigFile::read(&self.dir.join(home::CONFIG))?;
        let place = KeyPlace::of(&file);
        place.create()?;
        println!(
            "Wrote {keys}: its root key is {keeper}.
Copy it to a safe place. Without it nothing that is encrypted can be read again.",
            keys = place.path()?.display(),
            keeper = place.keeper()?,
        );
        Ok(())
    }
}

/// Whether a scratch engine can be started here for this server; for either family, if the server
/// does not say now which it is. Or what is missing.
fn engine(backend: &Backend) -> Result<(), String> {
    let found = match server_at(backend) {
        Ok(server) => ServerProgram::nearest(Family::of(server.family), &server.version),
        Err(_) => ServerProgram::nearest(Family::MariaDb, "")
            .or_else(|_| ServerProgram::nearest(Family::MySql, "")),
    };
    found.map(|_| ()).map_err(|error| error.to_string())
}
