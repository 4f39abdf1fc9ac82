//! The statements of sysbench's oltp workloads, for the driver of our own.

use rand::{Rng, RngExt};
use serde::Deserialize;

/// The workloads that both drivers know, by sysbench's names, and two of ours: over the rows of a
/// range that `oltp_read_only` reads as they are, what the proxy finishes, and what its scratch
/// engine does.
pub const WORKLOADS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_insert",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_delete",
    FINISH,
    SCRATCH,
];

/// Different texts, sorted.
pub const FINISH: &str = "tier_finish";
/// Functions and arithmetic of protected columns.
pub const SCRATCH: &str = "tier_scratch";

/// The select list of a workload of ours, and what stands behind the range.
pub fn own_select(workload: &str) -> Option<(&'static str, &'static str)> {
    match workload {
        FINISH => Some(("DISTINCT c", " ORDER BY c")),
        SCRATCH => Some(("id, UPPER(c), k % 7", "")),
        _ => None,
    }
}

/// How the statements of a load travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statements {
    /// As texts, with their values in them.
    Text,
    /// Prepared once in each session, then executed.
    #[default]
    Prepared,
}

impl Statements {
    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Prepared => "prepared",
        }
    }
}

/// A statement with its parameters.
pub type Statement = (String, Vec<mysql::Value>);

/// One of the tables `sbtest1` ….
#[derive(Clone, Debug)]
pub struct Table {
    /// With its database.
    pub name: String,
    /// Rows that it had in the beginning.
    pub rows: u32,
}

impl Table {
    /// Table number `n` of a database.
    pub fn new(database: &str, n: u32, rows: u32) -> Self {
        Self {
            name: format!("`{database}`.sbtest{n}"),
            rows: rows.max(1),
        }
    }

    /// Its definition; the index on `k` is added after the rows.
    pub fn create(&self) -> String {
        format!(
            "CREATE TABLE {} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
             pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE=InnoDB",
            self.name
        )
    }

    /// Rows of the first filling, as one statement.
    pub fn fill(&self, count: u32, rng: &mut impl Rng) -> String {
        let rows: Vec<String> = (0..count)
            .map(|_| {
                format!(
                    "({}, '{}', '{}')",
                    self.key(rng),
                    groups(rng, 10),
                    groups(rng, 5)
                )
            })
            .collect();
        format!(
            "INSERT INTO {} (k, c, pad) VALUES {}",
            self.name,
            rows.join(", ")
        )
    }

    fn key(&self, rng: &mut impl Rng) -> u32 {
        rng.random_range(1..=self.rows)
    }

    fn point(&self, rng: &mut impl Rng) -> Statement {
        (
            format!("SELECT c FROM {} WHERE id=?", self.name),
            vec![self.key(rng).into()],
        )
    }

    fn range(&self, select: &str, tail: &str, rng: &mut impl Rng) -> Statement {
        let first = self.key(rng);
        (
            format!(
                "SELECT {select} FROM {} WHERE id BETWEEN ? AND ?{tail}",
                self.name
            ),
            vec![first.into(), (first + 99).into()],
        )
    }

    /// An update of a column without an index; also the load of table changes.
    pub fn update_plain(&self, rng: &mut impl Rng) -> Statement {
        (
            format!("UPDATE {} SET c=? WHERE id=?", self.name),
            vec![groups(rng, 10).into(), self.key(rng).into()],
        )
    }

    fn update_index(&self, rng: &mut impl Rng) -> Statement {
        (
            format!("UPDATE {} SET k=k+1 WHERE id=?", self.name),
            vec![self.key(rng).into()],
        )
    }

    fn reads(&self, rng: &mut impl Rng) -> Vec<Statement> {
        let mut statements: Vec<Statement> = (0..10).map(|_| self.point(rng)).collect();
        statements.extend([
            self.range("c", "", rng),
            self.range("SUM(k)", "", rng),
            self.range("c", " ORDER BY c", rng),
            self.range("DISTINCT c", " ORDER BY c", rng),
        ]);
        statements
    }

    fn writes(&self, rng: &mut impl Rng) -> Vec<Statement> {
        let id = self.key(rng);
        vec![
            self.update_index(rng),
            self.update_plain(rng),
            (
                format!("DELETE FROM {} WHERE id=?", self.name),
                vec![id.into()],
            ),
            (
                format!(
                    "INSERT INTO {} (id, k, c, pad) VALUES (?, ?, ?, ?)",
                    self.name
                ),
                vec![
                    id.into(),
                    self.key(rng).into(),
                    groups(rng, 10).into(),
                    groups(rng, 5).into(),
                ],
            ),
        ]
    }

    /// One iteration of a workload, and whether it is a transaction of several statements. `None`:
    /// unknown.
    pub fn iteration(&self, workload: &str, rng: &mut impl Rng) -> Option<(Vec<Statement>, bool)> {
        let single = |statement| Some((vec![statement], false));
        if let Some((select, tail)) = own_select(workload) {
            return single(self.range(select, tail, rng));
        }
        match workload {
            "oltp_point_select" => single(self.point(rng)),
            "oltp_update_index" => single(self.update_index(rng)),
            "oltp_update_non_index" => single(self.update_plain(rng)),
            "oltp_insert" => single((
                format!("INSERT INTO {} (k, c, pad) VALUES (?, ?, ?)", self.name),
                vec![
                    self.key(rng).into(),
                    groups(rng, 10).into(),
                    groups(rng, 5).into(),
                ],
            )),
            "oltp_delete" => single((
                format!("DELETE FROM {} WHERE id=?", self.name),
                vec![self.key(rng).into()],
            )),
            "oltp_read_only" => Some((self.reads(rng), true)),
            "oltp_write_only" => Some((self.writes(rng), true)),
            "oltp_read_write" => {
                let mut statements = self.reads(rng);
                statements.extend(self.writes(rng));
                Some((statements, true))
            }
            _ => None,
        }
    }
}

/// A statement with its values in the place of the question marks. None of ours has one in a text.
pub fn text(sql: &str, values: &[mysql::Value]) -> String {
    let mut values = values.iter();
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += &values.next().map_or_else(String::new, |v| v.as_sql(false));
        text += part;
    }
    text
}

/// Groups of eleven digits with hyphens between them, as sysbench fills its texts.
pub fn groups(rng: &mut impl Rng, count: usize) -> String {
    let groups: Vec<String> = (0..count)
        .map(|_| format!("{:011}", rng.random_range(0..100_000_000_000_u64)))
        .collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_statements_whose_parameters_fit() {
        let table = Table::new("db", 1, 10);
        let mut rng = rand::rng();
        for workload in WORKLOADS {
            let (statements, transaction) = table.iteration(workload, &mut rng).expect("known");
            assert_eq!(transaction, statements.len() > 1, "{workload}");
            for (sql, values) in statements {
                assert_eq!(sql.matches('?').count(), values.len(), "{sql}");
            }
        }
        assert!(table.iteration("other", &mut rng).is_none());
        let values = ["a'b".into(), 7.into()];
        assert_eq!(
            text("UPDATE t SET c=? WHERE id=?", &values),
            r"UPDATE t SET c='a\'b' WHERE id=7"
        );
        assert_eq!(text("BEGIN", &[]), "BEGIN");
        assert_eq!(groups(&mut rng, 10).len(), 119);
    }
}
