//! Whether a session may have temporary tables of which nobody has told, and which names the server
//! was asked about: [`crate::temporary`] asks.

use std::collections::HashSet;

use onionskin_schema::TableName;

use crate::state::State;

/// Temporary tables that the session may have, and of which nobody has told.
#[derive(Default)]
pub(crate) struct Unseen {
    /// The names that the server was asked about since something may have made one. `None`: nothing
    /// may.
    pub asked: Option<HashSet<TableName>>,
    /// A program may have had the server tell less.
    pub hears_less: bool,
}

impl Unseen {
    /// Those of a session that begins.
    pub fn at_login(state: &State) -> Self {
        let mut unseen = Self::default();
        if state.begins_by_itself {
            unseen.may_be_there();
        }
        unseen
    }

    /// Something may have made or dropped one.
    pub fn may_be_there(&mut self) {
        self.asked.get_or_insert_default().clear();
        self.hears_less = true;
    }

    /// What was asked does not count any more.
    pub fn ask_again(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.clear();
        }
    }
}
