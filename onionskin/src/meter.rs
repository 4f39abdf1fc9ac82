//! Progress on standard error: a bar with rate and estimate on a terminal, plain lines elsewhere.

use std::{
    io::{IsTerminal, stderr},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use onionskin_backup::Progress;

/// How often a bar moves.
const BAR: Duration = Duration::from_millis(200);
/// How often a line is printed.
const LINE: Duration = Duration::from_secs(10);

/// Shows progress until it is stopped.
pub struct Meter {
    begun: Instant,
    progress: Progress,
    stop: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Meter {
    /// Begins; shows nothing if `quiet`. `total` is the length of the input, if it is known.
    pub fn start(what: &'static str, total: Option<u64>, quiet: bool) -> Self {
        let (progress, begun) = (Progress::new(), Instant::now());
        let stop = (!quiet).then(|| {
            let (stop, stopped) = channel();
            let progress = progress.clone();
            let shown = thread::spawn(move || {
                let bar = stderr().is_terminal().then(|| bar(what, total));
                let pause = if bar.is_some() { BAR } else { LINE };
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    match &bar {
                        Some(bar) => bar.set_position(progress.read()),
                        None => eprintln!("onionskin: {what}: {}", line(&progress, begun, total)),
                    }
                }
                if let Some(bar) = bar {
                    bar.finish_and_clear();
                }
            });
            (stop, shown)
        });
        Self {
            begun,
            progress,
            stop,
        }
    }

    /// What is to be counted.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Ends with a line that begins with `done`.
    pub fn finish(mut self, done: &str) {
        if self.stop.is_some() {
            self.clear();
            eprintln!(
                "onionskin: {done}: {}",
                line(&self.progress, self.begun, None)
            );
        }
    }

    fn clear(&mut self) {
        if let Some((stop, shown)) = self.stop.take() {
            drop(stop);
            let _ = shown.join();
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // An error message follows, and must not be painted over.
        self.clear();
    }
}

fn bar(what: &'static str, total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match total {
        Some(_) => {
            "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left"
        }
        None => "{msg} {spinner} {binary_bytes}, {binary_bytes_per_sec}, {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

fn line(progress: &Progress, begun: Instant, total: Option<u64>) -> String {
    let seconds = begun.elapsed().as_secs_f64();
    let (read, written) = (progress.read(), progress.written());
    let rate = (read.max(written) as f64 / seconds.max(1e-3)) as u64;
    let of = total.map_or_else(String::new, |total| format!(" of {}", BinaryBytes(total)));
    format!(
        "{}{of} read, {} written in {seconds:.1} s, {}/s",
        BinaryBytes(read),
        BinaryBytes(written),
        BinaryBytes(rate)
    )
}
