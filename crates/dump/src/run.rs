//! A dump from its first line to its last.

use std::io::Write;

use onionskin_rowstream::client::{Client, ConnectOptions};
use onionskin_schema::{TableName, identifier, pattern};
use onionskin_value::Kind;

use crate::{
    column::Masker,
    definition::without_version_comments,
    error::DumpError,
    facts::{self, ColumnFacts, IDENTITY, Protections, TableFacts, one, selected, texts},
    key::MaskKey,
    literal,
    output::Output,
    plan::{self, TableMasks},
    programs::{self, Program, Programs},
    rules::Rules,
};

/// The last line of a whole dump.
pub const LAST_LINE: &str = "-- onionskin dump: complete";
/// Databases of the server's own.
const SYSTEM: [&str; 5] = [
    "mysql",
    "sys",
    "information_schema",
    "performance_schema",
    "ndbinfo",
];
/// How long the server may take for its next word.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(900);

/// What is asked for.
pub struct Request {
    /// The proxy, and the account that sees values in the clear.
    pub from: ConnectOptions,
    /// Which databases; `None`: all but the server's own.
    pub databases: Option<Vec<String>>,
    /// `database.table`, with `*`; none: all tables.
    pub tables: Vec<String>,
    /// Masks.
    pub rules: Rules,
    /// Their key.
    pub key: MaskKey,
    /// `ENCRYPTED FOR` in definitions.
    pub encrypted_for: bool,
    /// Also views and programs that have constants in their texts.
    pub constants: bool,
    /// Bytes of an INSERT, as long as its rows are not larger.
    pub insert_bytes: usize,
    /// Version of the program.
    pub program: String,
}

/// What a dump came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tables.
    pub tables: usize,
    /// Rows.
    pub rows: u64,
    /// Columns that were replaced.
    pub replaced: usize,
    /// What is not in the dump, and what does not hold for it.
    pub notes: Vec<String>,
}

struct Run<'a> {
    client: Client,
    request: &'a Request,
    out: &'a mut Output,
}

/// Writes the dump. `out` is finished by the caller, if this is done without an error.
pub fn run(
    request: &Request,
    protections: &mut dyn Protections,
    out: &mut Output,
) -> Result<Summary, DumpError> {
    let client = Client::connect(&request.from).map_err(DumpError::at("--from"))?;
    client
        .set_read_timeout(Some(PATIENCE))
        .map_err(DumpError::at("--from"))?;
    let mut run = Run {
        client,
        request,
        out,
    };
    run.begin(protections)?;
    let databases = run.databases()?;
    let mut summary = Summary::default();
    let mut programs = Programs::default();
    let mut tables = Vec::new();
    for database in &databases {
        run.names_of(database, &mut tables, &mut programs)?;
    }
    programs.sort_views();
    let tables = run.tables(tables, protections)?;
    let mut masks = plan::masks(&tables, &request.rules, &request.key)?;
    summary.tables = tables.len();
    summary.replaced = masks.iter().flatten().flatten().count();
    if summary.replaced == 0 {
        return Err(DumpError::Request(
            "nothing would be replaced: no column of these tables is protected, and --mask names none; \
             mysqldump and mariadb-dump do the same"
                .into(),
        ));
    }
    summary.notes.append(&mut programs.left_out);
    let loose = tables.iter().filter(|table| !table.is_transactional());
    summary.notes.extend(loose.map(|table| {
        format!(
            "table {}: its engine has no snapshots, so its rows may be of another moment",
            table.name
        )
    }));
    // Definitions were read before: MySQL shows a transaction those of its snapshot. Each is read
    // again behind the table's rows.
    run.ask("START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */")?;
    run.ask("SAVEPOINT onionskin_dump")?;
    let order = parents_first(&tables);
    run.head(&summary.notes)?;
    for database in &databases {
        run.database(database)?;
        for at in order
            .iter()
            .filter(|at| tables[**at].name.database == *database)
        {
            summary.rows += run.table(&tables[*at], &mut masks[*at], protections)?;
        }
    }
    for view in &programs.views {
        run.line(&format!(
            "USE {};\n{};\n",
            identifier(&view.database),
            view.text
        ))?;
    }
    for program in &programs.others {
        run.program(program)?;
    }
    run.tail()?;
    run.client.quit();
    Ok(summary)
}

impl Run<'_> {
    fn line(&mut self, text: &str) -> Result<(), DumpError> {
        self.out
            .write_all(text.as_bytes())
            .map_err(DumpError::Write)
    }

    fn ask(&mut self, sql: &str) -> Result<(), DumpError> {
        self.client.query(sql).map(drop).map_err(DumpError::at(sql))
    }

    /// The session, and whether it is the right server.
    fn begin(&mut self, protections: &mut dyn Protections) -> Result<(), DumpError> {
        for sql in [
            "SET NAMES utf8mb4",
            "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'",
            "SET SESSION time_zone = '+00:00'",
            "SET SESSION net_write_timeout = 3600, net_read_timeout = 3600, wait_timeout = 86400",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        ] {
            self.ask(sql)?;
        }
        let behind = protections.identity().map_err(DumpError::Mismatch)?;
        let shown = one(&mut self.client, IDENTITY, 0)?;
        if behind != shown {
            return Err(DumpError::Mismatch(format!(
                "--from leads to another server than the configuration: {shown} and {behind}"
            )));
        }
        Ok(())
    }

    fn databases(&mut self) -> Result<Vec<String>, DumpError> {
        let shown = texts(&mut self.client, "SHOW DATABASES")?;
        let shown: Vec<String> = shown.into_iter().flatten().flatten().collect();
        let Some(wanted) = &self.request.databases else {
            let is_own = |name: &String| SYSTEM.contains(&name.to_lowercase().as_str());
            return Ok(shown.into_iter().filter(|name| !is_own(name)).collect());
        };
        match wanted.iter().find(|name| !shown.contains(name)) {
            Some(name) => Err(DumpError::Request(format!("there is no database {name}"))),
            None => Ok(wanted.clone()),
        }
    }

    /// Tables, views and programs of a database.
    fn names_of(
        &mut self,
        database: &str,
        tables: &mut Vec<TableName>,
        programs: &mut Programs,
    ) -> Result<(), DumpError> {
        let mut views = Vec::new();
        let sql = format!("SHOW FULL TABLES FROM {}", identifier(database));
        for row in texts(&mut self.client, &sql)? {
            let mut cells = row.into_iter().flatten();
            let (Some(name), Some(kind)) = (cells.next(), cells.next()) else {
                return Err(DumpError::Mismatch(format!("{sql}: no answer")));
            };
            let name = TableName::new(database, name);
            match kind.as_str() {
                "BASE TABLE" => tables.push(name),
                "VIEW" => views.push(name),
                "SYSTEM VERSIONED" => {
                    programs
                        .left_out
                        .push(format!("table {name}: the history of its rows"));
                    tables.push(name);
                }
                _ => programs
                    .left_out
                    .push(format!("{} {name}", kind.to_lowercase())),
            }
        }
        if self.request.tables.is_empty() {
            programs::read(
                &mut self.client,
                database,
                &views,
                self.request.constants,
                programs,
            )?;
        }
        Ok(())
    }

    /// The wanted ones, with all that is known of them.
    fn tables(
        &mut self,
        names: Vec<TableName>,
        protections: &mut dyn Protections,
    ) -> Result<Vec<TableFacts>, DumpError> {
        let wanted = &self.request.tables;
        let folded =
            |name: &TableName| pattern::folded(&format!("{}.{}", name.database, name.name));
        for wanted in wanted {
            let is_there = names
                .iter()
                .any(|name| pattern::matches(&pattern::folded(wanted), &folded(name)));
            if !is_there {
                return Err(DumpError::Request(format!(
                    "there is no table {wanted} in these databases"
                )));
            }
        }
        let is_wanted = |name: &&TableName| {
            wanted.is_empty()
                || wanted
                    .iter()
                    .any(|w| pattern::matches(&pattern::folded(w), &folded(name)))
        };
        let client = &mut self.client;
        names
            .iter()
            .filter(is_wanted)
            .map(|name| facts::table(client, protections, name))
            .collect()
    }

    fn head(&mut self, notes: &[String]) -> Result<(), DumpError> {
        let version = one(&mut self.client, "SELECT VERSION()", 0)?;
        let mut text = format!(
            "-- onionskin dump {}, from a server {}\n-- Protected columns are replaced. A whole dump ends with: {}\n",
            self.request.program,
            commented(&version),
            &LAST_LINE[3..]
        );
        for note in notes {
            text += &format!("-- Not in it: {}\n", commented(note));
        }
        text += "\n\
            /*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n\
            /*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;\n\
            /*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;\n\
            SET NAMES utf8mb4;\n\
            SET @OLD_TIME_ZONE=@@TIME_ZONE;\n\
            SET TIME_ZONE='+00:00';\n\
            SET @OLD_SQL_MODE=@@SQL_MODE;\n\
            SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION';\n\
            SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=1;\n\
            SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0;\n";
        self.line(&text)
    }

    fn tail(&mut self) -> Result<(), DumpError> {
        self.line(&format!(
            "\nSET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS;\n\
             SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS;\n\
             SET SQL_MODE=@OLD_SQL_MODE;\n\
             SET TIME_ZONE=@OLD_TIME_ZONE;\n\
             /*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;\n\
             /*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;\n\
             /*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;\n\
             {LAST_LINE}\n"
        ))
    }

    fn database(&mut self, name: &str) -> Result<(), DumpError> {
        let sql = format!("SHOW CREATE DATABASE IF NOT EXISTS {}", identifier(name));
        let text = one(&mut self.client, &sql, 1)?;
        self.line(&format!("\n{text};\nUSE {};\n", identifier(name)))
    }

    /// A table and its rows. Returns how many there are.
    fn table(
        &mut self,
        table: &TableFacts,
        masks: &mut TableMasks,
        protections: &mut dyn Protections,
    ) -> Result<u64, DumpError> {
        let definition = match self.request.encrypted_for {
            true => with_protection(table),
            false => table.shown.clone(),
        };
        let definition = without_version_comments(&definition);
        self.line(&format!("\n{definition};\n"))?;
        let rows = self.rows(table, masks)?;
        // The table cannot be changed any more while the snapshot has read it. Is it the one that
        // masks were chosen for?
        let quoted = table.quoted();
        let shown = one(&mut self.client, &format!("SHOW CREATE TABLE {quoted}"), 1)?;
        let behind = facts::protection(protections, &table.name)?;
        if without_counter(&shown) != without_counter(&table.shown) || behind != table.protection {
            return Err(DumpError::Changed {
                table: table.name.to_string(),
            });
        }
        self.release()?;
        Ok(rows)
    }

    /// Lets others change the tables that were read: the snapshot stays, the locks on definitions
    /// do not.
    fn release(&mut self) -> Result<(), DumpError> {
        self.ask("ROLLBACK TO SAVEPOINT onionskin_dump")
    }

    fn rows(&mut self, table: &TableFacts, masks: &mut TableMasks) -> Result<u64, DumpError> {
        let mut columns: Vec<(&ColumnFacts, Option<&mut Masker>)> = table
            .columns
            .iter()
            .zip(masks.iter_mut().map(Option::as_mut))
            .filter(|(column, _)| !column.is_generated)
            .collect();
        let names: Vec<String> = columns
            .iter()
            .map(|(c, _)| identifier(&c.name.column))
            .collect();
        let read: Vec<String> = columns
            .iter()
            .map(|(c, mask)| selected(c, mask.is_some()))
            .collect();
        if names.is_empty() {
            return Ok(0);
        }
        let sql = format!("SELECT {} FROM {}", read.join(","), table.quoted());
        let begin = format!(
            "INSERT INTO {} ({}) VALUES\n",
            identifier(&table.name.name),
            names.join(",")
        );
        let forms: Vec<Form> = columns.iter().map(|(column, _)| Form::of(column)).collect();
        let key: Vec<usize> = (0..columns.len())
            .filter(|at| {
                table
                    .definition
                    .primary
                    .contains(&columns[*at].0.name.column)
            })
            .collect();
        let (mut statement, mut row_text) = (Vec::new(), Vec::new());
        let (mut rows, mut row_name) = (0_u64, Vec::new());
        let out = &mut *self.out;
        let most = self.request.insert_bytes;
        self.client.each_row(&sql, |cells| {
            row_name.clear();
            for at in &key {
                let cell = cells[*at].unwrap_or_default();
                row_name.extend_from_slice(&(cell.len() as u64).to_be_bytes());
                row_name.extend_from_slice(cell);
            }
            if key.is_empty() {
                row_name.extend_from_slice(&rows.to_be_bytes());
            }
            rows += 1;
            row_text.clear();
            for (at, (cell, (column, mask))) in cells.iter().zip(&mut columns).enumerate() {
                row_text.push(if at == 0 { b'(' } else { b',' });
                match (cell, mask) {
                    (None, _) => row_text.extend_from_slice(b"NULL"),
                    (Some(cell), Some(mask)) => {
                        mask.replace(cell, &row_name, &mut row_text)
                            .map_err(|reason| DumpError::Value {
                                column: column.name.to_string(),
                                reason,
                            })?;
                    }
                    (Some(cell), None) => forms[at].write(cell, &mut row_text),
                }
            }
            row_text.push(b')');
            if !statement.is_empty() && statement.len() + row_text.len() + 3 > most {
                statement.extend_from_slice(b";\n");
                out.write_all(&statement).map_err(DumpError::Write)?;
                statement.clear();
            }
            statement.extend_from_slice(match statement.is_empty() {
                true => begin.as_bytes(),
                false => b",\n",
            });
            statement.extend_from_slice(&row_text);
            Ok::<(), DumpError>(())
        })?;
        if !statement.is_empty() {
            statement.extend_from_slice(b";\n");
            self.out.write_all(&statement).map_err(DumpError::Write)?;
        }
        Ok(rows)
    }

    fn program(&mut self, program: &Program) -> Result<(), DumpError> {
        // longer than what the text has
        let mut delimiter = ";;".to_owned();
        while program.text.contains(&delimiter) {
            delimiter.push(';');
        }
        let mut mode = Vec::new();
        literal::text(
            program.mode.clone().unwrap_or_default().as_bytes(),
            &mut mode,
        );
        self.line(&format!(
            "USE {};\nSET @PROGRAM_SQL_MODE=@@SQL_MODE;\nSET SQL_MODE={};\nDELIMITER {delimiter}\n{} {delimiter}\nDELIMITER ;\n\
             SET SQL_MODE=@PROGRAM_SQL_MODE;\n",
            identifier(&program.database),
            String::from_utf8_lossy(&mode),
            program.text,
        ))
    }
}

/// How values that stay are written.
#[derive(Clone, Copy)]
enum Form {
    /// As they come.
    Number,
    Text,
    Bytes,
}

impl Form {
    fn of(column: &ColumnFacts) -> Self {
        match column.ty {
            Some(ty) if ty.is_numeric() || ty.kind == Kind::Year => Self::Number,
            Some(ty) if ty.is_binary() || ty.is_bit() => Self::Bytes,
            Some(_) => Self::Text,
            // ENUM and SET whose lists are not understood are texts; points and vectors are bytes
            None if column.type_text.starts_with("enum") || column.type_text.starts_with("set") => {
                Self::Text
            }
            None => Self::Bytes,
        }
    }

    fn write(self, cell: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Number => out.extend_from_slice(cell),
            Self::Text => literal::text(cell, out),
            Self::Bytes => literal::bytes(cell, out),
        }
    }
}

/// For a line of a comment.
fn commented(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// A definition without the next number of AUTO_INCREMENT, which goes on.
fn without_counter(shown: &str) -> String {
    let Some((before, rest)) = shown.rsplit_once(" AUTO_INCREMENT=") else {
        return shown.into();
    };
    format!(
        "{before}{}",
        rest.trim_start_matches(|c: char| c.is_ascii_digit())
    )
}

/// The definition with `ENCRYPTED FOR` behind each protected column.
fn with_protection(table: &TableFacts) -> String {
    let mut out = table.shown.clone();
    for (name, end) in table.definition.columns.iter().rev() {
        let column = table.columns.iter().find(|c| c.name.column == *name);
        let Some(capabilities) = column.and_then(|c| c.capabilities.clone()) else {
            continue;
        };
        // the proxy puts keys into such groups by itself
        let mut capabilities = capabilities;
        if capabilities.joins_key() {
            capabilities.join = None;
        }
        out.insert_str(*end, &format!(" {}", capabilities.clause()));
    }
    out
}

/// Tables behind those that they refer to, as far as there is no circle.
fn parents_first(tables: &[TableFacts]) -> Vec<usize> {
    let place = |database: &str, name: &str| {
        tables
            .iter()
            .position(|t| t.name.database == database && t.name.name.eq_ignore_ascii_case(name))
    };
    let mut order = Vec::new();
    let mut is_placed = vec![false; tables.len()];
    let parents: Vec<Vec<usize>> = tables
        .iter()
        .map(|table| {
            let keys = table.definition.foreign.iter();
            let own = &table.name.database;
            keys.filter_map(|key| place(key.database.as_ref().unwrap_or(own), &key.table))
                .collect()
        })
        .collect();
    while order.len() < tables.len() {
        let is_ready =
            |at: &usize| !is_placed[*at] && parents[*at].iter().all(|p| is_placed[*p] || p == at);
        let next = (0..tables.len()).find(is_ready);
        let next = next.or_else(|| is_placed.iter().position(|placed| !placed));
        let Some(next) = next else { break };
        is_placed[next] = true;
        order.push(next);
    }
    order
}
