//! `onionskin assess server`: the layers of a server and of its surroundings.
//!
//! [`facts`] are read by one reader ([`ask`](self)) over SQL and by another one on the server's own
//! machine ([`machine`](self)). [`checks`] judge them. [`assess`] does both and makes the report.

mod ask;
mod ask_columns;
mod backups;
pub mod checks;
pub mod facts;
mod machine;
mod names;
mod plant;
mod report;
mod search;

use std::path::PathBuf;

use onionskin_rowstream::client::ConnectOptions;

use crate::AssessError;

pub use report::{FORMAT, ServerReport, VERSION};

/// What is asked for.
pub struct Request {
    /// How to reach the server.
    pub connect: ConnectOptions,
    /// What its address looks like, for the report.
    pub address: String,
    /// The server's certificate is verified.
    pub verified: bool,
    /// The data directory, if it is not to be found by the server's own word.
    pub data: Option<PathBuf>,
    /// A database to make, plant a text in, and drop.
    pub plant: Option<String>,
    /// A file of values to look for, one a line.
    pub search: Option<PathBuf>,
    /// A folder of backups.
    pub backups: Option<PathBuf>,
    /// MiB of files that are read in a second.
    pub pace: u32,
    /// This program's version.
    pub program: String,
}

/// Looks at everything, and judges.
pub fn assess(request: &Request) -> Result<ServerReport, AssessError> {
    let mut facts = ask::facts(&request.connect, request.verified)?;
    facts.machine = machine::look(request, &facts)?;
    let needs_machine = request.plant.is_some() || request.search.is_some();
    if let (true, Err(needs)) = (needs_machine, &facts.machine) {
        return Err(AssessError::Request(format!(
            "--plant and --search look at the server's files: they need {needs}"
        )));
    }
    if let Some(file) = &request.search {
        let texts = search::Texts::read(file)?;
        facts.searched = Some(search::search(&texts, &facts, request.pace)?);
    }
    if let Some(database) = &request.plant {
        facts.planted = Some(plant::plant(request, &facts, database)?);
    }
    if let Some(folder) = &request.backups {
        facts.backups = Some(backups::look(folder)?);
    }
    Ok(report::of(request, &facts))
}
