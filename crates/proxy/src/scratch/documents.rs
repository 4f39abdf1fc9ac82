//! Which plain texts are JSON to MariaDB.
//!
//! MariaDB has no type of its own for JSON. A text whose column has a CHECK with `json_valid` is
//! JSON to functions, which put it into a document as it is and not as a string, and to clients
//! that ask for extended metadata. `information_schema.columns` does not tell. So `SHOW CREATE
//! TABLE` is asked, where one of these two may notice.

use std::collections::HashSet;

use onionskin_plan::{Scratch, ScratchRead, errors};
use onionskin_schema::identifier;
use onionskin_value::Family;
use onionskin_wire::DefinitionForm;

use crate::error::{Failure, Outcome};
use crate::exchange::{Question, Server};

/// What the server was asked, for each table that is read.
pub struct Asked {
    questions: Vec<Option<Question>>,
    /// A function may look.
    in_functions: bool,
}

/// The places of such columns among those of a table.
pub type Documents = HashSet<usize>;

/// Asks for the tables that have plain texts. The questions are not sent yet.
pub fn ask(server: &mut Server, family: Family, scratch: &Scratch, sql: &[u8]) -> Outcome<Asked> {
    const WORD: &[u8] = b"json";
    let mut words = sql.windows(WORD.len());
    let in_functions = words.any(|word| word.eq_ignore_ascii_case(WORD));
    let shows = in_functions || server.form == DefinitionForm::Extended;
    let mut questions = Vec::with_capacity(scratch.reads.len());
    for read in &scratch.reads {
        let is_asked = family == Family::MariaDb && shows && texts(read).next().is_some();
        questions.push(match is_asked {
            true => {
                let (database, table) = (&read.table.database, &read.table.name);
                let (database, table) = (identifier(database), identifier(table));
                let sql = format!("SHOW CREATE TABLE {database}.{table}");
                Some(server.put_query(sql.as_bytes())?)
            }
            false => None,
        });
    }
    Ok(Asked {
        questions,
        in_functions,
    })
}

/// Reads the answers, for each table.
pub fn answers(server: &mut Server, scratch: &Scratch, asked: Asked) -> Outcome<Vec<Documents>> {
    let mut found = Vec::with_capacity(scratch.reads.len());
    for (read, question) in scratch.reads.iter().zip(asked.questions) {
        let Some(question) = question else {
            found.push(Documents::new());
            continue;
        };
        let unclear = || {
            let about = format!("{}: which of its texts are JSON", read.table.name);
            Failure::refused(&errors::SCRATCH_TYPE, about)
        };
        let shown = match server.read_rows(question) {
            Ok(rows) => rows,
            Err(failure) if failure.ends_transaction() => return Err(failure),
            // metadata alone is not worth a refusal
            Err(Failure::Server { .. }) if !asked.in_functions => Vec::new(),
            Err(Failure::Server { .. }) => return Err(unclear()),
            Err(failure) => return Err(failure),
        };
        let text = shown
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().nth(1));
        let text = text.flatten().unwrap_or_default();
        found.push(documents_of(read, &String::from_utf8_lossy(&text)).ok_or_else(unclear)?);
    }
    Ok(found)
}

/// The plain columns that are read and are texts.
fn texts(read: &ScratchRead) -> impl Iterator<Item = usize> {
    let columns = read.columns.iter().map(|c| c.index);
    columns.filter(|index| {
        let column = &read.table.columns[*index];
        let ty = column.sql_type.as_ref();
        column.protection.is_none() && ty.is_some_and(|ty| ty.is_character() && !ty.is_enumerated())
    })
}

/// The columns that a definition checks so; `None` where it is not clear. The CHECK is the last
/// thing that is printed of a column, and a comment in which it stands ends with a quote.
fn documents_of(read: &ScratchRead, shown: &str) -> Option<Documents> {
    let mut documents = Documents::new();
    for index in texts(read) {
        let name = identifier(&read.table.columns[index].name);
        let mut lines = shown.lines().map(|line| line.trim().trim_end_matches(','));
        let Some(line) = lines.find(|line| line.starts_with(&format!("{name} "))) else {
            continue;
        };
        if line.ends_with(&format!(" CHECK (json_valid({name}))")) {
            documents.insert(index);
        } else if line.ends_with(')') && line.contains("json_valid") {
            return None;
        }
    }
    Some(documents)
}
