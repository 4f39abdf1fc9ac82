//! A pair of addresses, and how a case runs on both.

use super::answers::{self, Answer};
use super::comparison::{self, Difference};
use super::evaluations;
use super::padding;
use super::plans;
use super::schema::{Table, Type};
use super::script::{Case, OTHER, Piece, Statement, Step};
use super::values::Literal;
use mysql::prelude::Queryable;
use onionskin_testkit::direct_mode;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the plain server and the proxy listen.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub plain: u16,
    pub proxy: u16,
}

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Statements that both sides ran.
    pub compared: usize,
    /// How many of each kind both sides ran.
    pub by_label: BTreeMap<&'static str, usize>,
    /// Refusals by code and kind of statement.
    pub refused: BTreeMap<(String, &'static str), usize>,
    /// Statements that both sides failed with different errors, either of which is right.
    pub other_error: usize,
    /// Statements that fail on both sides.
    pub failed: usize,
    /// The tables could not be made.
    pub unusable: Option<String>,
    pub differences: Vec<Difference>,
}

impl Report {
    /// Number of refused statements.
    pub fn refusals(&self) -> usize {
        self.refused.values().sum()
    }

    fn ran(&mut self, statements: &[Statement]) {
        for statement in statements {
            *self.by_label.entry(statement.label).or_default() += 1;
        }
    }

    /// How many of a kind were run or refused.
    pub fn met(&self, label: &str) -> usize {
        let refused = self.refused.iter().filter(|((_, l), _)| *l == label);
        self.by_label.get(label).unwrap_or(&0) + refused.map(|(_, count)| count).sum::<usize>()
    }

    /// Adds up the numbers.
    pub fn add(&mut self, other: &Report) {
        self.compared += other.compared;
        self.other_error += other.other_error;
        self.failed += other.failed;
        for (label, count) in &other.by_label {
            *self.by_label.entry(label).or_default() += count;
        }
        for (key, count) in &other.refused {
            *self.refused.entry(key.clone()).or_default() += count;
        }
    }
}

impl Lane {
    /// Two sessions, to the plain server and to the proxy, in a new database.
    pub fn sessions(self, database: &str, found_rows: bool) -> (mysql::Conn, mysql::Conn) {
        let mut plain = answers::connect(self.plain, found_rows);
        let mut proxy = answers::connect(self.proxy, found_rows);
        for conn in [&mut plain, &mut proxy] {
            make_database(conn, database);
            answers::must(conn, answers::CLOCK);
        }
        (plain, proxy)
    }

    /// Runs a case in a new database and new sessions.
    pub fn run(self, case: &Case) -> Report {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let database = format!("d{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let (mut plain, mut proxy) = self.sessions(&database, case.found_rows);
        let other = format!("{database}{OTHER}");
        if case.has_other_database {
            for conn in [&mut plain, &mut proxy] {
                answers::must(conn, &format!("CREATE DATABASE {other}"));
            }
        }
        let mut report = Report::default();
        run_in(&mut plain, &mut proxy, case, &database, &mut report);
        let mut made = vec![database];
        if case.has_other_database {
            made.push(other);
        }
        for (mut conn, port) in [(plain, self.plain), (proxy, self.proxy)] {
            for drop in made.iter().map(|name| format!("DROP DATABASE {name}")) {
                if conn.query_drop(&drop).is_err() {
                    // The case may have cost the connection, or holds a lock.
                    conn = answers::connect(port, false);
                    answers::must(&mut conn, &drop);
                }
            }
        }
        report
    }
}

/// Makes a database for texts in utf8mb4, and uses it. MariaDB has been seen, once in some hundred
/// thousand times and under load, to give a new database the server's own character set instead of
/// the one that the statement names: then it is made again.
fn make_database(conn: &mut mysql::Conn, database: &str) {
    for _ in 0..3 {
        let make = format!("CREATE DATABASE {database} DEFAULT CHARSET utf8mb4");
        answers::must(conn, &make);
        answers::must(conn, &format!("USE {database}"));
        let collation: Option<String> = conn
            .query_first("SELECT @@collation_database")
            .expect("the database's collation");
        let collation = collation.expect("a value");
        if collation.starts_with("utf8mb4") {
            return;
        }
        eprintln!("{database} was made with {collation}: it is made again");
        answers::must(conn, &format!("DROP DATABASE {database}"));
    }
    panic!("the server makes no database with utf8mb4");
}

#[expect(
    clippy::too_many_lines,
    reason = "a case from its first statement to its last"
)]
fn run_in(
    plain: &mut mysql::Conn,
    proxy: &mut mysql::Conn,
    case: &Case,
    database: &str,
    report: &mut Report,
) {
    for table in &case.tables {
        let create = |protected| [Statement::fixed("create table", table.create(protected))];
        let proxied = answers::answer(proxy, &create(!direct_mode()));
        if let Some(problem) = proxied.refusal() {
            count(report, problem, "create table");
            return;
        }
        let expected = answers::answer(plain, &create(false));
        comparison::differences(&create(false), &expected, &proxied, &mut report.differences);
        report.compared += 1;
        if let Some(problem) = expected.problem {
            report.unusable = Some(format!("{}\n→ {}", table.create(false), problem.message));
        }
        if proxied.problem.is_some() || report.unusable.is_some() {
            return;
        }
    }
    // What is said about the last statement is not comparable after a refusal, or after another
    // error.
    let mut incomparable = false;
    let mut raised = evaluations::Raised::nothing();
    let mut skipped_number = false;
    let mut unseen_update = false;
    let mut after_select = false;
    let mut bound = Bound::new();
    let is_mysql = answers::is_mysql(plain);
    for (number, step) in case.steps.iter().enumerate() {
        if let Step::Command(command) = step {
            let proxied = answers::perform(proxy, *command, database);
            let expected = answers::perform(plain, *command, database);
            let statements = step.statements();
            report.compared += 1;
            report.ran(&statements);
            let known = report.differences.len();
            comparison::differences(&statements, &expected, &proxied, &mut report.differences);
            if report.differences.len() > known {
                report.differences[known].step = number;
                return;
            }
            incomparable = true;
            continue;
        }
        let given = step.statements();
        let follows = given[0].check.follows;
        let asks_for_found = given[0].text().contains("FOUND_ROWS()");
        if follows && (incomparable || asks_for_found && !after_select) {
            continue;
        }
        // FOUND_ROWS() is about the last SELECT; behind a change of rows, MySQL's depends on the
        // plan of that.
        if !follows {
            let text = given[given.len() - 1].text();
            after_select = text.starts_with("SELECT") || after_select && text.starts_with("SET ");
        }
        let side = |protected| -> Vec<Statement> {
            let on_side = |s: &Statement| s.on_side(database, protected);
            given.iter().map(on_side).collect()
        };
        let (statements, protected) = (side(false), side(!direct_mode()));
        let mut sticking = |s: &Statement| sticks(s, &mut bound, is_mysql);
        for text in statements.iter().filter_map(&mut sticking) {
            answers::forget(plain, &text);
            answers::forget(proxy, &text);
        }
        let mut proxied = answers::answer(proxy, &protected);
        if protected.len() == 1 && asks_to_run_again(&proxied) {
            proxied = answers::answer(proxy, &protected);
        }
        // A refused statement is not run on the plain server; what stands before it in the same
        // text is.
        let refusal = proxied.refusal();
        // MariaDB goes on saying what it said until a statement uses a table.
        let goes_on = !is_mysql && incomparable && !protected.iter().any(uses_tables);
        incomparable = refusal.is_some() || goes_on;
        let next = case.steps.get(number + 1);
        let is_asked_about = next.is_some_and(|next| next.statements()[0].check.follows);
        let asks = proxied.problem.is_some() && (incomparable || !is_asked_about);
        if asks && let Some(difference) = answers_itself(proxy, report, &statements) {
            report.differences.push(Difference {
                step: number,
                ..difference
            });
            return;
        }
        let usable = match refusal {
            None => statements.as_slice(),
            Some(problem) => {
                let done = proxied.sets.len().min(statements.len());
                count(
                    report,
                    problem,
                    statements.get(done).map_or("?", |s| s.label),
                );
                &statements[..done]
            }
        };
        if usable.is_empty() {
            // it is prepared on both sides from now on
            if let (Some(_), [one]) = (&proxied.prepared, statements.as_slice()) {
                let _ = plain.prep(one.parameters().0);
            }
            // a PREPARE that fails frees the name, whoever says no
            if let Some(name) = named(&statements) {
                let _ = plain.query_drop(format!("DEALLOCATE PREPARE {name}"));
            }
            same_last_statement(plain);
            continue;
        }
        let mut expected = answers::answer(plain, usable);
        let mut heard = match refusal {
            Some(_) => Answer {
                problem: None,
                ..proxied.clone()
            },
            None => proxied,
        };
        let is_cut = usable.len() < statements.len();
        if is_cut
            && let (Some(p), Some(q)) = (expected.sets.last(), heard.sets.last_mut())
            && !q.columns.is_empty()
        {
            // the client has not read on behind these rows, where it is said what they warned of
            q.warnings = p.warnings;
        }
        if case.found_rows {
            for set in expected.sets.iter_mut().chain(&mut heard.sets) {
                set.info = without_changed(&set.info);
            }
        }
        report.compared += usable.len();
        report.ran(usable);
        if let (Some(p), Some(q)) = (&expected.problem, &heard.problem) {
            report.failed += 1;
            report.other_error += usize::from(p.code != q.code);
            incomparable = p.code != q.code;
        }
        incomparable |= usable.last().is_some_and(|s| s.check.uncounted);
        skipped_number |= skips_number(case, step, is_mysql && expected.problem.is_some());
        let uses_up_numbers = [&expected.problem, &heard.problem]
            .into_iter()
            .flatten()
            .any(|problem| uses_up_numbers(case, step, problem));
        let known = report.differences.len();
        comparison::differences(usable, &expected, &heard, &mut report.differences);
        let differences = &mut report.differences;
        evaluations::drop_shown(usable, &expected, &heard, &raised, differences, known);
        raised = evaluations::raised(plain, usable, &expected, &heard);
        incomparable |=
            evaluations::drop_uncertain(plain, proxy, usable, &raised, is_cut, differences, known);
        // what was converted before an error is counted by the server only
        incomparable |= raised == evaluations::Raised::Conversion && expected.problem.is_some();
        padding::drop_padding(usable, &expected, &heard, differences, known);
        let counted =
            |d: &Difference| d.kind.ends_with(": affected rows") || d.kind.ends_with(": info");
        if statements[0].text().starts_with("ALTER TABLE") {
            // Whether an ALTER copies rows depends on what else it has to do: a protected column
            // comes with its CHECK.
            drop_differences(report, known, counted);
        }
        let over_null = null_over_null(case, step);
        if over_null && drop_differences(report, known, counted) {
            // ON UPDATE may have set another column, too
            return;
        }
        // A client that counts found rows is not told, and sees it in that column alone.
        unseen_update |= over_null && case.found_rows;
        let reads_it = statements.iter().any(|s| s.text().contains("changed"));
        let groups = statements.iter().any(|s| s.text().contains(" GROUP BY "));
        let of_moment = |d: &Difference| {
            // what is computed of a group depends on which rows are in it
            let is_grouped = groups && d.kind.contains(": values of ");
            if reads_it && (is_grouped || d.kind.ends_with(": number of rows")) {
                return true;
            }
            let types = ["MYSQL_TYPE_TIMESTAMP", "MYSQL_TYPE_DATETIME"];
            let mut kinds = types.iter().map(|ty| format!("values of {ty}"));
            kinds.any(|kind| d.kind.contains(&kind))
        };
        if unseen_update && drop_differences(report, known, of_moment) {
            return;
        }
        let of_number = |d: &Difference| d.kind.ends_with(": insert id");
        if skipped_number && drop_differences(report, known, of_number) {
            return;
        }
        if statements.iter().any(|s| behind_all_time(case, s)) {
            drop_differences(report, known, |d| d.kind.ends_with(": number of rows"));
        }
        if drop_other_fault(plain, usable, &expected, &mut report.differences, known) {
            return;
        }
        let differences = &mut report.differences;
        incomparable |= !plans::drop_plan_dependent(plain, usable, &heard, differences, known);
        for difference in &mut report.differences[known..] {
            difference.step = number;
        }
        if uses_up_numbers || report.differences[known..].iter().any(|d| d.diverged) {
            return;
        }
        if asks {
            same_last_statement(plain);
        }
    }
}

/// Drops the difference of two errors, if the plain server itself finds more than one fault in the
/// statement. Without strict mode it goes on behind the first, which ends the case. The proxy looks
/// at its own values before the server does (docs/differences.md).
fn drop_other_fault(
    plain: &mut mysql::Conn,
    statements: &[Statement],
    expected: &Answer,
    differences: &mut Vec<Difference>,
    known: usize,
) -> bool {
    const OF_VALUES: [&str; 9] = [
        "1048", "1264", "1265", "1292", "1364", "1366", "1406", "3854", "3988",
    ];
    // of a text, the one behind those that were done
    let (Some(failed), [difference]) = (statements.get(expected.sets.len()), &differences[known..])
    else {
        return false;
    };
    let errors = difference
        .kind
        .split_once(": error ")
        .and_then(|(_, errors)| errors.split_once(" instead of "));
    let is_of_values = |error: &str| OF_VALUES.iter().any(|code| error.starts_with(code));
    if !errors.is_some_and(|(a, b)| is_of_values(a) && is_of_values(b)) {
        return false;
    }
    answers::must(plain, "SET sql_mode = ''");
    answers::answer(plain, std::slice::from_ref(failed));
    let faults: Vec<mysql::Row> = plain.query("SHOW WARNINGS").unwrap_or_default();
    if faults.len() < 2 {
        return false;
    }
    differences.truncate(known);
    true
}

/// The name in `PREPARE name FROM …`.
fn named(statements: &[Statement]) -> Option<String> {
    let [statement] = statements else { return None };
    let text = statement.text();
    let mut words = text.split(' ');
    (words.next() == Some("PREPARE")).then(|| words.next().map(str::to_owned))?
}

/// Other sessions define tables at the same time. The proxy may then say that a table has changed,
/// nothing was done, and the statement should run again. Twice in a row is not due to them.
fn asks_to_run_again(answer: &Answer) -> bool {
    let code = answer.problem.as_ref().and_then(|p| p.refusal_code());
    code == Some("1105")
}

/// Whether a statement surely uses a table.
fn uses_tables(statement: &Statement) -> bool {
    let text = statement.text();
    let first = text.split(' ').next().unwrap_or_default();
    match first {
        "SELECT" => text.contains(" FROM "),
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => true,
        _ => false,
    }
}

/// Drops differences of this kind among those behind `known`. Returns whether there were any.
fn drop_differences(
    report: &mut Report,
    known: usize,
    is_dropped: impl Fn(&Difference) -> bool,
) -> bool {
    let before = report.differences.len();
    let about = report.differences.split_off(known);
    let kept = about.into_iter().filter(|d| !is_dropped(d));
    report.differences.extend(kept);
    report.differences.len() < before
}

/// Whether an INSERT IGNORE, or one that failed on MySQL, gives numbers of its own to a column with
/// AUTO_INCREMENT. For a row that is a duplicate, MySQL keeps such a number, and goes on from there
/// or not, depending on whether it has opened the table again since (docs/differences.md).
fn skips_number(case: &Case, step: &Step, has_failed: bool) -> bool {
    let Step::Insert(insert) = step else {
        return false;
    };
    let table = case.tables.get(insert.table);
    (insert.verb == "INSERT IGNORE" || has_failed)
        && insert.columns.iter().any(|(_, column)| *column == 0)
        && table.is_some_and(|table| table.columns[0].auto_increment)
}

/// By text of a prepared statement: what its parameters were bound to last.
type Bound = HashMap<String, Vec<Option<Family>>>;

/// Kinds of parameters.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    Text,
    Number,
    Moment,
}

impl Family {
    fn of(value: &mysql::Value) -> Option<Family> {
        match value {
            mysql::Value::NULL => None,
            mysql::Value::Bytes(_) => Some(Family::Text),
            mysql::Value::Date(..) | mysql::Value::Time(..) => Some(Family::Moment),
            _ => Some(Family::Number),
        }
    }
}

/// The text of a prepared statement that binds a value of another kind than an earlier execution.
/// MySQL takes a text for a number where a number was bound before: the position of a member in an
/// ENUM or SET, 0 in a comparison with a text; the proxy takes it for what it is (README). It takes
/// a number for a moment where a moment was bound before, until something makes it prepare the
/// statement again, which a change of a table does at other times behind the proxy.
fn sticks(statement: &Statement, earlier: &mut Bound, is_mysql: bool) -> Option<String> {
    if !statement.prepared {
        return None;
    }
    let (text, values) = statement.parameters();
    let bound = earlier
        .entry(text.clone())
        .or_insert_with(|| vec![None; values.len()]);
    let mut pairs = bound.iter().zip(&values);
    let sticks = pairs.any(|(before, value)| match (before, Family::of(value)) {
        (Some(Family::Number), Some(Family::Text)) => true,
        (Some(before), Some(now)) => is_mysql && *before != now,
        _ => false,
    });
    if sticks {
        bound.fill(None);
    }
    for (bound, value) in bound.iter_mut().zip(&values) {
        match Family::of(value) {
            // a text does not make it forget a number
            Some(Family::Text) if *bound == Some(Family::Number) => {}
            Some(family) => *bound = Some(family),
            None => {}
        }
    }
    sticks.then_some(text)
}

/// Whether an INSERT … ON DUPLICATE KEY UPDATE or an UPDATE may put NULL where NULL is, in a column
/// whose default is another value. Servers count that as a change, because they compare what lies
/// in the row's buffer behind NULL (README).
fn null_over_null(case: &Case, step: &Step) -> bool {
    let Step::Insert(insert) = step else {
        return updates_null(case, step);
    };
    let Some(table) = case.tables.get(insert.table) else {
        return false;
    };
    let given = insert.rows.iter().flat_map(|row| {
        let columns = insert.columns.iter().map(|(_, column)| *column);
        row.iter().zip(columns)
    });
    let assigned = insert.on_duplicate.iter().filter_map(|piece| match piece {
        Piece::Constant(literal, (_, column)) => Some((literal, *column)),
        Piece::Sql(_) => None,
    });
    let null_in = |(literal, column): (&Literal, usize)| {
        // a case that is being made smaller may have lost the column
        table.columns.get(column).is_some_and(|column| {
            literal.parameter == mysql::Value::NULL
                && literal.sql != "DEFAULT"
                && column.nullable
                && column.default.is_some()
        })
    };
    !insert.on_duplicate.is_empty() && given.chain(assigned).any(null_in)
}

/// Whether an UPDATE, or one that is executed by its name, sets a column that can be NULL and whose
/// default is a value.
fn updates_null(case: &Case, step: &Step) -> bool {
    let statements = step.statements();
    let mut texts: Vec<String> = statements.iter().map(Statement::text).collect();
    if texts.iter().any(|text| text.starts_with("EXECUTE")) {
        let all = case.steps.iter().flat_map(Step::statements);
        let prepared = all.filter_map(|s| {
            let text = s.text();
            let at = text.starts_with("PREPARE").then(|| text.find("UPDATE"))??;
            Some(text[at..].to_owned())
        });
        texts.extend(prepared);
    }
    let updates = texts.iter().filter(|text| text.starts_with("UPDATE"));
    let mut set = updates.map(|text| assignments_of(text));
    let columns: Vec<&str> = case
        .tables
        .iter()
        .flat_map(|t| &t.columns)
        .filter(|c| c.nullable && c.default.is_some())
        .map(|c| c.name.as_str())
        .collect();
    set.any(|set| {
        columns
            .iter()
            .any(|name| set.contains(&format!("{name} = ")))
    })
}

/// What stands between SET and WHERE.
fn assignments_of(update: &str) -> &str {
    let behind = update.split_once(" SET ").map_or("", |(_, behind)| behind);
    behind.split(" WHERE ").next().unwrap_or_default()
}

/// `Rows matched: 1  Changed: 0  Warnings: 0` without the number of changed rows, which the proxy
/// does not find out where the client does not count them (README).
fn without_changed(info: &str) -> String {
    match (info.find("Changed:"), info.find("Warnings:")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &info[..from], &info[to..]),
        _ => info.to_owned(),
    }
}

/// Whether a statement that failed may have taken numbers of AUTO_INCREMENT for its first rows,
/// which it does not where the proxy finds the error before it sends anything: the same one, or one
/// in a row behind a duplicate. Gaps are nothing that an application may rely on, but all numbers
/// that follow would be different.
fn uses_up_numbers(case: &Case, step: &Step, problem: &answers::Problem) -> bool {
    const DUPLICATE_KEY: u16 = 1062;
    let counts_on = |s: &Statement| s.label.starts_with("update") && assigns_id(case, s);
    if problem.code == DUPLICATE_KEY && step.statements().iter().any(counts_on) {
        // MariaDB goes on from a number that an UPDATE gave to a row before the one with which it
        // failed.
        return true;
    }
    let may = match step {
        Step::Insert(insert) => {
            let counts = |table: &Table| table.columns[0].auto_increment;
            let several = insert.rows.len() > 1 || !insert.on_duplicate.is_empty();
            several && case.tables.get(insert.table).is_some_and(counts)
        }
        // The constants of ON DUPLICATE KEY UPDATE are looked at after the number is taken.
        _ => step
            .statements()
            .iter()
            .any(|s| s.label == "insert on duplicate"),
    };
    may && problem.code != DUPLICATE_KEY
}

/// Whether an UPDATE assigns to a column that numbers itself.
fn assigns_id(case: &Case, statement: &Statement) -> bool {
    let text = statement.text();
    let assignments = text.split(" WHERE ").next().unwrap_or_default();
    let assigned = ["SET id = ", ", id = "]
        .iter()
        .any(|part| assignments.contains(part));
    assigned && case.tables.iter().any(|t| t.columns[0].auto_increment)
}

/// Whether a parameter for a TIMESTAMP lies behind the last one. MySQL finds no row below such a
/// parameter where it looks for rows in an index, and all of them otherwise, as below a literal.
fn behind_all_time(case: &Case, statement: &Statement) -> bool {
    const LAST: &[u8] = b"2038-01-19 03:14:07";
    let behind = |piece: &Piece| match piece {
        Piece::Constant(literal, (table, column)) => {
            let column = case.tables.get(*table).and_then(|t| t.columns.get(*column));
            let is_behind = |value: &mysql::Value| matches!(value, mysql::Value::Bytes(text) if text.as_slice() > LAST);
            column.is_some_and(|c| matches!(c.ty, Type::Timestamp(_)))
                && is_behind(&literal.parameter)
        }
        Piece::Sql(_) => false,
    };
    statement.prepared && statement.pieces.iter().any(behind)
}

/// Behind a statement that has failed, the answer to a question is the answer to that question:
/// each has another number.
fn answers_itself(
    proxy: &mut mysql::Conn,
    report: &Report,
    failed: &[Statement],
) -> Option<Difference> {
    let number = report.compared * 1000 + report.refusals();
    let answer: Result<Option<usize>, _> = proxy.query_first(format!("SELECT {number}"));
    // under words of sql_mode that it does not read, even this may be refused, while another
    // session defines a table
    let is_refused =
        matches!(&answer, Err(mysql::Error::MySqlError(e)) if e.message.starts_with("OS10"));
    if is_refused || answer.as_ref().is_ok_and(|found| *found == Some(number)) {
        return None;
    }
    let label = failed.last().map_or("?", |s| s.label);
    Some(Difference {
        kind: format!("{label}: the question behind its error is not answered"),
        detail: format!("SELECT {number}: {answer:?}"),
        diverged: true,
        is_metadata: false,
        step: 0,
    })
}

/// The proxy's session was asked something behind the last statement (`answers_itself`), so this
/// one is as well.
fn same_last_statement(plain: &mut mysql::Conn) {
    let _: Result<Option<usize>, _> = plain.query_first("SELECT 1");
}

fn count(report: &mut Report, problem: &answers::Problem, label: &'static str) {
    let code = problem.refusal_code().unwrap_or_default().to_owned();
    *report.refused.entry((code, label)).or_default() += 1;
}
