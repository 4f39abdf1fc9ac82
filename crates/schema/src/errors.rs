//! Errors that people can act on.

use thiserror::Error;

/// A definition that cannot be protected, or a protected one that cannot be used so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// AUTO_INCREMENT.
    #[error("column '{column}' is AUTO_INCREMENT and cannot be protected")]
    AutoIncrement {
        /// The column.
        column: String,
    },
    /// A generated column.
    #[error("column '{column}' is generated and cannot be protected")]
    Generated {
        /// The column.
        column: String,
    },
    /// DEFAULT CURRENT_TIMESTAMP or ON UPDATE.
    #[error("column '{column}' is set by the server's clock and cannot be protected")]
    ServerClock {
        /// The column.
        column: String,
    },
    /// DEFAULT (expression).
    #[error("column '{column}' has an expression as its default and cannot be protected")]
    DefaultExpression {
        /// The column.
        column: String,
    },
    /// A CHECK, a generated column, a functional index or a partition function reads it.
    #[error("column '{column}' is used by an expression that the server computes")]
    UsedByExpression {
        /// The column.
        column: String,
    },
    /// A type that cannot be sealed.
    #[error("column '{column}' has the type {type_text}, which cannot be protected")]
    UnsupportedType {
        /// The column.
        column: String,
        /// Its type.
        type_text: String,
    },
    /// `eq` or `join` on a type or collation whose equality is not known.
    #[error("column '{column}' ({type_text}) cannot have the capability {capability}")]
    NotSearchable {
        /// The column.
        column: String,
        /// Its type, with the collation.
        type_text: String,
        /// The capability asked for.
        capability: &'static str,
    },
    /// `eq:N` beside a group, whose columns are compared by whole tokens.
    #[error("column '{column}' cannot have eq with fewer bits and be in a group")]
    CoarseGroup {
        /// The column.
        column: String,
    },
    /// A capability whose companions would still tell values of a tenant that is forgotten.
    #[error(
        "the protected column '{column}' has KEY BY and cannot have the capability {capability}"
    )]
    BesideTenant {
        /// The column.
        column: String,
        /// The capability.
        capability: &'static str,
    },
    /// An index on a column that has no companion to build it on.
    #[error("an index on the protected column '{column}' needs the capability eq")]
    IndexWithoutCapability {
        /// The column.
        column: String,
    },
    /// The physical name would be longer than 64 characters.
    #[error("the name of the protected column '{column}' is longer than {limit} characters")]
    NameTooLong {
        /// The column.
        column: String,
        /// Longest name with these capabilities.
        limit: usize,
    },
    /// A name of the form that physical columns have.
    #[error("the column name '{column}' is reserved")]
    ReservedName {
        /// The column.
        column: String,
    },
    /// Definition and comment do not fit into 1024 characters.
    #[error(
        "comment and default of the protected column '{column}' are too long by {excess} characters"
    )]
    CommentTooLong {
        /// The column.
        column: String,
        /// Characters too many.
        excess: usize,
    },
    /// The default is no value of the type.
    #[error("Invalid default value for '{column}'")]
    InvalidDefault {
        /// The column.
        column: String,
    },
    /// MySQL's TEXT and BLOB types take no default.
    #[error("BLOB, TEXT, GEOMETRY or JSON column '{column}' can't have a default value")]
    LongTypeDefault {
        /// The column.
        column: String,
    },
    /// An ALTER that only a protected column can take.
    #[error("column '{column}' is not protected")]
    NotProtected {
        /// The column.
        column: String,
    },
    /// The metadata of a table is missing, changed or contradictory.
    #[error("table '{table}' cannot be trusted: {reason}")]
    DamagedTable {
        /// The table.
        table: String,
        /// What is wrong.
        reason: String,
    },
    /// SHOW CREATE TABLE gave a text of another form than expected.
    #[error("the definition of table '{table}' is not understood")]
    DefinitionNotUnderstood {
        /// The table.
        table: String,
    },
    /// A word in the policy that is no capability.
    #[error("[protect.\"{pattern}\"] {column}: unknown capability \"{word}\"")]
    UnknownCapability {
        /// The pattern of the section.
        pattern: String,
        /// The column entry.
        column: String,
        /// The word.
        word: String,
    },
    /// A pattern that is not `database.table`.
    #[error("[protect.\"{pattern}\"]: the pattern must have the form database.table")]
    BadPattern {
        /// The pattern.
        pattern: String,
    },
}

/// A line of the table of errors, from which the documentation is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEntry {
    /// Stable name of the error.
    pub code: &'static str,
    /// MySQL error number.
    pub number: u16,
    /// SQLSTATE.
    pub sqlstate: &'static str,
    /// What to do about it.
    pub way_out: &'static str,
}

const fn entry(
    code: &'static str,
    number: u16,
    sqlstate: &'static str,
    way_out: &'static str,
) -> ErrorEntry {
    ErrorEntry {
        code,
        number,
        sqlstate,
        way_out,
    }
}

/// ER_NOT_SUPPORTED_YET
const NOT_SUPPORTED: (u16, &str) = (1235, "42000");

const AUTO_INCREMENT: ErrorEntry = entry(
    "schema-auto-increment",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "leave the column unprotected, or let the application make its values",
);
const GENERATED: ErrorEntry = entry(
    "schema-generated",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "make it an ordinary column that the application fills, or leave it and its sources unprotected",
);
const SERVER_CLOCK: ErrorEntry = entry(
    "schema-server-clock",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "remove CURRENT_TIMESTAMP from the definition, or leave the column unprotected",
);
const DEFAULT_EXPRESSION: ErrorEntry = entry(
    "schema-default-expression",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "use a constant default, or leave the column unprotected",
);
const USED_BY_EXPRESSION: ErrorEntry = entry(
    "schema-used-by-expression",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "remove the column from the expression, or leave it unprotected: the server cannot compute with sealed values",
);
const UNSUPPORTED_TYPE: ErrorEntry = entry(
    "schema-type",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "use a type and a character set that can be protected, or leave the column unprotected",
);
const NOT_SEARCHABLE: ErrorEntry = entry(
    "schema-not-searchable",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "use a type and collation whose comparison is known, or seal the column without this capability",
);
const COARSE_GROUP: ErrorEntry = entry(
    "schema-coarse-group",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "leave out the number of bits, or the group",
);
const BESIDE_TENANT: ErrorEntry = entry(
    "schema-beside-tenant",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "leave the capability out, or KEY BY: beside it a column can have eq at most",
);
const INDEX_WITHOUT_CAPABILITY: ErrorEntry = entry(
    "schema-index-without-capability",
    NOT_SUPPORTED.0,
    NOT_SUPPORTED.1,
    "give the column the capability eq (or range, for types of fixed width), with all bits if the index is unique, or leave the index out",
);
const NAME_TOO_LONG: ErrorEntry =
    entry("schema-name-too-long", 1059, "42000", "use a shorter name");
const RESERVED_NAME: ErrorEntry = entry(
    "schema-reserved-name",
    1166,
    "42000",
    "use a name that does not end in $enc, and not in $eq_, $ord_ or $gram_ with four hex digits",
);
const COMMENT_TOO_LONG: ErrorEntry = entry(
    "schema-comment-too-long",
    1629,
    "HY000",
    "shorten the column's comment or its default",
);
const INVALID_DEFAULT: ErrorEntry = entry(
    "schema-invalid-default",
    1067,
    "42000",
    "give a default that fits the column's type",
);
const LONG_TYPE_DEFAULT: ErrorEntry = entry(
    "schema-long-type-default",
    1101,
    "42000",
    "leave the default out; MySQL allows none here",
);
const NOT_PROTECTED: ErrorEntry = entry(
    "schema-not-protected",
    1105,
    "HY000",
    "this is a defect of the proxy; report it",
);
const DAMAGED_TABLE: ErrorEntry = entry(
    "schema-damaged",
    1105,
    "HY000",
    "check that the proxy has the right keys; if it has, restore the table's definition from a backup or a replica",
);
const DEFINITION_NOT_UNDERSTOOD: ErrorEntry = entry(
    "schema-definition-not-understood",
    1105,
    "HY000",
    "ask the server directly for the physical definition, and report it",
);
const UNKNOWN_CAPABILITY: ErrorEntry = entry(
    "schema-unknown-capability",
    1105,
    "HY000",
    "use \"eq\", \"range\", \"like\" and \"join:NAME\", or \"plain\" alone",
);
const BAD_PATTERN: ErrorEntry = entry(
    "schema-bad-pattern",
    1105,
    "HY000",
    "write database.table; either part may be or contain *",
);

/// All errors of this crate.
pub const ERRORS: &[ErrorEntry] = &[
    AUTO_INCREMENT,
    GENERATED,
    SERVER_CLOCK,
    DEFAULT_EXPRESSION,
    USED_BY_EXPRESSION,
    UNSUPPORTED_TYPE,
    NOT_SEARCHABLE,
    COARSE_GROUP,
    BESIDE_TENANT,
    INDEX_WITHOUT_CAPABILITY,
    NAME_TOO_LONG,
    RESERVED_NAME,
    COMMENT_TOO_LONG,
    INVALID_DEFAULT,
    LONG_TYPE_DEFAULT,
    NOT_PROTECTED,
    DAMAGED_TABLE,
    DEFINITION_NOT_UNDERSTOOD,
    UNKNOWN_CAPABILITY,
    BAD_PATTERN,
];

impl SchemaError {
    /// The line of the table that this error belongs to.
    pub fn entry(&self) -> &'static ErrorEntry {
        match self {
            Self::AutoIncrement { .. } => &AUTO_INCREMENT,
            Self::Generated { .. } => &GENERATED,
            Self::ServerClock { .. } => &SERVER_CLOCK,
            Self::DefaultExpression { .. } => &DEFAULT_EXPRESSION,
            Self::UsedByExpression { .. } => &USED_BY_EXPRESSION,
            Self::UnsupportedType { .. } => &UNSUPPORTED_TYPE,
            Self::NotSearchable { .. } => &NOT_SEARCHABLE,
            Self::CoarseGroup { .. } => &COARSE_GROUP,
            Self::BesideTenant { .. } => &BESIDE_TENANT,
            Self::IndexWithoutCapability { .. } => &INDEX_WITHOUT_CAPABILITY,
            Self::NameTooLong { .. } => &NAME_TOO_LONG,
            Self::ReservedName { .. } => &RESERVED_NAME,
            Self::CommentTooLong { .. } => &COMMENT_TOO_LONG,
            Self::InvalidDefault { .. } => &INVALID_DEFAULT,
            Self::LongTypeDefault { .. } => &LONG_TYPE_DEFAULT,
            Self::NotProtected { .. } => &NOT_PROTECTED,
            Self::DamagedTable { .. } => &DAMAGED_TABLE,
            Self::DefinitionNotUnderstood { .. } => &DEFINITION_NOT_UNDERSTOOD,
            Self::UnknownCapability { .. } => &UNKNOWN_CAPABILITY,
            Self::BadPattern { .. } => &BAD_PATTERN,
        }
    }

    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        self.entry().code
    }

    /// MySQL error number.
    pub fn number(&self) -> u16 {
        self.entry().number
    }

    /// SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.entry().sqlstate
    }

    /// What happened, in one sentence.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// What to do about it.
    pub fn way_out(&self) -> &'static str {
        self.entry().way_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_complete() {
        let mut codes: Vec<_> = ERRORS.iter().map(|entry| entry.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ERRORS.len());
        for entry in ERRORS {
            assert!(entry.code.starts_with("schema-"), "{}", entry.code);
            assert_eq!(entry.sqlstate.len(), 5, "{}", entry.code);
            assert!(
                !entry.way_out.is_empty() && !entry.way_out.ends_with('.'),
                "{}",
                entry.code
            );
        }
    }

    #[test]
    fn errors_say_what_and_where() {
        let error = SchemaError::AutoIncrement {
            column: "id".into(),
        };
        assert_eq!(error.code(), "schema-auto-increment");
        assert_eq!((error.number(), error.sqlstate()), (1235, "42000"));
        assert!(error.message().contains("'id'"));
    }
}
