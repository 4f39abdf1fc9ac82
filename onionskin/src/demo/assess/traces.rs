//! Planted texts in the server's files: where they stood, and where they still stand.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use mysql::{Conn, Row, prelude::Queryable};
use serde::Serialize;

use super::{
    super::{
        client::{self, Client, Reply},
        failed, search,
    },
    data,
};
use crate::error::CommandError;

/// How long the reader of a migration that has ended may take to be noticed by the server.
const READERS: Duration = Duration::from_secs(20);

/// A text, and the files that hold it.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// The column that it is a value of.
    pub column: String,
    /// The text.
    pub text: String,
    /// Below the data directory.
    pub files: Vec<String>,
}

impl Trace {
    /// `customers.email: in shop/customers.ibd, ib_logfile0`
    pub fn told(&self) -> String {
        let places = match self.files.is_empty() {
            true => "nowhere".into(),
            false => format!("in {}", self.files.join(", ")),
        };
        format!("{} \"{}\": {places}", self.column, self.text)
    }
}

/// Looks for texts in all files of a server.
pub fn look(texts: &[(&str, &str)], data: &Path) -> Result<Vec<Trace>, CommandError> {
    let failed = |source| CommandError::File {
        path: data.to_owned(),
        source,
    };
    let files = search::files(data).map_err(failed)?;
    let mut traces = Vec::new();
    for (column, text) in texts {
        let found = search::find(&files, text.as_bytes()).map_err(failed)?;
        let below = |path: &std::path::PathBuf| {
            let path = path.strip_prefix(data).unwrap_or(path);
            path.display().to_string()
        };
        traces.push(Trace {
            column: (*column).into(),
            text: (*text).into(),
            files: found.iter().map(below).collect(),
        });
    }
    Ok(traces)
}

/// Where the texts stand while their tables are plain. Whoever finds nothing then cannot search.
pub fn planted(direct: &mut Conn, files: &Path) -> Result<Vec<Trace>, CommandError> {
    let tables: Vec<String> = data::TABLES
        .iter()
        .map(|(table, _)| format!("{}.{table}", data::SHOP))
        .collect();
    let flush = format!("FLUSH TABLES {} FOR EXPORT", tables.join(", "));
    direct.query_drop(flush).map_err(client::broken)?;
    let traces = look(data::PLANTED, files);
    direct.query_drop("UNLOCK TABLES").map_err(client::broken)?;
    let traces = traces?;
    for trace in &traces {
        let table = trace.column.split('.').next().unwrap_or_default();
        let file = format!("{}/{table}.ibd", data::SHOP);
        if !trace.files.contains(&file) {
            return Err(failed(format!(
                "{} is stored as it is, but was not found in {file}",
                trace.told()
            )));
        }
    }
    Ok(traces)
}

/// Writes further texts through a proxy, and reads them back.
pub fn later(proxy: &Path) -> Result<(), CommandError> {
    let mut client = Client::at(proxy, data::SHOP)?;
    let [(_, email), (_, note), (_, body)] = data::PLANTED_LATER else {
        return Err(failed("three texts are planted"));
    };
    let customer = data::CUSTOMERS + 1;
    let statements = [
        format!(
            "INSERT INTO customers (id, given_name, surname, email, phone, born, street, postcode, city, joined) VALUES \
             ({customer}, 'Ottokar', 'Zunder', '{email}', '+49 150 0000000', '1970-01-02', '1 Mill Street', '10001', \
             'Ulm', '2026-02-03')"
        ),
        format!(
            "INSERT INTO orders (id, customer, ordered, amount, state, note) VALUES \
             ({}, {customer}, '2026-02-03', 5.00, 'open', '{note}')",
            data::ORDERS + 1
        ),
        format!(
            "INSERT INTO messages (customer, sent, body) VALUES ({customer}, '2026-02-03 10:00:00', '{body}')"
        ),
    ];
    for sql in &statements {
        if let Reply::Refused { code, text } = client.run(sql)? {
            return Err(failed(format!("{sql} → {code}: {text}")));
        }
    }
    for (column, text) in data::PLANTED_LATER {
        let (table, column) = column.split_once('.').unwrap_or_default();
        let key = if table == "customers" {
            "id"
        } else {
            "customer"
        };
        let read = client.rows(&format!(
            "SELECT {column} FROM {table} WHERE {key} = {customer}"
        ))?;
        let cell = read.rows.first().and_then(|row| row.first());
        if !cell.is_some_and(|cell| cell.is(text)) {
            return Err(failed(format!("{table}.{column} is not read as written")));
        }
    }
    Ok(())
}

/// Removes the binary logs of before, and has the server finish what it has put off.
pub fn forget_logs(direct: &mut Conn) -> Result<(), CommandError> {
    let logs = |direct: &mut Conn| -> Result<Vec<String>, CommandError> {
        let rows: Vec<Row> = direct.query("SHOW BINARY LOGS").map_err(client::broken)?;
        Ok(rows.iter().filter_map(|row| row.get(0)).collect())
    };
    direct
        .query_drop("FLUSH BINARY LOGS")
        .map_err(client::broken)?;
    let until = Instant::now() + READERS;
    loop {
        let there = logs(direct)?;
        let Some(last) = there.last() else {
            return Err(failed("the server has no binary log"));
        };
        if there.len() == 1 {
            break;
        }
        if Instant::now() > until {
            return Err(failed("the server keeps old binary logs"));
        }
        // One that somebody reads stays, in silence.
        let purge = format!("PURGE BINARY LOGS TO '{last}'");
        direct.query_drop(purge).map_err(client::broken)?;
        thread::sleep(Duration::from_millis(50));
    }
    let slow = "SET GLOBAL innodb_fast_shutdown = 0";
    direct.query_drop(slow).map_err(client::broken)
}

/// Files of InnoDB's of which old parts are written over in time: redo and undo logs, pages on
/// their way, and the system tablespace.
pub fn is_written_over(file: &str) -> bool {
    let begins = ["ib_logfile", "#innodb_redo/", "undo", "ibdata", "ibtmp"];
    begins.iter().any(|begin| file.starts_with(begin)) || file.ends_with(".dblwr")
}
