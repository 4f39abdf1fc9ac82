//! The proof: a text that was planted before anything was encrypted, looked for in the server's
//! files before and behind, and another one that is planted behind.
//!
//! The first text lies in the planted table until everything is done, so that a run which goes on
//! finds it there.

use onionskin_schema::identifier;
use serde::{Deserialize, Serialize};

use super::{request::Request, state::State};
use crate::{
    AssessError,
    reader::Reader,
    server::search::{Texts, search},
};

const BEGINS: &str = "onionskin-planted-";
const FIRST: &str = "planted before";
const SECOND: &str = "planted behind";

/// Where texts were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// Files with the first text when this run began.
    pub before: Vec<String>,
    /// Files with it in the end.
    pub behind: Vec<String>,
    /// Files with a text that was planted in the end; nothing if there was more to do.
    pub later: Vec<String>,
    /// The same, of layers that were not asked for: a binary log, other logs.
    pub beyond: Vec<String>,
    /// Whether the second text was planted.
    pub complete: bool,
}

/// A text that lies in a table.
pub(super) struct Proof {
    database: String,
    text: String,
    before: Vec<String>,
}

impl Proof {
    /// Plants it, or takes the one of a run before.
    pub(super) fn begin(
        request: &Request,
        state: &State,
        database: &str,
    ) -> Result<Self, AssessError> {
        let mut reader = Reader::connect_for_writing(&request.look.connect)?;
        let name = identifier(database);
        let there = reader.raw(&format!("SELECT v FROM {name}.planted WHERE id = 1"))?;
        let there = there
            .unwrap_or_default()
            .into_iter()
            .flatten()
            .flatten()
            .next();
        let text = match there {
            Some(text) if text.starts_with(BEGINS) => text,
            Some(_) => {
                return Err(AssessError::Plant(format!("{name}.planted is not ours")));
            }
            None => {
                let text = new_text();
                for sql in [
                    format!("CREATE DATABASE {name}"),
                    format!(
                        "CREATE TABLE {name}.planted (id INT NOT NULL PRIMARY KEY, v VARCHAR(100) NOT NULL) ENGINE=InnoDB"
                    ),
                    format!("INSERT INTO {name}.planted VALUES (1, '{text}')"),
                ] {
                    reader.must_run(&sql)?;
                }
                text
            }
        };
        let texts = Texts::one(FIRST, &text);
        let found = looked_for(&mut reader, &name, &texts, state, request)?;
        Ok(Self {
            database: name,
            text,
            before: found,
        })
    }

    /// For people.
    pub(super) fn told(&self) -> String {
        match self.before.is_empty() {
            true => "the planted text stands in no file".into(),
            false => format!("the planted text stands in: {}", self.before.join("; ")),
        }
    }

    /// Looks again. When everything is done another text is planted and looked for, and the
    /// database goes.
    pub(super) fn end(self, request: &Request, complete: bool) -> Result<Planted, AssessError> {
        let mut reader = Reader::connect_for_writing(&request.look.connect)?;
        let state = State::read(request)?;
        let name = &self.database;
        let second = new_text();
        let mut texts = Texts::one(FIRST, &self.text);
        if complete {
            reader.must_run(&format!(
                "REPLACE INTO {name}.planted VALUES (2, '{second}')"
            ))?;
            texts.and(SECOND, &second);
        }
        let found = looked_for(&mut reader, name, &texts, &state, request)?;
        if complete {
            reader.must_run(&format!("DROP DATABASE {name}"))?;
        }
        let (second, behind): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|hit| hit.contains(SECOND));
        let (later, beyond) = second
            .into_iter()
            .partition(|hit| is_asked_for(hit, &state, request));
        Ok(Planted {
            before: self.before,
            behind,
            later,
            beyond,
            complete,
        })
    }
}

/// Whether a file is of a layer that was asked for.
fn is_asked_for(hit: &str, state: &State, request: &Request) -> bool {
    let file = hit.split(": ").next().unwrap_or(hit);
    let file = file.rsplit('/').next().unwrap_or(file);
    let name = |variable: &str| {
        let path = state.facts.variable(variable).unwrap_or_default();
        path.rsplit('/').next().unwrap_or(path).to_owned()
    };
    let log = name("log_bin_basename");
    if !log.is_empty() && file.starts_with(&format!("{log}.")) {
        return request.binlog;
    }
    let others = ["general_log_file", "slow_query_log_file", "log_error"];
    request.tde && !others.iter().any(|variable| name(variable) == file)
}

fn new_text() -> String {
    format!("{BEGINS}{:032x}", rand::random::<u128>())
}

/// Pages reach the file when they please, or when the table is made ready for a copy.
fn looked_for(
    reader: &mut Reader,
    database: &str,
    texts: &Texts,
    state: &State,
    request: &Request,
) -> Result<Vec<String>, AssessError> {
    reader.must_run(&format!("FLUSH TABLES {database}.planted FOR EXPORT"))?;
    let searched = search(texts, &state.facts, request.look.pace);
    reader.must_run("UNLOCK TABLES")?;
    let searched = searched?;
    match searched.left_out.is_empty() {
        true => Ok(searched.hits),
        false => Err(AssessError::Plant(format!(
            "not all files could be read: {}",
            searched.left_out.join("; ")
        ))),
    }
}
