//! The statements of the demonstration, and what MySQL answers to them.

use super::client::{Client, Reply};
use crate::error::CommandError;

pub const DATABASE: &str = "clinic";
pub const TABLE: &str = "patients";

/// What must come back.
pub enum Expected {
    Affected(u64),
    /// `NULL` is NULL.
    Rows(&'static [&'static [&'static str]]),
    /// The error names this.
    Refused(&'static str),
}

/// A statement.
pub struct Step {
    pub what: &'static str,
    pub sql: &'static str,
    /// Given for each `?`; then it is prepared.
    pub parameters: &'static [&'static str],
    pub expected: Expected,
    /// Said afterwards.
    pub note: &'static str,
}

impl Step {
    /// Runs it as a text, or as a prepared statement if it has parameters.
    pub fn run(&self, client: &mut Client) -> Result<Reply, CommandError> {
        match self.parameters {
            [] => client.run(self.sql),
            parameters => client.execute(self.sql, parameters),
        }
    }
}

const fn step(what: &'static str, sql: &'static str, expected: Expected) -> Step {
    Step {
        what,
        sql,
        parameters: &[],
        expected,
        note: "",
    }
}

pub const STEPS: &[Step] = &[
    step(
        "A database and tables",
        "CREATE DATABASE clinic CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        Expected::Affected(1),
    ),
    step("", "USE clinic", Expected::Affected(0)),
    Step {
        what: "",
        sql: "CREATE TABLE patients (
  id    INT AUTO_INCREMENT PRIMARY KEY,
  name  VARCHAR(40)   ENCRYPTED FOR (eq),
  age   INT           ENCRYPTED FOR (eq, range),
  email VARCHAR(60)   ENCRYPTED FOR (eq),
  owes  DECIMAL(10,2) ENCRYPTED FOR (),
  notes TEXT          ENCRYPTED FOR (),
  city  VARCHAR(40),
  KEY (age), UNIQUE KEY (email)
)",
        parameters: &[],
        expected: Expected::Affected(0),
        note: "city is not protected, to compare with",
    },
    step(
        "",
        "CREATE TABLE visits (patient INT, day DATE ENCRYPTED FOR (range), reason VARCHAR(60) ENCRYPTED FOR ())",
        Expected::Affected(0),
    ),
    step(
        "INSERT",
        "INSERT INTO patients (name, age, email, owes, notes, city) VALUES
  ('alice', 34, 'alice.archer@example.org', 120.50, 'allergic to penicillin', 'Lisbon'),
  ('bob', 51, 'bob.baker@example.net', 0, 'prefers early appointments', 'Reykjavik'),
  ('carol', 28, 'carol.chen@example.com', 75.25, NULL, 'Lisbon'),
  ('dave', 51, 'dave.diaz@example.org', 9.99, 'pacemaker since 2019', 'Quito'),
  ('erin', 19, 'erin.evans@example.net', 310, 'second opinion wanted', 'Quito'),
  ('Alice', 42, 'alice.young@example.com', 15, 'vaccinated in October', 'Reykjavik')",
        Expected::Affected(6),
    ),
    step(
        "",
        "INSERT INTO visits VALUES (1, '2026-02-11', 'annual check-up'), (4, '2026-03-02', 'battery replacement'), (5, '2026-03-17', 'persistent headache')",
        Expected::Affected(3),
    ),
    step(
        "SELECT *",
        "SELECT * FROM patients WHERE id <= 2 ORDER BY id",
        Expected::Rows(&[
            &[
                "1",
                "alice",
                "34",
                "alice.archer@example.org",
                "120.50",
                "allergic to penicillin",
                "Lisbon",
            ],
            &[
                "2",
                "bob",
                "51",
                "bob.baker@example.net",
                "0.00",
                "prefers early appointments",
                "Reykjavik",
            ],
        ]),
    ),
    Step {
        what: "WHERE name = 'alice'",
        sql: "SELECT id, name, age FROM patients WHERE name = 'alice' ORDER BY id",
        parameters: &[],
        expected: Expected::Rows(&[&["1", "alice", "34"], &["6", "Alice", "42"]]),
        note: "the column's collation counts: 'alice' = 'Alice'",
    },
    step(
        "ORDER BY age DESC",
        "SELECT name, age FROM patients ORDER BY age DESC, id LIMIT 4",
        Expected::Rows(&[
            &["bob", "51"],
            &["dave", "51"],
            &["Alice", "42"],
            &["alice", "34"],
        ]),
    ),
    step(
        "GROUP BY",
        "SELECT age, COUNT(*) FROM patients GROUP BY age ORDER BY age",
        Expected::Rows(&[
            &["19", "1"],
            &["28", "1"],
            &["34", "1"],
            &["42", "1"],
            &["51", "2"],
        ]),
    ),
    step(
        "SUM and AVG",
        "SELECT SUM(age), AVG(age), SUM(owes) FROM patients",
        Expected::Rows(&[&["225", "37.5000", "530.74"]]),
    ),
    step(
        "MIN and MAX",
        "SELECT MIN(age), MAX(age) FROM patients",
        Expected::Rows(&[&["19", "51"]]),
    ),
    step(
        "BETWEEN",
        "SELECT name, age FROM patients WHERE age BETWEEN 30 AND 45 ORDER BY age",
        Expected::Rows(&[&["alice", "34"], &["Alice", "42"]]),
    ),
    step(
        "A join",
        "SELECT p.name, v.day, v.reason FROM patients p JOIN visits v ON v.patient = p.id WHERE v.day >= '2026-03-01' ORDER BY v.day",
        Expected::Rows(&[
            &["dave", "2026-03-02", "battery replacement"],
            &["erin", "2026-03-17", "persistent headache"],
        ]),
    ),
    step(
        "UPDATE age = age + 1",
        "UPDATE patients SET age = age + 1 WHERE name = 'alice'",
        Expected::Affected(2),
    ),
    Step {
        what: "A prepared statement",
        sql: "SELECT name, age, notes FROM patients WHERE email = ? AND age > ?",
        parameters: &["alice.archer@example.org", "30"],
        expected: Expected::Rows(&[&["alice", "35", "allergic to penicillin"]]),
        note: "",
    },
    Step {
        what: "Computing with sealed values",
        sql: "SELECT SUM(GREATEST(age, 20)) FROM patients",
        parameters: &[],
        expected: Expected::Rows(&[&["228"]]),
        note: "done by the scratch engine, a server on this side: opened rows go there into temporary tables, in memory",
    },
    Step {
        what: "LIKE",
        sql: "SELECT name FROM patients WHERE name LIKE '%alice%' ORDER BY id",
        parameters: &[],
        expected: Expected::Rows(&[&["alice"], &["Alice"]]),
        note: "",
    },
    Step {
        what: "What is refused",
        sql: "SELECT UPPER(name), CONNECTION_ID() FROM patients",
        parameters: &[],
        expected: Expected::Refused("connection_id"),
        note: "the scratch engine has connections of its own: what would be another answer than the server's is an error",
    },
];

/// What the application sees of the table.
pub const LOGICAL_TABLE: &str = "SELECT * FROM clinic.patients ORDER BY id";

/// What to look at there.
pub const LOOK: &str = "Rows 1 and 6 have one token for name, because their names are equal to the collation. Rows 2 and 4 have one order key\n\
for age. That is what eq and range show. Sealed cells are different even then.";

/// Nobody stores plaintext by mistake: the columns that plaintext would go to do not exist on the
/// server.
pub const PAST_THE_PROXY: &[&str] = &[
    "INSERT INTO clinic.patients (name, age) VALUES ('mallory', 66)",
    "UPDATE clinic.patients SET notes$enc = 'known to the police' WHERE id = 1",
];

/// What is searched for: the column, a value of it, and whether it is protected.
pub const TRACES: &[(&str, &str, bool)] = &[
    ("city", "Reykjavik", false),
    ("email", "alice.archer@example.org", true),
    ("email", "dave.diaz@example.org", true),
    ("notes", "allergic to penicillin", true),
    ("notes", "pacemaker since 2019", true),
    ("visits.reason", "persistent headache", true),
];
