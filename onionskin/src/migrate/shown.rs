//! What is seen of a migration while it runs: a bar on a terminal, else a line now and then.

use std::{
    io::{IsTerminal, stderr},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use onionskin_migrate::Progress;

/// How often the bar moves.
const BAR: Duration = Duration::from_millis(200);
/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(10);

/// Shows progress until it is dropped.
pub struct Shown(Option<(std::sync::mpsc::Sender<()>, thread::JoinHandle<()>)>);

impl Shown {
    /// Begins.
    pub fn start(progress: &Progress, quiet: bool) -> Self {
        if quiet {
            return Self(None);
        }
        let (stop, stopped) = channel();
        let progress = progress.clone();
        let shown = thread::spawn(move || {
            let bar = stderr().is_terminal().then(bar);
            let pause = if bar.is_some() { BAR } else { LINE };
            let begun = Instant::now();
            let mut counted = false;
            loop {
                let ended = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
                for note in progress.notes() {
                    match &bar {
                        Some(bar) => bar.println(format!("onionskin: {note}")),
                        None => eprintln!("onionskin: {note}"),
                    }
                }
                if ended {
                    break;
                }
                let (done, estimate) = progress.rows();
                let rows = match estimate {
                    _ if !progress.counts_rows() => String::new(),
                    0 => format!("{done} rows, "),
                    _ => format!("{done} of about {estimate} rows, "),
                };
                let beside = format!("{} changes, lag {} s", progress.changes(), progress.lag());
                let counts = progress.counts_rows();
                match &bar {
                    Some(bar) => {
                        if std::mem::replace(&mut counted, counts) != counts {
                            bar.set_style(style(counts));
                        }
                        bar.set_length(estimate.max(done));
                        bar.set_position(done);
                        bar.set_prefix(progress.phase());
                        bar.set_message(beside);
                    }
                    None => eprintln!(
                        "onionskin: {}: {rows}{beside}, after {} s",
                        progress.phase(),
                        begun.elapsed().as_secs()
                    ),
                }
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        });
        Self(Some((stop, shown)))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some((stop, shown)) = self.0.take() {
            drop(stop);
            let _ = shown.join();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style(false));
    bar
}

/// How the bar looks while rows are counted, and while they are not.
fn style(counts: bool) -> ProgressStyle {
    let template = match counts {
        true => "{prefix} {wide_bar} {pos} of {len} rows, {rate}, {eta} left; {msg}",
        false => "{prefix}: {msg}",
    };
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key(
        "rate",
        |state: &ProgressState, to: &mut dyn std::fmt::Write| {
            // Nobody reads parts of a row.
            let _ = write!(to, "{}/s", HumanCount(state.per_sec().round() as u64));
        },
    )
}
