//! Proves that the setting under test is in force: by what the server says, and by what stands in
//! its files.
//!
//! A load runs just as well without the encryption that it is to measure, and a figure looks like a
//! figure. So each run asks the server before and after, and plants a random text that must be
//! found in the files without encryption, and must not be found with it. The first half matters as
//! much as the second: a search that finds nothing anywhere proves nothing.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use memchr::memmem;

use crate::{
    catalogue::{Canary, Setting, VariantSpec},
    error::BenchError,
    report::Proof,
    server::{Server, Session},
};

/// Statements of a setting, asked now. `when` is "before" or "after".
pub fn status(
    session: &mut Session,
    setting: &Setting,
    database: &str,
    when: &str,
) -> Result<Vec<Proof>, BenchError> {
    setting
        .status
        .iter()
        .map(|(sql, expected)| {
            let sql = sql.replace("{database}", database);
            let found = session.text(&sql)?;
            Ok(Proof {
                holds: found == *expected,
                what: format!("{when}: {sql}"),
                expected: expected.clone(),
                found,
            })
        })
        .collect()
}

/// The columns that the server itself has.
pub fn columns(
    session: &mut Session,
    database: &str,
    table: &str,
    variant: &VariantSpec,
) -> Result<Vec<Proof>, BenchError> {
    if variant.has_columns.is_empty() && variant.lacks_columns.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = session
        .rows(&format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position"
        ))?
        .into_iter()
        .filter_map(|row| row.into_iter().next())
        .map(|name| without_digits(&name))
        .collect();
    let right = !names.is_empty()
        && variant.has_columns.iter().all(|name| names.contains(name))
        && !variant
            .lacks_columns
            .iter()
            .any(|name| names.contains(name));
    let expected = match (&*variant.has_columns, &*variant.lacks_columns) {
        (has, []) => has.join(", "),
        ([], lacks) => format!("without {}", lacks.join(", ")),
        (has, lacks) => format!("{}, without {}", has.join(", "), lacks.join(", ")),
    };
    Ok(vec![Proof {
        what: format!("columns of {table} on the server"),
        expected,
        found: names.join(", "),
        holds: right,
    }])
}

/// Companions carry four digits of the column's id (`k$ord_1a2b`), which differ from table to
/// table.
fn without_digits(name: &str) -> String {
    match name.rsplit_once('_') {
        Some((stem, digits))
            if stem.contains('$')
                && digits.len() == 4
                && digits.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            stem.into()
        }
        _ => name.into(),
    }
}

/// Makes the table in which canaries are planted.
pub fn prepare_canary(session: &mut Session, database: &str) -> Result<(), BenchError> {
    session.run(&format!(
        "CREATE TABLE `{database}`.sbtest_canary (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100) NOT NULL)"
    ))
}

/// Plants a text, has the server write it to its files, and searches them.
pub fn canary(
    server: &Server,
    canary: Canary,
    database: &str,
    must_be_found: bool,
    when: &str,
) -> Result<Proof, BenchError> {
    let data = server.data().unwrap_or_default();
    let mut session = server.session()?;
    let text = format!("canary-{:032x}", rand::random::<u128>());
    let file = match canary {
        Canary::Binlog => {
            let logs = session.rows("SHOW BINARY LOGS")?;
            let last = logs.last().and_then(|row| row.first()).cloned();
            let last = last.unwrap_or_default();
            plant(&mut session, database, &text)?;
            session.run("FLUSH BINARY LOGS")?;
            data.join(last)
        }
        Canary::Tablespace => {
            plant(&mut session, database, &text)?;
            session.run(&format!(
                "FLUSH TABLES `{database}`.sbtest_canary FOR EXPORT"
            ))?;
            data.join(database).join("sbtest_canary.ibd")
        }
    };
    let found = holds(&file, text.as_bytes());
    if canary == Canary::Tablespace {
        session.run("UNLOCK TABLES")?;
    }
    let say = |found: bool| if found { "readable" } else { "not readable" };
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    Ok(match found {
        Ok(found) => Proof {
            what: format!("{when}: a planted text in {name}"),
            expected: say(must_be_found).into(),
            found: say(found).into(),
            holds: found == must_be_found,
        },
        Err(error) => Proof {
            what: format!("{when}: a planted text in {name}"),
            expected: say(must_be_found).into(),
            found: format!("the file cannot be searched: {error}"),
            holds: false,
        },
    })
}

fn plant(session: &mut Session, database: &str, text: &str) -> Result<(), BenchError> {
    session.run(&format!(
        "INSERT INTO `{database}`.sbtest_canary (v) VALUES ('{text}')"
    ))
}

/// Whether a file holds a text, a piece at a time: binary logs can be large.
fn holds(file: &Path, text: &[u8]) -> io::Result<bool> {
    let mut file = File::open(file)?;
    let finder = memmem::Finder::new(text);
    let mut piece = vec![0; 1 << 20];
    // The end of a piece stays, in case the text begins in it.
    let mut kept = 0;
    loop {
        let read = file.read(&mut piece[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let end = kept + read;
        if finder.find(&piece[..end]).is_some() {
            return Ok(true);
        }
        kept = end.min(text.len() - 1);
        piece.copy_within(end - kept..end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_companions_are_left_out() {
        assert_eq!(without_digits("k$ord_1a2b"), "k$ord");
        assert_eq!(without_digits("k$enc"), "k$enc");
        assert_eq!(without_digits("my_1234"), "my_1234");
    }

    #[test]
    fn files_are_searched() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("f");
        // Across the border of two pieces.
        let before = vec![0; (1 << 20) - 3];
        std::fs::write(&file, [&before[..], b"canary-1", &[0; 5000]].concat()).expect("written");
        assert!(holds(&file, b"canary-1").expect("read"));
        assert!(!holds(&file, b"canary-2").expect("read"));
        assert!(holds(&folder.path().join("g"), b"x").is_err());
    }
}
