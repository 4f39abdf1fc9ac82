//! What a foreign key over protected columns says happens to a row when the row that it refers to
//! changes, as far as the server does none of it.
//!
//! The server compares tokens, and could write tokens only. So the key on the server refuses the
//! change (it has no action there), and the definition of its first column keeps what the client
//! said, for whoever asks. A change that would do it is refused.

/// One action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyAction {
    /// The key on the server has it.
    #[default]
    Server,
    /// CASCADE.
    Cascade,
    /// SET NULL.
    SetNull,
}

/// ON UPDATE and ON DELETE of the foreign keys whose first column a column is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyActions {
    /// ON UPDATE.
    pub update: KeyAction,
    /// ON DELETE. CASCADE deletes rows, which the server can do.
    pub delete: KeyAction,
}

/// Letters of the flags in a column's comment.
pub(crate) const UPDATE_CASCADE: char = 'k';
pub(crate) const UPDATE_NULL: char = 'n';
pub(crate) const DELETE_NULL: char = 'd';

impl KeyActions {
    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Self::default()
    }

    pub(crate) fn push_flags(self, flags: &mut String) {
        match self.update {
            KeyAction::Server => {}
            KeyAction::Cascade => flags.push(UPDATE_CASCADE),
            KeyAction::SetNull => flags.push(UPDATE_NULL),
        }
        flags.extend((self.delete == KeyAction::SetNull).then_some(DELETE_NULL));
    }

    /// Reads the flags, in their order, by `has`.
    pub(crate) fn of_flags(mut has: impl FnMut(char) -> bool) -> Self {
        let update = match (has(UPDATE_CASCADE), has(UPDATE_NULL)) {
            (true, _) => KeyAction::Cascade,
            (_, true) => KeyAction::SetNull,
            _ => KeyAction::Server,
        };
        let delete = match has(DELETE_NULL) {
            true => KeyAction::SetNull,
            false => KeyAction::Server,
        };
        Self { update, delete }
    }
}
