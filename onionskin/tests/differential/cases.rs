//! Random cases: tables, rows to begin with, then statements of all kinds in a session that changes
//! its settings.

use super::computed;
use super::finishing;
use super::queries;
use super::random::Random;
use super::schema::{self, Table};
use super::script::{Case, Check, Order, Piece, Statement, Step};
use super::unusual;
use super::values;
use super::writes;
use onionskin_testkit::Kind;

/// A case of about `length` statements.
pub fn random_case(random: &mut Random, kind: Kind, length: usize) -> Case {
    let count = 1 + random.below(3);
    let mut tables: Vec<Table> = (0..count).map(|n| Table::random(random, kind, n)).collect();
    if let [first, second, ..] = tables.as_mut_slice()
        && random.chance(60)
    {
        schema::joinable(random, first, second);
    }
    let mut aside = random.aside();
    let mut generator = Generator::new(random, &tables, kind);
    generator.begin();
    while generator.steps.len() < length {
        // from choices of its own, so that the others stay what they were
        match aside.chance(UNUSUAL) {
            true => generator.unusual(&mut aside),
            false => generator.next(),
        }
    }
    generator.end();
    let steps = generator.steps;
    Case {
        steps,
        found_rows: random.chance(30),
        has_other_database: false,
        tables,
    }
}

/// Percent of the steps that are of unusual kinds.
const UNUSUAL: usize = 12;

pub struct Generator<'a> {
    pub random: &'a mut Random,
    pub tables: &'a [Table],
    pub kind: Kind,
    pub steps: Vec<Step>,
    /// Statements that may come again with other constants.
    pub recent: Vec<Statement>,
    /// See [`Generator::prepares`].
    pub may_prepare: bool,
}

impl<'a> Generator<'a> {
    pub fn new(random: &'a mut Random, tables: &'a [Table], kind: Kind) -> Generator<'a> {
        Generator {
            random,
            tables,
            kind,
            steps: Vec::new(),
            recent: Vec::new(),
            may_prepare: true,
        }
    }

    /// A statement of an unusual kind.
    fn unusual(&mut self, aside: &mut Random) {
        let mut steps = unusual::steps(aside, self.tables, self.kind);
        if !self.may_prepare {
            steps.iter_mut().for_each(Step::as_text);
        }
        self.steps.extend(steps);
    }

    pub fn begin(&mut self) {
        for number in 0..self.tables.len() {
            for _ in 0..2 + self.random.below(2) {
                let rows = 3 + self.random.below(10);
                let insert = writes::fill(self.random, self.tables, number, rows);
                self.steps.push(Step::Insert(insert));
            }
        }
    }

    pub fn fixed(&mut self, label: &'static str, text: impl Into<String>) {
        self.steps.push(Step::One(Statement::fixed(label, text)));
    }

    fn next(&mut self) {
        // only a scratch engine can; without one, cases stay what they were
        if std::env::var_os("ONIONSKIN_SCRATCH").is_some() && self.random.chance(12) {
            return self.computed_write();
        }
        match self.random.weighted(&[44, 14, 16, 5, 4, 5, 3, 10, 4]) {
            0 => self.query(),
            1 => self.insert(),
            2 => self.update(),
            3 => self.delete(),
            4 => self.transaction(),
            5 => self.setting(),
            6 => self.batch(),
            7 => self.again(),
            _ => self.definition(),
        }
    }

    pub fn table(&mut self) -> usize {
        self.random.below(self.tables.len())
    }

    /// Whether the next statement is prepared. MySQL takes a string for text of the column's
    /// character set, not of the session's, where the same parameter was a number before: none in a
    /// session whose character set is another.
    pub fn prepares(&mut self) -> bool {
        self.random.chance(35) && self.may_prepare
    }

    pub fn push(&mut self, mut statement: Statement) {
        statement.prepared = self.prepares();
        self.recent.push(statement.clone());
        if self.recent.len() > 6 {
            self.recent.remove(0);
        }
        self.steps.push(Step::One(statement));
    }

    pub fn query(&mut self) {
        let statement = match self.random.chance(22) {
            true => finishing::query(self.random, self.tables),
            false => queries::query(self.random, self.tables),
        };
        self.push(statement);
        self.follow(4);
    }

    pub fn insert(&mut self) {
        let number = self.table();
        let mut insert = writes::insert(self.random, self.tables, number, self.kind);
        insert.prepared = self.prepares();
        if insert.rows.len() == 1 {
            self.recent.push(insert.statement());
        }
        self.steps.push(Step::Insert(insert));
        self.follow(25);
    }

    pub fn update(&mut self) {
        let number = self.table();
        let narrowed = self.random.chance(15);
        let statement = match finishing::update(self.random, self.tables, number) {
            Some(statement) if narrowed => statement,
            _ => writes::update(self.random, self.tables, number),
        };
        self.push(statement);
        self.follow(20);
    }

    /// A change of rows that is computed from what they hold.
    pub fn computed_write(&mut self) {
        let number = self.table();
        let statement = computed::change(self.random, self.tables, number);
        let copies = statement.label == computed::COPY;
        self.push(statement);
        self.follow(20);
        let table = &self.tables[number];
        if copies && table.columns[0].auto_increment {
            // How many numbers InnoDB sets aside for the rows of a query, and whether it does
            // before one of them fails, it does not say.
            let next = 1000 * (1 + self.steps.len());
            let text = format!("ALTER TABLE {} AUTO_INCREMENT = {next}", table.name);
            let statement = Statement::fixed("alter table", &text);
            self.steps.push(Step::One(statement));
        }
    }

    pub fn delete(&mut self) {
        let number = self.table();
        let narrowed = self.random.chance(20);
        let statement = match finishing::delete(self.random, self.tables, number) {
            Some(statement) if narrowed => statement,
            _ => writes::delete(self.random, self.tables, number),
        };
        self.push(statement);
    }

    /// An earlier statement with other constants: the same shape, or the same prepared statement.
    pub fn again(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        let mut statement = self.random.choose(&self.recent).clone();
        // A prepared NOT IN that MariaDB 10.11 executes again takes NULL for a value that is not in
        // a subquery whose rows it keeps, if the subquery was empty before. It keeps rows of short
        // strings, such as tokens, and not of TEXT.
        let is_not_in = |p: &Piece| matches!(p, Piece::Sql(sql) if sql.contains("NOT IN (SELECT"));
        if statement.pieces.iter().any(is_not_in) {
            statement.prepared = false;
        }
        for piece in &mut statement.pieces {
            if let Piece::Constant(literal, (table, column)) = piece {
                let column = &self.tables[*table].columns[*column];
                *literal = values::compared(self.random, column);
            }
        }
        statement.check.several_errors = true;
        self.steps.push(Step::One(statement));
    }

    /// Statements about the statement before.
    fn follow(&mut self, percent: usize) {
        if !self.random.chance(percent) {
            return;
        }
        let (text, lookalikes): (_, &[usize]) = match self.random.below(6) {
            0 => ("SELECT ROW_COUNT(), LAST_INSERT_ID()", &[]),
            1 => ("SELECT @@warning_count, @@error_count", &[]),
            // The texts of warnings may differ, and the order of those of one statement.
            _ => ("SHOW WARNINGS", &[2]),
        };
        let mut statement = Statement::fixed("about the last statement", text);
        statement.check = Check {
            follows: true,
            lookalikes: lookalikes.to_vec(),
            ..Check::default()
        };
        self.steps.push(Step::One(statement));
    }

    fn transaction(&mut self) {
        let begin = self
            .random
            .pick(&["BEGIN", "START TRANSACTION", "SET autocommit = 0"]);
        self.fixed("transaction", begin);
        let savepoint = self.random.chance(25);
        for n in 0..1 + self.random.below(4) {
            if savepoint && n == 1 {
                self.fixed("transaction", "SAVEPOINT s");
            }
            match self.random.below(5) {
                0 => self.query(),
                1 => self.insert(),
                2 | 3 => self.update(),
                _ => self.delete(),
            }
        }
        if savepoint && self.random.chance(50) {
            self.fixed("transaction", "ROLLBACK TO SAVEPOINT s");
        }
        let end = self.random.pick(&["COMMIT", "ROLLBACK", "ROLLBACK"]);
        self.fixed("transaction", end);
        if begin == "SET autocommit = 0" {
            self.fixed("transaction", "SET autocommit = 1");
        }
    }

    fn setting(&mut self) {
        let text = match self.random.below(5) {
            0 | 1 => {
                let mut modes = vec![
                    "",
                    "STRICT_ALL_TABLES",
                    "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO",
                    "STRICT_TRANS_TABLES,ANSI_QUOTES",
                    "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES",
                    "ALLOW_INVALID_DATES",
                    "PAD_CHAR_TO_FULL_LENGTH",
                    "NO_ZERO_DATE",
                    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES",
                    "NO_AUTO_VALUE_ON_ZERO,NO_UNSIGNED_SUBTRACTION",
                    "PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE",
                ];
                modes.push(match self.kind {
                    Kind::MariaDb => "STRICT_TRANS_TABLES,TIME_ROUND_FRACTIONAL",
                    Kind::MySql => "STRICT_TRANS_TABLES,TIME_TRUNCATE_FRACTIONAL",
                });
                format!("SET sql_mode = '{}'", self.random.pick(&modes))
            }
            2 => {
                // MySQL keeps the collation of string parameters from the time of preparing.
                self.recent.clear();
                let names = [
                    "SET NAMES latin1",
                    "SET NAMES utf8mb4",
                    "SET NAMES utf8mb4",
                    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
                    "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
                ];
                let text = self.random.pick(&names);
                self.may_prepare = self.kind == Kind::MariaDb || text == "SET NAMES utf8mb4";
                text.to_owned()
            }
            3 => {
                let zones = ["+00:00", "+05:30", "-08:00", "+13:00", "SYSTEM"];
                format!("SET time_zone = '{}'", self.random.pick(&zones))
            }
            _ => format!(
                "SET timestamp = {}",
                1_700_000_000 + self.random.below(1000)
            ),
        };
        self.fixed("set", text);
    }

    /// Several statements in one text.
    pub fn batch(&mut self) {
        let mut statements = Vec::new();
        for _ in 0..2 + self.random.below(2) {
            let number = self.table();
            statements.push(match self.random.below(5) {
                0 => writes::update(self.random, self.tables, number),
                1 => writes::delete(self.random, self.tables, number),
                2 => {
                    let mut insert = writes::insert(self.random, self.tables, number, self.kind);
                    insert.rows.truncate(1);
                    insert.statement()
                }
                _ => queries::query(self.random, self.tables),
            });
        }
        self.steps.push(Step::Batch(statements));
    }

    fn definition(&mut self) {
        let number = self.table();
        let table = &self.tables[number];
        let name = &table.name;
        match self.random.below(8) {
            0 => {
                let text = format!("TRUNCATE TABLE {name}");
                self.fixed("truncate", text);
                for _ in 0..2 {
                    let insert = writes::fill(self.random, self.tables, number, 8);
                    self.steps.push(Step::Insert(insert));
                }
            }
            1 => {
                let candidates: Vec<&str> = table
                    .columns
                    .iter()
                    .filter(|c| {
                        use schema::Type::*;
                        let may = !matches!(
                            c.ty,
                            Text | Blob | Time(_) | DateTime(_) | Timestamp(_) | Date
                        );
                        may && c.can_equal()
                    })
                    .map(|c| c.name.as_str())
                    .collect();
                let column = (self.random.pick(&candidates)).to_owned();
                let text = format!("CREATE INDEX extra ON {name} ({column})");
                self.fixed("create index", text);
            }
            2 => {
                let key = table.keys.first().map_or("extra", |k| k.name.as_str());
                let text = format!("DROP INDEX {key} ON {name}");
                self.fixed("drop index", text);
            }
            3 => {
                let (there, back) = (
                    format!("RENAME TABLE {name} TO moved"),
                    format!("ALTER TABLE moved RENAME TO {name}"),
                );
                self.fixed("rename", there);
                self.fixed("rename", back);
            }
            4 => {
                let text = format!("SHOW COLUMNS FROM {name}");
                self.shown("show columns", text, &[]);
            }
            5 => {
                let text = format!("SHOW INDEX FROM {name}");
                // Cardinality is an estimate.
                self.shown("show index", text, &[6]);
            }
            6 => {
                let text = format!("EXPLAIN SELECT * FROM {name}");
                // Only that it answers: the plan is another one.
                let mut statement = Statement::fixed("explain", text);
                statement.check.order = Order::OnlyCount;
                self.steps.push(Step::One(statement));
            }
            _ => {
                let text = format!("SELECT COUNT(*) FROM {name}");
                self.fixed("select aggregates", text);
            }
        }
    }

    pub fn shown(&mut self, label: &'static str, text: String, lookalikes: &[usize]) {
        let mut statement = Statement::fixed(label, text);
        statement.check.order = Order::Total;
        statement.check.lookalikes = lookalikes.to_vec();
        self.steps.push(Step::One(statement));
    }

    /// In the end all rows and all definitions must be the same.
    pub fn end(&mut self) {
        self.fixed("set", "SET sql_mode = ''");
        self.fixed("set", "SET NAMES utf8mb4");
        for table in self.tables {
            let name = &table.name;
            self.shown("all rows", format!("SELECT * FROM {name} ORDER BY id"), &[]);
            self.shown(
                "show create table",
                format!("SHOW CREATE TABLE {name}"),
                &[],
            );
            self.shown("describe", format!("DESCRIBE {name}"), &[]);
            self.shown(
                "information_schema.columns",
                format!(
                    "SELECT * FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{name}' \
                     ORDER BY ordinal_position"
                ),
                &[],
            );
        }
    }
}
