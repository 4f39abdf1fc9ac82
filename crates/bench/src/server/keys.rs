//! Keys for encryption at rest, as the servers' manuals ask for them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use rand::RngExt;

use super::{
    Family, Program,
    private::{own, set_mode},
};
use crate::error::BenchError;

/// How keys change the start of a server.
#[derive(Default)]
pub struct Keys {
    /// For its command line.
    pub options: Vec<String>,
    /// For its environment.
    pub environment: BTreeMap<String, String>,
    /// What to start in the place of the program.
    pub program: Option<PathBuf>,
}

impl Keys {
    /// Keys for encryption at rest, for this server alone.
    pub fn make(server: &Path, family: Family, program: &Program) -> Result<Self, BenchError> {
        let folder = server.join("keys");
        fs::create_dir(&folder).map_err(BenchError::system(folder.display().to_string()))?;
        let keys = match family {
            Family::MariaDb => {
                let hex: String = (0..64)
                    .map(|_| char::from(b"0123456789abcdef"[rand::rng().random_range(0..16)]))
                    .collect();
                write(&folder.join("keys"), &format!("1;{hex}\n"), 0o600)?;
                Keys {
                    options: vec![
                        "--plugin-load-add=file_key_management".into(),
                        format!(
                            "--file-key-management-filename={}",
                            folder.join("keys").display()
                        ),
                        "--file-key-management-encryption-algorithm=AES_CTR".into(),
                    ],
                    ..Keys::default()
                }
            }
            Family::MySql => make_keyring(program, &folder)?,
        };
        own(&folder, program.user.as_ref())?;
        for entry in fs::read_dir(&folder)
            .map_err(BenchError::system(folder.display().to_string()))?
            .flatten()
        {
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                own(&entry.path(), program.user.as_ref())?;
            }
        }
        Ok(keys)
    }
}

fn make_keyring(program: &Program, folder: &Path) -> Result<Keys, BenchError> {
    let defaults = Defaults::ask(program)?;
    let component = defaults.plugins.join("component_keyring_file.so");
    if !component.exists() {
        return Err(BenchError::Program {
            program: program.path.display().to_string(),
            said: format!(
                "{} is missing: install MySQL completely",
                component.display()
            ),
        });
    }
    let (bin, plugins) = (folder.join("bin"), folder.join("plugin"));
    for path in [&bin, &plugins] {
        fs::create_dir(path).map_err(BenchError::system(path.display().to_string()))?;
        set_mode(path, 0o755)?;
    }
    let link = |from: &Path, to: &Path| {
        symlink(from, to).map_err(BenchError::system(to.display().to_string()))
    };
    link(&component, &plugins.join("component_keyring_file.so"))?;
    write(
        &bin.join("mysqld.my"),
        "{ \"components\": \"file://component_keyring_file\" }\n",
        0o444,
    )?;
    write(
        &plugins.join("component_keyring_file.cnf"),
        &format!(
            "{{ \"path\": \"{}\", \"read_only\": false }}\n",
            folder.join("keyring").display()
        ),
        0o444,
    )?;
    let linked = bin.join("mysqld");
    let is_script = fs::read(&program.path).is_ok_and(|bytes| bytes.starts_with(b"#!"));
    let mut keys = Keys {
        options: vec![format!("--plugin-dir={}", plugins.display())],
        ..Keys::default()
    };
    if is_script {
        // Such a script starts the program that MYSQLD_PROGRAM names, with what else it needs.
        let real = ["sbin/mysqld", "bin/mysqld", "libexec/mysqld"]
            .map(|name| defaults.base.join(name))
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(|| BenchError::Program {
                program: program.path.display().to_string(),
                said: format!(
                    "no mysqld lies below its basedir {}",
                    defaults.base.display()
                ),
            })?;
        link(&real, &linked)?;
        keys.environment.insert(
            "MYSQLD_PROGRAM".into(),
            linked.to_string_lossy().into_owned(),
        );
    } else {
        link(&program.path, &linked)?;
        keys.options
            .push(format!("--basedir={}", defaults.base.display()));
        keys.program = Some(linked);
    }
    Ok(keys)
}

/// Where an installed MySQL has its files.
struct Defaults {
    base: PathBuf,
    plugins: PathBuf,
}

impl Defaults {
    fn ask(program: &Program) -> Result<Self, BenchError> {
        let output = Command::new(&program.path)
            .args(["--no-defaults", "--verbose", "--help"])
            .output()
            .map_err(BenchError::system(program.path.display().to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let value = |name: &str| {
            text.lines()
                .filter_map(|line| line.split_once(' '))
                .find(|(found, value)| *found == name && value.trim().starts_with('/'))
                .map(|(_, value)| PathBuf::from(value.trim()))
                .ok_or_else(|| BenchError::Program {
                    program: program.path.display().to_string(),
                    said: format!("it does not say its {name}"),
                })
        };
        Ok(Self {
            base: value("basedir")?,
            plugins: value("plugin-dir")?,
        })
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), BenchError> {
    fs::write(path, text).map_err(BenchError::system(path.display().to_string()))?;
    set_mode(path, mode)
}
