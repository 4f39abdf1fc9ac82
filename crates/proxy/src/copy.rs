//! `CREATE TABLE … LIKE`: the server is asked for the other table's definition. It is made logical,
//! and carried out as a definition of its own.

use onionskin_physical::{definition_text, with_ids};
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::lex::spelled_out;
use onionskin_plan::{
    Action, Copied, Outcome as PlanOutcome, Plan, Request, Settings, Template, errors,
};
use onionskin_schema::{
    NewColumn, Table, TableName, copy_definition, identifier, lost_defaults, same_name,
};
use onionskin_value::{Charset, Family, SqlMode};

use crate::catalog::KeyedPlan;
use crate::define::must_know_tenants;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// A definition of the proxy's own, physical.
pub(crate) struct Defined {
    /// Its text.
    pub text: Vec<u8>,
    /// The temporary table with protected columns that it makes.
    pub temporary: Option<TableName>,
    /// The protected columns.
    pub protected: Vec<NewColumn>,
}

impl Session {
    /// Carries it out and relays the server's answer.
    pub fn copy_table(&mut self, copied: &Copied, keyed: &KeyedPlan) -> Outcome<()> {
        let family = self.state.family;
        let source = &copied.source;
        let ask = format!(
            "SHOW CREATE TABLE {}.{}",
            identifier(&source.database),
            identifier(&source.name)
        );
        let rows = self.server.rows(ask.as_bytes())?;
        let cell = rows
            .first()
            .and_then(|row| row.get(1))
            .and_then(Option::as_deref);
        let physical = std::str::from_utf8(cell.unwrap_or_default()).map_err(|_| beyond())?;
        self.must_be_exact(physical)?;
        let head = String::from_utf8_lossy(&copied.head).into_owned();
        let refused = |text: String| Failure::refused(&errors::DAMAGED, text);
        let sql =
            copy_definition(physical, source, &head, family).map_err(|e| refused(e.to_string()))?;
        // what the comments of protected columns say is in it now
        self.must_be_exact(&sql)?;
        self.must_copy_defaults(physical, source)?;

        let table = format!("table {}", source.name);
        let silent = source
            .protected_columns()
            .filter(|(c, _)| !c.explicit_collation);
        let silent: Vec<String> = silent.map(|(c, _)| c.name.clone()).collect();
        let lost = source
            .protected_columns()
            .filter(|(c, _)| c.nullable && c.default.is_none());
        let lost: Vec<String> = lost.map(|(c, _)| c.name.clone()).collect();
        let defined = self.plan_definition(&sql, &table, &silent, &lost)?;
        if source.is_protected() && defined.protected.is_empty() {
            return Err(Failure::refused(
                &errors::INTERNAL,
                "a copy without protection",
            ));
        }
        self.diagnostics.clear();
        let names = &keyed.plan.names;
        let temporary = defined.temporary.as_ref();
        self.send_copy(&defined.text, temporary, names, &defined.protected)
    }

    /// Refuses a copy of a plain column that has lost its default: the copy is made of a
    /// definition, and none says so.
    fn must_copy_defaults(&self, physical: &str, source: &Table) -> Outcome<()> {
        let lost = match self.state.family {
            Family::MySql => lost_defaults(physical),
            Family::MariaDb => return Ok(()),
        };
        let is_plain = |name: &&String| {
            let column = source.column(name);
            column.is_some_and(|column| column.protection.is_none())
        };
        let Some(name) = lost.iter().find(is_plain) else {
            return Ok(());
        };
        let about = format!("LIKE a table whose column {name} has lost its default");
        Err(Failure::refused(&errors::DEFINITION, about))
    }

    /// Checks that no string (a default, a name, a comment) in a definition that the server has
    /// shown was converted on the way, nor will be on the way back. A character set shows what it
    /// does not have as a question mark.
    pub(crate) fn must_be_exact(&self, definition: &str) -> Outcome<()> {
        let keeps_all = |set| set == Some(Charset::Utf8mb4);
        let (results, client) = (self.state.results_charset, self.state.client_charset);
        let is_exact = keeps_all(results) && keeps_all(client)
            || definition.is_ascii() && !definition.contains('?');
        is_exact.then_some(()).ok_or_else(beyond)
    }

    /// Plans a definition that the proxy has put together itself. Its strings are in servers' form.
    /// `about` says what it is made of.
    pub(crate) fn plan_own(&mut self, sql: &str, about: &str) -> Outcome<Box<Plan>> {
        let mut template = Template::default();
        let lex = self.space.settings.lex;
        if lex.no_backslash_escapes && sql.contains('\\') {
            // servers print backslashes as escapes under every sql_mode
            return Err(NotUnderstood::Under(
                "a copy of a definition with backslashes",
                "NO_BACKSLASH_ESCAPES",
            )
            .into());
        }
        let sql = &*spelled_out(sql, lex);
        if template.read(sql.as_bytes(), lex).is_err() || template.multiple {
            return Err(Failure::refused(&errors::DAMAGED, about));
        }
        let config = &self.shared.config;
        let settings = Settings {
            // a default that a table has already
            forbidden_dates: SqlMode::empty(),
            ..self.space.settings.clone()
        };
        let mut looked_up = 0;
        loop {
            let outcome = onionskin_plan::plan(&Request {
                sql: sql.as_bytes(),
                template: &template,
                settings: &settings,
                catalog: self.account.as_ref(),
                policy: &config.policy,
            });
            match outcome {
                PlanOutcome::Plan(plan) => return Ok(plan),
                PlanOutcome::Need(names) if looked_up < 8 => {
                    looked_up += 1;
                    self.account.learn(&mut self.server, &config.keys, &names)?;
                }
                PlanOutcome::Need(_) => return Err(Failure::Stale),
            }
        }
    }

    /// The same, made physical. The collations of the columns `derived` count as the server's
    /// choice, though the text names their character sets. Those that are `lost` have no default,
    /// not even NULL.
    pub(crate) fn plan_definition(
        &mut self,
        sql: &str,
        about: &str,
        derived: &[String],
        lost: &[String],
    ) -> Outcome<Defined> {
        let mut plan = self.plan_own(sql, about)?;
        if let Action::Define(ddl) = &mut plan.action {
            self.must_be_of_database(ddl)?;
            for column in &mut ddl.new_columns {
                let is_derived = derived.iter().any(|name| same_name(name, &column.name));
                column.explicit_collation &= !is_derived;
                column.lost_default = lost.iter().any(|name| same_name(name, &column.name));
            }
        }
        let config = &self.shared.config;
        match plan.action {
            Action::Relay => Ok(Defined {
                text: sql.as_bytes().to_vec(),
                temporary: None,
                protected: Vec::new(),
            }),
            Action::Define(ddl) => {
                let columns = with_ids(
                    &ddl,
                    &config.keys,
                    config.suite,
                    config.keeps_grams(self.state.family),
                );
                must_know_tenants(&columns, &config.keys)?;
                let key = config.keys.metadata_key();
                Ok(Defined {
                    text: definition_text(&ddl, &columns, self.state.family, key)?,
                    temporary: ddl.temporary.clone(),
                    protected: columns,
                })
            }
            Action::Refuse(refusal) => Err(refusal.into()),
            _ => Err(Failure::refused(&errors::INTERNAL, "a copied definition")),
        }
    }
}

fn beyond() -> Failure {
    let about =
        "CREATE TABLE … LIKE, of a definition with strings beyond this session's character set";
    Failure::refused(&errors::CHARACTER_SET, about)
}
