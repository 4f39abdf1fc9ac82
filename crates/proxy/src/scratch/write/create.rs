//! `CREATE TABLE … SELECT`: the scratch engine runs the statement for a temporary table. The
//! definition and the rows of that become those of the new table.
//!
//! All that can be wrong with the statement shows itself before anything is created. A server makes
//! such a table and fills it in one step. Here it is a definition and a transaction. If the second
//! fails, the table that the first has made is dropped. It is known by the ids in its columns, and
//! looked at under a lock, so that a table stays that somebody else has put in its place.

use std::ops::Range;
use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{NewTable, ScratchWrite, errors, lex};
use onionskin_schema::{Table, TableName, same_name, selected_definition};
use onionskin_value::{Charset, Family, Level, Warning};

use super::super::engine::{Engine, ours};
use super::super::tables::quoted;
use super::super::{Parameters, renamed_part};
use super::rows::{Inserted, NEW};
use super::{Change, Finished, Frame, names_of, run_there};
use crate::bind::Values;
use crate::catalog::KeyedPlan;
use crate::copy::Defined;
use crate::diagnostics::Diagnostics;
use crate::error::{Failure, Outcome};
use crate::exchange::Done;
use crate::session::Session;

/// "Table already exists".
const EXISTS: u16 = 1050;
/// A key was cut to what the temporary table's engine can have.
const KEY_TOO_LONG: u16 = 1071;
/// What a server says of the engine that a definition names: it takes another, or knows none of
/// that name.
const OF_ENGINES: [&[u8]; 2] = [b"1266", b"1286"];

/// What the scratch engine has made of the statement.
struct Run {
    done: Done,
    diagnostics: Diagnostics,
    /// The new table's columns, in order.
    columns: Vec<String>,
    /// The one that counts rows by itself.
    counter: Option<String>,
    /// The definition for the server.
    defined: Defined,
}

/// A table that was created and not filled yet.
struct Made {
    /// The table's id, which is random, and the names of its columns. A table without protected
    /// columns has no id.
    is: (Option<[u8; 8]>, Vec<String>),
}

impl Session {
    /// Runs the statement and answers the client.
    pub(super) fn create_select(
        &mut self,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        new: &NewTable,
        values: Values,
        parameters: Option<Parameters>,
    ) -> Outcome<()> {
        if self.locked_tables {
            return Err(NotUnderstood::Under("CREATE TABLE … SELECT", "LOCK TABLES").into());
        }
        self.current.interfered = true;
        if !new.temporary {
            self.must_reach_all_nodes()?;
        }
        if !new.temporary && self.is_hidden(new)? {
            // the rows would go into that one
            return Err(NotUnderstood::BehindTemporary.into());
        }
        let mut change = Change::new(self)?;
        if !new.temporary {
            // as every definition does
            self.quietly(b"COMMIT AND NO CHAIN NO RELEASE")?;
            if !new.or_replace && self.is_there(new)? {
                return self.already_there(new);
            }
            change.frame = Frame::Transaction;
        }
        let mut made = None;
        let done = self.with_engine(&write.scratch, |session, engine| {
            let done = session.make_and_fill(
                engine,
                keyed,
                write,
                new,
                values,
                parameters,
                &mut change,
                &mut made,
            );
            // an engine that has failed is not used again
            let dropped = engine.put(drop_there(new).as_bytes());
            let done = done.and_then(|done| dropped.map(|()| done));
            match done.and_then(|done| session.keep_change(&change).map(|()| done)) {
                Ok(finished) => Ok(finished),
                Err(failure) => Err(session.take_back(failure, &change)?),
            }
        });
        let finished = match (done, &made) {
            (Ok(finished), _) => finished,
            (Err(Failure::Server { code: EXISTS, .. }), None) if new.if_absent => {
                return self.already_there(new);
            }
            (Err(failure), None) => return Err(failure),
            (Err(failure), Some(made)) => {
                if !failure.is_fatal() {
                    self.drop_made(new, made, keyed)?;
                }
                return Err(failure);
            }
        };
        self.diagnostics = finished.diagnostics;
        self.diagnostics.hides_servers = true;
        self.write_done(&finished.done)?;
        self.after_relay(keyed)
    }

    #[allow(clippy::too_many_arguments)] // a statement and what it is run with
    fn make_and_fill(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        new: &NewTable,
        values: Values,
        parameters: Option<Parameters>,
        change: &mut Change,
        made: &mut Option<Made>,
    ) -> Outcome<Finished> {
        let Run {
            mut done,
            mut diagnostics,
            columns,
            counter,
            defined,
        } = self.run_for_definition(engine, keyed, write, new, values, parameters, change)?;
        let names = &keyed.plan.names;
        let table = self.make_table(new, &defined, names, &mut diagnostics, made)?;
        if !new.temporary {
            // the definition has ended the transaction in which the rows were read
            self.quietly(change.begin())?;
        }
        let rows = new.rows(Arc::new(table), &columns)?;
        let order = counter.map_or(String::new(), |c| format!(" ORDER BY {}", quoted(&c)));
        let texts: Vec<&str> = rows.columns.iter().map(|c| c.text.as_str()).collect();
        let query = format!(
            "SELECT {} FROM {}{order}",
            texts.join(", "),
            table_there(new)
        );
        let question = engine.server.put_query(query.as_bytes()).map_err(ours)?;
        engine.settle()?;
        let mut inserted = Inserted {
            prepared: parameters.is_some(),
            ..Inserted::default()
        };
        let ignore = if new.ignore { "IGNORE " } else { "" };
        let head = format!("INSERT {ignore}INTO {}", full_name(new));
        // all there is to say of the rows has been said
        let mut unheard = Diagnostics::default();
        let head = head.as_bytes();
        let filled = self.insert_batches(
            question,
            engine,
            &rows,
            head,
            b"",
            &mut inserted,
            &mut unheard,
        );
        if filled.is_err() {
            engine.give_up()?;
        }
        filled?;
        if inserted.affected != inserted.records {
            let about = "not all rows of a new table were written";
            return Err(Failure::refused(&errors::INTERNAL, about));
        }
        done.last_insert_id = self.keep_insert_id(&inserted, false)?;
        diagnostics.found_rows = Some(inserted.records);
        // warnings are counted where all are known
        let info = String::from_utf8_lossy(&done.info).into_owned();
        if let Some((head, _)) = info.split_once("Warnings: ") {
            done.info = format!("{head}Warnings: 0").into_bytes();
        }
        done.warnings = 0;
        Ok(Finished { done, diagnostics })
    }

    /// Runs the statement on the scratch engine and makes a definition of its result. Nothing has
    /// changed at the server yet.
    #[allow(clippy::too_many_arguments)] // a statement and what it is run with
    fn run_for_definition(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        new: &NewTable,
        values: Values,
        parameters: Option<Parameters>,
        change: &mut Change,
    ) -> Outcome<Run> {
        let family = self.state.family;
        let settings = self.read_tables(engine, keyed, &write.scratch, values, Some(change))?;
        let text = self.text_there(write, new, values.sql)?;
        engine.need_database(&new.database)?;
        engine.put(drop_there(new).as_bytes())?;
        engine.share(&settings)?;
        let ran = run_there(engine, &text, parameters, &names_of(write));
        let (done, diagnostics) = ran.map_err(|failure| self.as_the_server_fails(failure))?;
        if diagnostics.warnings.iter().any(|w| w.code == KEY_TOO_LONG) {
            let about = format!("{}.{}, a long key", new.database, new.name);
            return Err(Failure::refused(&errors::SCRATCH_TYPE, about));
        }
        engine.load_again()?;
        engine.settle()?;
        let shown = format!("SHOW CREATE TABLE {}", table_there(new));
        let shown = engine.server.rows(shown.as_bytes()).map_err(ours)?;
        let bad = || Failure::refused(&errors::INTERNAL, "the definition of a new table");
        let shown = shown
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().nth(1));
        let shown = String::from_utf8(shown.flatten().unwrap_or_default()).map_err(|_| bad())?;
        let tokens = lex::tokens(values.sql, self.state.lex_mode()).map_err(|_| bad())?;
        let options = values.sql.get(bytes(&tokens, new.options));
        let options = std::str::from_utf8(options.unwrap_or_default()).map_err(|_| bad())?;
        let head = format!(
            "CREATE {}{}TABLE {}",
            if new.or_replace { "OR REPLACE " } else { "" },
            if new.temporary { "TEMPORARY " } else { "" },
            full_name(new)
        );
        let made = selected_definition(&shown, NEW, &head, &new.encrypted, options, family);
        let made = made.map_err(|e| Failure::refused(&errors::DEFINITION, e.to_string()))?;
        self.check_text(made.sql.as_bytes())?;
        let defined = self.plan_definition(
            &made.sql,
            "the definition of a new table",
            &made.derived_charset,
            &[],
        )?;
        let is_protected = |name: &str| {
            let mut protected = defined.protected.iter();
            protected.any(|c| same_name(&c.name, name))
        };
        new.check(&made.columns, is_protected)?;
        Ok(Run {
            done,
            diagnostics,
            columns: made.columns,
            counter: made.counter,
            defined,
        })
    }

    /// The statement for the scratch engine.
    fn text_there(&self, write: &ScratchWrite, new: &NewTable, sql: &[u8]) -> Outcome<Vec<u8>> {
        let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
        let tokens = lex::tokens(sql, self.state.lex_mode()).map_err(|_| bad())?;
        let mut out = format!("CREATE TEMPORARY TABLE {} ", table_there(new)).into_bytes();
        if let Some(list) = new.list {
            let list = bytes(&tokens, list);
            let mut at = list.start;
            out.push(b'(');
            for &cut in &new.cut {
                let cut = bytes(&tokens, cut);
                out.extend_from_slice(sql.get(at..cut.start).ok_or_else(bad)?);
                at = cut.end;
            }
            out.extend_from_slice(sql.get(at..list.end).ok_or_else(bad)?);
            out.extend_from_slice(b") ");
        }
        let engine = match self.state.family {
            // it keeps rows in their order, and in the place of temporary files
            Family::MariaDb => "MyISAM",
            Family::MySql => "InnoDB",
        };
        let collation = &new.collation;
        let charset = collation.split('_').next().unwrap_or_default();
        let duplicates = match (new.ignore, new.replaces) {
            (true, _) => " IGNORE",
            (_, true) => " REPLACE",
            _ => "",
        };
        let options = format!(
            "ENGINE={engine} DEFAULT CHARACTER SET {charset} COLLATE {collation}{duplicates} AS "
        );
        out.extend_from_slice(options.as_bytes());
        self.check_text(&out)?;
        let query = bytes(&tokens, new.query);
        out.extend_from_slice(&renamed_part(sql, &tokens, &write.scratch, query)?);
        Ok(out)
    }

    /// Refuses a text of the proxy's own, in UTF-8, that a server would read as something else.
    fn check_text(&self, text: &[u8]) -> Outcome<()> {
        let is_utf8 = matches!(
            self.state.client_charset,
            Some(Charset::Utf8mb4 | Charset::Utf8mb3)
        );
        match is_utf8 || text.is_ascii() {
            true => Ok(()),
            false => Err(Failure::refused(
                &errors::CHARACTER_SET,
                "names beyond ASCII in CREATE TABLE … SELECT",
            )),
        }
    }

    /// Creates the table, empty, and says what the server shows of it.
    fn make_table(
        &mut self,
        new: &NewTable,
        defined: &Defined,
        names: &[TableName],
        diagnostics: &mut Diagnostics,
        made: &mut Option<Made>,
    ) -> Outcome<Table> {
        // before the server has it: what is asked about it must not come from a shared snapshot
        let expected = defined.temporary.as_ref();
        let before = expected.map(|name| (name, self.expect_temporary(name)));
        let done = self.server.run(&defined.text);
        let id = defined.protected.first().map(|c| c.table_id);
        if done.is_ok() {
            let is = (id, Vec::new());
            *made = Some(Made { is });
        }
        self.live.forget(names);
        if done.is_err()
            && let Some((name, known)) = before
        {
            self.account.give_up_temporary(name, known);
        }
        if done?.warnings > 0 {
            let mut shown = self.server.rows(b"SHOW WARNINGS")?;
            let is_kept = |code: Option<&[u8]>| code.is_some_and(|c| OF_ENGINES.contains(&c));
            shown.retain(|row| is_kept(row.get(1).and_then(Option::as_deref)));
            let count = u16::try_from(shown.len()).unwrap_or(u16::MAX);
            diagnostics.keep(&shown, count);
        }
        if self.account.is_private() {
            // the answer that there is to come is the client's statement's
            self.diagnostics.row_count = Some(0);
            self.refresh_temporary()?;
        }
        let table = self.shown_table(&name_of(new))?.ok_or(Failure::Stale)?;
        if table.table_id != id {
            return Err(Failure::Stale);
        }
        if let Some(made) = made {
            made.is.1 = names_of_columns(&table);
        }
        self.look_up(names)?;
        Ok(table)
    }

    /// Drops the table that was made. What has become another's meanwhile stays.
    fn drop_made(&mut self, new: &NewTable, made: &Made, keyed: &KeyedPlan) -> Outcome<()> {
        let name = full_name(new);
        if new.temporary {
            self.tried(format!("DROP TEMPORARY TABLE {name}").as_bytes())?;
        } else {
            let locked = self.tried(format!("LOCK TABLES {name} WRITE").as_bytes())?;
            let shown = match self.shown_table(&name_of(new)) {
                Err(Failure::Server { .. }) => {
                    self.server.settle()?;
                    None
                }
                shown => shown?,
            };
            let is_ours = |table: Table| {
                let (id, columns) = &made.is;
                let known = !columns.is_empty() && names_of_columns(&table) == *columns;
                // an id is random; a plain table is known by its columns only
                table.table_id == *id && (known || (id.is_some() && columns.is_empty()))
            };
            // rows that are there, though ours were taken back, are another's
            if locked && shown.is_some_and(is_ours) && self.has_no_rows_of_others(new)? {
                let dropped = self.tried(format!("DROP TABLE {name}").as_bytes())?;
                if !dropped {
                    tracing::warn!(
                        database = new.database,
                        table = new.name,
                        "a table that could not be filled could not be dropped either"
                    );
                }
            }
            if locked {
                self.server.run_to_its_end(b"UNLOCK TABLES")?;
            }
        }
        self.diagnostics.row_count = Some(0);
        self.after_relay(keyed)?;
        self.diagnostics.clear();
        Ok(())
    }

    /// Whether a table that could not be filled may be dropped. It may if it has no rows, or if its
    /// engine has no transactions: then its rows are ours.
    fn has_no_rows_of_others(&mut self, new: &NewTable) -> Outcome<bool> {
        let first = format!("SELECT 1 FROM {} LIMIT 1", full_name(new));
        let text = |name: &str| {
            let mut text = Vec::new();
            crate::hex::put_hex(name.as_bytes(), &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        let engine = format!(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = CONVERT({} USING utf8mb4) AND table_name = CONVERT({} USING utf8mb4) AND engine = 'InnoDB' LIMIT 1",
            text(&new.database),
            text(&new.name)
        );
        for question in [first, engine] {
            match self.server.rows(question.as_bytes()) {
                Ok(rows) if rows.is_empty() => return Ok(true),
                Ok(_) => {}
                Err(failure) if failure.is_fatal() => return Err(failure),
                Err(_) => {
                    self.server.settle()?;
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Runs a statement without rows; whether it succeeds.
    fn tried(&mut self, sql: &[u8]) -> Outcome<bool> {
        match self.quietly(sql) {
            Ok(()) => Ok(true),
            Err(Failure::Server { .. }) => {
                self.server.settle()?;
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Runs a statement without rows.
    fn quietly(&mut self, sql: &[u8]) -> Outcome<()> {
        self.server.run(sql).map(|_| ())
    }

    /// Whether there is a table of that name, as far as this user sees.
    fn is_there(&mut self, new: &NewTable) -> Outcome<bool> {
        let text = |name: &str| {
            let digits: String = name.bytes().map(|b| format!("{b:02x}")).collect();
            format!("_utf8mb4 X'{digits}'")
        };
        let question = format!(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND TABLE_TYPE NOT LIKE '%TEMPORARY%'",
            text(&new.database),
            text(&new.name)
        );
        Ok(!self.server.rows(question.as_bytes())?.is_empty())
    }

    /// Whether a temporary table of this session has the name.
    fn is_hidden(&mut self, new: &NewTable) -> Outcome<bool> {
        let question = format!("SHOW CREATE TABLE {}", full_name(new));
        let shown = match self.server.rows(question.as_bytes()) {
            Err(Failure::Server { .. }) => {
                self.server.settle()?;
                Vec::new()
            }
            shown => shown?,
        };
        let definition = shown.first().and_then(|row| row.get(1));
        let definition = definition.and_then(Option::as_deref);
        Ok(definition.is_some_and(|text| text.starts_with(b"CREATE TEMPORARY")))
    }

    /// The answer where the table is there already.
    fn already_there(&mut self, new: &NewTable) -> Outcome<()> {
        let message = format!("Table '{}' already exists", new.name);
        if !new.if_absent {
            return Err(Failure::Server {
                code: EXISTS,
                state: *b"42S01",
                message: message.into_bytes(),
            });
        }
        self.diagnostics.clear();
        if self.state.keeps_notes() {
            self.diagnostics.warnings.push(Warning {
                level: Level::Note,
                code: EXISTS,
                message,
            });
        }
        self.diagnostics.hides_servers = true;
        self.write_done(&Done::default())
    }
}

/// The bytes of tokens: from the first to the one before the second.
fn bytes(tokens: &[lex::Token], (from, to): (usize, usize)) -> Range<usize> {
    let tokens = tokens.get(from..to).unwrap_or_default();
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    }
}

fn name_of(new: &NewTable) -> TableName {
    TableName::new(&new.database, &new.name)
}

fn full_name(new: &NewTable) -> String {
    format!("{}.{}", quoted(&new.database), quoted(&new.name))
}

/// The scratch engine's table.
fn table_there(new: &NewTable) -> String {
    format!("{}.{}", quoted(&new.database), quoted(NEW))
}

fn drop_there(new: &NewTable) -> String {
    format!("DROP TEMPORARY TABLE IF EXISTS {}", table_there(new))
}

fn names_of_columns(table: &Table) -> Vec<String> {
    let columns = table.columns.iter();
    columns.map(|c| c.name.clone()).collect()
}
