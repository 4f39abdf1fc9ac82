//! Where the server's programs are.

use std::{
    env,
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onionskin_backup::environment::without_ours;

use super::PrivateError;

/// How the servers' programs are called.
const NAMES: [&str; 2] = ["mariadbd", "mysqld"];

/// The two kinds of servers. Neither can use the data directory of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    MariaDb,
    MySql,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        })
    }
}

impl Family {
    /// As the proxy calls it.
    pub fn of(family: onionskin_value::Family) -> Self {
        match family {
            onionskin_value::Family::MariaDb => Self::MariaDb,
            onionskin_value::Family::MySql => Self::MySql,
        }
    }

    /// Which package of a distribution has its server. Those of a core start no service.
    pub fn package(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb-server-core with mariadb-client-core (or mariadb-server)",
            Self::MySql => {
                "mysql-server-core or, from MySQL's own repository, mysql-community-server-core"
            }
        }
    }

    /// Whose data a data directory holds, from a file that only one of them makes.
    pub fn of_data(data: &Path) -> Option<Self> {
        if data.join("aria_log_control").exists() {
            Some(Self::MariaDb)
        } else if data.join("mysql.ibd").exists() {
            Some(Self::MySql)
        } else {
            None
        }
    }
}

/// A server that is installed here.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    pub family: Family,
    pub path: PathBuf,
    /// The version that it says it has, as `@@version` does without what a configuration adds.
    pub version: Option<String>,
}

impl ServerProgram {
    /// The one that ONIONSKIN_MYSQLD names, or else MariaDB, or else MySQL; always one that can use
    /// `data`.
    pub fn find(data: &Path) -> Result<Self, PrivateError> {
        let candidates = Self::candidates()?;
        match Family::of_data(data) {
            None => candidates.into_iter().next().ok_or(PrivateError::NoServer),
            Some(family) => candidates
                .into_iter()
                .find(|program| program.family == family)
                .ok_or_else(|| PrivateError::WrongFamily {
                    data: data.to_owned(),
                    family,
                }),
        }
    }

    /// One of this family.
    pub fn of_family(family: Family) -> Result<Self, PrivateError> {
        let mut candidates = Self::candidates()?.into_iter();
        let found = candidates.find(|program| program.family == family);
        found.ok_or(PrivateError::NoServerOf(family))
    }

    /// The one that is nearest to a server of this family and version, and its own version. Those
    /// that ONIONSKIN_MYSQLD names, separated by colons, or else those in PATH.
    pub fn nearest(family: Family, version: &str) -> Result<(Self, String), PrivateError> {
        let named = env::var_os("ONIONSKIN_MYSQLD").filter(|path| !path.is_empty());
        let candidates: Vec<Self> = match &named {
            Some(paths) => env::split_paths(paths)
                .filter(|path| !path.as_os_str().is_empty())
                .map(Self::identify)
                .collect::<Result<_, _>>()?,
            None => all_in_path(&NAMES)
                .into_iter()
                .filter_map(|path| Self::identify(path).ok())
                .collect(),
        };
        let wanted = numbers(version);
        let fitting = candidates.into_iter().filter(|p| p.family == family);
        let known = fitting.filter_map(|program| {
            let version = program.version.clone()?;
            Some((program, version))
        });
        // of equals the first
        known
            .min_by_key(|(_, version)| {
                let its = numbers(version);
                [0, 1, 2].map(|n| its[n].abs_diff(wanted[n]))
            })
            .ok_or(PrivateError::NoServerOf(family))
    }

    fn candidates() -> Result<Vec<Self>, PrivateError> {
        let named = env::var_os("ONIONSKIN_MYSQLD").filter(|path| !path.is_empty());
        Ok(match named {
            Some(path) => vec![Self::identify(PathBuf::from(path))?],
            // Distributions call MariaDB's server mysqld as well, so the name does not say which it
            // is.
            None => firsts_in_path()
                .filter_map(|path| Self::identify(path).ok())
                .collect(),
        })
    }

    /// The command-line client that came with it, or one of its family.
    pub fn client(&self) -> Option<PathBuf> {
        self.sibling([("mariadbd", "mariadb"), ("mysqld", "mysql")])
    }

    /// The program for logical dumps that came with it, or one of its family.
    pub fn dump(&self) -> Option<PathBuf> {
        self.sibling([("mariadbd", "mariadb-dump"), ("mysqld", "mysqldump")])
    }

    /// A program that came with the server, by how the server is called in each family.
    fn sibling(&self, names: [(&str, &str); 2]) -> Option<PathBuf> {
        let name = self.path.file_name()?.to_str()?;
        let beside = names.into_iter().find_map(|(server, other)| {
            let other = name.replacen(server, other, 1);
            let folder = self.path.parent()?;
            let folders = [folder.to_owned(), folder.parent()?.join("bin")];
            let mut paths = folders.into_iter().map(|folder| folder.join(&other));
            paths.find(|path| other != name && path.is_file())
        });
        beside.or_else(|| {
            let [(_, mariadb), (_, mysql)] = names;
            in_path(match self.family {
                Family::MariaDb => mariadb,
                Family::MySql => mysql,
            })
        })
    }

    /// All that are installed: those that ONIONSKIN_MYSQLD names, separated by colons, before those
    /// in PATH.
    pub fn installed() -> Result<Vec<Self>, PrivateError> {
        let named = env::var_os("ONIONSKIN_MYSQLD").unwrap_or_default();
        let mut programs = env::split_paths(&named)
            .filter(|path| !path.as_os_str().is_empty())
            .map(Self::identify)
            .collect::<Result<Vec<_>, _>>()?;
        programs.extend(firsts_in_path().filter_map(|path| Self::identify(path).ok()));
        Ok(programs)
    }

    fn identify(path: PathBuf) -> Result<Self, PrivateError> {
        let output = foreign(&path)
            .args(["--no-defaults", "--version"])
            .stdin(Stdio::null())
            .output();
        let said = match output {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let mut words = text.split_whitespace().skip_while(|word| *word != "Ver");
                let version = words.nth(1).map(str::to_owned);
                let family = match text.contains("MariaDB") {
                    true => Some(Family::MariaDb),
                    false => text.contains("Ver ").then_some(Family::MySql),
                };
                if let Some(family) = family.filter(|_| output.status.success()) {
                    return Ok(Self {
                        family,
                        path,
                        version,
                    });
                }
                String::from_utf8_lossy(&output.stderr)
                    .lines()
                    .last()
                    .map(|line| format!(" ({line})"))
                    .unwrap_or_default()
            }
            Err(error) => format!(" ({error})"),
        };
        Err(PrivateError::NotAServer { path, said })
    }

    /// The tool that makes MariaDB's first data directory, and the folder that it belongs to if it
    /// came with the server.
    pub fn installer(&self) -> Result<(PathBuf, Option<PathBuf>), PrivateError> {
        let names = ["mariadb-install-db", "mysql_install_db"];
        let beside = self
            .path
            .canonicalize()
            .ok()
            .and_then(|program| Some(program.parent()?.parent()?.to_owned()));
        if let Some(base) = beside {
            for folder in ["scripts", "bin", "sbin"] {
                for name in names {
                    let installer = base.join(folder).join(name);
                    if installer.exists() {
                        return Ok((installer, Some(base)));
                    }
                }
            }
        }
        names
            .into_iter()
            .find_map(in_path)
            .map(|installer| (installer, None))
            .ok_or_else(|| PrivateError::NoInstaller(self.path.clone()))
    }
}

/// A command of the server's, which must not see our environment: the passphrase of the keys may be
/// in it.
pub fn foreign(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    without_ours(&mut command);
    command
}

/// The numbers at the beginning of a version: 10, 11 and 14 of `10.11.14-MariaDB`.
pub fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    [0; 3].map(|none: u32| numbers.next().unwrap_or(none))
}

fn in_path(name: &str) -> Option<PathBuf> {
    all_in_path(&[name]).into_iter().next()
}

/// The first program of each name, unless it is the same program.
fn firsts_in_path() -> impl Iterator<Item = PathBuf> {
    let mut seen = Vec::new();
    let firsts = NAMES.into_iter().filter_map(in_path);
    firsts.filter(move |path| is_new(path, &mut seen))
}

/// Whether no path to the same file was met before. One program has several names and folders in
/// some distributions, and each look at a server takes it 20 to 50 ms.
fn is_new(path: &Path, seen: &mut Vec<PathBuf>) -> bool {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_new = !seen.contains(&file);
    seen.push(file);
    is_new
}

/// Programs of these names, those of the first name first. Servers are in sbin, which is not in
/// every PATH.
fn all_in_path(names: &[&str]) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .collect();
    let mut seen = Vec::new();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .filter(|candidate| candidate.is_file())
        .filter(|path| is_new(path, &mut seen))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_directories_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Family::of_data(folder.path()), None);
        std::fs::write(folder.path().join("mysql.ibd"), "").expect("written");
        assert_eq!(Family::of_data(folder.path()), Some(Family::MySql));
        std::fs::write(folder.path().join("aria_log_control"), "").expect("written");
        assert_eq!(Family::of_data(folder.path()), Some(Family::MariaDb));
    }

    #[test]
    fn versions_begin_with_numbers() {
        assert_eq!(numbers("10.11.14-MariaDB-0+deb12u2"), [10, 11, 14]);
        assert_eq!(numbers("9.7.0"), [9, 7, 0]);
        assert_eq!(numbers("8.0"), [8, 0, 0]);
        assert_eq!(numbers("unknown"), [0, 0, 0]);
    }

    #[test]
    fn a_program_that_is_no_server_is_refused() {
        let error = ServerProgram::identify("/bin/true".into()).expect_err("no server");
        assert!(matches!(error, PrivateError::NotAServer { .. }), "{error}");
    }
}
