//! Tier 3: rows are read from the server, opened, and taken to the scratch engine. The statement
//! runs there as it stands.
//!
//! The server sees the reads of the plan and nothing of the statement: only the scratch engine gets
//! its text. The reads run in the client's own session, with its rights, its transaction and its
//! locks. Several tables outside of a transaction are read in a transaction of their own, from one
//! snapshot. The rows never lie in the proxy as a whole: they become `INSERT` statements of half a
//! megabyte as they come.
//!
//! | file | holds |
//! |---|---|
//! | `constants` | constant expressions meant for protected columns |
//! | `definition` | what the engine says of a table that cannot be as it is defined |
//! | `documents` | which plain texts are JSON to MariaDB |
//! | `engine` | the session at the scratch engine |
//! | `reads` | the statements that read the tables |
//! | `settings` | what of the client's session it must share |
//! | `spelling` | expressions behind DEFAULT, as the server spells them |
//! | `tables` | temporary tables, rows as literals |
//! | `united` | several tables in one statement, below REPEATABLE READ |
//! | `result` | the result on its way to the client |
//! | `write` | what statements that change tables have made of the rows |

mod constants;
mod definition;
mod documents;
mod engine;
mod reads;
mod result;
mod settings;
mod spelling;
mod tables;
mod united;
mod write;

use std::ops::Range;
use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    Action, NamedBy, Outcome as PlanOutcome, Refusal, Request, Scratch, ScratchRead,
    Settings as PlanSettings, Template, UseScratch, errors, lex,
};
use onionskin_wire::Step;
use onionskin_wire::messages::Param;

pub(crate) use self::settings::question;

use self::documents::Documents;
use self::engine::gone;
use self::result::Shown;
use self::settings::Settings;
use self::tables::{Loader, definition, full_name, needs_defaults, quoted};
use self::write::Change;
use crate::bind::{Values, check_letters};
use crate::catalog::{KeyedPlan, PlanOrigin};
use crate::config::ScratchConfig;
use crate::diagnostics::{tells_of, tells_of_values};
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::metrics::Label;
use crate::open;
use crate::row_update::{key_kind, key_literal};
use crate::server_errors::{NO_SUCH_TABLE, WRONG_MOMENT};
use crate::session::Session;

pub(crate) use self::engine::Engine;

/// The parameters of a prepared statement's execution.
#[derive(Clone, Copy)]
pub(crate) struct Parameters<'a> {
    pub params: &'a [Param<'a>],
    /// Those that came as long data.
    pub long: &'a [Option<Vec<u8>>],
}

/// What was brought to the scratch engine.
#[derive(Default)]
struct Brought {
    rows: u64,
    bytes: u64,
}

impl Session {
    /// The engine gets literals in the place of user variables, and the session's settings of now.
    fn must_mean_the_same(&self, keyed: &KeyedPlan, values: Values) -> Outcome<()> {
        if values.has_rounded_variables(keyed) {
            let about = "a value behind USING that is compared otherwise than a literal";
            return Err(Failure::refused(&errors::DYNAMIC, about));
        }
        if !values.from_variables.is_empty() {
            check_letters(keyed, values, &self.state, |_| true)?;
        }
        if self.increment() != self.state.div_precision_increment {
            return Err(NotUnderstood::PreparedIncrement.into());
        }
        Ok(())
    }

    /// Runs a statement on the scratch engine and writes its result. `parameters` are those of a
    /// prepared one.
    pub fn scratch_query(
        &mut self,
        keyed: &KeyedPlan,
        scratch: &Scratch,
        values: Values,
        parameters: Option<Parameters>,
    ) -> Outcome<()> {
        self.must_mean_the_same(keyed, values)?;
        self.with_engine(scratch, |session, engine| {
            let settings = session.read_tables(engine, keyed, scratch, values, None)?;
            engine.share(&settings)?;
            let sql = renamed_text(values.sql, scratch, session.state.lex_mode())?;
            let done = session.scratch_result(engine, scratch, &sql, parameters);
            done.map_err(|failure| {
                session.as_the_server_fails(as_a_parameter_fails(failure, values))
            })
        })
    }

    /// The columns of a statement's result, for the answer to its preparation.
    pub fn scratch_definitions(&mut self, scratch: &Scratch, sql: &[u8]) -> Outcome<Vec<Vec<u8>>> {
        if self.locked_tables {
            // the server would look whether it has locked them under these names
            return Err(NotUnderstood::Under(
                "a query for the scratch engine that is prepared",
                "LOCK TABLES",
            )
            .into());
        }
        self.with_engine(scratch, |session, engine| {
            let server = &mut session.server;
            let asked = documents::ask(server, session.state.family, scratch, sql)?;
            server.flush()?;
            let documents = documents::answers(server, scratch, asked)?;
            let settings = settings::of_session(
                &mut session.server,
                engine,
                &session.state,
                &scratch.variables,
            )?;
            session.make_tables(engine, scratch, &documents, sql)?;
            engine.share(&settings)?;
            let sql = renamed_text(sql, scratch, session.state.lex_mode())?;
            let found = engine.definitions(&Shown::of(scratch, &session.state), &sql);
            found.map_err(|failure| session.as_the_server_fails(failure))
        })
    }

    /// What the client is told of an error of the scratch engine. It is a refusal if the server
    /// would not have the error: there may be a table at the server that the proxy does not know,
    /// which the server is asked about, and MySQL cannot open a temporary table twice.
    fn as_the_server_fails(&mut self, failure: Failure) -> Failure {
        const CANNOT_REOPEN: u16 = 1137;
        let (code, text) = match &failure {
            Failure::Server { code, message, .. } => (*code, String::from_utf8_lossy(message)),
            _ => return failure,
        };
        if code == CANNOT_REOPEN {
            return NotUnderstood::UsedTwice("a table").into();
        }
        if code != NO_SUCH_TABLE {
            return failure;
        }
        // Table 'app.users' doesn't exist
        let name = text.split('\'').nth(1).unwrap_or_default();
        if let Some((database, table)) = name.split_once('.')
            && !table.contains('.')
        {
            let probe = format!(
                "SELECT 1 FROM {}.{} LIMIT 0",
                quoted(database),
                quoted(table)
            );
            let answer = self.server.rows(probe.as_bytes());
            if matches!(answer, Err(Failure::Server { code, .. }) if code == NO_SUCH_TABLE) {
                return failure;
            }
        }
        NotUnderstood::MissingOnEngine.into()
    }

    /// Whether a statement may run on the scratch engine that was refused when its values were
    /// bound, or its rows finished. Of a statement that writes, nothing was sent yet if a value was
    /// not understood.
    pub fn scratch_may_do(&self, keyed: &KeyedPlan, refusal: &Refusal) -> bool {
        let others = [
            &errors::VALUE,
            &errors::GROUPING,
            &errors::CANDIDATES,
            &errors::TIME_ZONE,
            &errors::MEMORY,
        ];
        let by_value = refusal.is(&errors::VALUE) && !self.current.computing;
        let may = match keyed.plan.action {
            Action::Server { ref result, .. } => result.is_some() || by_value,
            Action::Finish(_) => true,
            Action::Compute { .. } => by_value,
            _ => false,
        };
        may && self.shared.config.scratch.is_some()
            && !self.current.wrote
            && (refusal.reason().is_some() || refusal.is_any(&others))
    }

    /// The plan of a statement for the scratch engine, if it can run there.
    pub fn scratch_plan(
        &mut self,
        sql: &[u8],
        template: &Template,
    ) -> Outcome<Option<Arc<KeyedPlan>>> {
        let generation = self.account.generation();
        let settings = PlanSettings {
            scratch: UseScratch::Always,
            ..self.space.settings.clone()
        };
        let outcome = onionskin_plan::plan(&Request {
            sql,
            template,
            settings: &settings,
            catalog: self.account.as_ref(),
            policy: &self.shared.config.policy,
        });
        let PlanOutcome::Plan(plan) = outcome else {
            return Ok(None);
        };
        if !matches!(plan.action, Action::Scratch(_) | Action::ScratchWrite(_)) {
            return Ok(None);
        }
        let shared = Arc::clone(&self.shared);
        let label = Label::of(&plan.action, sql);
        let named = self.named_columns(&plan, label, sql);
        let keys = &shared.config.keys;
        let origin = PlanOrigin {
            sql,
            mode: settings.lex,
            generation,
            label,
            named,
        };
        let keyed = self.account.keyed_plan(*plan, origin, keys)?;
        Ok(Some(keyed))
    }

    /// Does something with the session at the scratch engine, and cleans it. The session is made if
    /// there is none.
    fn with_engine<T>(
        &mut self,
        scratch: &Scratch,
        work: impl FnOnce(&mut Session, &mut Engine) -> Outcome<T>,
    ) -> Outcome<T> {
        let kept = self.engine.take();
        let mut engine = match kept.and_then(Engine::alive) {
            Some(engine) => engine,
            None => self.new_engine()?,
        };
        if !scratch.variables.is_empty() {
            // one that was never set is not the same as one that is NULL
            engine.forget_variables()?;
        }
        // the server has run other statements, or none, since the client's
        self.current.interfered = true;
        let done = work(self, &mut engine);
        // an error of the statement leaves the engine as it was; of any other, nobody knows
        let usable = matches!(done, Ok(_) | Err(Failure::Server { .. }));
        if usable {
            self.keep_list(&mut engine, &done, &[]);
            let tables: Vec<String> = scratch.reads.iter().map(full_name).collect();
            if engine.clean(&tables).is_ok() {
                self.engine = Some(engine);
            }
        }
        done
    }

    /// Keeps for the client what else the engine says of a statement of which it has raised the
    /// error. `names` are those that only the engine knows, each with the client's.
    fn keep_list<T>(&mut self, engine: &mut Engine, done: &Outcome<T>, names: &[(String, String)]) {
        let Err(failure) = done else { return };
        if self.current.list.is_some() || self.current.unclear {
            return;
        }
        let list = engine.give_up();
        let list = list.and_then(|()| engine.server.rows(b"SHOW WARNINGS"));
        let mut list = list.ok().filter(|list| tells_of(list, failure));
        let rows = list.iter_mut().flatten();
        for message in rows.filter_map(|row| row.get_mut(2)?.as_mut()) {
            let text = String::from_utf8_lossy(message).into_owned();
            let replaced =
                |text: String, (there, here): &(String, String)| text.replace(there, here);
            *message = names.iter().fold(text, replaced).into_bytes();
        }
        // the engine's text has none of the calls of VALUES() that MySQL warns of
        let calls =
            self.current.calls_values && self.state.family == onionskin_value::Family::MySql;
        let is_about = |row: &Vec<Option<Vec<u8>>>| {
            let cell = |n: usize| row.get(n).and_then(Option::as_deref);
            tells_of_values(cell(1), cell(2))
        };
        self.current.unclear |= calls && !list.iter().flatten().any(is_about);
        self.current.list = list;
    }

    fn new_engine(&mut self) -> Outcome<Engine> {
        let shared = Arc::clone(&self.shared);
        let config = shared.config.scratch.as_ref();
        let config = config.ok_or_else(|| gone("none is configured"))?;
        let family = self.state.family;
        let mut engine =
            Engine::connect(config, family, self.server.capabilities, self.server.form)?;
        engine.show(&self.activity);
        if self.meter.is_on() {
            engine.server.connection.measure_waits();
        }
        let kind: &[u8] = b"SELECT SUBSTRING_INDEX(VERSION(), '.', 2), @@lower_case_table_names";
        let mine = self.server.rows(kind)?;
        let its = engine.server.rows(kind).map_err(engine::ours)?;
        if its != mine {
            return Err(gone(unlike(&its, &mine)));
        }
        let here = settings::known(&mut self.server, self.state.family)?;
        engine.settle()?;
        let there = settings::known(&mut engine.server, self.state.family).map_err(engine::ours)?;
        engine.variables = here
            .into_iter()
            .filter(|v| there.contains(v) || *v == "tx_isolation" || *v == "transaction_isolation")
            .collect();
        Ok(engine)
    }

    fn bounds(&self) -> Outcome<&ScratchConfig> {
        let config = self.shared.config.scratch.as_ref();
        config.ok_or_else(|| gone("none is configured"))
    }

    /// Makes the tables, empty.
    fn make_tables(
        &self,
        engine: &mut Engine,
        scratch: &Scratch,
        documents: &[Documents],
        sql: &[u8],
    ) -> Outcome<()> {
        let (family, defaults) = (self.state.family, needs_defaults(sql));
        for (read, documents) in scratch.reads.iter().zip(documents) {
            engine.need_database(&read.table.database)?;
            engine.put(definition(read, documents, defaults, family).as_bytes())?;
        }
        if let Some(database) = &self.state.database {
            engine.enter(database)?;
        }
        engine.server.flush().map_err(engine::ours)
    }

    /// Brings the rows to the scratch engine. Returns the session's settings.
    fn read_tables(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        scratch: &Scratch,
        values: Values,
        mut change: Option<&mut Change>,
    ) -> Outcome<Settings> {
        let several = scratch.reads.len() > 1;
        let inside = self.server.in_transaction();
        let snapshot = several && !inside && !self.locked_tables && change.is_none();
        let locks = scratch.reads.iter().any(|r| !r.lock.is_empty());
        let texts = self.read_texts(keyed, scratch, values)?;
        let family = self.state.family;
        let of_documents = documents::ask(&mut self.server, family, scratch, values.sql)?;
        let asked = settings::question(&engine.variables, &scratch.variables);
        let of_settings = self.server.put_select(&asked)?;
        let changes = change.is_some();
        let begin = |session: &mut Self, engine: &mut Engine| {
            let documents = documents::answers(&mut session.server, scratch, of_documents)?;
            session.make_tables(engine, scratch, &documents, values.sql)?;
            let (server, state) = (&mut session.server, &session.state);
            settings::answer(
                server,
                of_settings,
                engine,
                state,
                &scratch.variables,
                !changes,
            )
        };
        let mut begin = Some(begin);
        let mut known = None;
        // Whether each statement has a snapshot of its own has to be known before the first reads.
        if several && inside && !changes && !self.locked_tables && !locks {
            self.server.flush()?;
            let done = match begin.take() {
                Some(begin) => begin(self, engine),
                None => Err(Failure::OutOfStep("the session's settings")),
            };
            let done = done.and_then(|settings| {
                if !settings.repeatable {
                    self.read_united(engine, keyed, scratch, values)?;
                }
                Ok(settings)
            });
            match done {
                Ok(settings) if settings.repeatable => known = Some(settings),
                Err(failure) => {
                    self.server.settle()?;
                    return Err(failure);
                }
                done => return done,
            }
        }
        let begun = self.begin_reads(change.as_deref_mut(), snapshot, locks)?;
        let mut asked = Vec::with_capacity(texts.len());
        for text in &texts {
            // of a query, the client's bound is about its reads, too
            asked.push(match changes {
                true => self.server.put_select(text)?,
                false => self.server.put_read(text)?,
            });
        }
        let mut asked = asked.into_iter();
        let mut next = || {
            asked
                .next()
                .ok_or(Failure::OutOfStep("a read that was not asked for"))
        };
        let ended = match snapshot {
            true => Some(self.server.put_query(b"COMMIT AND NO CHAIN NO RELEASE")?),
            false => None,
        };
        self.server.flush()?;
        let done = (|| {
            let settings = match (known, begin) {
                (Some(settings), _) => settings,
                (None, Some(begin)) => begin(self, engine)?,
                (None, None) => return Err(Failure::OutOfStep("the session's settings")),
            };
            self.hear_begun(begun)?;
            if !changes && several && inside && !settings.repeatable && !self.locked_tables {
                return Err(Failure::refused(
                    &errors::SCRATCH_FUNCTION,
                    "several tables in a transaction below REPEATABLE READ",
                ));
            }
            let mut brought = Brought::default();
            for read in &scratch.reads {
                let before = brought.rows;
                let keys = self.read_table(next()?, engine, keyed, read, 0, &mut brought);
                let keys = keys.map_err(|failure| as_a_parameter_fails(failure, values))?;
                let rows = brought.rows - before;
                if let Some(sql) = tables::uncounted(read, self.state.family, rows, values.sql) {
                    engine.put(sql.as_bytes())?;
                }
                if let Some(change) = &mut change {
                    change.keys.push(keys);
                }
                if tables::is_checked(read) {
                    let limited = self.server.select_limit.is_some();
                    if limited {
                        self.server.read_ok(next()?)?;
                    }
                    let columns = self.server.read_rows(next()?)?;
                    if limited {
                        self.server.read_ok(next()?)?;
                    }
                    if !tables::are_columns(read, &columns) {
                        return Err(Failure::Stale);
                    }
                }
            }
            if let Some(ended) = ended {
                self.server.read_ok(ended)?;
            }
            Ok(settings)
        })();
        match &done {
            Err(failure) if !failure.is_fatal() => {
                self.end_reading(snapshot, scratch)?;
                done
            }
            _ => done,
        }
    }

    /// Reading has failed. What was sent is answered, whatever came of it; the client gets back the
    /// session that it had.
    fn end_reading(&mut self, snapshot: bool, scratch: &Scratch) -> Outcome<()> {
        self.server.settle()?;
        if snapshot {
            self.roll_back_own()?;
        }
        match self.server.select_limit.clone() {
            Some(limit) if scratch.reads.iter().any(tables::is_checked) => {
                self.server.set_select_limit(&limit)
            }
            _ => Ok(()),
        }
    }

    /// Reads one table and loads it. If it is to be written, returns the conditions that name its
    /// rows. They are numbered from `first` on.
    fn read_table(
        &mut self,
        question: Question,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        read: &ScratchRead,
        first: usize,
        brought: &mut Brought,
    ) -> Outcome<Vec<Vec<u8>>> {
        let shared = Arc::clone(&self.shared);
        let charset = self.state.results_charset;
        let (mut keys, mut kinds, mut size) = (Vec::new(), Vec::new(), 0);
        let mut kept = self.kept();
        let of_values = read.columns.len();
        let (rows, memory) = {
            let config = self.bounds()?;
            (config.rows, config.memory)
        };
        self.server.begin(question)?;
        let mut definitions = Vec::new();
        let mut opener = None;
        let mut loader = Loader::new(read, self.state.family);
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => return Err(self.server.error()),
                Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                Step::Row => {
                    if opener.is_none() {
                        opener = Some(self.opener(keyed, read, &definitions)?);
                        if !read.key.is_empty() {
                            let of_key = definitions.iter().skip(of_values);
                            kinds = of_key
                                .map(|d| key_kind(d, self.state.form))
                                .collect::<Outcome<_>>()?;
                        }
                    }
                    let Some(opener) = &mut opener else { continue };
                    brought.rows += 1;
                    loader.begin_row();
                    let packet = self.server.connection.last_payload();
                    let (mut condition, mut has_name) = (Vec::new(), false);
                    opener.cells(packet, &shared.config.keys, |n, cell| {
                        if n < of_values || read.key.is_empty() {
                            return loader.cell(n, cell);
                        }
                        let part = n - of_values;
                        let name = read.key.get(part).zip(kinds.get(part));
                        let Some((name, kind)) = name else {
                            return Err(unnamed(read));
                        };
                        if part > 0 {
                            condition.extend_from_slice(b" AND ");
                        }
                        condition.extend_from_slice(name.as_bytes());
                        let Some(cell) = cell else {
                            if read.named_by == NamedBy::Key {
                                return Err(unnamed(read));
                            }
                            condition.extend_from_slice(b" <=> NULL");
                            return Ok(());
                        };
                        has_name = true;
                        condition.extend_from_slice(match read.named_by {
                            NamedBy::Key => b" = ",
                            // never NULL, so that it can be negated
                            NamedBy::Cells | NamedBy::Row => b" <=> ",
                        });
                        key_literal(cell, *kind, charset, &mut condition)
                    })?;
                    if read.named_by == NamedBy::Cells && !has_name {
                        return Err(unnamed(read));
                    }
                    if !read.key.is_empty() {
                        loader.number(first + keys.len());
                        size += condition.len() + 32;
                        kept.hold(size)?;
                        keys.push(condition);
                    }
                    brought.bytes += std::mem::take(&mut loader.bytes);
                    if brought.rows > rows || brought.bytes > memory {
                        let about = format!("{}.{}", read.table.database, read.table.name);
                        return Err(Failure::refused(&errors::SCRATCH_BOUND, about));
                    }
                    if loader.end_row() {
                        engine.put(&std::mem::take(&mut loader.sql))?;
                        engine.server.flush().map_err(engine::ours)?;
                    }
                }
                _ => {}
            }
        }
        if self.server.warnings_at_end()? > 0 {
            // once for each row that was read, not for each that the statement looks at
            let about = "a condition with a warning";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        if !loader.sql.is_empty() {
            engine.put(&loader.sql)?;
        }
        Ok(keys)
    }

    fn opener(
        &self,
        keyed: &KeyedPlan,
        read: &ScratchRead,
        definitions: &[Vec<u8>],
    ) -> Outcome<open::Opener> {
        open::definitions_of(keyed, &read.fetch, definitions, &self.state, false, true)
            .map(|(_, opener)| opener)
    }
}

/// Makes a refusal of MySQL's error about a literal that is no moment, if the statement has
/// parameters. MySQL raises the error beside a column of moments before it looks at a row. At a
/// parameter, or a user variable, it may never look.
fn as_a_parameter_fails(failure: Failure, values: Values) -> Failure {
    match failure {
        Failure::Server { code, .. }
            if code == WRONG_MOMENT
                && !(values.params.is_empty() && values.from_variables.is_empty()) =>
        {
            Failure::refused(&errors::VALUE, "a parameter that is no moment")
        }
        other => other,
    }
}

/// A row cannot be found again.
fn unnamed(read: &ScratchRead) -> Failure {
    let about = format!("{}.{}", read.table.database, read.table.name);
    Failure::refused(&errors::NEEDS_KEY, about)
}

/// The statement, with the references that have names of their own.
fn renamed_text(sql: &[u8], scratch: &Scratch, mode: lex::LexMode) -> Outcome<Vec<u8>> {
    if scratch.renamed.is_empty() {
        return Ok(sql.to_vec());
    }
    let tokens = lex::tokens(sql, mode);
    let tokens =
        tokens.map_err(|_| Failure::refused(&errors::INTERNAL, "the statement's words"))?;
    renamed_part(sql, &tokens, scratch, 0..sql.len())
}

/// The same for a part of the statement's text.
fn renamed_part(
    sql: &[u8],
    tokens: &[lex::Token],
    scratch: &Scratch,
    part: Range<usize>,
) -> Outcome<Vec<u8>> {
    let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
    let mut out = Vec::with_capacity(part.len() + 64);
    let mut at = part.start;
    let mut renamed: Vec<_> = scratch.renamed.iter().collect();
    renamed.sort_by_key(|r| r.tokens);
    for r in renamed {
        let (Some(first), Some(last)) = (tokens.get(r.tokens.0), tokens.get(r.tokens.1 - 1)) else {
            return Err(bad());
        };
        out.extend_from_slice(sql.get(at..first.start).ok_or_else(bad)?);
        out.extend_from_slice(r.text.as_bytes());
        at = last.end;
    }
    out.extend_from_slice(sql.get(at..part.end).ok_or_else(bad)?);
    Ok(out)
}

/// What an engine has that the server has not: of each the version and lower_case_table_names.
fn unlike(engine: &[Vec<Option<Vec<u8>>>], server: &[Vec<Option<Vec<u8>>>]) -> String {
    let said = |rows: &[Vec<Option<Vec<u8>>>]| {
        let cells = rows.iter().flatten().flatten();
        // both are short; a server may say anything
        let texts =
            cells.map(|cell| String::from_utf8_lossy(&cell[..cell.len().min(16)]).into_owned());
        texts
            .collect::<Vec<_>>()
            .join(" with lower_case_table_names = ")
    };
    format!(
        "it is version {}, and the server {}",
        said(engine),
        said(server)
    )
}
