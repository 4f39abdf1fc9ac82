//! `serve --observe FILE`: what an application asks goes into a file, for `assess queries`.
//!
//! The file has a line of JSON for each thing that it tells. It only grows, by whole lines, so that
//! the program that takes this one's place may write to it at the same time:
//!
//! ```text
//! {"onionskin":"observed statements","version":1,"run":"77e3…","began":"2026-11-30T08:00:00Z"}
//! {"run":"77e3…","shape":0,"database":"app","sql":"SELECT a FROM t WHERE b = 'a'"}
//! {"run":"77e3…","counts":[[0,17]],"left_out":0,"unread":1}
//! ```
//!
//! `assess/src/queries/observed.rs` reads it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onionskin_assess::queries::observed::HEAD;
use onionskin_proxy::{StatementShapes, TakenShapes};
use serde_json::json;

use crate::error::CommandError;

/// How often counts are written.
const PAUSE: Duration = Duration::from_secs(10);

/// Writes counts from time to time, and at its end.
pub struct Observing {
    shapes: Arc<StatementShapes>,
    /// Dropping it ends the thread.
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Observing {
    /// Begins a run in the file. One that holds anything else is an error.
    pub fn begin(path: &Path) -> Result<Observing, CommandError> {
        let failed = |source| CommandError::File {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600);
        let file = file.open(path).map_err(failed)?;
        let is_new = file.metadata().map_err(failed)?.len() == 0;
        if !is_new {
            let mut head = vec![0; HEAD.len()];
            let is_ours = file.read_exact_at(&mut head, 0).is_ok() && head == HEAD.as_bytes();
            if !is_ours {
                return Err(CommandError::Arguments(format!(
                    "{} holds something else than observed statements: name another file",
                    path.display()
                )));
            }
        }
        let shapes = Arc::<StatementShapes>::default();
        let run = format!("{:016x}", rand::random::<u64>());
        let mut log = Log {
            path: path.to_owned(),
            file,
            run,
            has_failed: false,
        };
        let began = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        // a program that was killed may have left a part of a line
        let before = if is_new { "" } else { "\n" };
        let run = &log.run;
        let head =
            format!("{before}{HEAD},\"version\":1,\"run\":\"{run}\",\"began\":\"{began}\"}}\n");
        log.file.write_all(head.as_bytes()).map_err(failed)?;
        let (end, ended) = mpsc::channel();
        let counted = Arc::clone(&shapes);
        let thread = thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PAUSE) {
                log.write(&counted);
            }
            log.write(&counted);
        });
        Ok(Observing {
            shapes,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Where sessions count.
    pub fn shapes(&self) -> Arc<StatementShapes> {
        Arc::clone(&self.shapes)
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // it has told what went wrong
            let _ = thread.join();
        }
    }
}

/// The file.
struct Log {
    path: PathBuf,
    file: File,
    run: String,
    /// The last write has failed.
    has_failed: bool,
}

impl Log {
    fn write(&mut self, shapes: &StatementShapes) {
        let Some(taken) = shapes.take() else {
            return;
        };
        match self.append(&taken) {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                if !self.has_failed {
                    let path = self.path.display().to_string();
                    tracing::error!(%error, path, "what was observed cannot be written; it is kept");
                }
                self.has_failed = true;
                shapes.give_back(taken);
            }
        }
    }

    /// Appends lines: all of them or none.
    fn append(&mut self, taken: &TakenShapes) -> std::io::Result<()> {
        let run = &self.run;
        let mut lines = String::new();
        for shape in &taken.new {
            let line = json!({
                "run": run,
                "shape": shape.number,
                "database": shape.database,
                "sql": shape.sql,
            });
            lines += &format!("{line}\n");
        }
        let line = json!({
            "run": run,
            "counts": taken.counts,
            "left_out": taken.left_out,
            "unread": taken.unread,
        });
        lines += &format!("{line}\n");
        if self.has_failed {
            // a part of a line may be there
            lines.insert(0, '\n');
        }
        let length = lines.len();
        let written = self.file.write(lines.as_bytes())?;
        match written == length {
            true => Ok(()),
            false => Err(std::io::ErrorKind::StorageFull.into()),
        }
    }
}
