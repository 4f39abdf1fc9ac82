//! The statements that read tables from the server, and what stands in front of them.

use onionskin_plan::{Scratch, ScratchRead};

use super::tables;
use super::write::Change;
use crate::bind::{Binder, PlainParameters, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::session::Session;

/// What was asked in front of the reads.
#[derive(Default)]
pub(super) struct Begun {
    begun: Vec<Question>,
    /// Behind these.
    claimed: Vec<Question>,
}

impl Session {
    /// Puts what stands in front of the reads: the beginning of a change and what it claims, or
    /// that of a snapshot.
    pub(super) fn begin_reads(
        &mut self,
        change: Option<&mut Change>,
        snapshot: bool,
        locks: bool,
    ) -> Outcome<Begun> {
        let mut begun = Begun::default();
        if let Some(change) = change {
            begun.begun.push(self.server.put_query(change.begin())?);
            change.begun = true;
            for claim in &change.claims {
                let claimed = self.server.put_query(claim.as_bytes())?;
                begun.claimed.push(claimed);
            }
        }
        if snapshot {
            let level = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
            begun.begun.push(self.server.put_query(level)?);
            begun.begun.push(self.server.put_query(match locks {
                true => b"START TRANSACTION WITH CONSISTENT SNAPSHOT".as_slice(),
                false => b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            })?);
        }
        Ok(begun)
    }

    pub(super) fn hear_begun(&mut self, begun: Begun) -> Outcome<()> {
        for question in begun.begun {
            self.server.read_ok(question)?;
        }
        for question in begun.claimed {
            self.server.hear_claim(question)?;
        }
        Ok(())
    }

    /// The statements that read the tables, and those that look at them beside.
    pub(super) fn read_texts(
        &mut self,
        keyed: &KeyedPlan,
        scratch: &Scratch,
        values: Values,
    ) -> Outcome<Vec<Vec<u8>>> {
        let limit = self.bounds()?.rows.saturating_add(1);
        let mut texts = Vec::with_capacity(scratch.reads.len());
        for read in &scratch.reads {
            texts.push(self.read_text(keyed, read, values, Some(limit))?);
            if tables::is_checked(read) {
                // SHOW has no LIMIT of its own
                let limit = self.server.select_limit.as_deref();
                let set = |limit: &str| format!("SET SESSION sql_select_limit = {limit}");
                texts.extend(limit.map(|_| set("18446744073709551615").into_bytes()));
                texts.push(tables::question(read).into_bytes());
                texts.extend(limit.map(|limit| set(limit).into_bytes()));
            }
        }
        Ok(texts)
    }

    /// The statement that reads a table. Conditions that cannot be bound are left to the scratch
    /// engine.
    pub(super) fn read_text(
        &mut self,
        keyed: &KeyedPlan,
        read: &ScratchRead,
        values: Values,
        limit: Option<u64>,
    ) -> Outcome<Vec<u8>> {
        let mut sql = Vec::new();
        let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
        binder.text(&read.text, 1, &mut sql)?;
        binder.plain_parameters = PlainParameters::Refused;
        binder.checks_moments = true;
        let mut narrowed = false;
        for condition in &read.conditions {
            let before = sql.len();
            sql.extend_from_slice(if narrowed { b" AND (" } else { b" WHERE (" });
            match binder.text(condition, 1, &mut sql) {
                Ok(()) => {
                    sql.push(b')');
                    narrowed = true;
                }
                Err(Failure::Refused(_) | Failure::Value(_)) => sql.truncate(before),
                Err(other) => return Err(other),
            }
        }
        if let Some(limit) = limit {
            sql.extend_from_slice(format!(" LIMIT {limit}").as_bytes());
        }
        sql.extend_from_slice(read.lock.as_bytes());
        if let Some(seconds) = &read.seconds {
            sql.extend_from_slice(format!(" WAIT {seconds}").as_bytes());
        }
        Ok(sql)
    }
}
