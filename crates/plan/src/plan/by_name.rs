//! What a plan says of PREPARE, EXECUTE and DEALLOCATE.

/// One of these statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByName {
    /// `PREPARE name FROM text`
    Prepare {
        /// As written.
        name: String,
        /// What is prepared.
        text: StatementText,
    },
    /// `EXECUTE name USING …`
    Execute {
        /// As written.
        name: String,
        /// What stands behind USING; `None` where that is not understood.
        using: Option<Vec<Argument>>,
    },
    /// `EXECUTE IMMEDIATE text USING …`, of MariaDB.
    Immediate {
        /// What is executed.
        text: StatementText,
        /// What stands behind USING; `None` where that is not understood.
        using: Option<Vec<Argument>>,
    },
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`
    Deallocate {
        /// As written.
        name: String,
    },
}

/// Where the text of a statement stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementText {
    /// In a string, whose quotes and escapes are undone.
    Literal(Vec<u8>),
    /// In this user variable.
    Variable(Vec<u8>),
    /// In an expression, or it cannot be read.
    Unclear,
}

/// A value behind USING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `@name`
    Variable(Vec<u8>),
    /// A literal as written, with its sign (MariaDB).
    Literal(Vec<u8>),
}

/// The place of a `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What stands around it.
    pub around: Around,
}

/// What a value may be in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// It is compared with a column, or is a value of a row or of a list: its own collation, or
    /// that it is unsigned, does not matter.
    Compared,
    /// `LIMIT ?`: a number that counts.
    Limit,
    /// Anywhere else.
    Expression,
}
