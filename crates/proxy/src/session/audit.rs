//! A statement's line in the audit log.

use std::sync::Arc;

use onionskin_audit::{Count, Statement};
use onionskin_plan::{ColumnUse, Plan, errors};
use onionskin_wire::WireError;

use super::Session;
use super::slow::BROKEN_OFF;
use crate::audit::named_columns;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::metrics::{Ended, KINDS, Label, TIERS};
use crate::touched::{Cells, is_same};

impl Session {
    /// A plan is about to be carried out. If it is over protected columns it is recorded, whatever
    /// becomes of it; it is refused if nothing can be recorded and that is not to be.
    #[inline]
    pub(crate) fn must_be_recordable(&mut self, keyed: &Arc<KeyedPlan>) -> Outcome<()> {
        #[cfg(debug_assertions)]
        {
            self.audited.has_passed |= !keyed.plan.columns.is_empty();
        }
        let names_none = keyed.plan.columns.is_empty() && keyed.named.is_empty();
        if names_none || self.shared.config.audit.is_none() {
            return Ok(());
        }
        // a text of many statements, or rows that are written in batches, may repeat one
        let is_last = |known: &Arc<KeyedPlan>| Arc::ptr_eq(known, keyed);
        if !self.audited.plans.last().is_some_and(is_last) {
            self.audited.plans.push(Arc::clone(keyed));
        }
        self.must_have_room()
    }

    fn must_have_room(&self) -> Outcome<()> {
        match &self.shared.config.audit {
            Some(audit) if audit.stops => {
                let found = audit.log.find_room();
                found.map_err(|_| Failure::refused(&errors::AUDIT, ""))
            }
            _ => Ok(()),
        }
    }

    /// No way of a command leads to cells but past [`Self::must_be_recordable`].
    #[cfg(debug_assertions)]
    pub(super) fn assert_recordable(&mut self) {
        let has_passed = std::mem::take(&mut self.audited.has_passed);
        let cells = self.audited.opened.total() + self.buffers.sealed.total();
        assert!(cells == 0 || has_passed, "{cells} cells of no plan");
    }

    /// Writes the line of the command that has ended, if it has anything to do with protected
    /// columns.
    pub(super) fn record(&mut self, ended: &Ended, failure: Option<&Failure>, is_whole: bool) {
        let plans = std::mem::take(&mut self.audited.plans);
        let Some(audit) = self.shared.config.audit.clone() else {
            return;
        };
        let (opened, sealed) = (counts(&self.audited.opened), counts(&self.buffers.sealed));
        if plans.is_empty() && opened.is_empty() && sealed.is_empty() {
            return;
        }
        let named = self.named(&plans);
        let shape = match is_whole {
            true => self.told_shape(),
            false => BROKEN_OFF.into(),
        };
        let outcome = match failure {
            None if self.current.sent_error => "error".into(),
            None => "ok".into(),
            Some(failure) => outcome_of(failure),
        };
        // What cannot be written is counted as lost, and the log says once that there is no room.
        let _ = audit.log.statement(
            Statement {
                session: self.connection_id,
                account: &self.state.account,
                client: &self.audited.client,
                attributes: &self.audited.attributes,
                database: self.state.database.as_deref(),
                tier: TIERS[ended.tier as usize].1,
                kind: KINDS[ended.kind as usize].1,
                shape: String::new(),
                opened: &opened,
                sealed: &sealed,
                named: &named,
                rows: ended.rows,
                outcome: &outcome,
            },
            &shape,
        );
    }

    /// Protected columns that a statement names, if an audit log is written.
    pub(crate) fn named_columns(&self, plan: &Plan, label: Label, sql: &[u8]) -> Vec<ColumnUse> {
        match self.shared.config.audit {
            Some(_) => named_columns(plan, label, sql, self.space.settings.lex, &self.account),
            None => Vec::new(),
        }
    }

    /// Protected columns of these plans of which no cell was opened or sealed.
    fn named(&self, plans: &[Arc<KeyedPlan>]) -> Vec<String> {
        let touched = |used: &ColumnUse| {
            let mut cells = self.audited.opened.by_column().iter();
            let mut sealed = self.buffers.sealed.by_column().iter();
            cells.any(|(known, _)| is_same(known, used))
                || sealed.any(|(known, _)| is_same(known, used))
        };
        let mut named: Vec<String> = plans
            .iter()
            .flat_map(|keyed| keyed.plan.columns.iter().chain(&keyed.named))
            .filter(|used| !touched(used))
            .map(ColumnUse::path)
            .collect();
        named.sort();
        named.dedup();
        named
    }
}

fn counts(cells: &Cells) -> Vec<Count> {
    let count = |(used, cells): &(ColumnUse, u64)| Count {
        column: used.path(),
        cells: *cells,
    };
    cells.by_column().iter().map(count).collect()
}

/// A code of the proxy's, or the number that the client got.
fn outcome_of(failure: &Failure) -> String {
    match (failure, failure.code(), failure.packet()) {
        (Failure::Client(WireError::Closed | WireError::Io(_)), _, _) => "client lost".into(),
        (_, Some(code), _) => code.into(),
        (_, None, Some(packet)) => packet.code.to_string(),
        (_, None, None) => "server lost".into(),
    }
}
