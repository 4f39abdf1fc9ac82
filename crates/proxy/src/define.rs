//! Definitions: ids and authentication tags are made, the text is sent.

use onionskin_crypt::CellFormat;
use onionskin_keys::{KeySet, MetadataKey, Suite};
use onionskin_plan::{
    Action, Catalog, Ddl, DdlPiece, Known, LexMode, Outcome as PlanOutcome, Prefixed, Refusal,
    Request, Settings, Template, UseScratch, errors,
};
use onionskin_schema::alter::{self, Change, Position};
use onionskin_schema::{
    Alias, NewColumn, Policy, SchemaError, SetMark, Table, physical_definitions, same_name,
};
use onionskin_value::{Family, Kind, Level, Warning};

use crate::catalog::Prepared;
use crate::config::keeps_grams;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};
use crate::server_errors::{DEPRECATED_SYNTAX, DUPLICATE_INDEX};
use crate::session::Session;

fn failed(error: &SchemaError) -> Failure {
    Failure::Refused(Refusal::new(&errors::DEFINITION, error.to_string()))
}

/// MySQL's note about the width of a number.
const WIDTH: &str = "Integer display width is deprecated and will be removed in a future release.";

/// Whether a note is about how a definition is written. The copy of a table is not written.
fn is_about_a_text(code: u16, message: &[u8]) -> bool {
    code == DUPLICATE_INDEX || code == DEPRECATED_SYNTAX && message == WIDTH.as_bytes()
}

/// What MySQL says to the definitions of columns that it does not get to see.
fn deprecations(columns: &[NewColumn], family: Family) -> Vec<Warning> {
    const ZEROFILL: &str = "The ZEROFILL attribute is deprecated and will be removed in a future release. Use the \
                            LPAD function to zero-pad numbers, or store the formatted numbers in a CHAR column.";
    const UNSIGNED: &str = "UNSIGNED for decimal and floating point data types is deprecated and support for it will \
                            be removed in a future release.";
    let mut warnings = Vec::new();
    for ty in columns.iter().map(|column| &column.sql_type) {
        let has_width = match ty.kind {
            Kind::TinyInt(width) => width.is_some_and(|w| w != 1),
            Kind::SmallInt(width)
            | Kind::MediumInt(width)
            | Kind::Int(width)
            | Kind::BigInt(width) => width.is_some(),
            _ => false,
        };
        for (holds, message) in [
            (ty.zerofill, ZEROFILL),
            (has_width, WIDTH),
            (ty.unsigned && !ty.is_integer(), UNSIGNED),
        ] {
            if holds && family == Family::MySql {
                warnings.push(Warning {
                    level: Level::Warning,
                    code: DEPRECATED_SYNTAX,
                    message: message.to_owned(),
                });
            }
        }
    }
    warnings
}

impl Session {
    /// Carries a definition out and relays the server's answer.
    pub fn define(&mut self, ddl: &Ddl, prepared: &Prepared) -> Outcome<()> {
        let spelled = self.with_spelled_defaults(ddl)?;
        let ddl = spelled.as_ref().unwrap_or(ddl);
        let locked = self.lock_set(ddl, prepared)?;
        let done = self.define_locked(ddl, prepared);
        self.unlock_set(locked, &done, prepared)?;
        done
    }

    fn define_locked(&mut self, ddl: &Ddl, prepared: &Prepared) -> Outcome<()> {
        let config = &self.shared.config;
        let columns = with_ids(
            ddl,
            &config.keys,
            config.suite,
            config.keeps_grams(self.state.family),
        );
        self.check_rows(ddl, &columns)?;
        check_references(ddl, &columns)?;
        let key = self.shared.config.keys.metadata_key();
        let mut sql = definition_text(ddl, &columns, self.state.family, key)?;
        let unnamed = |piece: &DdlPiece| matches!(piece, DdlPiece::IndexName { .. });
        if ddl.pieces.iter().any(unnamed) {
            let known = self.names_of_indexes(ddl)?;
            let key = self.shared.config.keys.metadata_key();
            let named = with_index_names(ddl, &known);
            sql = definition_text(&named, &columns, self.state.family, key)?;
        }
        self.diagnostics.warnings = deprecations(&columns, self.state.family);
        let notes = ddl.pieces.iter().filter_map(|piece| {
            let (code, message) = match piece {
                DdlPiece::Present(column) => (1060, format!("Duplicate column name '{column}'")),
                DdlPiece::KeyTooLong => {
                    let message = "Specified key was too long; max key length is 3072 bytes";
                    (1071, message.to_owned())
                }
                _ => return None,
            };
            Some(Warning {
                level: Level::Note,
                code,
                message,
            })
        });
        if self.state.keeps_notes() {
            self.diagnostics.warnings.extend(notes);
        }
        self.send_definition(&sql, ddl.temporary.as_ref(), &prepared.plan.names)
    }

    /// The indexes that the table has.
    fn names_of_indexes(&mut self, ddl: &Ddl) -> Outcome<Vec<String>> {
        const KEY_NAME: usize = 2;
        let Some(table) = &ddl.table else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SHOW INDEX FROM {}.{}",
            onionskin_schema::identifier(&table.database),
            onionskin_schema::identifier(&table.name)
        );
        let rows = self.server.rows(sql.as_bytes())?;
        let names = rows
            .into_iter()
            .filter_map(|mut row| row.get_mut(KEY_NAME).and_then(Option::take));
        Ok(names
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect())
    }

    /// Sends a definition and relays the server's answer. `temporary` is the temporary table that it makes.
    pub(crate) fn send_definition(
        &mut self,
        sql: &[u8],
        temporary: Option<&(String, String)>,
        names: &[(String, String)],
    ) -> Outcome<()> {
        self.answer_definition(sql, temporary, names, |session, question| {
            session.relay_answer(question, &[])
        })
    }

    /// Sends the definition of a copy, and answers without the notes about it: CREATE TABLE … LIKE has none.
    pub(crate) fn send_copy(
        &mut self,
        sql: &[u8],
        temporary: Option<&(String, String)>,
        names: &[(String, String)],
        protected: &[NewColumn],
    ) -> Outcome<()> {
        self.diagnostics.warnings = deprecations(protected, self.state.family);
        self.diagnostics
            .warnings
            .retain(|warning| !is_about_a_text(warning.code, warning.message.as_bytes()));
        self.answer_definition(sql, temporary, names, Session::answer_copy)
    }

    fn answer_copy(&mut self, question: Question) -> Outcome<()> {
        let done = self.server.read_ok(question)?;
        if done.warnings == 0 {
            return self.write_done(&done);
        }
        let mut shown = self.server.rows(b"SHOW WARNINGS")?;
        shown.retain(|row| {
            let cell = |n: usize| row.get(n).and_then(Option::as_deref).unwrap_or_default();
            let code = std::str::from_utf8(cell(1)).unwrap_or_default().parse();
            !code.is_ok_and(|code| is_about_a_text(code, cell(2)))
        });
        self.diagnostics.keep(&shown, 0);
        self.write_done(&Done {
            warnings: 0,
            ..done
        })
    }

    fn answer_definition(
        &mut self,
        sql: &[u8],
        temporary: Option<&(String, String)>,
        names: &[(String, String)],
        answer: impl FnOnce(&mut Self, Question) -> Outcome<()>,
    ) -> Outcome<()> {
        // before the server has it: what is asked about it from now on must not be answered from a shared snapshot
        let before = temporary.map(|name| (name, self.expect_temporary(name)));
        let question = self.server.put_query(sql)?;
        self.server.flush()?;
        let done = answer(self, question);
        // whatever the answer, what was known is not certain any more
        self.shared.accounts.forget(names);
        match (before, &done) {
            (None, _) => {}
            (Some(_), Ok(())) => self.refresh_temporary()?,
            (Some((name, known)), Err(_)) => self.account.give_up_temporary(name, known),
        }
        done
    }

    /// Rows that exist have no value for a new column that needs one.
    fn check_rows(&mut self, ddl: &Ddl, columns: &[NewColumn]) -> Outcome<()> {
        let Some(table) = &ddl.table else {
            return Ok(());
        };
        let Some(column) = columns.iter().find(|c| alter::needs_empty_table(c)) else {
            return Ok(());
        };
        let sql = format!(
            "SELECT 1 FROM {}.{} LIMIT 1",
            onionskin_schema::identifier(&table.database),
            onionskin_schema::identifier(&table.name)
        );
        if self.server.rows(sql.as_bytes())?.is_empty() {
            return Ok(());
        }
        Err(failed(&SchemaError::RowsNeedValues {
            column: column.name.clone(),
        }))
    }
}

/// The definition with names for its indexes that have none: the column's, or that with the first number from 2 on that is free.
fn with_index_names(ddl: &Ddl, known: &[String]) -> Ddl {
    let mut ddl = ddl.clone();
    let mut made: Vec<String> = Vec::new();
    for piece in &mut ddl.pieces {
        let DdlPiece::IndexName { base, taken, freed } = piece else {
            continue;
        };
        let has = |names: &[String], name: &str| names.iter().any(|n| same_name(n, name));
        let is_taken = |name: &str| {
            has(&made, name) || has(taken, name) || (has(known, name) && !has(freed, name))
        };
        let numbered = (2..).map(|n| format!("{base}_{n}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let name = names.find(|name| !is_taken(name)).unwrap_or_default();
        let text = onionskin_schema::identifier(&name).into_bytes();
        made.push(name);
        *piece = DdlPiece::Sql(text);
    }
    ddl
}

/// The tokens of new columns are made under the key of today, those that they are compared with perhaps under another.
fn check_references(ddl: &Ddl, columns: &[NewColumn]) -> Outcome<()> {
    for reference in &ddl.references {
        let other = reference.table.columns.get(reference.index);
        let protection = other.and_then(|c| c.protection.as_ref());
        let (Some(new), Some(protection)) = (columns.get(reference.column), protection) else {
            continue;
        };
        if (new.key_id, new.suite) != (protection.key_id, protection.suite) {
            let about = format!(
                "{} is under another key than new columns",
                reference.table.name
            );
            return Err(Failure::refused(&errors::OTHER_KEY, about));
        }
    }
    Ok(())
}

/// The new columns with their ids.
/// The new columns under ids and keys of their own; `grams` says whether any are kept of those that have LIKE.
pub(crate) fn with_ids(ddl: &Ddl, keys: &KeySet, suite: Suite, grams: bool) -> Vec<NewColumn> {
    let table_id = ddl
        .table
        .as_ref()
        .and_then(|t| t.table_id)
        .unwrap_or_else(|| keys.random_table_id());
    let mut columns: Vec<NewColumn> = Vec::new();
    for column in &ddl.new_columns {
        let mut column = column.clone();
        column.table_id = table_id;
        column.key_id = keys.active_key();
        column.without_grams = column.capabilities.like && !grams;
        let cells = CellFormat::newest(suite);
        (column.suite, column.cell_version) = (suite.id(), cells.version());
        loop {
            column.column_id = keys.random_column_id();
            // the first four digits name the companions
            if columns
                .iter()
                .all(|c| c.column_id[..2] != column.column_id[..2])
            {
                break;
            }
        }
        columns.push(column);
    }
    columns
}

/// The changes of protected columns that the table has.
fn changes(ddl: &Ddl) -> impl Iterator<Item = Change<'_>> {
    ddl.pieces.iter().filter_map(|piece| match piece {
        DdlPiece::Drop(index) => Some(Change::Drop(*index)),
        DdlPiece::Rename(index, name) => Some(Change::Rename(*index, name)),
        DdlPiece::SetDefault(index, default) => Some(Change::Default(*index, default.as_ref())),
        _ => None,
    })
}

/// The protected columns that only get a new comment, by their indexes in the table.
fn unchanged(ddl: &Ddl) -> Vec<usize> {
    let is_changed = |index: usize| {
        changes(ddl).any(|change| match change {
            Change::Drop(other)
            | Change::Rename(other, _)
            | Change::Default(other, _)
            | Change::Comment(other, _) => other == index,
        })
    };
    let columns = ddl.table.iter().flat_map(|table| &table.columns);
    let protected = columns.enumerate().filter(|(_, c)| c.protection.is_some());
    let indexes = protected.map(|(index, _)| index);
    indexes.filter(|index| !is_changed(*index)).collect()
}

/// The mark of all protected columns that the table has after the definition.
fn set_of(
    ddl: &Ddl,
    columns: &[NewColumn],
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<SetMark, SchemaError> {
    match ddl.table.as_deref().filter(|table| table.is_protected()) {
        None => Ok(SetMark::of_new_table(columns, family, tag)),
        Some(table) => {
            let changes: Vec<Change<'_>> = changes(ddl).collect();
            alter::set_after(table, &changes, columns, family, tag)
        }
    }
}

/// The text for the server.
pub(crate) fn definition_text(
    ddl: &Ddl,
    columns: &[NewColumn],
    family: Family,
    key: &MetadataKey,
) -> Outcome<Vec<u8>> {
    let tag = |bytes: &[u8]| key.tag(bytes);
    let internal = || Failure::refused(&errors::INTERNAL, "a definition");
    let existing = |index: usize| -> Outcome<(&Table, &onionskin_schema::Column)> {
        let table = ddl.table.as_deref().ok_or_else(internal)?;
        Ok((table, table.columns.get(index).ok_or_else(internal)?))
    };
    let set = set_of(ddl, columns, family, tag).map_err(|e| failed(&e))?;
    let mut sql = Vec::new();
    for piece in &ddl.pieces {
        match piece {
            DdlPiece::Sql(text) => sql.extend_from_slice(text),
            DdlPiece::Renew => {
                for index in unchanged(ddl) {
                    let (table, column) = existing(index)?;
                    let parts = alter::renew_comment(table, column, &set, family, tag)
                        .map_err(|e| failed(&e))?;
                    sql.extend_from_slice(parts.join(", ").as_bytes());
                    sql.extend_from_slice(b", ");
                }
            }
            DdlPiece::Definitions(i) => {
                let column = columns.get(*i).ok_or_else(internal)?;
                let mut parts =
                    physical_definitions(column, &set, family, tag).map_err(|e| failed(&e))?;
                if ddl.temporary.is_some() {
                    // InnoDB has no full-text indexes on temporary tables: LIKE opens all rows there
                    parts.retain(|part| !part.starts_with("FULLTEXT KEY "));
                }
                sql.extend_from_slice(parts.join(", ").as_bytes());
            }
            DdlPiece::Add { column, place } => {
                let column = columns.get(*column).ok_or_else(internal)?;
                let place = match place {
                    None => Position::Last,
                    Some(None) => Position::First,
                    Some(Some(name)) => {
                        let table = ddl.table.as_deref().ok_or_else(internal)?;
                        match table.column(name) {
                            Some(after) => Position::After(after),
                            None => {
                                return Err(Failure::refused(
                                    &errors::UNKNOWN_COLUMN,
                                    format!("'{name}'"),
                                ));
                            }
                        }
                    }
                };
                let parts =
                    alter::add_column(column, place, &set, family, tag).map_err(|e| failed(&e))?;
                sql.extend_from_slice(parts.join(", ").as_bytes());
            }
            DdlPiece::Present(_) | DdlPiece::KeyTooLong => {}
            DdlPiece::AliasMarks(marks) => {
                let alias = Alias {
                    name: &marks.name,
                    original: &marks.original,
                    ids: marks.ids,
                };
                for mark in alias.marks(tag) {
                    let value = if marks.listed { "" } else { "NULL AS " };
                    let mark = onionskin_schema::identifier(&mark);
                    sql.extend_from_slice(format!(", {value}{mark}").as_bytes());
                }
            }
            // see `with_index_names`
            DdlPiece::IndexName { base, .. } => {
                sql.extend_from_slice(onionskin_schema::identifier(base).as_bytes());
            }
            DdlPiece::IndexColumn(i) => {
                let column = columns.get(*i).ok_or_else(internal)?;
                let name = column.index_column_name().map_err(|e| failed(&e))?;
                sql.extend_from_slice(onionskin_schema::identifier(&name).as_bytes());
            }
            DdlPiece::PrefixLengths(lengths) => {
                let mut named = Vec::new();
                for (column, length) in lengths {
                    let name = match column {
                        Prefixed::Existing(name) => name.clone(),
                        Prefixed::New(i) => {
                            let column = columns.get(*i).ok_or_else(internal)?;
                            column.index_column_name().map_err(|e| failed(&e))?
                        }
                    };
                    named.push((name, *length));
                }
                let comment = onionskin_schema::prefix_comment(&named).ok_or_else(internal)?;
                sql.extend_from_slice(format!("COMMENT '{comment}' ").as_bytes());
            }
            DdlPiece::Drop(i) => {
                let (table, column) = existing(*i)?;
                let parts = alter::drop_column(table, column).map_err(|e| failed(&e))?;
                sql.extend_from_slice(parts.join(", ").as_bytes());
            }
            DdlPiece::Rename(i, name) => {
                let (table, column) = existing(*i)?;
                let parts = alter::rename_column(table, column, name, &set, family, tag)
                    .map_err(|e| failed(&e))?;
                sql.extend_from_slice(parts.join(", ").as_bytes());
            }
            DdlPiece::SetDefault(i, default) => {
                let (table, column) = existing(*i)?;
                let parts = alter::set_default(table, column, default.as_ref(), &set, family, tag)
                    .map_err(|e| failed(&e))?;
                sql.extend_from_slice(parts.join(", ").as_bytes());
            }
        }
    }
    Ok(sql)
}

/// The physical definition for a logical `CREATE TABLE`, with ids of its own: columns that the policy names are protected.
///
/// It is what the proxy would send for the statement in `database`, where tables get the collation `default_collation`
/// unless they name one. The error is the text that a client would get.
pub fn physical_create_table(
    sql: &str,
    database: &str,
    default_collation: &str,
    policy: &Policy,
    (keys, suite): (&KeySet, Suite),
    like_index: bool,
    family: Family,
) -> Result<PhysicalTable, String> {
    let lex = LexMode::default();
    let mut template = Template::default();
    template
        .read(sql.as_bytes(), lex)
        .map_err(|e| e.to_string())?;
    let settings = Settings {
        family,
        lex,
        database: Some(database.to_owned()),
        strict: true,
        high_not: false,
        found_rows: false,
        default_collation: default_collation.to_owned(),
        charset_collations: String::new(),
        scratch: UseScratch::Never,
    };
    let request = Request {
        sql: sql.as_bytes(),
        template: &template,
        settings: &settings,
        catalog: &NoTables,
        policy,
    };
    match onionskin_plan::plan(&request) {
        PlanOutcome::Plan(plan) => match &plan.action {
            Action::Relay => Ok(PhysicalTable {
                sql: sql.to_owned(),
                columns: Vec::new(),
            }),
            Action::Define(ddl) => {
                let grams = keeps_grams(like_index, family);
                let columns = with_ids(ddl, keys, suite, grams);
                let text = definition_text(ddl, &columns, family, keys.metadata_key()).map_err(
                    |failure| match failure {
                        Failure::Refused(refusal) => refusal.message(),
                        other => format!("{other:?}"),
                    },
                )?;
                let sql = String::from_utf8(text).map_err(|e| e.to_string())?;
                Ok(PhysicalTable { sql, columns })
            }
            Action::Refuse(refusal) => Err(refusal.message()),
            _ => Err("this is no definition of a table".into()),
        },
        PlanOutcome::Need(_) => Err("this refers to other tables".into()),
    }
}

/// A table that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct PhysicalTable {
    /// CREATE TABLE.
    pub sql: String,
    /// Its protected columns, with their ids.
    pub columns: Vec<NewColumn>,
}

/// A schema without tables: the one that is defined is the only one there is.
struct NoTables;

impl Catalog for NoTables {
    fn table(&self, _: &str, _: &str) -> Known {
        Known::Absent
    }
}
