//! What a session keeps of functions that the proxy computes.

use ahash::AHashMap;
use onionskin_plan::Literal;
use onionskin_plan::functions::{Calls, Piece};
use onionskin_wire::{DefinitionForm, ParamType};
use zeroize::Zeroizing;

use super::open::{Ready, ResultOpener};
use crate::error::Outcome;

/// What a session knows of functions.
#[derive(Default)]
pub(crate) struct Functions {
    /// The variables that are kept here, those that were set.
    pub secrets: AHashMap<String, Option<Zeroizing<Vec<u8>>>>,
    /// Those that the running statement sets, kept once the server has done it.
    pub assigned: Vec<(String, Option<Zeroizing<Vec<u8>>>)>,
    /// The columns of the running statement's result that are opened or named here.
    pub openings: Vec<Ready>,
    /// Prepared statements with calls, by their ids.
    pub prepared: AHashMap<u32, PreparedCalls>,
    /// Parameters of the client's statement that is being prepared, if it has calls.
    pub preparing: Option<usize>,
}

impl Functions {
    /// The session begins anew.
    pub fn clear(&mut self) {
        *self = Functions::default();
    }

    /// Whether columns of the running statement's result are opened or named here.
    pub fn opens(&self) -> bool {
        !self.openings.is_empty()
    }

    /// Whether the statement that is being prepared has calls.
    pub fn prepares(&self) -> bool {
        self.preparing.is_some()
    }

    /// The parameters that the client knows of, of a statement that the server has prepared with so
    /// many.
    pub fn client_parameters(&self, servers: usize) -> usize {
        self.preparing.unwrap_or(servers)
    }

    /// What opens columns of the running statement's result, if there are such; their definitions
    /// become those that the client sees.
    pub fn opener(
        &self,
        definitions: &mut [Vec<u8>],
        form: DefinitionForm,
    ) -> Outcome<Option<ResultOpener>> {
        match self.opens() {
            true => ResultOpener::new(&self.openings, definitions, form),
            false => Ok(None),
        }
    }
}

/// What a prepared statement has computed.
pub(crate) struct PreparedCalls {
    /// The client's text, and its literals.
    pub sql: Vec<u8>,
    pub literals: Vec<Literal>,
    pub calls: Calls,
    /// The types that the client has bound.
    pub types: Vec<ParamType>,
    /// Parameters of calls that came as long data.
    pub long: Vec<Option<Vec<u8>>>,
    /// Other parameters that did: the statement behind has them.
    pub long_behind: Vec<bool>,
    /// More of that has come than the server takes, or the session may hold.
    pub too_long: bool,
}

impl PreparedCalls {
    /// What the server's parameters are.
    pub fn parameters(&self) -> impl Iterator<Item = &Piece> {
        let is_one = |piece: &&Piece| !matches!(piece, Piece::Sql(_));
        self.calls.pieces.iter().filter(is_one)
    }

    /// The server's parameter that a parameter of the client's is; `None`: it is a call's.
    pub fn behind(&self, client: usize) -> Option<usize> {
        self.parameters()
            .position(|piece| *piece == Piece::Parameter(client))
    }

    pub fn forget_long(&mut self) {
        self.long.iter_mut().for_each(|long| *long = None);
        self.long_behind.fill(false);
        self.too_long = false;
    }
}
