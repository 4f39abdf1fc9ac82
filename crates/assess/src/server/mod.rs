//! `onionskin assess server`: the layers of a server and of its surroundings.
//!
//! [`facts`] are read by one reader ([`ask`](self)) over SQL and by another one on the server's own
//! machine ([`machine`](self)). [`checks`] judge them. [`assess`] does both and makes the report.

mod ask;
mod ask_columns;
mod backups;
pub mod check;
pub mod checks;
pub mod facts;
mod machine;
mod names;
mod plant;
mod report;
mod request;
pub(crate) mod search;

use crate::AssessError;

pub(crate) use ask::tablespaces;
pub use report::{FORMAT, ServerReport, VERSION};
pub use request::Request;

/// What is known of a server and of its machine.
pub(crate) fn look(request: &Request) -> Result<facts::Facts, AssessError> {
    let mut facts = ask::facts(&request.connect, request.verified)?;
    facts.machine = machine::look(request, &facts)?;
    Ok(facts)
}

/// Looks at everything, and judges.
pub fn assess(request: &Request) -> Result<ServerReport, AssessError> {
    let mut facts = look(request)?;
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
