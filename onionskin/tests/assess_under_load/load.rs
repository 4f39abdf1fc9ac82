//! An application at work, through the proxy and beside it on a plain twin of its database.
//!
//! Each client has values of its own, so whatever the others do, what it reads and what it changes
//! is the same on both sides. It compares that, statement by statement.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use ::mysql::Value;
use onionskin_testkit::*;

use super::applications::{Application, as_sent_to, filled, is_control};

/// In every protected text that is written before the last command has ended, and after it.
pub const BEFORE: &str = "Kw8Rt5Zq";
pub const LATER: &str = "Hd4Ys7Lp";
/// The same on the twin, which stays plaintext.
pub const PLAIN: &str = "Nm3Vb6Xp";
/// Where it stands in a value: behind what orders values.
pub const PLACE: &str = "@@";

/// What a plain server gives as well, and clients try again: a deadlock, a wait for a lock that was
/// too long. Whoever asks for a lock on a whole table, as the switch does, makes the server end
/// transactions that have read it and want to write.
const TRIED_AGAIN: [u16; 2] = [1213, 1205];

/// What all clients share.
#[derive(Default)]
pub struct Load {
    pub is_over: AtomicBool,
    /// Whether the last command has ended.
    pub is_later: AtomicBool,
    /// Statements that were answered through the proxy.
    pub statements: AtomicU64,
    /// Transactions that were done again.
    pub again: AtomicU64,
}

impl Load {
    pub fn count(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// A client.
pub struct Client<'a> {
    pub load: &'a Load,
    pub application: &'a Application,
    pub kind: Kind,
    /// Which one.
    pub number: u64,
    /// Its sessions, through the proxy and at the twin.
    pub app: Session,
    pub twin: Session,
    pub round: u64,
    /// In its values of this round.
    pub marker: &'static str,
    /// The ids that its last rows were given, by their tables.
    pub ids: BTreeMap<String, i64>,
}

/// A statement that was answered.
struct Answered {
    sql: &'static str,
    is_prepared: bool,
    values: Vec<Value>,
    is: Outcome,
    id: i64,
}

impl Client<'_> {
    /// Works until the load is over; the rounds.
    pub fn work(&mut self) -> u64 {
        let first = self.round;
        while self.load.goes_on() {
            self.work_once();
        }
        self.round - first
    }

    /// One round.
    pub fn work_once(&mut self) {
        let application = self.application;
        self.marker = match self.load.is_later.load(Ordering::Relaxed) {
            true => LATER,
            false => BEFORE,
        };
        for (at, piece) in application.work.iter().enumerate() {
            if self.round % piece.every != piece.every - 1 {
                continue;
            }
            let is_prepared = (self.round + at as u64).is_multiple_of(2);
            let is_whole = piece.statements.first().is_some_and(|sql| is_control(sql));
            let length = if is_whole { piece.statements.len() } else { 1 };
            for statements in piece.statements.chunks(length) {
                self.transaction(statements, is_prepared);
            }
        }
        self.round += 1;
    }

    /// Through the proxy until it is done, then at the twin.
    fn transaction(&mut self, statements: &'static [&'static str], is_prepared: bool) {
        let answered = loop {
            match self.attempt(statements, is_prepared) {
                Ok(answered) => break answered,
                Err((_, failure)) if TRIED_AGAIN.contains(&failure.code) => {
                    self.app.must("ROLLBACK");
                    self.load.again.fetch_add(1, Ordering::Relaxed);
                }
                Err((sql, failure)) => panic!("{sql}\n→ {failure}"),
            }
        };
        while let Err(failure) = self.repeat(&answered) {
            assert!(TRIED_AGAIN.contains(&failure.code), "the twin: {failure}");
            self.twin.must("ROLLBACK");
        }
    }

    fn attempt(
        &mut self,
        statements: &'static [&'static str],
        is_prepared: bool,
    ) -> Result<Vec<Answered>, (String, Failure)> {
        let mut answered = Vec::new();
        for sql in statements {
            let sql = as_sent_to(self.kind, sql);
            let mut values = Vec::new();
            filled(sql, |name| {
                values.push(self.value(name));
                String::new()
            });
            let is_prepared = is_prepared && !is_control(sql);
            let is = sent(&mut self.app, sql, is_prepared, &values, self.marker);
            let is = is.map_err(|failure| (sql.to_owned(), failure))?;
            self.load.statements.fetch_add(1, Ordering::Relaxed);
            let id = id_of(sql, &is);
            if let Some(table) = table_of_insert(sql).filter(|_| id != 0) {
                self.ids.insert(table.to_owned(), id);
            }
            answered.push(Answered {
                sql,
                is_prepared,
                values,
                is,
                id,
            });
        }
        Ok(answered)
    }

    /// At the twin, with the ids that the server has given, and the same answers.
    fn repeat(&mut self, answered: &[Answered]) -> Result<(), Failure> {
        for one in answered {
            if one.id != 0 {
                self.twin.run(&format!("SET insert_id = {}", one.id))?;
            }
            let should = sent(&mut self.twin, one.sql, one.is_prepared, &one.values, PLAIN)?;
            // What is about all rows is about those of others.
            if one.sql.contains('{') {
                let [is, should] = [&one.is, &should].map(|o| compared(one.sql, o));
                assert_eq!(is, should, "{} with {:?}", one.sql, one.values);
            }
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Value {
        let (client, round) = (self.number as i64, self.round as i64);
        let (month, day) = (round / 28 % 12 + 1, round % 28 + 1);
        if let Some(id) = self.ids.get(name) {
            return Value::Int(*id);
        }
        let number = |n| Value::Int(n);
        let text = |text: String| Value::from(text);
        let own = (client + 1) * 1_000_000;
        match name {
            "admin" | "content_type" => number(1),
            "flag" => number(round % 3 + 1),
            "id" | "to" => number(own + round),
            "other" => number(own + round - 1),
            "from" => number(own + round - 30),
            "k" => number(own + round * 10),
            "k from" => number(own + round * 10 - 50),
            "k to" => number(own + round * 10 - 20),
            "k later" => number(own + round * 10 - 5),
            "k end" => number(own + round * 10 + 5),
            "now" => text(format!("2026-02-01 10:00:{client:02}.{round:06}")),
            // sessions of the first client alone expire
            "until" if client == 0 && round % 3 == 0 => text("2000-01-01 00:00:00".into()),
            "until" => text(format!("2030-01-01 10:00:{client:02}.{round:06}")),
            "past" if client == 0 => text("2001-01-01 00:00:00".into()),
            "past" => text("1999-01-01 00:00:00".into()),
            "born" => text(format!("{}-{month:02}-{day:02}", 1910 + client)),
            "born from" => text(format!("{}-01-01", 1910 + client)),
            "born to" => text(format!("{}-12-31", 1910 + client)),
            "ordered" => text(format!("{}-{month:02}-{day:02}", 2010 + client)),
            "ordered from" => text(format!("{}-{month:02}-01", 2010 + client)),
            "ordered to" => text(format!("{}-{month:02}-28", 2010 + client)),
            "total" => text(format!("{}.{client:02}", round % 900 + 1)),
            "city" => text(format!("city {client}")),
            "message" => text(format!("[{{\"changed\": {round}}}]")),
            _ => match name.strip_prefix("like ") {
                Some(name) => text(format!("%{name}-{client}-{round}.%")),
                None => text(format!("{name}-{client}-{round}.{PLACE}")),
            },
        }
    }
}

fn sent(
    session: &mut Session,
    sql: &str,
    is_prepared: bool,
    values: &[Value],
    marker: &str,
) -> Result<Outcome, Failure> {
    let mut values = values.iter().map(|value| match value {
        Value::Bytes(bytes) => {
            let text = String::from_utf8_lossy(bytes).replace(PLACE, marker);
            Value::from(text)
        }
        other => other.clone(),
    });
    match is_prepared {
        true => {
            let sql = filled(sql, |_| "?".into());
            session.execute(&sql, values.collect::<Vec<Value>>())
        }
        false => {
            let mut next = || values.next().expect("a value for each name");
            session.run(&filled(sql, |_| next().as_sql(true)))
        }
    }
}

/// What both sides must say.
fn compared(sql: &str, outcome: &Outcome) -> (Vec<String>, u64) {
    let text = outcome.text().replace(BEFORE, PLAIN).replace(LATER, PLAIN);
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    if !sql.contains(" ORDER BY ") {
        rows.sort_unstable();
    }
    (rows, outcome.affected)
}

/// `t` of INSERT INTO t
fn table_of_insert(sql: &str) -> Option<&str> {
    let (_, rest) = sql
        .strip_prefix("INSERT ")
        .and_then(|s| s.split_once("INTO "))?;
    let table = rest.split_whitespace().next()?;
    Some(table.trim_matches('`'))
}

/// The id that a new row was given; 0: none was.
fn id_of(sql: &str, outcome: &Outcome) -> i64 {
    match sql.contains(" RETURNING ") {
        true => outcome.text().parse().expect("an id"),
        false => outcome.insert_id as i64,
    }
}
