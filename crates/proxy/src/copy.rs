//! `CREATE TABLE … LIKE`: the other table's definition is asked for, made logical, and carried out as a definition of its own.

use onionskin_plan::{Action, Copied, Outcome as PlanOutcome, Request, Template, errors};
use onionskin_schema::{copy_definition, identifier};

use crate::catalog::Prepared;
use crate::define::{definition_text, with_ids};
use crate::error::{Failure, Outcome};
use crate::session::Session;

impl Session {
    /// Carries it out and relays the server's answer.
    pub fn copy_table(&mut self, copied: &Copied, prepared: &Prepared) -> Outcome<()> {
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
        let physical = String::from_utf8_lossy(cell.unwrap_or_default()).into_owned();
        let head = String::from_utf8_lossy(&copied.head).into_owned();
        let refused = |text: String| Failure::refused(&errors::DAMAGED, text);
        let sql = copy_definition(&physical, source, &head, family)
            .map_err(|e| refused(e.to_string()))?;

        let mut template = Template::default();
        let lex = self.space.settings.lex;
        if lex.no_backslash_escapes && sql.contains('\\') {
            // servers print backslashes as escapes under every sql_mode
            let about =
                "CREATE TABLE … LIKE under NO_BACKSLASH_ESCAPES, of a definition with backslashes";
            return Err(Failure::refused(&errors::NOT_UNDERSTOOD, about));
        }
        if template.read(sql.as_bytes(), lex).is_err() || template.multiple {
            return Err(refused(format!("table {}", source.name)));
        }
        let config = &self.shared.config;
        let mut looked_up = 0;
        let plan = loop {
            let outcome = onionskin_plan::plan(&Request {
                sql: sql.as_bytes(),
                template: &template,
                settings: &self.space.settings,
                catalog: self.account.as_ref(),
                policy: &config.policy,
            });
            match outcome {
                PlanOutcome::Plan(plan) => break plan,
                PlanOutcome::Need(names) if looked_up < 8 => {
                    looked_up += 1;
                    self.account
                        .look_up(&mut self.server, &config.keys, &names)?;
                }
                PlanOutcome::Need(_) => return Err(Failure::Stale),
            }
        };
        let (text, temporary) = match &plan.action {
            Action::Relay => (sql.into_bytes(), None),
            Action::Define(ddl) => {
                let columns = with_ids(ddl, &config.keys, config.suite);
                let key = config.keys.metadata_key();
                (
                    definition_text(ddl, &columns, family, key)?,
                    ddl.temporary.clone(),
                )
            }
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            _ => return Err(Failure::refused(&errors::INTERNAL, "a copied definition")),
        };
        if source.is_protected() && matches!(plan.action, Action::Relay) {
            return Err(Failure::refused(
                &errors::INTERNAL,
                "a copy without protection",
            ));
        }
        self.diagnostics.clear();
        self.send_definition(&text, temporary.as_ref(), &prepared.plan.names)
    }
}
