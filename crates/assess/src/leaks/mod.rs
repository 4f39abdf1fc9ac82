//! `onionskin assess leaks`: what a protected column would leak, by attack.
//!
//! Two views. As an application, through the proxy or on plain tables, the user's own rows are
//! read, and stand-ins are made of them as the real scheme makes them. Attacks get the stand-ins
//! and what an attacker knows beforehand; what they guess is compared with the truth. As the server
//! ([`Request::as_server`]) only physical columns are read: there is no truth then, and the report
//! says what can be said without.
//!
//! | module | what it is |
//! |---|---|
//! | `application`, `server_view` | the two views: read, attack, tell |
//! | `source` | reads tables, at a pace |
//! | `selection`, [`capability`], `coarse` | what is attacked |
//! | `dictionary`, `rows` | values in memory, each once |
//! | `auxiliary`, [`known`] | what an attacker knows |
//! | `scheme`, [`seen`] | what the server sees, made as the real scheme makes it |
//! | [`attacks`] | from what is seen and what is known to guesses |
//! | `guessing`, `play`, `company` | which attack is played on what |
//! | `tally`, `figures`, `advice` | what came of it, what can be said without the truth, what to do |
//! | `report` | the report |
//!
//! # Load
//!
//! Of a table its definition is read, the bounds of a whole-numbered primary key, and at most
//! [`Request::rows`] rows, at [`Request::pace`] rows a second. In memory are the values of one
//! table, each once, and a number for each row; of columns with foreign keys until the end. No
//! value gets into the report or a log: it has shares, bits and classes.

mod advice;
mod application;
pub mod attacks;
mod auxiliary;
pub mod capability;
mod coarse;
mod company;
pub mod dictionary;
mod figures;
mod guessing;
pub mod known;
mod play;
mod report;
mod request;
mod rows;
mod scheme;
pub mod seen;
mod selection;
mod server_view;
mod source;
mod tally;

use crate::{AssessError, reader::Reader, text::shown};

pub use advice::Risk;
pub use capability::Capability;
pub use company::{LinkLeak, PairLeak};
pub use figures::Figures;
pub use report::{Attack, ColumnLeak, FORMAT, LeaksReport, VERSION};
pub use request::{Auxiliary, Request};
pub use tally::{ClassAtRisk, Spread};

/// Reads, attacks, and tells.
pub fn assess(request: &Request) -> Result<LeaksReport, AssessError> {
    if matches!(request.auxiliary, Auxiliary::HeldApart(_)) && request.as_server {
        return Err(AssessError::Request(
            "--held-apart needs values, which the server does not have: give --aux or --aux-table, or nothing".into(),
        ));
    }
    if matches!(request.auxiliary, Auxiliary::Table(_)) && request.table.is_none() {
        return Err(AssessError::Request(
            "--aux-table knows the columns of one table: name that with --table".into(),
        ));
    }
    let mut reader = Reader::connect(&request.connect)?;
    let server = reader.version()?;
    // values of TIMESTAMP are read as they are stored
    let _ = reader.raw("SET time_zone = '+00:00'")?;
    let mut report = LeaksReport {
        format: FORMAT.into(),
        version: VERSION,
        made: chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        onionskin: request.program.clone(),
        server,
        address: request.address.clone(),
        database: shown(&request.database),
        as_server: request.as_server,
        knowledge: match &request.auxiliary {
            Auxiliary::Nothing => "nothing".into(),
            Auxiliary::HeldApart(percent) => format!("{percent} % of the rows"),
            Auxiliary::Table(name) => shown(&format!("the table {name}")),
            Auxiliary::File(_) => "the values of a file".into(),
        },
        seeds: request.seeds,
        tables: 0,
        rows: 0,
        columns: Vec::new(),
        pairs: Vec::new(),
        links: Vec::new(),
        left_out: Vec::new(),
    };
    match request.as_server {
        true => server_view::assess(&mut reader, request, &mut report)?,
        false => application::assess(&mut reader, request, &mut report)?,
    }
    Ok(report)
}
