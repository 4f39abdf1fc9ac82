//! What a plan keeps of its results' definitions.

use onionskin_wire::ParamType;

use crate::state::State;

/// The definitions of a statement's result: as the server sent them, and as the client saw them. A
/// statement that runs again gets the same, and need not check and translate them once more.
pub(crate) struct Shown {
    pub server: Vec<Vec<u8>>,
    pub client: Vec<Vec<u8>>,
    pub types: Vec<ParamType>,
    pub results_collation: u16,
    pub binary: bool,
}

impl Shown {
    /// Whether the server's definitions, read under this state, are these.
    pub fn holds(&self, server: &[Vec<u8>], state: &State, binary: bool) -> bool {
        self.binary == binary
            && self.results_collation == state.results_collation
            && self.server == server
    }

    /// What the client is shown.
    pub fn client(&self) -> &[Vec<u8>] {
        &self.client
    }
}
