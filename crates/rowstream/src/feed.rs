//! From the binary log to changes of keys, and marks.
//!
//! A thread of its own reads the log, so that it is read while rows are copied. A few transactions
//! wait in between. When nobody takes them, the server waits. A connection that breaks is made
//! again (`line.rs`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use onionskin_schema::TableName;

use crate::binlog::value::{Date, Time};
use crate::binlog::{BinlogError, Change, FollowOptions, Item, Position, Row, TableColumns, Value};
use crate::client::Client;
use crate::key::{Key, KeyColumn, KeyDefinition};
use crate::line::{Cutter, Line};
use crate::pending::KeyChange;
use crate::session::Login;

/// How many transactions wait to be taken.
const WAITING: usize = 256;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// Rows of the table changed.
    Changes(Vec<KeyChange>),
    /// A mark of [`crate::checkpoint::Checkpoint::mark`] was committed.
    Mark(u64),
    /// A definition, or a change that was logged as a statement, of whatever table.
    Statement {
        /// The session's database.
        database: String,
        /// Its text.
        sql: String,
    },
    /// Nothing happened to rows, but the connection broke, for this reason, and was made again.
    Mended(String),
}

/// Events that were committed together, and where the log goes on behind them. `None`: the position
/// is inside of a long transaction.
#[derive(Debug)]
pub struct Delivery {
    /// What happened.
    pub events: Vec<Event>,
    /// Where to go on: [`position_from_text`] reads it.
    pub position: String,
    /// Seconds since 1970, by the server's clock, at which it was committed; 0 if nothing was.
    pub committed: u64,
}

/// What is read of the log.
pub struct FeedOptions {
    /// The server.
    pub login: Login,
    /// Id under which the server knows us among its replicas.
    pub server_id: u32,
    /// The table that changes.
    pub table: TableName,
    /// The table whose columns its rows have: itself, or what it is called since it was renamed.
    pub columns_of: TableName,
    /// The checkpoint's table.
    pub checkpoint: TableName,
    /// The table's key.
    pub key: KeyDefinition,
    /// How long the server waits when nothing is taken from it. Then it ends the stream, which is
    /// made again.
    pub patience: Duration,
}

/// Reads the log in a thread. Dropping it ends the thread.
pub struct Feed {
    receiver: Receiver<Result<Delivery, BinlogError>>,
    cutter: Cutter,
}

impl Feed {
    /// Begins behind `from`.
    pub fn start(options: FeedOptions, from: &str) -> Result<Self, BinlogError> {
        let mut client = Client::connect(&options.login)?;
        let mut tables = HashMap::new();
        for (table, described) in [
            (&options.table, &options.columns_of),
            (&options.checkpoint, &options.checkpoint),
        ] {
            let columns = TableColumns::describe(&mut client, described)?;
            tables.insert(table.clone(), Arc::new(columns));
        }
        drop(client);
        let position = position_from_text(from)?;
        let mut follow = FollowOptions::new(options.server_id, tables);
        follow.stream.patience = options.patience;
        let line = Line::open(&options.login, follow, &position)?;
        let cutter = line.cutter();
        let (sender, receiver) = sync_channel(WAITING);
        thread::spawn(move || follow_log(line, &options, &sender));
        Ok(Self { receiver, cutter })
    }

    /// The next delivery; `None` if nothing came within `limit`.
    pub fn next(&self, limit: Duration) -> Result<Option<Delivery>, BinlogError> {
        match self.receiver.recv_timeout(limit) {
            Ok(delivery) => delivery.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(BinlogError::Malformed("stream, which has ended"))
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.cutter.cut();
    }
}

/// Reads `file:offset`.
pub fn position_from_text(text: &str) -> Result<Position, BinlogError> {
    let parsed = text
        .rsplit_once(':')
        .and_then(|(file, offset)| Some(Position::new(file, offset.parse().ok()?)));
    parsed.ok_or(BinlogError::Malformed("position in the checkpoint"))
}

fn follow_log(
    mut line: Line,
    options: &FeedOptions,
    sender: &SyncSender<Result<Delivery, BinlogError>>,
) {
    loop {
        let delivery = match line.next() {
            Ok(item) => deliver(item, options),
            Err(cause) => {
                let reason = cause.to_string();
                line.mend(cause).map(|()| Delivery {
                    events: vec![Event::Mended(reason)],
                    position: line.position().to_string(),
                    committed: 0,
                })
            }
        };
        let failed = delivery.is_err();
        if sender.send(delivery).is_err() || failed {
            return;
        }
    }
}

fn deliver(item: Item, options: &FeedOptions) -> Result<Delivery, BinlogError> {
    let transaction = match item {
        Item::Progress(position) => {
            return Ok(Delivery {
                events: Vec::new(),
                position: position.to_string(),
                committed: 0,
            });
        }
        Item::Transaction(transaction) => transaction,
    };
    let mut events = Vec::new();
    for change in transaction.changes {
        match change {
            Change::Statement { database, sql } => {
                events.push(Event::Statement { database, sql });
            }
            Change::Rows { table, rows, .. } if table == options.checkpoint => {
                for row in rows {
                    if let Some([Value::UInt(2), Value::UInt(mark), ..]) = row.after.as_deref() {
                        events.push(Event::Mark(*mark));
                    }
                }
            }
            Change::Rows { table, rows, .. } if table == options.table => {
                let key = |row: &Option<Row>| {
                    row.as_ref()
                        .map(|row| key_of(row, &options.key))
                        .transpose()
                };
                let mut changes = Vec::with_capacity(rows.len());
                for row in &rows {
                    changes.push(KeyChange {
                        before: key(&row.before)?,
                        after: key(&row.after)?,
                    });
                }
                events.push(Event::Changes(changes));
            }
            Change::Rows { .. } => {}
        }
    }
    Ok(Delivery {
        events,
        position: transaction.end.to_string(),
        committed: transaction.commit_timestamp / 1_000_000,
    })
}

/// The key of a row image, in the form in which SELECT gives it.
fn key_of(row: &Row, definition: &KeyDefinition) -> Result<Key, BinlogError> {
    let parts = definition.columns.iter().map(|column| {
        row.get(column.ordinal)
            .and_then(|value| canonical(value, column))
            .ok_or(BinlogError::Malformed("key of a row"))
    });
    Ok(Key(parts.collect::<Result<_, _>>()?))
}

fn canonical(value: &Value, column: &KeyColumn) -> Option<Vec<u8>> {
    Some(match value {
        Value::Int(number) => number.to_string().into_bytes(),
        Value::UInt(number) => number.to_string().into_bytes(),
        Value::Decimal(text) => text.clone().into_bytes(),
        Value::Year(year) => format!("{year:04}").into_bytes(),
        Value::Bytes(bytes) => bytes.clone(),
        Value::Date(date) => date_text(*date).into_bytes(),
        Value::DateTime(date, time) => {
            format!("{} {}", date_text(*date), time_text(*time, digits(column))).into_bytes()
        }
        Value::Timestamp(0, 0) => {
            let zero = Time {
                hour: 0,
                minute: 0,
                second: 0,
                microsecond: 0,
            };
            format!("0000-00-00 {}", time_text(zero, digits(column))).into_bytes()
        }
        Value::Timestamp(seconds, microsecond) => {
            let (date, time) = utc(*seconds, *microsecond);
            format!("{} {}", date_text(date), time_text(time, digits(column))).into_bytes()
        }
        Value::Time { negative, time } => {
            let sign = if *negative { "-" } else { "" };
            format!("{sign}{}", time_text(*time, digits(column))).into_bytes()
        }
        _ => return None,
    })
}

/// Fractional digits, from `datetime(6)`.
fn digits(column: &KeyColumn) -> usize {
    let inside = column
        .column_type
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    inside
        .and_then(|(digits, _)| digits.parse().ok())
        .unwrap_or(0)
}

fn date_text(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn time_text(time: Time, digits: usize) -> String {
    let mut text = format!("{:02}:{:02}:{:02}", time.hour, time.minute, time.second);
    if digits > 0 {
        let fraction = format!("{:06}", time.microsecond);
        text.push('.');
        text.push_str(&fraction[..digits.min(6)]);
    }
    text
}

/// The date and time of seconds since 1970, after H. Hinnant's `civil_from_days`.
fn utc(seconds: u32, microsecond: u32) -> (Date, Time) {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = u64::from(days) + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (
        Date {
            year: year as u16,
            month: month as u8,
            day: (day_of_year - (153 * shifted + 2) / 5 + 1) as u8,
        },
        Time {
            hour: (rest / 3600) as u16,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
            microsecond,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyKind;

    #[test]
    fn keys_look_as_select_shows_them() {
        let column = |column_type: &str| KeyColumn {
            name: "k".into(),
            kind: KeyKind::Temporal,
            ordinal: 0,
            unsigned: false,
            column_type: column_type.into(),
        };
        let text = |value, column_type: &str| {
            String::from_utf8(canonical(&value, &column(column_type)).unwrap()).unwrap()
        };
        // date -u -d @1582934400, @951782399, @4294967295
        assert_eq!(
            text(Value::Timestamp(1_582_934_400, 0), "timestamp"),
            "2020-02-29 00:00:00"
        );
        assert_eq!(
            text(Value::Timestamp(951_782_399, 120_000), "timestamp(2)"),
            "2000-02-28 23:59:59.12"
        );
        assert_eq!(
            text(Value::Timestamp(u32::MAX, 0), "timestamp"),
            "2106-02-07 06:28:15"
        );
        assert_eq!(
            text(Value::Timestamp(0, 0), "timestamp(1)"),
            "0000-00-00 00:00:00.0"
        );
        let time = Time {
            hour: 100,
            minute: 1,
            second: 2,
            microsecond: 0,
        };
        assert_eq!(
            text(
                Value::Time {
                    negative: true,
                    time
                },
                "time"
            ),
            "-100:01:02"
        );
        assert_eq!(text(Value::Year(0), "year(4)"), "0000");
        assert_eq!(text(Value::Int(-5), "int"), "-5");
    }

    #[test]
    fn positions_are_read_back() {
        let position = Position::new("binlog.000012", 4711);
        assert_eq!(position_from_text(&position.to_string()).unwrap(), position);
        assert!(position_from_text("nowhere").is_err());
    }
}
