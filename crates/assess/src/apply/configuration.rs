//! Our lines in a file of options of the server's: between two marks, so that they can be taken
//! away again and everything else stays as it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::files;
use crate::AssessError;

const BEGIN: &str = "# begin of what onionskin assess server --apply has written";
const END: &str = "# end of what onionskin has written";
/// A server reads the files of a folder by the alphabet, and the last one counts.
const NAME: &str = "zz-onionskin.cnf";
/// How deep files may include each other.
const MAX_DEPTH: usize = 4;

/// The file that ours goes into: the one that was named, or a new one in the last folder that the
/// server's options include.
pub(super) fn place(arguments: &[String], given: Option<&Path>) -> Result<PathBuf, String> {
    if arguments.iter().any(|argument| argument == "--no-defaults") {
        return Err(
            "the server was started with --no-defaults and reads no file of options".into(),
        );
    }
    if let Some(given) = given {
        return match given.is_absolute() {
            true => Ok(given.to_owned()),
            false => Err(format!(
                "--options-file: {} is not an absolute path",
                given.display()
            )),
        };
    }
    let named = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--defaults-file="));
    let roots = match named {
        Some(file) => vec![PathBuf::from(file)],
        None => vec!["/etc/my.cnf".into(), "/etc/mysql/my.cnf".into()],
    };
    let mut folders = Vec::new();
    for root in &roots {
        included(root, 0, &mut folders);
    }
    match folders.pop() {
        Some(folder) => Ok(folder.join(NAME)),
        None => Err(format!(
            "{} includes no folder of options: name a file that the server reads with --options-file",
            roots
                .last()
                .map(|r| r.display().to_string())
                .unwrap_or_default()
        )),
    }
}

fn included(file: &Path, depth: usize, folders: &mut Vec<PathBuf>) {
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    for line in text.lines().map(str::trim) {
        if let Some(folder) = line.strip_prefix("!includedir ") {
            let folder = PathBuf::from(folder.trim());
            if folder.is_dir() {
                folders.push(folder);
            }
        } else if let Some(file) = line.strip_prefix("!include ")
            && depth < MAX_DEPTH
        {
            included(Path::new(file.trim()), depth + 1, folders);
        }
    }
}

/// Our lines, as they stand there.
pub(super) fn lines(path: &Path) -> Result<Vec<String>, AssessError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(parts(path, &text)?.1),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(AssessError::file(path)(error)),
    }
}

/// Writes them; without lines everything of ours is taken away, and an empty file with it.
pub(super) fn write(path: &Path, lines: &[String]) -> Result<(), AssessError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(AssessError::file(path)(error)),
    };
    let (before, there, behind) = parts(path, &text)?;
    let is_ours = before.trim().is_empty() && behind.trim().is_empty();
    if !is_ours && there.is_empty() {
        files::keep(path)?;
    }
    if lines.is_empty() && is_ours {
        return match path.exists() {
            true => fs::remove_file(path).map_err(AssessError::file(path)),
            false => Ok(()),
        };
    }
    let ours = match lines.is_empty() {
        true => String::new(),
        false => format!("{BEGIN}\n[mysqld]\n{}\n{END}\n", lines.join("\n")),
    };
    let before = match before.is_empty() || before.ends_with('\n') {
        true => before,
        false => before + "\n",
    };
    files::replace(path, format!("{before}{ours}{behind}").as_bytes(), 0o644)
}

/// What stands before ours, ours, and what stands behind.
fn parts(path: &Path, text: &str) -> Result<(String, Vec<String>, String), AssessError> {
    let Some((before, rest)) = text.split_once(BEGIN) else {
        return Ok((text.to_owned(), Vec::new(), String::new()));
    };
    let Some((ours, behind)) = rest.split_once(END) else {
        return Err(AssessError::State(format!(
            "{}: the line that ends what onionskin has written is gone",
            path.display()
        )));
    };
    let ours = ours
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "[mysqld]");
    let behind = behind.strip_prefix('\n').unwrap_or(behind);
    Ok((
        before.to_owned(),
        ours.map(str::to_owned).collect(),
        behind.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_lines_come_and_go_and_the_rest_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my.cnf");
        fs::write(&path, "[mysqld]\nport = 3306").expect("written");
        let ours = ["encrypt_binlog = ON".to_owned()];
        write(&path, &ours).expect("written");
        assert_eq!(lines(&path).expect("read"), ours);
        let more = ["a = 1".to_owned(), "b = 2".to_owned()];
        write(&path, &more).expect("written");
        assert_eq!(lines(&path).expect("read"), more);
        let text = fs::read_to_string(&path).expect("there");
        assert_eq!(text.matches(BEGIN).count(), 1);
        assert!(text.starts_with("[mysqld]\nport = 3306\n"));
        write(&path, &[]).expect("written");
        let text = fs::read_to_string(&path).expect("there");
        assert_eq!(text, "[mysqld]\nport = 3306\n");
        // A file of our own goes away as a whole.
        let own = folder.path().join(NAME);
        write(&own, &ours).expect("written");
        write(&own, &[]).expect("written");
        assert!(!own.exists());
        let names = fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["my.cnf", "my.cnf.before-onionskin"]);
        let kept = fs::read_to_string(folder.path().join("my.cnf.before-onionskin"));
        assert_eq!(kept.expect("kept"), "[mysqld]\nport = 3306");
        // A damaged one is left as it is.
        fs::write(&own, format!("{BEGIN}\n[mysqld]\nx = 1\n")).expect("written");
        assert!(write(&own, &ours).is_err() && lines(&own).is_err());
    }

    #[test]
    fn the_last_folder_that_is_included_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["a.d", "b.d"] {
            fs::create_dir(at(name)).expect("a folder");
        }
        fs::write(
            at("my.cnf"),
            format!("!include {}\n", at("more.cnf").display()),
        )
        .expect("written");
        let text = format!(
            "!includedir {}\n!includedir {}\n!includedir /not/there\n",
            at("a.d").display(),
            at("b.d").display()
        );
        fs::write(at("more.cnf"), text).expect("written");
        let file = format!("--defaults-file={}", at("my.cnf").display());
        assert_eq!(
            place(std::slice::from_ref(&file), None),
            Ok(at("b.d").join(NAME))
        );
        let given = at("c.cnf");
        assert_eq!(place(&[file], Some(&given)), Ok(given.clone()));
        assert!(place(&["--no-defaults".into()], Some(&given)).is_err());
        let none = format!("--defaults-file={}", at("none.cnf").display());
        assert!(place(&[none], None).is_err());
    }
}
