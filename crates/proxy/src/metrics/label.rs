//! Tier and kind of a statement: the labels of its counts.

use onionskin_plan::Action;

/// Who does a statement. A later one counts more: a text of several statements, or one that was
/// tried in two ways, counts under the last of those that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// The proxy alone, or with questions of its own.
    Proxy,
    /// The server, as the statement came.
    Relay,
    /// The server, on tokens and ciphertext.
    One,
    /// The proxy finishes rows, or changes them one by one.
    Two,
    /// The scratch engine.
    Three,
    /// A definition with physical columns.
    Definition,
    /// Nobody: the client got an error of the proxy's own.
    Refused,
}

/// The tiers with their names.
pub(crate) const TIERS: [(Tier, &str); 7] = [
    (Tier::Proxy, "proxy"),
    (Tier::Relay, "relay"),
    (Tier::One, "1"),
    (Tier::Two, "2"),
    (Tier::Three, "3"),
    (Tier::Definition, "definition"),
    (Tier::Refused, "refused"),
];

/// What a statement is, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Select,
    Insert,
    Update,
    Delete,
    Definition,
    Transaction,
    /// Everything else, and what was not planned by itself.
    Other,
}

/// The kinds with their names.
pub(crate) const KINDS: [(Kind, &str); 7] = [
    (Kind::Select, "select"),
    (Kind::Insert, "insert"),
    (Kind::Update, "update"),
    (Kind::Delete, "delete"),
    (Kind::Definition, "definition"),
    (Kind::Transaction, "transaction"),
    (Kind::Other, "other"),
];

/// Where a statement is counted. A plan has it, so that nothing is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub tier: Tier,
    pub kind: Kind,
}

impl Label {
    /// Of a statement that is done so.
    pub fn of(action: &Action, sql: &[u8]) -> Label {
        let tier = match action {
            Action::Relay => Tier::Relay,
            Action::Server { .. } => Tier::One,
            Action::Finish(_) | Action::Update(_) | Action::Delete(_) => Tier::Two,
            Action::Scratch(_) | Action::ScratchWrite(_) => Tier::Three,
            Action::Define(_) | Action::Copy(_) | Action::Refit(_) => Tier::Definition,
            Action::Refuse(_) => Tier::Refused,
            Action::ByName(_) | Action::Compute { .. } | Action::Show { .. } => Tier::Proxy,
        };
        Label {
            tier,
            kind: Kind::of(sql),
        }
    }
}

impl Kind {
    fn of(sql: &[u8]) -> Kind {
        const WORDS: [(&str, Kind); 21] = [
            ("SELECT", Kind::Select),
            ("WITH", Kind::Select),
            ("TABLE", Kind::Select),
            ("VALUES", Kind::Select),
            ("INSERT", Kind::Insert),
            ("REPLACE", Kind::Insert),
            ("UPDATE", Kind::Update),
            ("DELETE", Kind::Delete),
            ("CREATE", Kind::Definition),
            ("ALTER", Kind::Definition),
            ("DROP", Kind::Definition),
            ("RENAME", Kind::Definition),
            ("TRUNCATE", Kind::Definition),
            ("BEGIN", Kind::Transaction),
            ("START", Kind::Transaction),
            ("COMMIT", Kind::Transaction),
            ("ROLLBACK", Kind::Transaction),
            ("SAVEPOINT", Kind::Transaction),
            ("RELEASE", Kind::Transaction),
            ("XA", Kind::Transaction),
            ("CALL", Kind::Other),
        ];
        let mut rest = sql;
        loop {
            rest = rest.trim_ascii_start();
            rest = match rest {
                [b'(', behind @ ..] => behind,
                [b'/', b'*', behind @ ..] => {
                    let end = memchr::memmem::find(behind, b"*/").map(|n| n + 2);
                    behind
                        .get(end.unwrap_or(behind.len())..)
                        .unwrap_or_default()
                }
                _ => break,
            };
        }
        let end = rest.iter().position(|b| !b.is_ascii_alphabetic());
        let word = &rest[..end.unwrap_or(rest.len())];
        let is_it = |(known, _): &&(&str, Kind)| known.as_bytes().eq_ignore_ascii_case(word);
        WORDS
            .iter()
            .find(is_it)
            .map_or(Kind::Other, |(_, kind)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_at_their_places() {
        for (place, (tier, _)) in TIERS.iter().enumerate() {
            assert_eq!(*tier as usize, place);
        }
        for (place, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, place);
        }
        for (place, (outcome, _)) in super::super::LOGINS.iter().enumerate() {
            assert_eq!(*outcome as usize, place);
        }
    }

    #[test]
    fn kinds_are_first_words() {
        for (sql, kind) in [
            ("SELECT 1", Kind::Select),
            (" (( select 1))", Kind::Select),
            ("/* a */ /* b */insert into t values (1)", Kind::Insert),
            ("REPLACE t VALUES (1)", Kind::Insert),
            ("update t set a = 1", Kind::Update),
            ("DELETE FROM t", Kind::Delete),
            ("CREATE TABLE t (a INT)", Kind::Definition),
            ("COMMIT", Kind::Transaction),
            ("COMMITTED", Kind::Other),
            ("/* open", Kind::Other),
            ("", Kind::Other),
            ("SHOW TABLES", Kind::Other),
        ] {
            assert_eq!(Kind::of(sql.as_bytes()), kind, "{sql}");
        }
    }
}
