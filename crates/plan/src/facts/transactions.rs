//! What a statement does to transactions, savepoints and locked tables.

use super::words::Words;

impl Words<'_> {
    /// `true`: `LOCK TABLES`, or `FLUSH TABLES` of some tables that locks them likewise. `false`:
    /// what ends that.
    pub(super) fn locks_tables(&self) -> Option<bool> {
        let is_tables = |at| self.is(at, "tables") || self.is(at, "table");
        match () {
            () if self.is(0, "lock") && is_tables(1) => Some(true),
            () if self.is(0, "flush") => {
                let at = [1, 2].into_iter().find(|at| is_tables(*at))?;
                let locks = self.says("lock") || self.says("export");
                // of all tables: a lock of another kind, which a transaction does not end
                (locks && !self.is(at + 1, "with")).then_some(true)
            }
            () if self.begins(&["unlock", "begin"]) => Some(false),
            () if self.is(0, "start") && self.is(1, "transaction") => Some(false),
            () => None,
        }
    }

    /// Whether it begins or ends a transaction, or runs statements that may.
    pub(super) fn bounds_transaction(&self) -> bool {
        const VERBS: [&str; 8] = [
            "begin", "start", "commit", "rollback", "xa", "call", "execute", "lock",
        ];
        self.is_hidden() || self.begins(&VERBS)
    }

    /// Whether it begins a transaction and does nothing else: it takes no snapshot.
    pub(super) fn begins_transaction(&self) -> bool {
        let begins = match self.begins(&["begin"]) {
            // BEGIN NOT ATOMIC is a block of statements
            true => !self.says("not"),
            false => self.is(0, "start") && self.is(1, "transaction") && !self.says("snapshot"),
        };
        begins && !self.has_executable
    }

    /// Whether it begins no transaction without a table in it.
    pub(super) fn begins_none(&self) -> bool {
        const VERBS: [&str; 7] = [
            "set",
            "use",
            "rollback",
            "release",
            "savepoint",
            "deallocate",
            "unlock",
        ];
        self.begins(&VERBS)
    }

    /// Whether it ends the transaction before it, even where it fails: definitions, but not those
    /// of temporary tables.
    pub(super) fn commits_first(&self) -> bool {
        const VERBS: [&str; 12] = [
            "alter", "analyze", "create", "drop", "grant", "install", "lock", "optimize", "rename",
            "repair", "revoke", "truncate",
        ];
        // CREATE OR REPLACE TEMPORARY
        let is_temporary = self.is(1, "temporary") || self.is(3, "temporary");
        self.begins(&VERBS) && !is_temporary
    }

    /// Whether it changes what a database says of new tables.
    pub(super) fn alters_database(&self) -> bool {
        self.begins(&["alter"]) && (self.is(1, "database") || self.is(1, "schema"))
    }

    /// `true`: it makes a savepoint, or may do so. `false`: it ends all of them.
    pub(super) fn savepoints(&self) -> Option<bool> {
        match () {
            () if self.is_hidden() || self.has_executable => Some(true),
            () if self.begins(&["savepoint", "call"]) => Some(true),
            () if self.begins(&["begin", "start", "commit"]) => Some(false),
            () if self.is(0, "rollback") && !self.says("to") => Some(false),
            () => None,
        }
    }

    /// Whether it says something of the next transaction only: `SET TRANSACTION …`, or one of the
    /// variables that do so where they are set without a scope.
    pub(super) fn says_next_transaction(&self) -> bool {
        const VARIABLES: [&str; 4] = [
            "transaction_isolation",
            "transaction_read_only",
            "tx_isolation",
            "tx_read_only",
        ];
        let is_one = |name: &[u8]| {
            let bare = name.strip_prefix(b"`").unwrap_or(name);
            let bare = bare.strip_suffix(b"`").unwrap_or(bare);
            VARIABLES
                .iter()
                .any(|variable| bare.eq_ignore_ascii_case(variable.as_bytes()))
        };
        let names_one = |at: usize| match self.all[at].system_variable() {
            // a blank stands behind the signs
            Some(b"") => self.all.get(at + 1).is_some_and(|w| is_one(w.text)),
            Some(name) => is_one(name),
            None => false,
        };
        let names_any = || (0..self.all.len()).any(names_one);
        self.is(0, "set") && (self.is(1, "transaction") || names_any())
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::lex::LexMode;

    fn facts(sql: &str) -> Facts {
        Facts::read(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn a_scope_makes_it_of_all_transactions() {
        for (sql, says) in [
            ("set transaction read only", true),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", true),
            ("/* app */ set @@transaction_isolation = 's'", true),
            ("set @a = 1, @@`tx_read_only` = 1", true),
            ("set /*!50000 transaction */ read only", true),
            ("set session transaction read only", false),
            ("set @@session.transaction_isolation = 's'", false),
            ("set transaction_isolation = 's'", false),
            ("select @@tx_isolation", false),
            ("set @a = '@@tx_isolation'", false),
            ("set", false),
        ] {
            assert_eq!(facts(sql).next_transaction, says, "{sql}");
        }
    }
}
