//! What is noted of a statement: its shape. Of one that was refused for [`crate::refused`], and of
//! all of them where an application is observed, for [`crate::statement_shapes`].

use onionskin_plan::by_name::executed;
use onionskin_plan::{Action, Outcome as PlanOutcome, Request, Settings, Template, UseScratch};
use onionskin_wire::messages::Command;

use super::Session;
use crate::error::Failure;
use crate::refused::{Help, LENGTH, Met, UNREAD, help_of};
use crate::statement_shapes::StatementShapes;

impl Session {
    /// The client's command ends with this failure. It is noted if it is a refusal, and not an
    /// error that the server would raise as well.
    #[cold]
    pub(super) fn note_refusal(&mut self, failure: &Failure) {
        let Failure::Refused(refusal) = failure else {
            return;
        };
        if refusal.coded().is_some() {
            return;
        }
        let Some((sql, template)) = self.statement_text() else {
            return;
        };
        let is_read = template.is_some();
        let template = template.unwrap_or_default();
        let met = Met {
            entry: refusal.entry(),
            shape: match is_read {
                true => template.shown(LENGTH),
                false => UNREAD.into(),
            },
            database: self.state.database.clone(),
            message: refusal.message(),
        };
        self.shared.refused.met(met, || {
            help_of(refusal.entry()).or_else(|| {
                let has_help = is_read && self.engine_would_help(&sql, &template);
                has_help.then_some(Help::Engine)
            })
        });
    }

    /// Counts the statements of the client's command.
    #[cold]
    pub(super) fn note_shapes(&self, shapes: &StatementShapes) {
        let payload = self.client.last_payload();
        let Ok(command @ (Command::Query | Command::StmtExecute)) = Command::of(payload) else {
            return;
        };
        if self.is_read_otherwise() {
            return shapes.note_unread();
        }
        let sql = payload.get(1..).unwrap_or_default();
        let mode = self.arrival.lex;
        let text = match (command, &self.current.executed) {
            // the text of a statement that was prepared by name
            (Command::Query, Some(of_name)) if executed(sql, mode).is_some() => Some(&**of_name),
            (Command::Query, _) => Some(sql),
            _ => self.statements.text_of(payload),
        };
        let Some(text) = text else {
            return shapes.note_unread();
        };
        let database = self.state.database.as_deref();
        // in other character sets and modes a literal may look like a name
        shapes.note(database, text, mode, |template| {
            self.reads_names_of(template)
        });
    }

    /// The text of the statement that the client's command is about, and its shape; of one among
    /// several, its part. What is read from the client in the middle of a statement is a file, of
    /// which nothing is left at the end.
    pub(super) fn statement_text(&mut self) -> Option<(Vec<u8>, Option<Template>)> {
        let payload = self.client.last_payload();
        let text = payload.get(1..).unwrap_or_default();
        let text = match Command::of(payload) {
            Ok(Command::Query) => {
                let part = self.current.part.as_deref().cloned();
                let part = part.and_then(|part| text.get(part));
                part.unwrap_or(text).to_vec()
            }
            Ok(Command::StmtPrepare) => text.to_vec(),
            Ok(Command::StmtExecute | Command::StmtFetch) => {
                let (sql, prepared) = self.statements.shape_of(payload)?;
                let template = Template {
                    key: prepared.key.clone(),
                    literals: prepared.literals.clone(),
                    ..Template::default()
                };
                return Some((sql.to_vec(), Some(template)));
            }
            _ => return None,
        };
        let mut template = Template::default();
        let is_read = template.read(&text, self.space.settings.lex).is_ok();
        std::mem::swap(&mut self.template, &mut template);
        // in other character sets and modes a literal may look like a name
        let is_read = is_read && self.reads_names();
        std::mem::swap(&mut self.template, &mut template);
        Some((text, is_read.then_some(template)))
    }

    /// Whether the statement would be planned for a scratch engine, if there were one.
    fn engine_would_help(&self, sql: &[u8], template: &Template) -> bool {
        let without = &self.space.settings;
        if without.scratch != UseScratch::Never || template.multiple {
            return false;
        }
        let with = Settings {
            scratch: UseScratch::IfNeeded,
            ..without.clone()
        };
        let is_refused = |settings: &Settings| {
            let outcome = onionskin_plan::plan(&Request {
                sql,
                template,
                settings,
                catalog: self.account.as_ref(),
                policy: &self.shared.config.policy,
            });
            match outcome {
                PlanOutcome::Plan(plan) => Some(matches!(plan.action, Action::Refuse(_))),
                // nothing is looked up for it
                PlanOutcome::Need(_) => None,
            }
        };
        is_refused(without) == Some(true) && is_refused(&with) == Some(false)
    }
}
