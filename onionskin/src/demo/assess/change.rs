//! The tables are encrypted by the commands of the proposal, while the application runs.

use std::{
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use onionskin_assess::queries::QueriesReport;

use super::{
    super::{
        client::{Client, Reply},
        failed,
        screen::Screen,
    },
    Stage,
    application::{Answers, Application},
    data, proxies,
    report::DemoReport,
};
use crate::{error::CommandError, home};

impl Stage<'_> {
    /// One command after the other, and the policy in the end.
    pub(super) fn change(
        &self,
        screen: &mut Screen,
        proposed: &QueriesReport,
        before: &Answers,
        proxy: &Path,
        report: &mut DemoReport,
    ) -> Result<(), CommandError> {
        let is_over = AtomicBool::new(false);
        let (changed, load) = thread::scope(|scope| {
            let load = scope.spawn(|| run_until(&is_over, before, proxy));
            // On this thread: programs end with the thread that has started them.
            let changed = self.commands(screen, proposed, proxy, report);
            is_over.store(true, Ordering::Relaxed);
            (changed, load.join())
        });
        changed?;
        let load = load.map_err(|_| failed("the application has ended with a panic"))?;
        report.meanwhile = load?;
        screen.text(&format!(
            "  meanwhile {} statements of the application: none failed, and every answer was the one of before",
            report.meanwhile
        ));
        self.write_policy(&proposed.policy)
    }

    fn commands(
        &self,
        screen: &mut Screen,
        proposed: &QueriesReport,
        proxy: &Path,
        report: &mut DemoReport,
    ) -> Result<(), CommandError> {
        for command in &proposed.commands {
            self.go_on()?;
            let begun = Instant::now();
            screen.text(&format!("  $ {command}"));
            match command.starts_with("onionskin ") {
                true => {
                    let more = ["--quiet", "--drop-old"];
                    let said = proxies::run_proposed(&self.home, command, &more, self.termination)?;
                    let is_first = report.commands.is_empty();
                    let lines = said.lines().filter(|line| !line.starts_with("this was"));
                    // the warning is the same each time
                    for line in lines.filter(|l| is_first || !l.starts_with("warning")) {
                        screen.text(&format!("      {line}"));
                    }
                }
                // Definitions go through the proxy.
                false => {
                    let reply = Client::at(proxy, data::SHOP)?.run(command)?;
                    if let Reply::Refused { code, text } = reply {
                        return Err(failed(format!("{command} → {code}: {text}")));
                    }
                }
            }
            let time = begun.elapsed().as_secs_f64();
            report.commands.push((command.clone(), time));
        }
        match report.commands.is_empty() {
            true => Err(failed("there is no command that encrypts anything")),
            false => Ok(()),
        }
    }

    /// From now on statements near a table that is not protected so are refused.
    fn write_policy(&self, policy: &[String]) -> Result<(), CommandError> {
        let path = self.home.join(home::CONFIG);
        let mut text = String::from("\n# What assess queries has proposed.\n");
        for line in policy {
            text += &format!("{line}\n");
        }
        let written = OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| CommandError::File { path, source })
    }
}

/// The application, all the time; how many statements.
fn run_until(is_over: &AtomicBool, before: &Answers, proxy: &Path) -> Result<u64, CommandError> {
    let mut application = Application::start(proxy, data::SHOP)?;
    while !is_over.load(Ordering::Relaxed) {
        application.pass_as_before(before)?;
    }
    Ok(application.spent.statements)
}
