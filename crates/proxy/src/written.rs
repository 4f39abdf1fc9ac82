//! What sessions of `listen` have written, by GTIDs: what a statement of `listen_read` waits for.
//!
//! Servers tell the GTID of a transaction in the answer that says it is committed
//! (`session_track_gtids` on MySQL, `last_gtid` on MariaDB). It is noted here before the client
//! gets that answer. So whoever has the answer, and then sends a statement to `listen_read`, finds
//! it noted. The monitor of the primary tells now and then what that has altogether, and takes the
//! place of what was noted before it asked. So little is kept, and what others have written is
//! waited for as well, if a little later.
//!
//! Numbers between two noted ones of the same source are other transactions of that server, which
//! come to the replica with them. So of each source the first and the last number are enough.
//!
//! Where something was written and the answer could not say which transaction that was, nothing is
//! known to be enough until the monitor has asked again.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// Sources of transactions that are noted between two answers of the monitor. There are as many as
/// servers that have been the primary, and domains or tags.
const MOST_SOURCES: usize = 64;
/// Longest name of a source, in bytes: a UUID and a tag.
const LONGEST: usize = 80;

/// See the module.
#[derive(Default)]
pub(crate) struct Written {
    state: Mutex<State>,
    /// Grows with each change of what is to be waited for.
    version: AtomicU64,
}

#[derive(Default)]
struct State {
    /// What the primary had when it was asked last; `None`: it was not asked yet.
    base: Option<String>,
    noted: Vec<Noted>,
    /// When something was written of which no GTID is known.
    unclear: Option<Instant>,
    /// The version, and what to wait for.
    target: Option<(u64, Arc<str>)>,
}

/// Transactions of one source.
struct Noted {
    /// Of MySQL a UUID, perhaps with a tag; of MariaDB a domain.
    source: String,
    first: u64,
    last: u64,
    /// MariaDB's id of the server that wrote the last one.
    server: Option<String>,
    at: Instant,
}

/// What is to be waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// These transactions, in the words of the server's own function.
    Gtids(u64, Arc<str>),
    /// It is not known yet.
    Unclear,
}

impl Written {
    /// Which version of the target there is. A session that has waited for it need not wait again.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// A transaction is committed: `uuid:number`, `uuid:tag:number` or `domain-server-number`.
    pub fn note(&self, gtid: &[u8]) {
        let parsed = std::str::from_utf8(gtid).ok().and_then(parse);
        let mut state = self.state.lock();
        let now = Instant::now();
        match parsed {
            Some((source, server, number)) if state.note(source, server, number, now) => {}
            _ => state.unclear = Some(now),
        }
        self.changed(&mut state);
    }

    /// Something may be committed of which no GTID is known.
    pub fn unclear(&self) {
        let mut state = self.state.lock();
        state.unclear = Some(Instant::now());
        self.changed(&mut state);
    }

    /// All that the primary had when it was asked at this time, or later.
    pub fn has(&self, gtids: &str, asked: Instant) {
        let mut state = self.state.lock();
        // lines are broken for people
        let gtids: String = gtids.split_whitespace().collect();
        // it goes into a statement for another server
        if !gtids.bytes().all(|b| b == b',' || is_plain(b)) {
            state.base = None;
            self.changed(&mut state);
            return;
        }
        let is_new = state.base.as_ref() != Some(&gtids);
        state.base = Some(gtids);
        state.noted.retain(|noted| noted.at >= asked);
        let was_unclear = state.unclear.is_some();
        state.unclear = state.unclear.filter(|at| *at >= asked);
        if is_new || was_unclear {
            self.changed(&mut state);
        }
    }

    /// What a statement that has come by now is to wait for.
    pub fn target(&self) -> Target {
        let mut state = self.state.lock();
        if state.unclear.is_some() {
            return Target::Unclear;
        }
        let Some(base) = &state.base else {
            return Target::Unclear;
        };
        if let Some((version, gtids)) = &state.target {
            return Target::Gtids(*version, gtids.clone());
        }
        let gtids: Arc<str> = together(base, &state.noted).into();
        let version = self.version();
        state.target = Some((version, gtids.clone()));
        Target::Gtids(version, gtids)
    }

    /// Under the lock, so that a version and its target belong together.
    fn changed(&self, state: &mut State) {
        state.target = None;
        self.version.fetch_add(1, Ordering::SeqCst);
    }
}

impl State {
    /// `false`: there is no room for another source.
    fn note(&mut self, source: &str, server: Option<&str>, number: u64, at: Instant) -> bool {
        let is_it = |noted: &&mut Noted| noted.source == source;
        if let Some(noted) = self.noted.iter_mut().find(is_it) {
            noted.at = at;
            noted.first = noted.first.min(number);
            if number >= noted.last {
                noted.last = number;
                noted.server = server.map(str::to_owned);
            }
            return true;
        }
        let has_room = self.noted.len() < MOST_SOURCES && source.len() <= LONGEST;
        if has_room {
            self.noted.push(Noted {
                source: source.to_owned(),
                first: number,
                last: number,
                server: server.map(str::to_owned),
                at,
            });
        }
        has_room
    }
}

/// Whether a byte may be in a GTID.
fn is_plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_:".contains(&b)
}

/// The source, MariaDB's server id, and the number.
fn parse(gtid: &str) -> Option<(&str, Option<&str>, u64)> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(is_plain);
    let (source, number) = gtid.rsplit_once([':', '-'])?;
    let number = number.parse().ok()?;
    match gtid.contains(':') {
        // an interval has its number behind a dash
        true => {
            (plain(source) && gtid.rfind(':') > gtid.rfind('-')).then_some((source, None, number))
        }
        false => {
            let (domain, server) = source.split_once('-')?;
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            (digits(domain) && digits(server)).then_some((domain, Some(server), number))
        }
    }
}

/// One text of both, for the server's function. MariaDB's takes each domain once.
fn together(base: &str, noted: &[Noted]) -> String {
    let mut text = String::new();
    let mut put = |part: &dyn std::fmt::Display| {
        let comma = if text.is_empty() { "" } else { "," };
        // writing to a String does not fail
        let _ = write!(text, "{comma}{part}");
    };
    let in_base = |domain: &str| {
        let mut parts = base.split(',').filter_map(parse);
        parts
            .find(|(source, ..)| *source == domain)
            .map(|(.., n)| n)
    };
    let is_ahead = |noted: &Noted| in_base(&noted.source).is_none_or(|n| n < noted.last);
    for part in base.split(',').filter(|part| !part.is_empty()) {
        let later = parse(part).and_then(|(source, server, _)| {
            server?;
            noted.iter().find(|n| n.source == source && is_ahead(n))
        });
        if later.is_none() {
            put(&part);
        }
    }
    for noted in noted {
        match &noted.server {
            Some(server) if is_ahead(noted) => {
                put(&format_args!("{}-{server}-{}", noted.source, noted.last));
            }
            Some(_) => {}
            None => put(&format_args!(
                "{}:{}-{}",
                noted.source, noted.first, noted.last
            )),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn gtids(written: &Written) -> String {
        match written.target() {
            Target::Gtids(_, text) => text.to_string(),
            Target::Unclear => "unclear".into(),
        }
    }

    #[test]
    fn what_is_noted_is_waited_for_until_the_primary_was_asked_again() {
        let written = Written::default();
        assert_eq!(gtids(&written), "unclear");
        let begin = Instant::now();
        written.has(&format!("{A}:1-5"), begin);
        assert_eq!(gtids(&written), format!("{A}:1-5"));
        let before = written.version();
        for number in [8, 7, 11] {
            written.note(format!("{A}:{number}").as_bytes());
        }
        written.note(format!("{A}:tag:3").as_bytes());
        assert!(written.version() > before);
        assert_eq!(gtids(&written), format!("{A}:1-5,{A}:7-11,{A}:tag:3-3"),);
        // asked before the last one was noted
        written.has(&format!("{A}:1-7"), begin);
        assert_eq!(gtids(&written), format!("{A}:1-7,{A}:7-11,{A}:tag:3-3"));
        written.has(&format!("{A}:1-11:tag:1-3"), Instant::now());
        assert_eq!(gtids(&written), format!("{A}:1-11:tag:1-3"));
    }

    #[test]
    fn each_domain_stands_there_once() {
        let written = Written::default();
        let begin = Instant::now();
        written.has("0-1-20,\n7-1-4", begin);
        written.note(b"0-2-22");
        written.note(b"0-1-21");
        written.note(b"7-1-3");
        written.note(b"9-1-1");
        assert_eq!(gtids(&written), "7-1-4,0-2-22,9-1-1");
    }

    #[test]
    fn what_cannot_be_read_is_unclear_until_the_primary_was_asked() {
        let written = Written::default();
        for strange in [
            "",
            "a",
            "0-1",
            "0-1-x",
            &format!("{A}:1-5"),
            "x'y:3",
            "1:2,3:4",
        ] {
            let begin = Instant::now();
            written.has("0-1-1", begin);
            assert_eq!(gtids(&written), "0-1-1");
            written.note(strange.as_bytes());
            assert_eq!(gtids(&written), "unclear", "{strange}");
            written.has("0-1-1", begin);
            assert_eq!(gtids(&written), "unclear", "asked before");
            let version = written.version();
            written.has("0-1-1", Instant::now());
            assert!(written.version() > version);
        }
        written.unclear();
        assert_eq!(written.target(), Target::Unclear);
        written.has("0-1-1'); DROP", Instant::now());
        assert_eq!(written.target(), Target::Unclear);
    }
}
