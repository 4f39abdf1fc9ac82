//! Settings of a server without which no other server reads its files.
//!
//! They come from that server, through a backup's manifest or `backup-my.cnf`, and go to the
//! command line of a server of ours. Who administers the first one must not lead the second one
//! anywhere: names are those of a fixed list, numbers are digits, and the files of the system
//! tablespace lie in the data directory.

use std::{fs, io, path::Path};

/// What mariadb-backup leaves beside the data.
const NOTES: &str = "backup-my.cnf";
/// Larger ones nobody has written for a server.
const NOTES_MAX: u64 = 1 << 20;

/// A setting that no server of ours is started with.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// Not in the list.
    #[error(
        "{0:?} is not a setting that a server needs to read a backup: the backup was made by a server that lies, or changed"
    )]
    Name(String),
    /// In the list, but with another kind of value.
    #[error(
        "{name} = {value:?} is not what a server needs to read a backup: the backup was made by a server that lies, or its \
         system tablespace lies in another folder (then restore with `onionskin open` and the server's own tools)"
    )]
    Value {
        /// The setting.
        name: String,
        /// What is wrong.
        value: String,
    },
    /// `backup-my.cnf` names libraries.
    #[error(
        "the backup's backup-my.cnf has a line {0:?}, and mariadb-backup would load what it names: restore with `onionskin open` and \
         `mbstream -x`, and run mariadb-backup --prepare by hand if you trust it"
    )]
    Library(String),
    /// `backup-my.cnf` cannot be read.
    #[error("the backup's backup-my.cnf: {0}")]
    Notes(io::Error),
}

/// The option of a server's command line for a setting.
pub fn option(name: &str, value: &str) -> Result<String, SettingError> {
    let digits = || (1..=20).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
    let word = || {
        (1..=40).contains(&value.len())
            && value
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let is_good = match name {
        "innodb_page_size" | "innodb_undo_tablespaces" | "lower_case_table_names" => digits(),
        "innodb_checksum_algorithm" => word(),
        "innodb_data_file_path" => value.split(';').all(is_data_file),
        _ => return Err(SettingError::Name(name.to_owned())),
    };
    match is_good {
        true => Ok(format!("--{name}={value}")),
        false => Err(SettingError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
    }
}

/// The options for settings of a manifest.
pub fn options<'a>(
    settings: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<Vec<String>, SettingError> {
    settings
        .into_iter()
        .map(|(name, value)| option(name, value))
        .collect()
}

/// The options for those of `names` that mariadb-backup has noted beside the data.
pub fn noted(datadir: &Path, names: &[&str]) -> Result<Vec<String>, SettingError> {
    let text = notes(datadir)?;
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| names.contains(&name.trim()))
        .map(|(name, value)| option(name.trim(), value.trim()))
        .collect()
}

/// Whether the notes beside the data name no library: mariadb-backup loads those before it does
/// anything else.
pub fn refuse_libraries(datadir: &Path) -> Result<(), SettingError> {
    let text = notes(datadir)?;
    let names_a_library = |line: &&str| {
        let line = line.trim();
        let name = line.split('=').next().unwrap_or_default();
        let name: String = name
            .trim()
            .to_ascii_lowercase()
            .replace('-', "_")
            .trim_start_matches("loose_")
            .into();
        // Options may be cut short, and `!include` reads another file.
        name.starts_with("plug") || line.starts_with('!')
    };
    match text.split(['\n', '\r']).find(names_a_library) {
        Some(line) => Err(SettingError::Library(
            line.trim().chars().take(80).collect(),
        )),
        None => Ok(()),
    }
}

/// `NAME:SIZE[:autoextend][:max:SIZE]` with a name in the data directory.
fn is_data_file(text: &str) -> bool {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '#');
    let is_name =
        !name.is_empty() && name.chars().all(is_plain) && !name.contains("..") && name != ".";
    let is_size = |text: Option<&str>| {
        let digits = text
            .unwrap_or_default()
            .trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
        let units = text.unwrap_or_default().len() - digits.len();
        !digits.is_empty() && units <= 1 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    if !is_name || !is_size(parts.next()) {
        return false;
    }
    let mut next = parts.next();
    if next == Some("autoextend") {
        next = parts.next();
    }
    match next {
        None => true,
        Some("max") => is_size(parts.next()) && parts.next().is_none(),
        Some(_) => false,
    }
}

fn notes(datadir: &Path) -> Result<String, SettingError> {
    let path = datadir.join(NOTES);
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(SettingError::Notes(error)),
        Ok(found) if !found.is_file() || found.len() > NOTES_MAX => {
            return Err(SettingError::Notes(io::ErrorKind::InvalidData.into()));
        }
        Ok(_) => {}
    }
    let bytes = fs::read(&path).map_err(SettingError::Notes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_lead_nowhere_else() {
        for (name, value) in [
            ("innodb_page_size", "16384"),
            ("lower_case_table_names", "1"),
            ("innodb_undo_tablespaces", "0"),
            ("innodb_checksum_algorithm", "full_crc32"),
            ("innodb_data_file_path", "ibdata1:12M:autoextend"),
            (
                "innodb_data_file_path",
                "ibdata1:12M;ibdata2:5M:autoextend:max:500M",
            ),
            ("innodb_data_file_path", "ibdata1:12582912"),
        ] {
            let option = option(name, value).unwrap();
            assert_eq!(option, format!("--{name}={value}"));
        }
        for (name, value) in [
            ("innodb_page_size", "16384 --general-log"),
            ("innodb_page_size", ""),
            ("lower_case_table_names", "-1"),
            ("innodb_checksum_algorithm", "../x"),
            ("innodb_data_file_path", ""),
            ("innodb_data_file_path", "ibdata1"),
            ("innodb_data_file_path", "ibdata1:12M:autoextend;"),
            (
                "innodb_data_file_path",
                "ibdata1:12M;/home/op/x:5M:autoextend",
            ),
            ("innodb_data_file_path", "../ibdata1:12M:autoextend"),
            ("innodb_data_file_path", "..:12M"),
            ("innodb_data_file_path", "a/b:12M"),
            ("innodb_data_file_path", "ibdata1:12Mraw"),
            ("innodb_data_file_path", "ibdata1:12M:autoextend:max:1G:x"),
            ("innodb_data_file_path", "ibdata1:12MM"),
            ("init_file", "/tmp/x"),
            ("plugin_load", "x.so"),
            ("general_log_file", "x"),
        ] {
            assert!(option(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn notes_that_name_libraries_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        refuse_libraries(folder.path()).unwrap();
        let write = |text: &str| fs::write(folder.path().join(NOTES), text).unwrap();
        write("# This\n[mysqld]\ninnodb_page_size = 16384\ninnodb_data_file_path=ibdata1:12M\n");
        refuse_libraries(folder.path()).unwrap();
        let names = ["innodb_page_size", "innodb_data_file_path"];
        let options = noted(folder.path(), &names).unwrap();
        assert_eq!(
            options,
            [
                "--innodb_page_size=16384",
                "--innodb_data_file_path=ibdata1:12M"
            ]
        );
        for line in [
            "plugin_load=evil=evil.so",
            " plugin-load-add = evil.so",
            "loose-plugin_dir=/tmp",
            "Plugin-Dir=/tmp",
            "!includedir /tmp",
        ] {
            write(&format!("[mysqld]\ninnodb_page_size=16384\n{line}\n"));
            let error = refuse_libraries(folder.path()).unwrap_err();
            assert!(matches!(error, SettingError::Library(_)), "{error}");
        }
        write("innodb_data_file_path=/etc/x:12M\n");
        assert!(noted(folder.path(), &names).is_err());
    }
}
