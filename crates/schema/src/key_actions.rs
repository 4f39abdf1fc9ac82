//! What a foreign key over protected columns says happens to a row when the row that it refers to
//! changes, as far as the server does none of it.
//!
//! The server compares tokens, and could write tokens only. So the key on the server refuses the
//! change (it has no action there), and the definition of its first column keeps what the client
//! said, for whoever asks. A change that would do it is refused.

use crate::{
    comment::field,
    protection::split_companion,
    show_create::{Token, tokens},
    table::Table,
};

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

    /// By the text of a column's comment, whose tag nobody looks at.
    pub fn in_comment(comment: &str) -> Self {
        let flags = comment.split('|').nth(field::FLAGS - 1).unwrap_or_default();
        Self::of_flags(|letter| flags.contains(letter))
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

/// The column to which a token column of this name belongs, by the name's form.
pub fn split_token_name(name: &str) -> Option<&str> {
    split_companion(name).map(|(column, _, _)| column)
}

/// The line of a foreign key in a table's definition with the actions that the server's key does
/// not have. `physical` is the line with the server's names.
pub(crate) fn with_actions(line: String, physical: &str, table: &Table) -> String {
    let mut rest = tokens(physical).skip_while(|token| !matches!(token, Token::Word("FOREIGN")));
    let first = rest.find(Token::is_identifier).map(|token| token.name());
    let owner = first.and_then(|name| table.owner_of(&name));
    let protection = owner.and_then(|column| column.protection.as_ref());
    let Some(actions) = protection.map(|p| p.actions).filter(|a| a.any()) else {
        return line;
    };
    let behind = line.rfind(')').map_or(line.len(), |at| at + 1);
    let update = line[behind..].find(" ON UPDATE ").map(|at| behind + at);
    let (front, told) = line.split_at(update.unwrap_or(line.len()));
    let mut out = front.to_owned();
    if actions.delete == KeyAction::SetNull {
        out.push_str(" ON DELETE SET NULL");
    }
    out.push_str(match actions.update {
        KeyAction::Server => told,
        KeyAction::Cascade => " ON UPDATE CASCADE",
        KeyAction::SetNull => " ON UPDATE SET NULL",
    });
    out
}
