//! How far it is, and how long it will take.

use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(15);

/// Prints to standard error.
pub struct Progress {
    shown: bool,
    terminal: bool,
    last_line: Option<Instant>,
    scenario: String,
    /// Estimates in seconds of the scenarios that come after the current one.
    later: f64,
    current: f64,
    begun: Instant,
    total: usize,
    done: usize,
}

impl Progress {
    /// For people.
    pub fn on_terminal() -> Self {
        Self {
            shown: true,
            terminal: stderr().is_terminal(),
            ..Self::silent()
        }
    }

    /// For tests.
    pub fn silent() -> Self {
        Self {
            shown: false,
            terminal: false,
            last_line: None,
            scenario: String::new(),
            later: 0.0,
            current: 0.0,
            begun: Instant::now(),
            total: 0,
            done: 0,
        }
    }

    /// A scenario begins that will take about `current` seconds, and others after it `later`.
    pub fn scenario(&mut self, name: &str, current: f64, later: f64) {
        self.scenario = name.into();
        (self.current, self.later) = (current, later);
        (self.total, self.done) = (0, 0);
        self.begun = Instant::now();
        self.last_line = None;
    }

    /// How many runs it has.
    pub fn steps(&mut self, total: usize) {
        self.total = total;
    }

    /// One of them is done.
    pub fn step(&mut self) {
        self.done += 1;
    }

    /// Seconds until all is done.
    fn left(&self) -> f64 {
        let gone = self.begun.elapsed().as_secs_f64();
        if self.done == 0 {
            return (self.current - gone).max(0.0) + self.later;
        }
        // What was seen counts more than what was estimated, the more of it there is.
        let seen = gone / self.done as f64 * (self.total - self.done.min(self.total)) as f64;
        let share = (self.done as f64 / self.total.max(1) as f64).min(1.0);
        let guessed = (self.current - gone).max(0.0);
        seen * share.sqrt() + guessed * (1.0 - share.sqrt()) + self.later
    }

    /// What is being done.
    pub fn show(&mut self, what: &str) {
        if !self.shown {
            return;
        }
        let text = format!(
            "{}: {what}; about {} left",
            self.scenario,
            duration(self.left())
        );
        if self.terminal {
            eprint!("\r\x1b[K{text}");
            let _ = stderr().flush();
        } else if self.last_line.is_none_or(|last| last.elapsed() >= LINE) {
            self.last_line = Some(Instant::now());
            eprintln!("onionskin bench: {text}");
        }
    }

    /// A line that stays.
    pub fn say(&mut self, text: &str) {
        if !self.shown {
            return;
        }
        self.clear();
        eprintln!("onionskin bench: {text}");
    }

    /// Leaves the terminal to others.
    pub fn clear(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// For people.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_moves_from_the_plan_to_what_is_seen() {
        let mut progress = Progress::silent();
        progress.scenario("x", 100.0, 50.0);
        progress.steps(10);
        assert!((progress.left() - 150.0).abs() < 1.0);
        // Nine of ten steps in next to no time.
        (0..9).for_each(|_| progress.step());
        assert!(progress.left() < 60.0, "{}", progress.left());
        progress.step();
        assert!((progress.left() - 50.0).abs() < 1.0);
    }

    #[test]
    fn durations_are_for_people() {
        assert_eq!(duration(59.4), "59 s");
        assert_eq!(duration(61.0), "1 min 1 s");
        assert_eq!(duration(7261.0), "2 h 1 min");
    }
}
