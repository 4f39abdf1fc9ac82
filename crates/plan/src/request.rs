//! What planning is given: a statement, its session, and what is known of the schema.

use std::sync::Arc;

use onionskin_schema::{PinnedTable, Policy, Table};
use onionskin_value::{Family, SqlMode};

use crate::lex::LexMode;
use crate::template::Template;

/// When queries go to the scratch engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseScratch {
    /// There is none.
    Never,
    /// What tiers 1 and 2 refuse.
    IfNeeded,
    /// Whatever can: tiers 1 and 2 have refused it when its values were bound.
    Always,
}

/// What the session's state contributes to a plan.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which server.
    pub family: Family,
    /// Lexical rules.
    pub lex: LexMode,
    /// The current database.
    pub database: Option<String>,
    /// `STRICT_TRANS_TABLES` or `STRICT_ALL_TABLES`.
    pub strict: bool,
    /// NO_ZERO_DATE and NO_ZERO_IN_DATE, as far as a DEFAULT of such a date is an error or is
    /// stored as another one. Without strict mode, a zero date is kept in spite of NO_ZERO_DATE.
    pub forbidden_dates: SqlMode,
    /// `HIGH_NOT_PRECEDENCE`: `NOT a = b` is `(NOT a) = b`.
    pub high_not: bool,
    /// The client counts found rows, not changed ones (`CLIENT_FOUND_ROWS`).
    pub found_rows: bool,
    /// The collation of tables created in the current database without one of their own.
    pub default_collation: String,
    /// Collations that character sets stand for in the session instead of their own defaults, as
    /// MariaDB writes `character_set_collations`: `utf8mb3=utf8mb3_uca1400_ai_ci,ucs2=…`. Empty
    /// where the server has no such variable.
    pub charset_collations: String,
    /// The server makes a foreign key of `REFERENCES` in a column's definition (MariaDB 10.5, MySQL
    /// 9.0). Older ones read it and forget it.
    pub columns_make_keys: bool,
    /// When the scratch engine is used.
    pub scratch: UseScratch,
}

impl Settings {
    /// The version that the server has at least, as executable comments name it. What protected
    /// columns are made of, MySQL knows from 8.0.23 on and MariaDB from 10.3 on.
    pub(crate) fn least_version(&self) -> u32 {
        match (self.family, self.columns_make_keys) {
            (Family::MySql, false) => 80_023,
            (Family::MySql, true) => 90_000,
            (Family::MariaDb, false) => 100_300,
            (Family::MariaDb, true) => 100_500,
        }
    }

    /// Those of a session that has changed nothing yet: no database, strict mode, no engine.
    pub fn usual(family: Family) -> Self {
        Self {
            family,
            lex: LexMode::default(),
            database: None,
            strict: true,
            forbidden_dates: SqlMode::empty(),
            high_not: false,
            found_rows: false,
            default_collation: "utf8mb4_general_ci".into(),
            charset_collations: String::new(),
            columns_make_keys: true,
            scratch: UseScratch::Never,
        }
    }
}

/// What is known of a table.
#[derive(Clone, Debug)]
pub enum Known {
    /// It exists.
    Table(Arc<Table>),
    /// There is none, or the user cannot see it.
    Absent,
    /// It was not looked up yet.
    Unknown,
}

/// Introduces, in the place of a table's name, the default collation of the table whose name
/// follows, or of the database: the catalog answers with a table without columns whose name is
/// the collation's.
pub const COLLATION: &str = "\u{1}collation of ";

/// What is wrong with a table or view of which the account may see that it is there, and none of
/// its columns.
pub const HIDDEN: &str = "its columns are not shown";

/// Why a view is damaged that selects columns or tables of ours which are gone.
pub const BROKEN_VIEW: &str = "a view of columns that are gone";

/// The snapshot of the schema.
pub trait Catalog {
    /// What is known of `database.name`, letter case ignored.
    fn table(&self, database: &str, name: &str) -> Known;

    /// What is pinned under the name, letter case ignored.
    fn pinned(&self, database: &str, name: &str) -> Option<Arc<PinnedTable>> {
        let _ = (database, name);
        None
    }

    /// Whether a table of this name is known to have been protected, though there may be none now,
    /// or none that the user sees.
    fn was_protected(&self, database: &str, name: &str) -> bool {
        self.pinned(database, name).is_some()
    }

    /// The same of a table of this name in some database.
    fn was_protected_somewhere(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Whether some table is known to have, or to have had, a protected column of this name.
    fn names_protected(&self, column: &str) -> bool {
        let _ = column;
        false
    }
}

/// A statement to be planned.
pub struct Request<'a> {
    /// Its bytes, one statement.
    pub sql: &'a [u8],
    /// Its shape.
    pub template: &'a Template,
    /// The session.
    pub settings: &'a Settings,
    /// The snapshot.
    pub catalog: &'a dyn Catalog,
    /// `[protect]`.
    pub policy: &'a Policy,
}
