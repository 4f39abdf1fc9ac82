//! `onionskin status`: how the running proxy is, on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use onionskin_proxy::{Counted, Help, Status};

use crate::{
    control::{self, Verdict},
    error::CommandError,
    home,
    reload::control_of,
};

/// Clears a terminal, and goes to its beginning.
const CLEAR: &str = "\x1b[2J\x1b[H";
/// Why an answer of the proxy's cannot be told.
const UNREAD: &str = "the proxy is of another version, whose answer is not understood";

/// Tell how the running proxy is: its parts, its speed, what was refused, what is protected
///
/// Refused statements are grouped by shape, without their literals: the list to work through when
/// an application is moved. Needs `control` in the configuration; counts and times of statements
/// need `admin` as well.
#[derive(Args)]
pub struct Show {
    /// The configuration of the running proxy [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// As JSON, in one line
    #[arg(long)]
    json: bool,
    /// Again every so many seconds, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    watch: Option<u64>,
    /// As many shapes of refused statements as this
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    refused: usize,
}

impl Show {
    /// Prints it.
    pub fn run(self) -> Result<(), CommandError> {
        let path = self.config.clone().unwrap_or_else(home::default_config);
        let socket = control_of(&path)?;
        let mut before: Option<Status> = None;
        loop {
            let text = match control::ask(&socket, "status")? {
                Some((Verdict::Done, text)) => text,
                Some((_, why)) => return Err(CommandError::Control(why)),
                None => {
                    let socket = socket.display();
                    let why = format!("{socket}: no proxy listens there");
                    return Err(CommandError::Control(why));
                }
            };
            let told = if self.json {
                text + "\n"
            } else {
                let status: Status = serde_json::from_str(&text)
                    .map_err(|_| CommandError::Control(UNREAD.into()))?;
                let clear = self.watch.is_some() && io::stdout().is_terminal();
                let clear = if clear { CLEAR } else { "" };
                let told = clear.to_owned() + &screen(&status, before.as_ref(), self.refused);
                before = Some(status);
                told
            };
            let mut out = io::stdout().lock();
            let written = out.write_all(told.as_bytes()).and_then(|()| out.flush());
            if let Err(source) = written {
                let doing = "writing the status";
                return Err(CommandError::System { doing, source });
            }
            match self.watch {
                Some(seconds) => thread::sleep(Duration::from_secs(seconds)),
                None => return Ok(()),
            }
        }
    }
}

/// All of it for people; with speeds, if it was asked before.
fn screen(status: &Status, before: Option<&Status>, most_refused: usize) -> String {
    let mut out = String::new();
    let up = Duration::from_secs((status.now - status.started).max(0.0) as u64);
    let up = indicatif::HumanDuration(up);
    let sessions = status.sessions;
    let _ = writeln!(
        out,
        "onionskin {}, up for {up}, {sessions} sessions",
        status.version
    );
    for part in &status.parts {
        let state = part.fault.as_deref().unwrap_or("ok");
        let note = part.note.as_ref().map(|note| format!("; {note}"));
        let state = format!("{state}{}", note.unwrap_or_default());
        let _ = writeln!(out, "  {}: {}", part.name, printable(&state));
    }
    if let Some(counted) = &status.counted {
        let passed = before.map(|before| (before, status.now - before.now));
        put_statements(&mut out, counted, passed);
    }
    put_refused(&mut out, status, most_refused);
    put_protected(&mut out, status);
    out
}

/// Statements by tier: how many, and how many a second since the status before.
fn put_statements(out: &mut String, counted: &Counted, passed: Option<(&Status, f64)>) {
    let by_tier = |counted: &Counted| {
        let mut tiers: BTreeMap<String, u64> = BTreeMap::new();
        for statements in &counted.statements {
            let count: u64 = statements.buckets.iter().sum();
            *tiers.entry(statements.tier.to_string()).or_default() += count;
        }
        tiers
    };
    let last = passed.and_then(|(before, _)| before.counted.as_ref());
    let last = last.map(by_tier).unwrap_or_default();
    out.push_str("\nstatements by tier\n");
    for (tier, count) in by_tier(counted) {
        let _ = write!(out, "  {tier:<10} {count:>12}");
        if let Some((_, seconds)) = passed.filter(|(_, seconds)| *seconds > 0.0) {
            let fresh = count.saturating_sub(last.get(&tier).copied().unwrap_or_default());
            let _ = write!(out, "  {:>10.1} a second", fresh as f64 / seconds);
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "  seconds at the server {:.1}, at the scratch engine {:.1}, in the proxy {:.1}",
        counted.at_server, counted.at_engine, counted.in_proxy
    );
}

fn put_refused(out: &mut String, status: &Status, most: usize) {
    let count: u64 = status.refused.iter().map(|refused| refused.count).sum();
    let shapes = status.refused.len();
    let _ = writeln!(out, "\nrefused statements: {count}, {shapes} shapes");
    for refused in status.refused.iter().take(most) {
        let help = match refused.help {
            None => "",
            Some(Help::Equality) => "; the capability eq gives tier 1",
            Some(Help::Range) => "; the capability range gives tier 1",
            Some(Help::Engine) => "; a scratch engine gives tier 3",
        };
        let _ = writeln!(
            out,
            "  {} × {}{help}\n    {}\n    {}",
            refused.count,
            refused.code,
            printable(&refused.shape),
            printable(&refused.message)
        );
    }
    if shapes > most {
        let left = shapes - most;
        let _ = writeln!(out, "  and {left} shapes more: --refused {shapes}");
    }
    if status.forgotten > 0 {
        let forgotten = status.forgotten;
        let _ = writeln!(out, "  {forgotten} shapes were forgotten for want of room");
    }
}

fn put_protected(out: &mut String, status: &Status) {
    out.push_str("\nprotected columns of tables that statements have named\n");
    for table in &status.protected {
        let name = format!("{}.{}", table.database, table.name);
        let fault = table.fault.as_deref().map(|why| format!(": {why}"));
        let fault = fault.unwrap_or_default();
        let _ = writeln!(out, "  {}{}", printable(&name), printable(&fault));
        for column in &table.columns {
            let capabilities = match column.capabilities.is_empty() {
                true => "sealed".to_owned(),
                false => column.capabilities.join(", "),
            };
            let _ = writeln!(
                out,
                "    {} {} ({capabilities}): shows {}",
                printable(&column.name),
                column.sql_type,
                column.shows
            );
        }
    }
}

/// A text that comes from statements, without what a terminal would take for commands.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_statement_commands_the_terminal() {
        assert_eq!(
            printable("a\x1b[2Jb\nc\u{9b}d"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d"
        );
    }
}
