//! The server's own programs: what turns a binlog into statements, and what sends them.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::staging::WorkFolder;
use crate::{
    error::CommandError,
    private::{Family, foreign},
};

/// Both.
pub struct Tools {
    family: Family,
    reader: PathBuf,
    client: PathBuf,
}

impl Tools {
    /// Those of the family that are installed.
    pub fn find(family: Family) -> Result<Self, CommandError> {
        let (readers, clients) = match family {
            Family::MariaDb => (["mariadb-binlog", "mysqlbinlog"], ["mariadb", "mysql"]),
            Family::MySql => (["mysqlbinlog"; 2], ["mysql"; 2]),
        };
        Ok(Self {
            family,
            reader: find(family, readers)?,
            client: find(family, clients)?,
        })
    }

    /// Reads a binlog from its standard input, and writes statements.
    pub fn reader(&self, folder: &WorkFolder) -> Command {
        let mut command = foreign(&self.reader);
        command.arg("--no-defaults");
        // Files of LOAD DATA. It does not remove them, because the client reads them later.
        command.arg(path("local-load", folder.files()));
        command.arg("-").env("TMPDIR", folder.files());
        command
    }

    /// Sends statements from its standard input to the relay before a server, until one fails.
    pub fn client(&self, folder: &WorkFolder, socket: &Path) -> Command {
        let mut command = foreign(&self.client);
        command.args(["--no-defaults", "--user=root", "--binary-mode"]);
        command.arg("--max-allowed-packet=1G");
        command.arg(path("socket", socket));
        match self.family {
            Family::MariaDb => command.args(["--local-infile=1", "--skip-ssl"]),
            // No other files, which the relay sees to for both; versions before 8.0.21 do not know
            // it, and then refuse LOAD DATA.
            Family::MySql => command.arg(path("loose-load-data-local-dir", folder.files())),
        };
        command.env("TMPDIR", folder.files());
        command
    }
}

/// An option with a path.
pub fn path(option: &str, path: &Path) -> String {
    format!("--{option}={}", path.display())
}

/// A program of the family in the PATH, by one of its names.
fn find(family: Family, names: [&str; 2]) -> Result<PathBuf, CommandError> {
    let path = env::var_os("PATH").unwrap_or_default();
    let candidates = env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| names.map(|name| folder.join(name)));
    candidates
        .filter(|candidate| candidate.is_file())
        .find(|candidate| family_of(candidate) == Some(family))
        .ok_or_else(|| {
            CommandError::Replay(format!(
                "replaying needs {} of {family}, which is not in the PATH: install the client programs of the server's version",
                names.join(" or ")
            ))
        })
}

/// Distributions install MariaDB's programs under MySQL's names, too; and not every version says in
/// `--version` whose it is.
fn family_of(program: &Path) -> Option<Family> {
    let output = Command::new(program)
        .args(["--no-defaults", "--help"])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    match String::from_utf8_lossy(&output.stdout).contains("MariaDB") {
        true => Some(Family::MariaDb),
        false => Some(Family::MySql),
    }
}
