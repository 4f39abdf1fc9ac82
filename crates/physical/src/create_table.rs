//! A whole logical `CREATE TABLE` made physical, without a session.

use onionskin_keys::{KeySet, Suite};
use onionskin_plan::lex::spelled_out;
use onionskin_plan::{
    Action, Catalog, Ddl, Known, LexMode, Outcome, Request, Settings, Template, plan,
};
use onionskin_schema::{NewColumn, Policy, same_name};
use onionskin_value::Family;

use crate::new_columns::{keeps_grams, with_ids};
use crate::text::definition_text;

/// A logical `CREATE TABLE`, with what it depends on.
pub struct CreateTable<'a> {
    /// The statement, in the form of a server's definition. Columns that the policy names are
    /// protected.
    pub sql: &'a str,
    /// The database of the session that would send it.
    pub database: &'a str,
    /// The collation of tables that name none.
    pub default_collation: &'a str,
    /// The server's family.
    pub family: Family,
    /// Which columns are protected.
    pub policy: &'a Policy,
    /// The keys of new columns.
    pub keys: &'a KeySet,
    /// The suite of new columns.
    pub suite: Suite,
    /// Whether MariaDB keeps grams of columns with LIKE.
    pub like_index: bool,
    /// The columns that have lost their default, which no definition says.
    pub without_default: &'a [String],
}

/// A table that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct PhysicalTable {
    /// CREATE TABLE.
    pub sql: String,
    /// Its protected columns, with their ids.
    pub columns: Vec<NewColumn>,
}

impl CreateTable<'_> {
    /// What the proxy would send for the statement, with ids of its own. The error is the text that
    /// a client would get.
    pub fn physical(&self) -> Result<PhysicalTable, String> {
        let sql = spelled_out(self.sql, LexMode::default());
        let mut template = Template::default();
        template
            .read(sql.as_bytes(), LexMode::default())
            .map_err(|e| e.to_string())?;
        let settings = Settings {
            database: Some(self.database.to_owned()),
            default_collation: self.default_collation.to_owned(),
            ..Settings::usual(self.family)
        };
        let request = Request {
            sql: sql.as_bytes(),
            template: &template,
            settings: &settings,
            catalog: &NoTables,
            policy: self.policy,
        };
        let Outcome::Plan(plan) = plan(&request) else {
            return Err("this refers to other tables".into());
        };
        match &plan.action {
            Action::Relay => Ok(PhysicalTable {
                sql: self.sql.to_owned(),
                columns: Vec::new(),
            }),
            Action::Define(ddl) => self.defined(ddl),
            Action::Refuse(refusal) => Err(refusal.message()),
            _ => Err("this is no definition of a table".into()),
        }
    }

    fn defined(&self, ddl: &Ddl) -> Result<PhysicalTable, String> {
        let grams = keeps_grams(self.like_index, self.family);
        let mut columns = with_ids(ddl, self.keys, self.suite, grams);
        for column in &mut columns {
            let mut lost = self.without_default.iter();
            column.lost_default = lost.any(|name| same_name(name, &column.name));
        }
        let text = definition_text(ddl, &columns, self.family, self.keys.metadata_key())
            .map_err(|refusal| refusal.message())?;
        let sql = String::from_utf8(text).map_err(|e| e.to_string())?;
        Ok(PhysicalTable { sql, columns })
    }
}

/// A schema without tables: the one that is defined is the only one there is.
struct NoTables;

impl Catalog for NoTables {
    fn table(&self, _: &str, _: &str) -> Known {
        Known::Absent
    }
}
