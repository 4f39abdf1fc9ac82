//! Random sessions: from twenty to two hundred steps that change what the session is, and
//! statements between them. Settings, transactions, statements prepared by name and in the
//! protocol, temporary tables, locks, other databases, errors and refusals.
//!
//! What the proxy refuses, the plain server is spared: behind a refusal, the session must be what
//! it was before.

use super::cases::Generator;
use super::conditions::{by_id, sql};
use super::finishing;
use super::odd;
use super::queries;
use super::questions;
use super::random::Random;
use super::schema::{self, Table, Type};
use super::script::{Case, Check, Command, OTHER, Order, Piece, Statement, Step};
use super::settings;
use super::unusual;
use super::values;
use super::writes;
use onionskin_testkit::Kind;

pub const SET: &str = "set a variable";
pub const PROBE: &str = "variables";
pub const TRANSACTION: &str = "transaction";
pub const PREPARE: &str = "prepare by name";
pub const EXECUTE: &str = "execute by name";
pub const TEMPORARY: &str = "temporary table";
pub const LOCK: &str = "lock tables";
pub const REFUSAL: &str = "mostly refused";
pub const ERROR: &str = "an error";
pub const ELSEWHERE: &str = "from another database";
pub const ALTER: &str = "alter a table";
pub const VARIABLE: &str = "select by a variable";

/// The labels that a run of ordinary length meets.
pub const LABELS: [&str; 16] = [
    SET,
    PROBE,
    TRANSACTION,
    PREPARE,
    EXECUTE,
    TEMPORARY,
    LOCK,
    REFUSAL,
    ERROR,
    ELSEWHERE,
    ALTER,
    VARIABLE,
    questions::LABEL,
    "reset connection",
    "change user",
    "init database",
];

/// A session.
pub fn random_session(random: &mut Random, kind: Kind) -> Case {
    let length = random.pick(&[20, 40, 60, 100, 200]);
    let count = 1 + random.below(2);
    let mut tables: Vec<Table> = (0..count).map(|n| Table::random(random, kind, n)).collect();
    if let [first, second] = tables.as_mut_slice()
        && random.chance(60)
    {
        schema::joinable(random, first, second);
    }
    let found_rows = random.chance(30);
    let mut session = Session {
        base: Generator::new(random, &tables, kind),
        kept: Vec::new(),
        set: Vec::new(),
        is_limited: false,
        is_safe: false,
    };
    session.base.begin();
    while session.base.steps.len() < length {
        let from = session.base.steps.len();
        session.next();
        session.prepare_some(from);
        session.relax(from);
    }
    session.end();
    let steps = session.base.steps;
    Case {
        steps,
        found_rows,
        has_other_database: true,
        tables,
    }
}

struct Session<'a> {
    base: Generator<'a>,
    /// Prepared statements that are executed again, whatever has happened since.
    kept: Vec<Statement>,
    /// Variables that have been set.
    set: Vec<&'static str>,
    /// `sql_select_limit` cuts results: without a total order it is not certain which rows come.
    is_limited: bool,
    /// `sql_safe_updates`: whether a condition uses a key is the optimizer's word, so rows are
    /// changed by `id` or LIMIT.
    is_safe: bool,
}

impl Session<'_> {
    fn next(&mut self) {
        match self
            .base
            .random
            .weighted(&[14, 12, 16, 8, 9, 7, 10, 4, 4, 4, 2, 3, 4, 2, 3, 8, 4, 3])
        {
            0 => self.base.query(),
            1 => self.write(),
            2 => self.setting(),
            3 => self.probe(),
            4 => self.transaction(),
            5 => self.by_name(),
            6 => self.keep(),
            7 => self.temporary(),
            8 => self.refusal(),
            9 => self.error(),
            10 => self.locked(),
            11 => self.elsewhere(),
            12 => self.batch(),
            13 => self.anew(),
            14 => self.alter(),
            15 => self.questions(),
            16 => self.unusual(),
            _ => self.by_variable(),
        }
    }

    fn one(&mut self, statement: Statement) {
        self.base.steps.push(Step::One(statement));
    }

    fn fixed(&mut self, label: &'static str, text: impl Into<String>) {
        self.base.fixed(label, text);
    }

    fn answer(&mut self, label: &'static str, text: impl Into<String>) {
        let mut statement = Statement::fixed(label, text);
        statement.check.order = Order::Total;
        self.one(statement);
    }

    /// Whatever it is, a statement may come in the protocol of prepared statements: it has to do
    /// the same there.
    fn prepare_some(&mut self, from: usize) {
        const ALSO: [&str; 5] = [SET, TRANSACTION, TEMPORARY, LOCK, ALTER];
        for step in &mut self.base.steps[from..] {
            if let Step::One(statement) = step
                && ALSO.contains(&statement.label)
                && self.base.random.chance(25)
            {
                statement.prepared = true;
            }
        }
    }

    /// What is not certain in this session of the steps behind `from`.
    fn relax(&mut self, from: usize) {
        if !self.is_limited {
            return;
        }
        let relax = |statement: &mut Statement| {
            if statement.check.order != Order::Total {
                statement.check.order = Order::OnlyCount;
            }
        };
        for step in &mut self.base.steps[from..] {
            match step {
                Step::One(statement) => relax(statement),
                Step::Batch(statements) => statements.iter_mut().for_each(relax),
                Step::Insert(_) | Step::Command(_) => {}
            }
        }
    }

    fn write(&mut self) {
        if self.is_safe {
            return self.safe_write();
        }
        match self.base.random.below(8) {
            0..=2 => self.insert(),
            3..=5 => self.base.update(),
            _ => self.base.delete(),
        }
    }

    /// Rows that fit: a session is compared to its end.
    fn insert(&mut self) {
        let number = self.base.table();
        let rows = 1 + self.base.random.below(3);
        let mut insert = writes::fill(self.base.random, self.base.tables, number, rows);
        insert.prepared = self.base.prepares();
        self.base.steps.push(Step::Insert(insert));
    }

    fn safe_write(&mut self) {
        let statement = self.by_key();
        self.base.push(statement);
    }

    /// An UPDATE or DELETE of one row by its key.
    fn by_key(&mut self) -> Statement {
        let number = self.base.table();
        let table = &self.base.tables[number];
        let random = &mut *self.base.random;
        let index = odd::unindexed(random, table, |c| !c.on_update).unwrap_or(0);
        let column = &table.columns[index];
        let (label, mut pieces) = match index > 0 && random.chance(75) {
            true => {
                let text = format!("UPDATE {} SET {} = ", table.name, column.name);
                let value = values::harmless(random, column);
                (
                    "update by key",
                    vec![sql(&text), Piece::Constant(value, (number, index))],
                )
            }
            false => (
                "delete by key",
                vec![sql(&format!("DELETE FROM {}", table.name))],
            ),
        };
        pieces.extend(by_id(random, (number, 0)));
        Statement {
            label,
            pieces,
            prepared: false,
            check: Check {
                several_errors: true,
                ..Check::default()
            },
        }
    }

    fn setting(&mut self) {
        let random = &mut *self.base.random;
        let (name, value) = match random.below(8) {
            // as often as all the others
            0 => (
                "sql_mode",
                format!("'{}'", super::modes::words(random, self.base.kind)),
            ),
            1 => return self.names(),
            2 => return self.user_variable(),
            _ => settings::random(random, self.base.kind),
        };
        let form = random.pick(&["SET {}", "SET SESSION {}", "SET @@session.{}", "SET @@{}"]);
        let text = format!("{} = {value}", form.replace("{}", name));
        let is_saved = random.chance(20) && name != "insert_id";
        if is_saved {
            self.fixed(SET, format!("SET @saved = @@{name}"));
        }
        self.fixed(SET, text);
        if !self.set.contains(&name) {
            self.set.push(name);
        }
        let was = (self.is_limited, self.is_safe);
        match name {
            "sql_select_limit" => self.is_limited = value != "DEFAULT",
            "sql_safe_updates" => self.is_safe = value == "1",
            _ => {}
        }
        if is_saved {
            // and back again, behind something that it may matter for
            let from = self.base.steps.len();
            self.base.query();
            self.relax(from);
            self.fixed(SET, format!("SET {name} = @saved"));
            (self.is_limited, self.is_safe) = was;
        }
    }

    /// See [`Generator::prepares`] for MySQL's parameters.
    fn names(&mut self) {
        self.base.recent.clear();
        self.kept.clear();
        let names = [
            "SET NAMES latin1",
            "SET NAMES utf8mb4",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SET CHARACTER SET utf8mb4",
        ];
        let text = self.base.random.pick(&names);
        if text.starts_with("SET CHARACTER") {
            // After a reset, MariaDB takes the server's character set for the database's, until a
            // view is looked into.
            self.fixed(ELSEWHERE, "USE {db}");
        }
        self.base.may_prepare = self.base.kind == Kind::MariaDb || !text.ends_with("latin1");
        self.fixed(SET, text);
    }

    fn user_variable(&mut self) {
        let number = self.base.table();
        let table = &self.base.tables[number];
        let random = &mut *self.base.random;
        let column = random.choose(&table.columns);
        let name = random.pick(&["@a", "@b"]);
        let text = match random.below(5) {
            0 => format!("SELECT COUNT(*) INTO {name} FROM {}", table.name),
            1 => format!("SELECT MAX(id) INTO {name} FROM {}", table.name),
            _ => format!("SET {name} = {}", values::ordinary(random, column).sql),
        };
        self.fixed(SET, text);
    }

    fn probe(&mut self) {
        // MariaDB: behind COM_RESET_CONNECTION, @@collation_database is the server's default until
        // the server happens to look at another database
        let of_database = match self.base.kind {
            Kind::MariaDb => "",
            Kind::MySql => ", @@collation_database",
        };
        let text = match self.base.random.below(3) {
            0 => format!(
                "SELECT @a, @b, @x, @@autocommit, DATABASE(), @@character_set_client, @@character_set_connection, \
                 LAST_INSERT_ID(){of_database}"
            ),
            _ => {
                let names = settings::names(self.base.random, self.base.kind);
                let names: Vec<String> = names.iter().map(|n| format!("@@session.{n}")).collect();
                format!("SELECT {}", names.join(", "))
            }
        };
        self.answer(PROBE, text);
    }

    fn transaction(&mut self) {
        let text = self.base.random.pick(&[
            "BEGIN",
            "START TRANSACTION",
            "START TRANSACTION READ ONLY",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "SET TRANSACTION READ ONLY",
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "SAVEPOINT a",
            "SAVEPOINT b",
            "SAVEPOINT a",
            "ROLLBACK TO SAVEPOINT a",
            "ROLLBACK TO b",
            "RELEASE SAVEPOINT a",
            "COMMIT",
            "COMMIT",
            "ROLLBACK",
            "ROLLBACK",
            "COMMIT AND CHAIN",
            "ROLLBACK AND CHAIN",
            "SET autocommit = 0",
            "SET autocommit = 0",
            "SET autocommit = 1",
        ]);
        self.fixed(TRANSACTION, text);
    }

    /// A SELECT of one table, or a change by its key: a text for PREPARE.
    fn preparable(&mut self) -> Statement {
        if self.base.random.chance(30) {
            return self.by_key();
        }
        for _ in 0..20 {
            let statement = queries::query(self.base.random, self.base.tables);
            if statement.label == "select" {
                return statement;
            }
        }
        Statement::fixed("select", "SELECT 1")
    }

    fn by_name(&mut self) {
        let name = self.base.random.pick(&["one", "two"]);
        let statement = self.preparable();
        let (text, _) = statement.parameters();
        let constants: Vec<String> = statement
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Constant(literal, _) => Some(literal.sql.clone()),
                Piece::Sql(_) => None,
            })
            .collect();
        match self.base.random.chance(70) {
            true => self.fixed(
                PREPARE,
                format!("PREPARE {name} FROM {}", values::quoted(&text)),
            ),
            false => {
                self.fixed(SET, format!("SET @text = {}", values::quoted(&text)));
                self.fixed(PREPARE, format!("PREPARE {name} FROM @text"));
            }
        }
        if self.base.random.chance(25) {
            let from = self.base.steps.len();
            self.setting();
            self.relax(from);
        }
        let names: Vec<String> = (0..constants.len()).map(|n| format!("@p{n}")).collect();
        for (name, constant) in names.iter().zip(&constants) {
            self.fixed(SET, format!("SET {name} = {constant}"));
        }
        let using = match names.is_empty() {
            true => String::new(),
            false => format!(" USING {}", names.join(", ")),
        };
        for _ in 0..1 + self.base.random.below(2) {
            let mut execute = Statement::fixed(EXECUTE, format!("EXECUTE {name}{using}"));
            execute.check = statement.check.clone();
            execute.check.several_errors = true;
            self.one(execute);
        }
        if self.base.random.chance(50) {
            let verb = self.base.random.pick(&["DEALLOCATE", "DROP"]);
            self.fixed(PREPARE, format!("{verb} PREPARE {name}"));
        }
    }

    /// A prepared statement that is kept, or one that was.
    fn keep(&mut self) {
        if !self.base.may_prepare {
            return;
        }
        if self.kept.len() < 2 || self.base.random.chance(20) {
            let mut statement = match self.base.random.below(4) {
                0 => {
                    let number = self.base.table();
                    let text = format!(
                        "SELECT * FROM {} ORDER BY id",
                        self.base.tables[number].name
                    );
                    let mut all = Statement::fixed("select kept", text);
                    all.check.order = Order::Total;
                    all
                }
                1 => finishing::query(self.base.random, self.base.tables),
                _ => self.preparable(),
            };
            statement.prepared = true;
            statement.check.several_errors = true;
            self.kept.push(statement.clone());
            return self.one(statement);
        }
        let mut statement = self.base.random.choose(&self.kept).clone();
        for piece in &mut statement.pieces {
            if let Piece::Constant(literal, (table, column)) = piece {
                let column = &self.base.tables[*table].columns[*column];
                *literal = values::compared(self.base.random, column);
            }
        }
        self.one(statement);
    }

    fn temporary(&mut self) {
        let number = self.base.table();
        let table = &self.base.tables[number];
        let name = &table.name;
        match self.base.random.below(4) {
            0 => {
                self.fixed(
                    TEMPORARY,
                    "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, n INT ENCRYPTED FOR (range), \
                     s VARCHAR(20) COLLATE utf8mb4_general_ci ENCRYPTED FOR (eq))",
                );
                self.fixed(
                    TEMPORARY,
                    "INSERT INTO tmp VALUES (1, 5, 'a'), (2, NULL, 'A '), (3, 7, NULL)",
                );
                self.probe();
                self.answer(
                    TEMPORARY,
                    "SELECT * FROM tmp WHERE s = 'a' OR n > 6 ORDER BY id",
                );
                self.answer(TEMPORARY, "SELECT COUNT(*), SUM(n), MIN(n) FROM tmp");
                self.fixed(TEMPORARY, "UPDATE tmp SET n = n + 1 WHERE id < 3");
                self.fixed(TEMPORARY, "DROP TEMPORARY TABLE tmp");
            }
            1 => {
                self.fixed(
                    TEMPORARY,
                    format!("CREATE TEMPORARY TABLE copy LIKE {name}"),
                );
                self.answer(TEMPORARY, "SELECT * FROM copy ORDER BY id");
                self.answer("show create table", "SHOW CREATE TABLE copy");
                self.fixed(TEMPORARY, "DROP TEMPORARY TABLE copy");
            }
            2 => {
                // refused where it would hide protected columns
                self.fixed(TEMPORARY, format!("CREATE TEMPORARY TABLE {name} (id INT)"));
                self.answer(TEMPORARY, format!("SELECT * FROM {name} ORDER BY id"));
                self.fixed(TEMPORARY, format!("DROP TEMPORARY TABLE {name}"));
            }
            _ => {
                // hides the protected table behind another of the same shape
                let create = table.create(true).replacen("CREATE", "CREATE TEMPORARY", 1);
                self.fixed(TEMPORARY, create);
                for _ in 0..2 {
                    let insert = writes::fill(self.base.random, self.base.tables, number, 3);
                    self.base.steps.push(Step::Insert(insert));
                }
                self.answer(TEMPORARY, format!("SELECT * FROM {name} ORDER BY id"));
                self.keep();
                let statement = self.by_key();
                self.one(statement);
                self.fixed(TEMPORARY, format!("DROP TEMPORARY TABLE {name}"));
                self.answer(TEMPORARY, format!("SELECT * FROM {name} ORDER BY id"));
            }
        }
    }

    /// Statements that the proxy refuses, most of them near protected columns only.
    fn refusal(&mut self) {
        let number = self.base.table();
        let table = &self.base.tables[number];
        let random = &mut *self.base.random;
        let column = &random.choose(&table.columns).name;
        let name = &table.name;
        let text = match random.below(9) {
            0 => format!("SELECT id FROM {name} WHERE {column} REGEXP 'a' ORDER BY id"),
            1 => format!("SELECT id, RANK() OVER (ORDER BY id) FROM {name} ORDER BY id"),
            2 => format!("CREATE PROCEDURE p{number}() SELECT * FROM {name}"),
            3 => "SET session_track_schema = 0".to_owned(),
            4 => format!("SELECT id INTO OUTFILE 'nowhere/x' FROM {name}"),
            5 => format!(
                "CREATE TRIGGER g{number} BEFORE INSERT ON {name} FOR EACH ROW SET @x = (SELECT COUNT(*) FROM (SELECT * FROM {name}) a)"
            ),
            6 => format!("SELECT HEX({column}), id FROM {name} ORDER BY id"),
            7 => format!("LOAD DATA INFILE 'nowhere' INTO TABLE {name}"),
            _ => {
                format!("UPDATE {name} a JOIN {name} b ON a.id = b.id SET a.{column} = b.{column}")
            }
        };
        let mut statement = Statement::fixed(REFUSAL, text);
        statement.check.order = Order::Total;
        statement.check.several_errors = true;
        self.one(statement);
        if self.base.random.chance(60) {
            self.probe();
        }
    }

    fn error(&mut self) {
        let number = self.base.table();
        let name = &self.base.tables[number].name;
        let text = match self.base.random.below(14) {
            0 => "SELEC 1".to_owned(),
            1 => "SELECT 1 FROM nowhere".to_owned(),
            2 => format!("SELECT nothing FROM {name}"),
            3 => format!("INSERT INTO {name} (nothing) VALUES (1)"),
            4 => format!("INSERT INTO {name} (id) SELECT id FROM {name} WHERE id < 0"),
            5 => "ROLLBACK TO SAVEPOINT nowhere".to_owned(),
            6 => "DEALLOCATE PREPARE nobody".to_owned(),
            7 => "EXECUTE nobody".to_owned(),
            8 => "SET nothing = 1".to_owned(),
            9 => "SET sql_mode = 'NOTHING'".to_owned(),
            10 => "SET NAMES nothing".to_owned(),
            11 => format!("DROP TABLE {name}_not"),
            12 => format!("SELECT * FROM {name} WHERE id = (SELECT 1 UNION SELECT 2)"),
            _ => "USE nowhere".to_owned(),
        };
        let mut statement = Statement::fixed(ERROR, text);
        statement.check.several_errors = true;
        self.one(statement);
        if self.base.random.chance(50) {
            let question = questions::question(self.base.random);
            self.one(question);
        }
    }

    fn locked(&mut self) {
        let names: Vec<&str> = self.base.tables.iter().map(|t| t.name.as_str()).collect();
        let ways: Vec<String> = names
            .iter()
            .map(|name| {
                format!(
                    "{name} {}",
                    self.base.random.pick(&["WRITE", "WRITE", "READ"])
                )
            })
            .collect();
        let number = self.base.random.below(ways.len());
        let text = match self.base.random.chance(60) {
            true => format!("LOCK TABLES {}", ways.join(", ")),
            false => format!("LOCK TABLES {}", ways[number]),
        };
        self.fixed(LOCK, text);
        for _ in 0..1 + self.base.random.below(4) {
            match self.base.random.below(4) {
                0 => self.insert(),
                1 => {
                    let statement = self.by_key();
                    self.one(statement);
                }
                2 => {
                    let number = self.base.table();
                    let name = &self.base.tables[number].name;
                    let text = format!("SELECT * FROM {name} ORDER BY id");
                    self.answer(LOCK, text);
                }
                _ => self.keep(),
            }
        }
        self.fixed(LOCK, "UNLOCK TABLES");
    }

    fn elsewhere(&mut self) {
        let number = self.base.table();
        let name = self.base.tables[number].name.clone();
        let is_command = self.base.random.chance(50);
        match is_command {
            true => self.base.steps.push(Step::Command(Command::Away)),
            false => self.fixed(ELSEWHERE, format!("USE {{db}}{OTHER}")),
        }
        let count = 1 + self.base.random.below(3);
        for _ in 0..count {
            match self.base.random.below(5) {
                0 => self.probe(),
                // no table there
                1 => self.answer(ELSEWHERE, format!("SELECT * FROM {name} ORDER BY id")),
                2 => {
                    let text = format!("DELETE FROM {{db}}.{name} WHERE id = 7");
                    self.fixed(ELSEWHERE, text);
                }
                3 => self.keep(),
                _ => self.answer(
                    ELSEWHERE,
                    format!("SELECT * FROM {{db}}.{name} ORDER BY id"),
                ),
            }
        }
        match self.base.random.chance(50) {
            true => self.base.steps.push(Step::Command(Command::Home)),
            false => self.fixed(ELSEWHERE, "USE {db}"),
        }
    }

    fn batch(&mut self) {
        if self.is_safe {
            return;
        }
        self.base.batch();
        if self.base.random.chance(30)
            && let Some(Step::Batch(statements)) = self.base.steps.last_mut()
        {
            statements.insert(1, Statement::fixed(SET, "SET @x = @x + 1"));
        }
    }

    /// A session that begins anew.
    fn anew(&mut self) {
        let command = self
            .base
            .random
            .pick(&[Command::Reset, Command::ChangeUser]);
        self.base.steps.push(Step::Command(command));
        self.base.recent.clear();
        self.kept.clear();
        self.set.clear();
        self.base.may_prepare = true;
        (self.is_limited, self.is_safe) = (false, false);
        self.probe();
    }

    fn alter(&mut self) {
        let number = self.base.table();
        let name = self.base.tables[number].name.clone();
        match self.base.random.below(4) {
            0 => self.fixed(ALTER, format!("ALTER TABLE {name} COMMENT = 'altered'")),
            1 => self.fixed(ALTER, format!("ANALYZE TABLE {name}_not")),
            _ => {
                let column = self.base.random.pick(&[
                    "extra INT DEFAULT 7",
                    "extra INT DEFAULT 7 ENCRYPTED FOR (eq)",
                    "extra VARCHAR(20) COLLATE utf8mb4_general_ci ENCRYPTED FOR (eq, range)",
                ]);
                self.fixed(ALTER, format!("ALTER TABLE {name} ADD COLUMN {column}"));
                self.answer(ALTER, format!("SELECT * FROM {name} ORDER BY id"));
                self.keep();
                self.keep();
                self.fixed(ALTER, format!("ALTER TABLE {name} DROP COLUMN extra"));
                self.keep();
            }
        }
    }

    fn questions(&mut self) {
        for _ in 0..1 + self.base.random.below(3) {
            let question = questions::question(self.base.random);
            self.one(question);
        }
    }

    fn unusual(&mut self) {
        if self.is_safe {
            return;
        }
        let mut steps = unusual::steps(self.base.random, self.base.tables, self.base.kind);
        if !self.base.may_prepare {
            steps.iter_mut().for_each(Step::as_text);
        }
        self.base.steps.extend(steps);
    }

    fn by_variable(&mut self) {
        let number = self.base.table();
        let table = &self.base.tables[number];
        let random = &mut *self.base.random;
        let fits = |c: &schema::Column| c.can_equal() && !matches!(c.ty, Type::Bit(_));
        let index = odd::unindexed(random, table, fits).unwrap_or(0);
        let column = &table.columns[index];
        let value = values::ordinary(random, column).sql;
        let operator = random.pick(&["=", "<=>", "<>"]);
        let text = format!(
            "SELECT id FROM {} WHERE {} {operator} @c ORDER BY id",
            table.name, column.name
        );
        self.fixed(SET, format!("SET @c = {value}"));
        self.answer(VARIABLE, text);
    }

    /// Everything back, then all rows and definitions.
    fn end(&mut self) {
        self.fixed(TRANSACTION, "ROLLBACK");
        self.fixed(LOCK, "UNLOCK TABLES");
        self.fixed(TRANSACTION, "SET autocommit = 1");
        for name in std::mem::take(&mut self.set) {
            let text = match name {
                "insert_id" => "SET insert_id = 0".to_owned(),
                "last_insert_id" => "SET last_insert_id = 0".to_owned(),
                "timestamp" => super::answers::CLOCK.to_owned(),
                _ => format!("SET SESSION {name} = DEFAULT"),
            };
            self.fixed(SET, text);
        }
        self.fixed(ELSEWHERE, "USE {db}");
        self.base.end();
    }
}
