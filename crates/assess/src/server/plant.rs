//! A text that is planted in a new table, and looked for in the server's files.
//!
//! The only thing here that writes, and only when it is asked for by name. The database must not be
//! there before. It is dropped again, also behind an error; a kill in between leaves it.

use onionskin_schema::identifier;

use super::{
    facts::{Facts, Searched},
    request::Request,
    search::{Texts, search},
};
use crate::{
    AssessError,
    reader::{Reader, Refusal},
};

/// Plants, looks, and removes.
pub(super) fn plant(
    request: &Request,
    facts: &Facts,
    database: &str,
) -> Result<Searched, AssessError> {
    let mut reader = Reader::connect_for_writing(&request.connect)?;
    let database = identifier(database);
    run(&mut reader, &format!("CREATE DATABASE {database}"))?;
    let searched = look(&mut reader, request, facts, &database);
    let dropped = drop_it(&mut reader, request, &database);
    let searched = searched?;
    dropped?;
    Ok(searched)
}

/// On a new connection, if the one of before has broken.
fn drop_it(reader: &mut Reader, request: &Request, database: &str) -> Result<(), AssessError> {
    let sql = format!("DROP DATABASE {database}");
    if run(reader, &sql).is_ok() {
        return Ok(());
    }
    let mut again = Reader::connect_for_writing(&request.connect)?;
    run(&mut again, &sql).map_err(|error| {
        AssessError::Plant(format!(
            "{database} is still there, drop it yourself: {error}"
        ))
    })
}

fn look(
    reader: &mut Reader,
    request: &Request,
    facts: &Facts,
    database: &str,
) -> Result<Searched, AssessError> {
    let text = format!("onionskin-planted-{:032x}", rand::random::<u128>());
    run(
        reader,
        &format!(
            "CREATE TABLE {database}.planted (id INT NOT NULL PRIMARY KEY, v VARCHAR(100) NOT NULL) ENGINE=InnoDB"
        ),
    )?;
    run(
        reader,
        &format!("INSERT INTO {database}.planted VALUES (1, '{text}')"),
    )?;
    // Pages reach the file when they please, or when the table is made ready for a copy.
    run(
        reader,
        &format!("FLUSH TABLES {database}.planted FOR EXPORT"),
    )?;
    let searched = search(&Texts::one("the planted text", &text), facts, request.pace);
    run(reader, "UNLOCK TABLES")?;
    searched
}

fn run(reader: &mut Reader, sql: &str) -> Result<(), AssessError> {
    reader.ask(sql)?.map(|_| ()).map_err(|refusal| {
        let said = match refusal {
            Refusal::Denied(said) | Refusal::Other(said) => said,
            Refusal::Unknown => "the server does not know this statement".into(),
        };
        AssessError::Plant(said)
    })
}
