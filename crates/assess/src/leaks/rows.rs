//! The rows of a table in memory, as numbers of payloads, and what of them an attacker knows.

use rand::{RngExt, rngs::StdRng};

use super::{
    capability::Capability,
    dictionary::{Class, Dictionary, Left, Payload},
    known::Known,
};

/// In the place of NULL, and of what was left out.
pub const NONE: Payload = Payload::MAX;

/// A column.
pub struct ColumnRows {
    /// Its name.
    pub name: String,
    /// As it is shown.
    pub type_text: String,
    /// What it is attacked for.
    pub capabilities: Vec<Capability>,
    /// Its values.
    pub dictionary: Dictionary,
    /// A payload for each row, or [`NONE`].
    pub rows: Vec<Payload>,
    /// What is known of it.
    pub knowledge: Knowledge,
    /// Values that were too long.
    pub too_long: u64,
    /// Why it is not attacked.
    pub problem: Option<String>,
}

/// What an attacker knows of a column.
pub enum Knowledge {
    /// This share of the rows, drawn by each seed.
    HeldApart(f64),
    /// Another table's column, row by row.
    Rows(Vec<Payload>),
    /// Values with counts.
    Values(Vec<(Payload, f64)>),
}

/// A table.
pub struct TableRows {
    /// Its name.
    pub name: String,
    /// Its columns that are attacked.
    pub columns: Vec<ColumnRows>,
}

impl ColumnRows {
    /// Takes a cell of the next row.
    pub fn push(&mut self, cell: Option<&[u8]>) {
        let payload = cell.map_or(NONE, |cell| self.number(cell));
        self.rows.push(payload);
    }

    /// The number of a value; [`NONE`] if it has none, which is noted.
    pub fn number(&mut self, cell: &[u8]) -> Payload {
        if self.problem.is_some() {
            return NONE;
        }
        let problem = match self.dictionary.add_sent(cell) {
            Ok(payload) => return payload,
            Err(Left::TooLong) => {
                self.too_long += 1;
                return NONE;
            }
            Err(Left::DoesNotFit) => "a value was not understood".to_owned(),
            Err(Left::NoRoom) => "its different values take too much memory: fewer --rows".into(),
            Err(Left::Weight(error)) => error.to_string(),
        };
        self.problem = Some(problem);
        NONE
    }

    /// Values of the rows that are attacked.
    pub fn targets<'a>(&'a self, split: &'a Split) -> impl Iterator<Item = Payload> + 'a {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(at, payload)| **payload != NONE && self.is_target(split, *at))
            .map(|(_, payload)| *payload)
    }

    /// Whether a row is attacked.
    pub fn is_target(&self, split: &Split, row: usize) -> bool {
        !(matches!(self.knowledge, Knowledge::HeldApart(_)) && split.is_known(row))
    }

    /// What is known.
    pub fn known(&self, split: &Split) -> Known {
        let one = |payload: &Payload| (*payload, 1.0);
        let is_value = |payload: &&Payload| **payload != NONE;
        match &self.knowledge {
            Knowledge::HeldApart(_) => {
                let rows = self.rows.iter().enumerate();
                let rows = rows.filter(|(at, _)| split.is_known(*at)).map(|(_, p)| p);
                Known::of(&self.dictionary, rows.filter(is_value).map(one))
            }
            Knowledge::Rows(rows) => {
                Known::of(&self.dictionary, rows.iter().filter(is_value).map(one))
            }
            Knowledge::Values(values) => Known::of(&self.dictionary, values.iter().copied()),
        }
    }

    /// Classes of the known rows, row by row, if they are known so.
    pub fn known_rows(&self, split: &Split) -> Option<Vec<Option<Class>>> {
        let class = |p: &Payload| (*p != NONE).then(|| self.dictionary.class(*p));
        match &self.knowledge {
            Knowledge::HeldApart(_) => {
                let rows = self.rows.iter().enumerate();
                let rows = rows.filter(|(at, _)| split.is_known(*at));
                Some(rows.map(|(_, payload)| class(payload)).collect())
            }
            Knowledge::Rows(rows) => Some(rows.iter().map(class).collect()),
            Knowledge::Values(_) => None,
        }
    }
}

/// Which rows of a table a seed holds apart.
pub struct Split {
    known: Vec<bool>,
}

impl Split {
    /// Draws this share of the rows.
    pub fn drawn(rows: usize, share: f64, rng: &mut StdRng) -> Self {
        Self {
            known: (0..rows).map(|_| rng.random_bool(share)).collect(),
        }
    }

    fn is_known(&self, row: usize) -> bool {
        self.known.get(row).copied().unwrap_or(false)
    }
}
