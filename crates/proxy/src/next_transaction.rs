//! `SET TRANSACTION …` without a scope: what it says is of the next transaction only.
//!
//! The proxy's own statements, look-ups of tables above all, go over the same connection, and the first of them would be that
//! transaction. So what the client said is kept until a statement of its own has used it, and said again in front of that statement
//! if the proxy has asked something in between.

use onionskin_plan::{Action, Plan, errors};

use crate::error::{Failure, Outcome};
use crate::session::Session;

/// What was said of the next transaction.
#[derive(Default)]
pub(crate) struct NextTransaction {
    /// The client's statements, in their order.
    said: Vec<Vec<u8>>,
    /// How many questions the server had been asked when it heard them last.
    asked: u64,
}

/// Variables that are of the next transaction only where they are set without a scope.
const VARIABLES: [&[u8]; 4] = [
    b"transaction_isolation",
    b"transaction_read_only",
    b"tx_isolation",
    b"tx_read_only",
];

/// Whether a statement, by its shape, says something of the next transaction.
pub(crate) fn says_next(key: &[u8]) -> bool {
    let key = key.trim_ascii_start();
    let Some((first, rest)) = key.split_at_checked(4) else {
        return false;
    };
    if !first.eq_ignore_ascii_case(b"set ") {
        return false;
    }
    let begins = |text: &[u8], word: &[u8]| {
        let found = text.get(..word.len());
        found.is_some_and(|w| w.eq_ignore_ascii_case(word))
    };
    begins(rest, b"transaction ")
        || memchr::memmem::find_iter(rest, b"@@").any(|at| {
            let name = rest[at + 2..].trim_ascii_start();
            let name = name.strip_prefix(b"`").unwrap_or(name);
            VARIABLES.iter().any(|variable| begins(name, variable))
        })
}

/// Errors that a statement meets before it opens a transaction: no privilege, no such table or column, its grammar, a transaction that
/// only reads.
const BEFORE_IT_BEGINS: [u16; 8] = [1044, 1045, 1046, 1054, 1064, 1142, 1146, 1792];

impl Session {
    /// Whether something was said of the next transaction.
    pub(crate) fn has_next_transaction(&self) -> bool {
        !self.next_transaction.said.is_empty()
    }

    /// Says again what the client said, in front of its statement.
    #[inline]
    pub(crate) fn say_next_transaction(&mut self) -> Outcome<()> {
        match self.has_next_transaction() {
            true => self.say_again(),
            false => Ok(()),
        }
    }

    #[cold]
    fn say_again(&mut self) -> Outcome<()> {
        if self.server.asked() == self.next_transaction.asked {
            return Ok(());
        }
        let found = self.server.found;
        for sql in &self.next_transaction.said {
            // its answer is read with that to the next question
            let _ = self.server.put_query(sql)?;
        }
        self.server.found = found;
        self.next_transaction.asked = self.server.asked();
        Ok(())
    }

    /// Refuses what takes several statements before its transaction begins.
    #[inline]
    pub(crate) fn must_begin_at_once(&self, plan: &Plan) -> Outcome<()> {
        match self.has_next_transaction() {
            true => begins_at_once(plan),
            false => Ok(()),
        }
    }

    /// Takes over what a statement of the client's says of the next transaction, or that it was this one. `names` is whether it
    /// names tables.
    #[inline]
    pub(crate) fn learn_next_transaction(
        &mut self,
        key: &[u8],
        sql: &[u8],
        names: bool,
        done: &Outcome<()>,
    ) {
        let is_set = key
            .first()
            .is_some_and(|first| first.eq_ignore_ascii_case(&b's'));
        if !is_set && !self.has_next_transaction() {
            return;
        }
        let says = says_next(key);
        if !says && !self.has_next_transaction() {
            return;
        }
        let next = &mut self.next_transaction;
        match done {
            Ok(()) if says => {
                next.said.push(sql.to_vec());
                next.asked = self.server.asked();
            }
            Ok(()) if names || ends_or_begins(key) => *next = NextTransaction::default(),
            Ok(()) => {}
            Err(Failure::Server { code, .. }) if !BEFORE_IT_BEGINS.contains(code) && !says => {
                *next = NextTransaction::default();
            }
            // what was said again may have been taken back with a statement that was not sent
            Err(_) => next.asked = u64::MAX,
        }
    }
}

#[cold]
fn begins_at_once(plan: &Plan) -> Outcome<()> {
    let at_once = match &plan.action {
        Action::Server { .. } => plan.upsert.is_none(),
        Action::Scratch(_)
        | Action::ScratchWrite(_)
        | Action::Compute { .. }
        | Action::Define(_)
        | Action::Copy(_) => false,
        _ => true,
    };
    match at_once {
        true => Ok(()),
        false => Err(Failure::refused(
            &errors::NOT_UNDERSTOOD,
            "what SET TRANSACTION says of it; say it with SESSION, or begin a transaction",
        )),
    }
}

/// Whether a statement begins a transaction, ends one, or runs others that may.
fn ends_or_begins(key: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [
        b"begin",
        b"start",
        b"commit",
        b"rollback",
        b"xa ",
        b"call",
        b"execute",
        b"lock",
    ];
    let key = key.trim_ascii_start();
    let begins = |word: &&[u8]| {
        let found = key.get(..word.len());
        found.is_some_and(|w| w.eq_ignore_ascii_case(word))
    };
    WORDS.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::says_next;

    #[test]
    fn a_scope_makes_it_of_all_transactions() {
        for (key, says) in [
            ("set transaction read only", true),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", true),
            ("set @@transaction_isolation = 's'", true),
            ("set @a = 1, @@`tx_read_only` = 1", true),
            ("set session transaction read only", false),
            ("set @@session.transaction_isolation = 's'", false),
            ("set transaction_isolation = 's'", false),
            ("select @@tx_isolation", false),
            ("set", false),
        ] {
            assert_eq!(says_next(key.as_bytes()), says, "{key}");
        }
    }
}
