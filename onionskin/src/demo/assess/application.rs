//! The application of the demonstration: a fixed set of statements, which leaves the tables as they
//! were. So its answers must be the same at any time: before columns are protected, meanwhile, and
//! afterwards.

use std::{path::Path, time::Instant};

use mysql::Value;

use super::{
    super::{
        client::{Client, Reply},
        failed,
    },
    data,
};
use crate::error::CommandError;

/// What its statements are for; each has its place in the table of costs.
pub const KINDS: &[&str] = &[
    "log in: a customer by e-mail",
    "a customer's page",
    "the orders of a customer",
    "the cards of a customer",
    "messages of a customer with a word",
    "customers of a surname",
    "orders with their customers",
    "customers born in a month",
    "sums of a month's orders",
    "a new order",
    "an order is paid",
    "another telephone number",
    "an order goes",
];

/// Customers who come by in one pass.
const VISITS: u64 = 10;
/// Different passes; then they begin again.
pub const PASSES: u64 = 6;
/// New orders have numbers that no other order has.
const NEW_ORDERS: u64 = 900_000;

/// A statement, with values if it is a prepared one.
struct Statement {
    kind: usize,
    sql: String,
    values: Vec<Value>,
}

fn text(kind: usize, sql: String) -> Statement {
    Statement {
        kind,
        sql,
        values: Vec::new(),
    }
}

fn prepared(kind: usize, sql: &str, values: Vec<Value>) -> Statement {
    Statement {
        kind,
        sql: sql.into(),
        values,
    }
}

/// One customer's visit.
fn visit(id: u64) -> Vec<Statement> {
    let (email, surname) = (data::email(id), data::surname(id));
    let first = id * 7 % (data::ORDERS - 10) + 1;
    let order = NEW_ORDERS + id;
    let phone = |number: String| {
        let sql = "UPDATE customers SET phone = ? WHERE id = ?";
        prepared(11, sql, vec![number.into(), id.into()])
    };
    vec![
        prepared(
            0,
            "SELECT id, given_name, surname FROM customers WHERE email = ?",
            vec![email.into()],
        ),
        prepared(
            1,
            "SELECT given_name, surname, email, phone, born, street, postcode, city FROM customers WHERE id = ?",
            vec![id.into()],
        ),
        prepared(
            2,
            "SELECT id, ordered, amount, state, note FROM orders WHERE customer = ? ORDER BY id",
            vec![id.into()],
        ),
        prepared(
            3,
            "SELECT card_number, expires FROM cards WHERE customer = ? ORDER BY id",
            vec![id.into()],
        ),
        text(
            4,
            format!(
                "SELECT id, sent, body FROM messages WHERE customer = {id} AND body LIKE '%refund%' ORDER BY id"
            ),
        ),
        text(
            5,
            format!(
                "SELECT id, given_name, surname, city FROM customers WHERE surname = '{surname}' ORDER BY id LIMIT 20"
            ),
        ),
        text(
            6,
            format!(
                "SELECT o.id, o.amount, o.note, c.surname FROM orders o JOIN customers c ON c.id = o.customer \
                 WHERE o.id BETWEEN {first} AND {} ORDER BY o.id",
                first + 9
            ),
        ),
        prepared(
            9,
            "INSERT INTO orders (id, customer, ordered, amount, state, note) VALUES (?, ?, ?, ?, ?, ?)",
            vec![
                order.into(),
                id.into(),
                "2026-03-01".into(),
                "49.90".into(),
                "open".into(),
                "deliver to the back door".into(),
            ],
        ),
        text(
            10,
            format!("UPDATE orders SET state = 'paid', note = 'paid by card' WHERE id = {order}"),
        ),
        prepared(
            2,
            "SELECT id, ordered, amount, state, note FROM orders WHERE customer = ? ORDER BY id",
            vec![id.into()],
        ),
        phone(format!("+49 199 {id:07}")),
        prepared(
            1,
            "SELECT given_name, surname, email, phone, born, street, postcode, city FROM customers WHERE id = ?",
            vec![id.into()],
        ),
        phone(data::phone(id)),
        text(12, format!("DELETE FROM orders WHERE id = {order}")),
    ]
}

/// One pass. The last customer, whose rows hold planted texts, is in the first one.
fn pass(number: u64) -> Vec<Statement> {
    let number = number % PASSES;
    let mut statements = Vec::new();
    for visitor in 0..VISITS {
        let id = data::CUSTOMERS - (number * VISITS + visitor) * 31 % data::CUSTOMERS;
        statements.extend(visit(id));
    }
    let (year, month) = (1950 + number * 9, number + 1);
    statements.push(prepared(
        7,
        "SELECT id, born, email FROM customers WHERE born BETWEEN ? AND ? ORDER BY id",
        vec![
            format!("{year}-{month:02}-01").into(),
            format!("{year}-{month:02}-28").into(),
        ],
    ));
    statements.push(text(
        8,
        format!(
            "SELECT state, COUNT(*), SUM(amount) FROM orders WHERE ordered >= '2025-{month:02}-01' \
             AND ordered < '2025-{:02}-01' GROUP BY state ORDER BY state",
            month + 1
        ),
    ));
    statements
}

/// What its statements are answered, pass by pass.
pub type Answers = Vec<Vec<Reply>>;

/// How often statements ran, and how long they took: by their kinds.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    pub statements: u64,
    /// Milliseconds of each.
    pub by_kind: Vec<Vec<f64>>,
}

/// A session of it.
pub struct Application {
    client: Client,
    next: u64,
    pub spent: Spent,
}

impl Application {
    /// At a proxy, in a database.
    pub fn start(socket: &Path, database: &str) -> Result<Self, CommandError> {
        Ok(Self {
            client: Client::at(socket, database)?,
            next: 0,
            spent: Spent {
                statements: 0,
                by_kind: vec![Default::default(); KINDS.len()],
            },
        })
    }

    /// All passes once, with their answers.
    pub fn answers(&mut self) -> Result<Answers, CommandError> {
        self.next = 0;
        (0..PASSES).map(|_| self.pass()).collect()
    }

    /// The next pass. A statement that is refused ends it.
    fn pass(&mut self) -> Result<Vec<Reply>, CommandError> {
        let statements = pass(self.next);
        self.next += 1;
        let mut replies = Vec::with_capacity(statements.len());
        for statement in statements {
            let begun = Instant::now();
            let reply = match statement.values.is_empty() {
                true => self.client.run(&statement.sql)?,
                false => self.client.execute_with(&statement.sql, statement.values)?,
            };
            let time = begun.elapsed().as_secs_f64() * 1e3;
            self.spent.by_kind[statement.kind].push(time);
            self.spent.statements += 1;
            if let Reply::Refused { code, text } = reply {
                let sql = statement.sql;
                return Err(failed(format!("{sql} → {code}: {text}")));
            }
            replies.push(reply);
        }
        Ok(replies)
    }

    /// The next pass, which must be answered as it was before.
    pub fn pass_as_before(&mut self, before: &Answers) -> Result<(), CommandError> {
        let number = self.next % PASSES;
        let now = self.pass()?;
        let expected = &before[number as usize];
        let differs = expected.iter().zip(&now).position(|(was, is)| was != is);
        match differs {
            _ if expected.len() != now.len() => Err(failed("the application has changed")),
            None => Ok(()),
            Some(at) => {
                let sql = &pass(number)[at].sql;
                Err(failed(format!("{sql} has another answer than before")))
            }
        }
    }

    /// Goes on with this pass; plans and prepared statements are there from then on. What it took
    /// does not count.
    pub fn warm_up(&mut self, next: u64) -> Result<(), CommandError> {
        self.next = next;
        self.pass()?;
        self.spent.by_kind.iter_mut().for_each(Vec::clear);
        Ok(())
    }

    /// The next pass; statements a second.
    pub fn speed(&mut self) -> Result<f64, CommandError> {
        let begun = Instant::now();
        let statements = self.pass()?.len();
        Ok(statements as f64 / begun.elapsed().as_secs_f64())
    }
}

/// How many statements have answers.
pub fn count(answers: &Answers) -> usize {
    answers.iter().map(Vec::len).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_of_statement_is_in_every_pass() {
        for number in 0..PASSES {
            let kinds: BTreeSet<usize> = pass(number).iter().map(|s| s.kind).collect();
            assert_eq!(kinds.len(), KINDS.len());
        }
        let customers = format!("customer = {}", data::PLANTED_CUSTOMER);
        assert!(pass(0).iter().any(|s| s.sql.contains(&customers)));
    }

    #[test]
    fn a_customer_comes_once() {
        let visitor = |n: u64| data::CUSTOMERS - n * 31 % data::CUSTOMERS;
        let all: BTreeSet<u64> = (0..PASSES * VISITS).map(visitor).collect();
        assert_eq!(all.len() as u64, PASSES * VISITS);
    }
}
