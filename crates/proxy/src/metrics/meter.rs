//! The numbers of one statement, until its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Kind, Label, Metrics, Tier, add, nanos};

/// A session's: see the module. Without [`Metrics`] it is a few plain numbers that nobody reads.
#[derive(Default)]
pub(crate) struct Meter {
    metrics: Option<Arc<Metrics>>,
    begun: Option<Instant>,
    /// The command is one that runs statements.
    is_statement: bool,
    label: Option<Label>,
    /// The client got an error of the proxy's own.
    refused: bool,
    recalled: u64,
    made: u64,
    opened: u64,
}

/// What the session's connections and buffers know of a command, at its end.
pub(crate) struct Ending {
    /// How long the server was waited for.
    pub at_server: Duration,
    /// How long the scratch engine was waited for.
    pub at_engine: Duration,
    /// Cells that were sealed.
    pub sealed: u64,
    /// The server's connection has not broken.
    pub has_server: bool,
}

impl Meter {
    pub fn new(metrics: Option<Arc<Metrics>>) -> Self {
        Meter {
            metrics,
            ..Meter::default()
        }
    }

    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        self.metrics.is_some()
    }

    /// A command has arrived.
    #[inline]
    pub fn begin(&mut self) {
        if self.metrics.is_some() {
            self.begun = Some(Instant::now());
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

    /// So many cells were opened.
    #[inline]
    pub fn opened(&mut self, cells: u64) {
        self.opened += cells;
    }

    /// The command ends with an error; `code` is that of the table, if it is one of the proxy's
    /// own.
    #[cold]
    pub fn failed(&mut self, code: Option<&'static str>) {
        if let (Some(metrics), Some(code)) = (&self.metrics, code) {
            metrics.refused(code);
            self.refused = true;
        }
    }

    /// The command is done, and answered.
    pub fn end(&mut self, ending: &Ending) {
        let Meter {
            metrics,
            begun,
            is_statement,
            label,
            refused,
            recalled,
            made,
            opened,
        } = std::mem::take(self);
        let Some(metrics) = metrics else {
            return;
        };
        add(&metrics.sealed, ending.sealed);
        add(&metrics.opened, opened);
        add(&metrics.recalled, recalled);
        add(&metrics.made, made);
        if let Some(begun) = begun.filter(|_| is_statement) {
            let now = Instant::now();
            let was_asked = ending.at_server > Duration::ZERO;
            // What is not planned by itself goes through, unless the proxy has the answer.
            let unplanned = Label {
                tier: if was_asked { Tier::Relay } else { Tier::Proxy },
                kind: Kind::Other,
            };
            let label = label.unwrap_or(unplanned);
            let tier = if refused { Tier::Refused } else { label.tier };
            let time = now - begun;
            let waited = ending.at_server + ending.at_engine;
            metrics.statements[tier as usize][label.kind as usize].observe(time);
            add(&metrics.in_proxy, nanos(time.saturating_sub(waited)));
            add(&metrics.at_server, nanos(ending.at_server));
            add(&metrics.at_engine, nanos(ending.at_engine));
            if was_asked && ending.has_server {
                let at = nanos(now - metrics.begun);
                metrics
                    .answered
                    .store(at, std::sync::atomic::Ordering::Relaxed);
            }
        }
        self.metrics = Some(metrics);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn ending(at_server: u64) -> Ending {
        Ending {
            at_server: Duration::from_micros(at_server),
            at_engine: Duration::ZERO,
            sealed: 2,
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
        let mut meter = Meter::new(Some(metrics.clone()));
        meter.begin();
        meter.statement(true);
        meter.runs(select(Tier::One));
        meter.runs(select(Tier::Three));
        meter.runs(select(Tier::Relay));
        meter.opened(3);
        meter.end(&ending(5));
        let count = |tier: Tier, kind: Kind| {
            metrics.statements[tier as usize][kind as usize]
                .read()
                .count
        };
        assert_eq!(count(Tier::Three, Kind::Select), 1);
        assert_eq!(metrics.opened.load(Ordering::Relaxed), 3);
        assert_eq!(metrics.sealed.load(Ordering::Relaxed), 2);
        assert_eq!(metrics.at_server.load(Ordering::Relaxed), 5000);
        assert!(metrics.heard_within(Duration::from_secs(3600)));
        // What follows begins anew: a command that runs no statement, and a refusal.
        meter.begin();
        meter.statement(false);
        meter.end(&ending(5));
        meter.begin();
        meter.statement(true);
        meter.failed(Some("OS1001"));
        meter.end(&ending(0));
        assert_eq!(count(Tier::Refused, Kind::Other), 1);
        let all = metrics.statements.iter().flatten().map(|l| l.read().count);
        assert_eq!(all.sum::<u64>(), 2);
        let refused = metrics.refusals.iter().find(|(code, _)| *code == "OS1001");
        assert_eq!(refused.expect("known").1.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn without_metrics_nothing_is_kept() {
        let mut meter = Meter::new(None);
        meter.begin();
        assert!(meter.begun.is_none());
        meter.statement(true);
        meter.runs(select(Tier::One));
        meter.end(&ending(5));
        assert!(meter.label.is_none() && !meter.is_on());
    }
}
