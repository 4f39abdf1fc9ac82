//! Definitions: ids and authentication tags are made, the text is sent.

use onionskin_keys::KeySet;
use onionskin_physical::{definition_text, with_ids};
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{COLLATION, Catalog, Ddl, DdlPiece, Known, Redefined, errors};
use onionskin_schema::{NewColumn, TableName, check_named, same_name};
use onionskin_value::{Family, Kind, Level, Warning};

use crate::catalog::{KeyedPlan, default_collations, literal};
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};
use crate::refill::Refill;
use crate::server_errors::{DEPRECATED_SYNTAX, DUPLICATE_INDEX, NO_EXPRESSION_AS_DEFAULT};
use crate::session::Session;

/// MySQL's note about the width of a number.
const WIDTH: &str = "Integer display width is deprecated and will be removed in a future release.";

const DIGITS: &str = "Specifying number of digits for floating point data types is deprecated and will be removed in \
                      a future release.";

/// Whether a note is about how a definition is written. The copy of a table is not written.
fn is_about_a_text(code: u16, message: &[u8]) -> bool {
    code == DUPLICATE_INDEX || code == DEPRECATED_SYNTAX && message == WIDTH.as_bytes()
}

/// What MySQL says of the copies of columns, of which it looks at the types.
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
            (ty.digits.is_some(), DIGITS),
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
    pub fn define(&mut self, ddl: &Ddl, keyed: &KeyedPlan) -> Outcome<()> {
        self.define_over(ddl, keyed, None)
    }

    /// The same, where rows of protected columns are carried over to the new definition.
    pub(crate) fn define_over(
        &mut self,
        ddl: &Ddl,
        keyed: &KeyedPlan,
        refill: Option<&mut Refill<'_>>,
    ) -> Outcome<()> {
        let spelled = self.with_spelled_defaults(ddl)?;
        let ddl = spelled.as_ref().unwrap_or(ddl);
        if ddl.rests_on_keys {
            self.must_keep_keys(ddl)?;
        }
        self.must_be_only_key(ddl)?;
        self.must_look_at_keys(ddl)?;
        self.must_be_of_database(ddl)?;
        let marks = self.marks_before(ddl)?;
        let locked = self.lock_set(ddl, keyed)?;
        if locked.is_none() {
            // behind the lock all was looked up again, and compared
            self.must_be_todays(ddl, &keyed.plan.names)?;
        }
        let done = self.define_locked(ddl, keyed, refill);
        if done.is_ok() && !marks.is_empty() {
            self.mark_afterwards(&marks, &keyed.plan.names)?;
        }
        self.unlock_set(locked, &done, keyed)?;
        done
    }

    /// Refuses a definition that leaves columns in plaintext because of foreign keys which the
    /// table's engine would not keep.
    fn must_keep_keys(&mut self, ddl: &Ddl) -> Outcome<()> {
        let question = match (&ddl.table, self.state.family) {
            (Some(table), _) => format!(
                "SELECT CAST(ENGINE AS BINARY) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                literal(&table.database),
                literal(&table.name)
            ),
            (None, Family::MariaDb) => {
                "SELECT @@default_storage_engine, COALESCE(@@enforce_storage_engine, 'InnoDB')"
                    .into()
            }
            (None, Family::MySql) => "SELECT @@default_storage_engine".to_owned(),
        };
        let rows = self.server.rows(question.as_bytes())?;
        let is_innodb = |cell: &Option<Vec<u8>>| {
            cell.as_deref()
                .is_some_and(|name| name.eq_ignore_ascii_case(b"InnoDB"))
        };
        match !rows.is_empty() && rows.iter().flatten().all(is_innodb) {
            true => Ok(()),
            false => {
                let about = "a foreign key of a wildcard's column in a table that is not InnoDB's, which would not keep it";
                Err(Failure::refused(&errors::FOREIGN_KEY, about))
            }
        }
    }

    /// Looks at the default collations that new texts of a definition have. Nobody tells when
    /// somebody else changes one.
    fn must_be_todays(&mut self, ddl: &Ddl, names: &[TableName]) -> Outcome<()> {
        if !follows_default(ddl) {
            return Ok(());
        }
        let known = self.known_defaults(names);
        let names: Vec<&TableName> = defaults_among(names).collect();
        let present = default_collations(&mut self.server, &names)?;
        for ((name, known), present) in names.iter().zip(known).zip(present) {
            if present.map(|table| table.name) != known {
                self.shared.accounts.forget(&[(*name).clone()]);
                return Err(Failure::Stale);
            }
        }
        Ok(())
    }

    /// What is known of the default collations among these names.
    pub(crate) fn known_defaults(&self, names: &[TableName]) -> Vec<Option<String>> {
        let known = |name: &TableName| match self.account.table(&name.database, &name.name) {
            Known::Table(known) => Some(known.name.clone()),
            _ => None,
        };
        defaults_among(names).map(known).collect()
    }

    /// Refuses texts with the collation of the session's database, if the server would give them
    /// another one. MariaDB goes by what that was when the session selected the database.
    pub(crate) fn must_be_of_database(&mut self, ddl: &Ddl) -> Outcome<()> {
        let Some(found) = &ddl.of_database else {
            return Ok(());
        };
        let present = self.state.database.as_deref();
        let is_present = present.is_some_and(|present| same_name(present, &found.database));
        if self.state.family == Family::MySql || !is_present {
            return Ok(());
        }
        if self.state.present_collation.is_none() {
            let rows = self.server.rows(b"SELECT @@collation_database LIMIT 1")?;
            let name = rows.into_iter().flatten().flatten().next();
            self.state.present_collation =
                name.map(|name| String::from_utf8_lossy(&name).into_owned());
        }
        let present = self.state.present_collation.as_deref();
        match present.is_some_and(|name| name.eq_ignore_ascii_case(&found.collation)) {
            true => Ok(()),
            false => Err(NotUnderstood::CollationOfDatabase.into()),
        }
    }

    /// Refuses a foreign key to a table that is not there, where the server would take it.
    fn must_look_at_keys(&mut self, ddl: &Ddl) -> Outcome<()> {
        let missing = ddl.pieces.iter().find_map(|piece| match piece {
            DdlPiece::MissingReference(about) => Some(about),
            _ => None,
        });
        let Some(about) = missing else {
            return Ok(());
        };
        let rows = self.server.rows(b"SELECT @@foreign_key_checks")?;
        let cell = rows.first().and_then(|row| row.first()?.as_deref());
        match cell == Some(b"1") {
            true => Ok(()),
            false => Err(Failure::refused(&errors::FOREIGN_KEY, about.clone())),
        }
    }

    fn define_locked(
        &mut self,
        ddl: &Ddl,
        keyed: &KeyedPlan,
        refill: Option<&mut Refill<'_>>,
    ) -> Outcome<()> {
        let config = &self.shared.config;
        let mut columns = with_ids(
            ddl,
            &config.keys,
            config.suite,
            config.keeps_grams(self.state.family),
        );
        must_know_tenants(&columns, &config.keys)?;
        if let Some(refill) = refill {
            self.carry_rows(refill, &mut columns)?;
        }
        self.fill_rows(ddl, &mut columns)?;
        check_references(ddl, &columns)?;
        let key = self.shared.config.keys.metadata_key();
        let mut sql = definition_text(ddl, &columns, self.state.family, key)?;
        let told;
        let mut ddl = ddl;
        if ddl.pieces.iter().any(drops_constraint) {
            told = self.with_dropped_checks(ddl)?;
            ddl = &told;
            let key = self.shared.config.keys.metadata_key();
            sql = definition_text(ddl, &columns, self.state.family, key)?;
        }
        let unnamed = |piece: &DdlPiece| matches!(piece, DdlPiece::IndexName { .. });
        if ddl.pieces.iter().any(unnamed) {
            let known = self.names_of_indexes(ddl)?;
            let key = self.shared.config.keys.metadata_key();
            let named = with_index_names(ddl, &known);
            sql = definition_text(&named, &columns, self.state.family, key)?;
        }
        self.diagnostics.warnings = columns.iter().flat_map(|c| c.deprecated.clone()).collect();
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
        self.send_definition(&sql, ddl.temporary.as_ref(), &keyed.plan.names)
    }

    /// The definition with what its DROP CONSTRAINT means for protected columns. The server's text
    /// of the table tells which column a constraint is over.
    fn with_dropped_checks(&mut self, ddl: &Ddl) -> Outcome<Ddl> {
        let mut ddl = ddl.clone();
        let Some(table) = ddl.table.clone() else {
            return Ok(ddl);
        };
        let sql = format!(
            "SHOW CREATE TABLE {}.{}",
            onionskin_schema::identifier(&table.database),
            onionskin_schema::identifier(&table.name)
        );
        let rows = self.server.rows(sql.as_bytes())?;
        let text = rows.first().and_then(|row| row.get(1)?.as_deref());
        let text = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
        self.must_be_exact(&text)?;
        let mut changed = Vec::new();
        for piece in &mut ddl.pieces {
            let index = match piece {
                DdlPiece::DroppedConstraint(name) => {
                    let Some((index, number)) = check_named(&text, &table, name) else {
                        continue;
                    };
                    *piece = DdlPiece::ForgetCheck(index, number);
                    index
                }
                DdlPiece::Drop(index)
                | DdlPiece::SetDefault(index, _)
                | DdlPiece::Redefine(Redefined { index, .. }) => *index,
                _ => continue,
            };
            if changed.contains(&index) {
                let about = "two changes of a protected column with a CHECK";
                return Err(Failure::refused(&errors::ALTERATION, about));
            }
            changed.push(index);
        }
        Ok(ddl)
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

    /// Sends a definition and relays the server's answer. `temporary` is the temporary table that
    /// it makes.
    pub(crate) fn send_definition(
        &mut self,
        sql: &[u8],
        temporary: Option<&TableName>,
        names: &[TableName],
    ) -> Outcome<()> {
        self.answer_definition(sql, temporary, names, |session, question| {
            session.relay_answer(question, &[])
        })
    }

    /// Sends the definition of a copy, and answers without the notes about it: CREATE TABLE … LIKE
    /// has none.
    pub(crate) fn send_copy(
        &mut self,
        sql: &[u8],
        temporary: Option<&TableName>,
        names: &[TableName],
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
        temporary: Option<&TableName>,
        names: &[TableName],
        answer: impl FnOnce(&mut Self, Question) -> Outcome<()>,
    ) -> Outcome<()> {
        // before the server has it: what is asked about it must not come from a shared snapshot
        let before = temporary.map(|name| (name, self.expect_temporary(name)));
        let question = self.server.put_query(sql)?;
        self.server.flush()?;
        let done = answer(self, question);
        // whatever the answer, what was known is not certain any more
        self.live.forget(names);
        let done = match done {
            Err(Failure::Server {
                code: NO_EXPRESSION_AS_DEFAULT,
                ..
            }) => {
                let about = "a default that is an expression, or a column that was added with a value for the rows, in a table whose engine takes none: InnoDB and MyISAM do";
                Err(Failure::refused(&errors::ALTERATION, about))
            }
            done => done,
        };
        match (before, &done) {
            (None, _) => {}
            (Some(_), Ok(())) => self.refresh_temporary()?,
            (Some((name, known)), Err(_)) => self.account.give_up_temporary(name, known),
        }
        done
    }
}

/// Whether a new text has the default collation of its table or database.
pub(crate) fn follows_default(ddl: &Ddl) -> bool {
    let follows = |c: &NewColumn| c.sql_type.collation.is_some() && !c.explicit_collation;
    ddl.new_columns.iter().any(follows)
}

/// The names that ask for default collations.
fn defaults_among(names: &[TableName]) -> impl Iterator<Item = &TableName> {
    names.iter().filter(|name| name.name.starts_with(COLLATION))
}

/// The definition with names for its indexes that have none. Such a name is the column's. If that
/// is taken, the first free number from 2 on is added.
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

fn drops_constraint(piece: &DdlPiece) -> bool {
    matches!(piece, DdlPiece::DroppedConstraint(_))
}

/// Refuses KEY BY where there is no file of the tenants' secrets: no row could be written.
pub(crate) fn must_know_tenants(columns: &[NewColumn], keys: &KeySet) -> Outcome<()> {
    let mut columns = columns.iter();
    let column = columns.find(|column| column.capabilities.tenant.is_some());
    match column {
        Some(column) if keys.tenant_names().is_none() => {
            Err(Failure::refused(&errors::NO_TENANTS, &column.name))
        }
        _ => Ok(()),
    }
}

/// Refuses new columns whose tokens would be compared with tokens under another key. New columns
/// get tokens under the key of today.
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
