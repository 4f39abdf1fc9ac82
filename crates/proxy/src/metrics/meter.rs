//! The numbers of one statement, until its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Kind, Label, Metrics, Tier, add, clock};

/// A session's: see the module. Without [`Metrics`] it is a few plain numbers that nobody reads.
#[derive(Default)]
pub(crate) struct Meter {
    metrics: Option<Arc<Metrics>>,
    /// Nanoseconds from which on a statement is slow.
    slow: Option<u64>,
    /// In nanoseconds of the clock.
    begun: u64,
    /// The command is one that runs statements.
    is_statement: bool,
    label: Option<Label>,
    /// The client got an error of the proxy's own.
    refused: bool,
    recalled: u64,
    made: u64,
    /// Statements are told of, slow or not: an audit log is written.
    tells_all: bool,
}

/// What the session's connections and buffers know of a command, at its end.
pub(crate) struct Ending {
    /// How long the server was waited for, in nanoseconds.
    pub at_server: u64,
    /// How long the scratch engine was waited for, likewise.
    pub at_engine: u64,
    /// Rows that the server has sent.
    pub rows: u64,
    /// Cells that were sealed.
    pub sealed: u64,
    /// Cells that were opened.
    pub opened: u64,
    /// The server's connection has not broken.
    pub has_server: bool,
}

/// A statement that has ended.
pub(crate) struct Ended {
    /// It took so long that it is to be logged.
    pub is_slow: bool,
    pub tier: Tier,
    pub kind: Kind,
    /// All of it, and what it was spent on, in nanoseconds.
    pub time: u64,
    pub at_server: u64,
    pub at_engine: u64,
    pub in_proxy: u64,
    /// Rows that the server has sent for it.
    pub rows: u64,
}

impl Meter {
    pub fn new(metrics: Option<Arc<Metrics>>, slow: Option<Duration>) -> Self {
        let mut meter = Meter {
            metrics,
            ..Meter::default()
        };
        meter.look_for_slow(slow);
        meter
    }

    /// Whether every statement is told of at its end.
    pub fn tell_all(&mut self, tells_all: bool) {
        self.tells_all = tells_all;
    }

    /// From so long on a statement is slow, until something else is said.
    pub fn look_for_slow(&mut self, slow: Option<Duration>) {
        self.slow = slow.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Whether statements may be told of with their shapes.
    #[inline]
    pub fn tells_shapes(&self) -> bool {
        self.slow.is_some() || self.tells_all
    }

    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        self.metrics.is_some() || self.tells_shapes()
    }

    /// A command has arrived.
    #[inline]
    pub fn begin(&mut self) {
        if self.is_on() {
            self.begun = clock();
        }
    }

    /// Whether the command runs statements.
    #[inline]
    pub fn statement(&mut self, is_statement: bool) {
        self.is_statement = is_statement;
    }

    /// A plan is about to be carried out.
    #[inline]
    pub fn runs(&mut self, label: Label) {
        match &mut self.label {
            None => self.label = Some(label),
            Some(known) => known.tier = known.tier.max(label.tier),
        }
    }

    /// A plan was found.
    #[inline]
    pub fn recalled(&mut self) {
        self.recalled += 1;
    }

    /// A plan had to be made.
    pub fn made(&mut self) {
        self.made += 1;
    }

    /// The command ends with an error; `code` is that of the table, if it is one of the proxy's
    /// own.
    #[cold]
    pub fn failed(&mut self, code: Option<&'static str>) {
        let Some(code) = code else { return };
        self.refused = self.is_on();
        if let Some(metrics) = &self.metrics {
            metrics.refused(code);
        }
    }

    /// The command is done, and answered. Returns what is told of it, if it is.
    pub fn end(&mut self, ending: &Ending) -> Option<Ended> {
        let label = self.label.take();
        let refused = std::mem::take(&mut self.refused);
        let (recalled, made) = (
            std::mem::take(&mut self.recalled),
            std::mem::take(&mut self.made),
        );
        if let Some(metrics) = &self.metrics {
            add(&metrics.sealed, ending.sealed);
            add(&metrics.opened, ending.opened);
            add(&metrics.recalled, recalled);
            add(&metrics.made, made);
        }
        if !self.is_on() || !(self.is_statement || self.tells_all) {
            return None;
        }
        let now = clock();
        let was_asked = ending.at_server > 0;
        // What is not planned by itself goes through, unless the proxy has the answer.
        let unplanned = Label {
            tier: if was_asked { Tier::Relay } else { Tier::Proxy },
            kind: Kind::Other,
        };
        let label = label.unwrap_or(unplanned);
        let tier = if refused { Tier::Refused } else { label.tier };
        let time = now.saturating_sub(self.begun);
        let waited = ending.at_server + ending.at_engine;
        let in_proxy = time.saturating_sub(waited);
        if let Some(metrics) = &self.metrics
            && self.is_statement
        {
            add(&metrics.in_proxy, in_proxy);
            add(&metrics.at_server, ending.at_server);
            add(&metrics.at_engine, ending.at_engine);
            if was_asked && ending.has_server {
                metrics.answered.store(now, Ordering::Relaxed);
            }
            metrics.statements[tier as usize][label.kind as usize].observe(time);
        }
        let is_slow = self.is_statement && self.slow.is_some_and(|slow| time >= slow);
        (is_slow || self.tells_all).then_some(Ended {
            is_slow,
            tier,
            kind: label.kind,
            time,
            at_server: ending.at_server,
            at_engine: ending.at_engine,
            in_proxy,
            rows: ending.rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(at_server: u64) -> Ending {
        Ending {
            at_server,
            at_engine: 0,
            rows: 1,
            sealed: 2,
            opened: 3,
            has_server: true,
        }
    }

    fn select(tier: Tier) -> Label {
        let kind = Kind::Select;
        Label { tier, kind }
    }

    #[test]
    fn a_statement_is_counted_once_under_the_last_tier() {
        let metrics = Arc::new(Metrics::new());
        let mut meter = Meter::new(Some(metrics.clone()), None);
        meter.begin();
        meter.statement(true);
        meter.runs(select(Tier::One));
        meter.runs(select(Tier::Three));
        meter.runs(select(Tier::Relay));
        meter.end(&ending(5));
        let count = |tier: Tier, kind: Kind| {
            metrics.statements[tier as usize][kind as usize]
                .read()
                .count
        };
        assert_eq!(count(Tier::Three, Kind::Select), 1);
        assert_eq!(metrics.opened.load(Ordering::Relaxed), 3);
        assert_eq!(metrics.sealed.load(Ordering::Relaxed), 2);
        assert_eq!(metrics.at_server.load(Ordering::Relaxed), 5);
        assert!(metrics.heard_within(Duration::from_secs(3600)));
        // What follows is counted anew: a command that runs no statement, and a refusal.
        meter.begin();
        meter.statement(false);
        meter.end(&ending(5));
        meter.begin();
        meter.statement(true);
        meter.failed(Some("OS1018"));
        meter.end(&ending(0));
        assert_eq!(count(Tier::Refused, Kind::Other), 1);
        let all = metrics.statements.iter().flatten().map(|l| l.read().count);
        assert_eq!(all.sum::<u64>(), 2);
        let refused = metrics.refusals.iter().find(|(code, _)| *code == "OS1018");
        assert_eq!(refused.expect("known").1.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn without_metrics_nothing_is_kept() {
        let mut meter = Meter::new(None, Some(Duration::ZERO));
        meter.begin();
        meter.statement(true);
        meter.runs(select(Tier::One));
        let slow = meter.end(&ending(5)).expect("slow");
        assert_eq!((slow.tier, slow.at_server, slow.rows), (Tier::One, 5, 1));
        let mut meter = Meter::new(None, None);
        meter.begin();
        assert_eq!(meter.begun, 0);
        meter.statement(true);
        meter.runs(select(Tier::One));
        meter.end(&ending(5));
        assert!(meter.label.is_none() && !meter.is_on());
    }
}
