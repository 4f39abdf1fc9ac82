//! Recalling a plan, or making it with the tables that it needs looked up.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    Action, Catalog, Doubt, Effect, Known, Outcome as PlanOutcome, Request, Show, errors,
};
use onionskin_schema::TableName;
use onionskin_wire::StatusFlags;

use super::Session;
use super::doubt::Asked;
use crate::catalog::{KeyedPlan, MAX_PLANS, PlanOrigin};
use crate::error::{Failure, Outcome};
use crate::fresh_transaction::END;
use crate::metrics::Label;
use crate::row_update::COMMIT;
use crate::state::REAL_AS_FLOAT;
use crate::unusual::says;

impl Session {
    /// Recalls or makes the plan of one statement. The template has been read.
    pub fn plan(&mut self, sql: &[u8]) -> Outcome<Arc<KeyedPlan>> {
        let planned = self.recalled_plan(sql)?;
        // If another proxy has made a table meanwhile, an error shows it when rows are asked for.
        // Some statements would show, or change, its physical columns without an error. IGNORE
        // makes a warning of a CHECK that does not hold.
        let unnoticed = match planned.plan.action {
            Action::Relay if planned.plan.facts.about_definitions => true,
            // a table without protected columns, which may be a view
            Action::Show {
                what: Show::CreateView,
                ref table,
                ..
            } => !table.is_protected(),
            _ => self.ignores_unnoticed(&planned),
        };
        match unnoticed && !planned.plan.names.is_empty() && self.looks_changed(&planned)? {
            true => self.make_plan(sql, false),
            false => Ok(planned),
        }
    }

    /// Looks at the tables of a plan as they are now. Returns whether they are others than when it
    /// was made.
    pub(crate) fn looks_changed(&mut self, keyed: &KeyedPlan) -> Outcome<bool> {
        let facts = &keyed.plan.facts;
        let writes = !matches!(keyed.plan.action, Action::Relay) && !facts.about_definitions;
        match writes && facts.ignore && self.server.sees_the_past() {
            // a look-up would make the snapshot before the statement has its locks
            true => Ok(!self.is_confirmed(keyed)?),
            false => {
                let names = keyed.plan.names.clone();
                self.look_up(&names)
            }
        }
    }

    /// Whether IGNORE may hide that the statement's tables are others by now. If it is relayed,
    /// none of its names was a table's when it was looked up last.
    pub(crate) fn ignores_unnoticed(&self, planned: &KeyedPlan) -> bool {
        let plan = &planned.plan;
        let known = |name: &TableName| {
            let known = self.account.table(&name.database, &name.name);
            matches!(known, Known::Table(_))
        };
        plan.facts.ignore
            && match plan.action {
                Action::Relay => !plan.names.iter().any(known),
                Action::Refuse(_) => false,
                _ => true,
            }
    }

    fn recalled_plan(&mut self, sql: &[u8]) -> Outcome<Arc<KeyedPlan>> {
        if let Some(found) = self.space.get(&self.template.key)
            && self.account.is_fresh(&found)
            && self.pinned_hold(&found, sql)
        {
            if self.account.is_due(&found) && found.plan.facts.question.asks() {
                // a look-up would be what it asks about
                let tells_nothing = self.template.literals.is_empty();
                return match tells_nothing && matches!(found.plan.action, Action::Relay) {
                    true => Ok(found),
                    false => Err(NotUnderstood::CountsBesideLookUp.into()),
                };
            }
            if !self.is_of_now(&found)? {
                return self.make_plan(sql, false);
            }
            self.meter.recalled();
            return Ok(found);
        }
        self.make_plan(sql, false)
    }

    pub(super) fn pinned_hold(&self, keyed: &KeyedPlan, sql: &[u8]) -> bool {
        keyed.plan.pinned.iter().all(|(index, text)| {
            self.template
                .literals
                .get(*index)
                .is_some_and(|l| l.text(sql) == text.as_slice())
        })
    }

    /// Sees to it that nothing that the plan rests on is more than a second old. `false`: the
    /// schema is another one by now, and the statement has to be planned again.
    pub(crate) fn is_of_now(&mut self, keyed: &KeyedPlan) -> Outcome<bool> {
        if self.account.is_due(keyed) {
            let family = self.state.family;
            self.aside(|s| {
                let keys = &s.shared.config.keys;
                s.account.renew_for(&mut s.server, keys, family, keyed)
            })?;
        }
        if self.may_be_unseen(&keyed.plan.names) {
            self.see_temporary(&keyed.plan.names, keyed.plan.facts.question.asks())?;
        }
        Ok(self.account.is_fresh(keyed))
    }

    /// Whether all tables of a plan are at this moment what they were when it was made, whatever
    /// the transaction sees.
    fn is_confirmed(&mut self, keyed: &KeyedPlan) -> Outcome<bool> {
        self.aside(|s| {
            let keys = &s.shared.config.keys;
            s.account.confirm(&mut s.server, keys, keyed, 0)
        })?;
        Ok(self.account.is_fresh(keyed))
    }

    pub fn look_up(&mut self, names: &[TableName]) -> Outcome<bool> {
        self.outside(|s| {
            let keys = &s.shared.config.keys;
            s.account.look_up(&mut s.server, keys, names)
        })
    }

    /// Looks up what is not known of these names.
    pub fn learn(&mut self, names: &[TableName]) -> Outcome<bool> {
        let learn = |s: &mut Self| {
            let keys = &s.shared.config.keys;
            s.account.learn(&mut s.server, keys, names)
        };
        match self.account.lists_answer(names) {
            true => learn(self),
            false => self.outside(learn),
        }
    }

    /// Asks what the client has not asked. The question ends the server's list of warnings. So the
    /// list is read before, if the client's statement would keep it. Without autocommit the
    /// question begins a transaction, in which the client could do less than it may. That
    /// transaction is ended again.
    pub fn aside<T>(&mut self, ask: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let is_fresh = self.fresh_transaction.is_fresh(&self.server);
        self.save_list()?;
        let had_one = self.server.status.contains(StatusFlags::IN_TRANS);
        let done = ask(self)?;
        if is_fresh {
            // the client has asked nothing
            self.fresh_transaction.asked_aside(&self.server);
        }
        self.server.may_hold_list = false;
        let has_one = self.server.status.contains(StatusFlags::IN_TRANS);
        if has_one && !had_one {
            match self.has_savepoints {
                true => self.next_transaction.begun_aside = true,
                false => {
                    self.server.run_to_its_end(COMMIT)?;
                }
            }
        }
        Ok(done)
    }

    /// Asks what must not make the snapshot of the client's transaction.
    pub(crate) fn outside<T>(&mut self, ask: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if !self.fresh_transaction.is_fresh(&self.server) {
            return self.aside(ask);
        }
        let fresh = std::mem::take(&mut self.fresh_transaction);
        self.save_list()?;
        self.server.run(END)?;
        let done = self.aside(ask);
        if let Err(failure) = &done
            && failure.is_fatal()
        {
            return done;
        }
        self.server.settle()?;
        self.fresh_transaction = fresh.begin_again(&mut self.server)?;
        done
    }

    /// Plans a statement. With `fresh`, every table that it names is looked up again first.
    pub fn make_plan(&mut self, sql: &[u8], fresh: bool) -> Outcome<Arc<KeyedPlan>> {
        self.must_only_read(sql)?;
        let mut looked_up = fresh;
        self.meter.made();
        for _ in 0..MAX_PLANS {
            let generation = self.account.generation();
            let outcome = onionskin_plan::plan(&Request {
                sql,
                template: &self.template,
                settings: &self.space.settings,
                catalog: self.account.as_ref(),
                policy: &self.shared.config.policy,
            });
            match outcome {
                // What was known already may be old all the same.
                PlanOutcome::Need(names) => {
                    self.learn(&names)?;
                }
                PlanOutcome::Plan(plan) => {
                    if let Some(protects) = &plan.protects {
                        self.account.rules.once.note_meant(protects);
                    }
                    let is_ahead = self.current.plans_ahead;
                    let asks = plan.facts.question.asks();
                    if !is_ahead
                        && self.may_be_unseen(&plan.names)
                        && self.see_temporary(&plan.names, asks)?
                    {
                        continue;
                    }
                    let refused = matches!(plan.action, Action::Refuse(_));
                    if refused && !looked_up {
                        // a refusal must not rest on an old snapshot
                        looked_up = true;
                        let names = plan.names.clone();
                        if self.look_up(&names)? {
                            continue;
                        }
                    }
                    if self.shared.leading.only_reads() {
                        let behind = self.not_switched(&plan.names);
                        if !behind.is_empty() && self.look_up(&behind)? {
                            looked_up = true;
                            continue;
                        }
                        if !self.not_switched(&behind).is_empty() {
                            return Err(Failure::refused(&errors::NOT_SWITCHED, ""));
                        }
                    }
                    self.check_settings(&plan, sql)?;
                    let asked = match is_ahead {
                        true => Asked::There,
                        false => match self.ask_about(&plan.doubt, sql, looked_up) {
                            Err(failure) if self.aside(|s| s.outlasts_exchange(&failure))? => {
                                Asked::OtherColumns
                            }
                            asked => asked?,
                        },
                    };
                    if asked == Asked::Unclear && looked_up {
                        return Err(NotUnderstood::MayBeMissing.into());
                    }
                    if asked != Asked::There {
                        // somebody may have made the table meanwhile
                        looked_up = true;
                        self.look_up(&plan.names)?;
                        continue;
                    }
                    // so it may if the server has the table that this plan takes for missing
                    if plan.doubt != Doubt::None && !is_ahead && self.look_up(&plan.names)? {
                        looked_up = true;
                        continue;
                    }
                    // or a temporary one, whoever has made it
                    if plan.doubt != Doubt::None
                        && !is_ahead
                        && self.see_temporary_in_doubt(&plan.names, asks)?
                    {
                        continue;
                    }
                    self.tell_findings(&plan.names);
                    let relayed = matches!(plan.action, Action::Relay | Action::Refuse(_));
                    let converts = self.state.client_charset != self.state.connection_charset;
                    if plan.defines.any() && !relayed && converts && !sql.is_ascii() {
                        // a default might lose characters on its way through the connection's
                        return Err(Failure::refused(
                            &errors::CHARACTER_SET,
                            "character_set_connection, which is not the client's",
                        ));
                    }
                    let keys = Arc::clone(&self.shared);
                    let label = Label::of(&plan.action, sql);
                    let named = self.named_columns(&plan, label, sql);
                    let keys = &keys.config.keys;
                    let origin = PlanOrigin {
                        sql,
                        mode: self.space.settings.lex,
                        generation,
                        label,
                        named,
                    };
                    let keyed = self.account.keyed_plan(*plan, origin, keys)?;
                    if !self.is_of_now(&keyed)? {
                        continue;
                    }
                    let once = matches!(keyed.plan.action, Action::Compute { .. });
                    // what is kept is relayed without another look
                    let shows = matches!(keyed.plan.action, Action::Relay)
                        && keyed.plan.facts.about_definitions;
                    // nothing that is kept is asked for again
                    let asks = match &keyed.plan.doubt {
                        Doubt::None => false,
                        Doubt::Table(_) => true,
                        Doubt::Text { is_named, .. } => *is_named || is_ahead,
                    };
                    let is_kept = !refused && !once && !shows && !asks;
                    if is_kept && !keyed.plan.defines.any() {
                        self.space.put(&self.template.key, &keyed);
                    }
                    return Ok(keyed);
                }
            }
        }
        tracing::debug!("the schema was another one after each attempt");
        Err(Failure::Stale)
    }

    /// Statements near protected tables need a session whose settings are known, and do not give
    /// them another meaning.
    pub(crate) fn check_variables(&self, plan: &onionskin_plan::Plan, sql: &[u8]) -> Outcome<()> {
        if self.state.is_usual() || goes_unread(plan) {
            return Ok(());
        }
        if !self.state.tracked {
            return Err(Failure::refused(
                &errors::TRACKING,
                "session_track_system_variables",
            ));
        }
        if !self.state.mode_is_read {
            return Err(NotUnderstood::UnreadSqlMode.into());
        }
        // The text that it prepares or executes has a plan of its own. Under other constants even a
        // variable's text is read otherwise.
        if matches!(plan.action, Action::ByName(_)) && self.state.odd_values.is_none() {
            return Ok(());
        }
        let concerns = |word: &str| word != REAL_AS_FLOAT || says(sql, b"real");
        let odd_type = self.state.odd_types;
        let odd_type = odd_type.filter(|word| plan.defines.any() && concerns(word));
        let shortened = self.state.shortened.filter(|_| reads_definition(plan));
        if let Some(word) = self.state.odd_values.or(odd_type).or(shortened) {
            return Err(NotUnderstood::SqlModeHas(word).into());
        }
        if let Some(name) = self.state.unusual.concerning(plan, sql) {
            return Err(NotUnderstood::UnusualVariable(name).into());
        }
        Ok(())
    }

    pub(super) fn check_settings(&self, plan: &onionskin_plan::Plan, sql: &[u8]) -> Outcome<()> {
        self.check_variables(plan, sql)?;
        if goes_unread(plan) {
            return Ok(());
        }
        if self.state.client_charset.is_none() || self.state.connection_charset.is_none() {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "character_set_client",
            ));
        }
        // what the proxy asks the server on its own is answered in it, too
        if self.state.results_charset.is_none() {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "character_set_results",
            ));
        }
        // what is put into the statement is UTF-8; such a set may take a quote for the half of a
        // character
        let named = |name: &str| !name.is_ascii();
        let foreign = plan
            .names
            .iter()
            .any(|table| named(&table.database) || named(&table.name))
            || plan.columns.iter().any(|used| {
                named(&used.table.database)
                    || named(&used.table.name)
                    || used.table.columns.iter().any(|c| named(&c.name))
            });
        if foreign && self.state.lex_mode().hides_ascii() {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "character_set_client, with names beyond ASCII",
            ));
        }
        Ok(())
    }
}

/// Whether a plan makes or shows a definition of what `SHOW CREATE TABLE` says, here or at the
/// scratch engine.
fn reads_definition(plan: &onionskin_plan::Plan) -> bool {
    match &plan.action {
        Action::Copy(_) | Action::Refit(_) => true,
        Action::Show { what, .. } => matches!(what, Show::CreateTable),
        Action::ScratchWrite(write) => matches!(write.effect, Effect::Create(_)),
        _ => false,
    }
}

/// Whether a statement goes to the server without having been read, or not at all.
fn goes_unread(plan: &onionskin_plan::Plan) -> bool {
    match plan.action {
        Action::Relay => !plan.program,
        Action::Refuse(_) => true,
        _ => false,
    }
}
