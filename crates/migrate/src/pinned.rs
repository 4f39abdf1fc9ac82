//! The pinned table: the only one that a migration touches, and what is to be pinned after it.

use onionskin_rowstream::checkpoint::Imprint;
use onionskin_rowstream::session::Session;
use onionskin_schema::{Pins, Table};

use crate::error::{MigrateError, Result};
use crate::imprint::Known;
use crate::job::Job;
use crate::switch::exists;

impl Job {
    /// An error unless one of these tables is the pinned one, if one is pinned.
    pub(crate) fn must_be_pinned(&self, tables: &[&Table]) -> Result<()> {
        let Some(pinned) = &self.pinned else {
            return Ok(());
        };
        let mut difference = None;
        for table in tables {
            let damage = table.damaged.clone();
            match damage.or_else(|| pinned.difference(Some(table))) {
                None => return Ok(()),
                Some(other) => difference = difference.or(Some(other)),
            }
        }
        Err(MigrateError::NotPinned {
            table: format!("{}.{}", self.database, self.table),
            what: difference.unwrap_or_else(|| "there is no such table".into()),
        })
    }

    /// What is to be pinned when a table has come into its place.
    pub(crate) fn pins_of(&self, known: &Known) -> Pins {
        let table = Table {
            name: self.table.clone(),
            ..known.logical.clone()
        };
        Pins::of([&table])
    }

    /// After the tables were switched by a process that was killed then: what is to be pinned. The
    /// table in place is known by the first imprint; it or the other one, which it came from, must
    /// be the pinned one. `None` if that cannot be told.
    pub(crate) fn settled(
        &self,
        control: &mut Session,
        (imprint, (other, other_imprint)): (&Imprint, (&str, &Imprint)),
    ) -> Result<Option<Pins>> {
        let Ok(now) = self.known(control, &self.table, imprint) else {
            return Ok(None);
        };
        if self.must_be_pinned(&[&now.logical]).is_ok() {
            return Ok(Some(self.pins_of(&now)));
        }
        if !exists(control, other)? {
            return Ok(None);
        }
        match self.known(control, other, other_imprint) {
            Ok(other) => self.must_be_pinned(&[&now.logical, &other.logical])?,
            Err(_) => self.must_be_pinned(&[&now.logical])?,
        }
        Ok(Some(self.pins_of(&now)))
    }
}
