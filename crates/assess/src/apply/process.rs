//! The server's process: what it was started with. Some settings are looked for beside its program,
//! others in the files that its arguments name.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What a server was started as.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// Its process id.
    pub id: u32,
    /// Its command line.
    pub arguments: Vec<String>,
    /// Its program, by the name that it was started under: beside that lies a manifest.
    pub program: Option<PathBuf>,
}

/// Of the server that works in a data directory, by its own pid file.
pub(super) fn of(data: &Path, pid_file: &str) -> Result<Process, String> {
    let path = data.join(pid_file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let id: u32 = text
        .trim()
        .parse()
        .map_err(|_| format!("{} holds no process id", path.display()))?;
    let place = PathBuf::from(format!("/proc/{id}"));
    // An old pid file may name another process by now. Servers work in their data directory.
    let is_it = match (fs::read_link(place.join("cwd")), fs::canonicalize(data)) {
        (Ok(cwd), Ok(data)) => cwd == data,
        _ => false,
    };
    if !is_it {
        return Err(format!(
            "process {id} cannot be looked at, or is no server in {}: run this as root, or as the server's user",
            data.display()
        ));
    }
    let line = fs::read(place.join("cmdline")).map_err(|e| e.to_string())?;
    let arguments: Vec<String> = line
        .split(|byte| *byte == 0)
        .filter(|argument| !argument.is_empty())
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect();
    let program = program(&arguments).or_else(|| fs::read_link(place.join("exe")).ok());
    Ok(Process {
        id,
        arguments,
        program,
    })
}

/// The first argument that names a server program with its folder: before it a loader may stand.
fn program(arguments: &[String]) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_absolute() && ["mysqld", "mysqld-debug", "mariadbd"].contains(&name.as_ref())
    };
    arguments
        .iter()
        .map(PathBuf::from)
        .find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_behind_its_loader() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = program(&words(
            "/lib64/ld.so --library-path /usr/lib /opt/mysql/bin/mysqld --basedir=/x/mysqld",
        ));
        assert_eq!(found, Some("/opt/mysql/bin/mysqld".into()));
        assert_eq!(program(&words("mysqld --user=mysql")), None);
    }

    #[test]
    fn a_process_elsewhere_is_not_the_server() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(
            folder.path().join("pid"),
            format!("{}\n", std::process::id()),
        )
        .expect("written");
        assert!(of(folder.path(), "pid").is_err());
        fs::write(folder.path().join("pid"), "none").expect("written");
        assert!(of(folder.path(), "pid").is_err());
        assert!(of(folder.path(), "gone").is_err());
    }
}
