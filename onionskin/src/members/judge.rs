//! Which member is the primary, from what all of them say. Pure: no clock, no network.
//!
//! Exactly one has to say that it is. Two that do are none: whoever is wrong, it must not be found
//! out by writing. A member that does not answer does not count; that its successor was promoted
//! for a reason has to be seen to by whoever promotes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use onionskin_proxy::{Backend, MemberState, Place};
use onionskin_rowstream::binlog::GtidPosition;
use onionskin_rowstream::client::Family;

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// MySQL or MariaDB.
    pub family: Family,
    /// Its version.
    pub version: String,
    /// What tells it from all others.
    pub identity: String,
    /// How its replicas call it: `server_uuid`, or `server_id` on MariaDB.
    pub source_name: String,
    /// Where it was reached.
    pub address: Option<SocketAddr>,
    /// What it is.
    pub role: Role,
    /// What it is for those who only read.
    pub standby: Standby,
    /// What it has executed; `None`: it keeps no GTIDs.
    pub position: Option<Box<Executed>>,
}

/// What a server has executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// What it has of its source.
    pub received: GtidPosition,
    /// What its own binary log has: what replicas of it will have.
    pub written: GtidPosition,
    /// The same in its words.
    pub words: String,
}

/// What a server that may not be written to is for those who only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standby {
    /// It was not asked: nobody only reads.
    Unasked,
    /// Not to be read from, and why.
    No(String),
    /// Read-only, with these channels from its sources, in the server's words whether they run.
    Replica(Vec<Channel>),
    /// A secondary of a MySQL group that is online, with the majority.
    Secondary,
    /// A node of a Galera cluster that has all that the others have.
    Node,
}

/// What brings transactions from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Whether they are received: `Yes`, `No`, `Connecting`, `Preparing`.
    pub receives: String,
    /// Whether they are applied.
    pub applies: String,
}

/// What a server is, as far as it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The primary of a MySQL group, with the majority of its members.
    GroupPrimary,
    /// A node of a Galera cluster that may be written to, as its others may; a member of a MySQL
    /// group that all members write to.
    Node {
        /// Which cluster.
        cluster: String,
    },
    /// It may be written to, and replicates from these servers.
    Writable(Vec<Source>),
    /// Not to be written to, and why.
    Replica(String),
}

/// A server from which another one replicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// [`Found::source_name`], as the replica knows it; empty, or 0, before it has connected.
    pub server: String,
    /// As the replica was told.
    pub host: String,
    /// The same.
    pub port: String,
}

/// What is known of a member at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was not asked yet.
    Nothing,
    /// It does not answer: part of a sentence.
    Lost(String),
    /// It answers, and cannot be judged.
    Unclear(String),
    /// What it says.
    Found(Found),
}

/// A member, and what was heard of it.
#[derive(Clone, Debug)]
pub struct Member {
    /// As it stands in the configuration.
    pub backend: Backend,
    /// Now.
    pub heard: Heard,
    /// When it was asked that.
    pub asked: Instant,
    /// [`Found::source_name`] of the last time that it answered.
    pub last_name: Option<String>,
}

/// How one member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may be the primary.
    Candidate,
    /// It is known not to be.
    Replica,
    /// It does not answer.
    Lost,
    /// It cannot be judged.
    Unclear,
}

/// Who is the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not everybody was asked yet.
    Pending,
    /// This member.
    Primary(Place),
    /// None, for this reason: part of a sentence, without names, since clients are told.
    Nobody(&'static str),
}

/// What is made of all of them.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Who is the primary.
    pub verdict: Verdict,
    /// By member.
    pub standings: Vec<Standing>,
    /// What is told of each of them.
    pub states: Vec<MemberState>,
    /// What an operator should know beside that.
    pub warning: Option<String>,
}

/// See the module.
pub fn judge(members: &[Member]) -> Judgement {
    let judged: Vec<(Standing, String)> = members.iter().map(|m| standing(m, members)).collect();
    let standings: Vec<Standing> = judged.iter().map(|(standing, _)| *standing).collect();
    let verdict = verdict(members, &standings);
    let is_primary = |member: &Member| matches!(&verdict, Verdict::Primary(place) if place.member == member.backend);
    let state = |(member, (standing, text)): (&Member, (Standing, String))| MemberState {
        member: member.backend.to_string(),
        primary: is_primary(member),
        reads: None,
        lag: None,
        up: !matches!(standing, Standing::Lost),
        state: match is_primary(member) {
            true => "primary".into(),
            false => printable(&text),
        },
        version: found(member).map(|found| printable(&found.version)),
    };
    Judgement {
        states: members.iter().zip(judged).map(state).collect(),
        warning: warning(members).map(|text| printable(&text)),
        standings,
        verdict,
    }
}

/// Longest text of a member that is told, in characters.
const LONGEST: usize = 400;

/// A text with what servers say in it, for a log and a terminal: one line, and not too long.
pub(super) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(LONGEST).map(shown).collect()
}

pub(super) fn found(member: &Member) -> Option<&Found> {
    match &member.heard {
        Heard::Found(found) => Some(found),
        _ => None,
    }
}

fn standing(member: &Member, all: &[Member]) -> (Standing, String) {
    match &member.heard {
        Heard::Nothing => (Standing::Lost, "was not asked yet".into()),
        Heard::Lost(why) => (Standing::Lost, why.clone()),
        Heard::Unclear(why) => (Standing::Unclear, why.clone()),
        Heard::Found(found) => match &found.role {
            Role::Replica(why) => (Standing::Replica, format!("no primary: {why}")),
            Role::GroupPrimary => (Standing::Candidate, "the primary of its group".into()),
            Role::Node { .. } => (Standing::Candidate, "a node that is ready".into()),
            Role::Writable(sources) => {
                let from = sources
                    .iter()
                    .find_map(|source| replicates(member, source, all));
                from.unwrap_or((Standing::Candidate, "may be written to".into()))
            }
        },
    }
}

/// What a source makes of a member that may be written to. `None`: nothing. A replica of another
/// member is not promoted, unless that one is read-only; and while one of them has never been heard
/// of, any source may be that one.
fn replicates(member: &Member, source: &Source, all: &[Member]) -> Option<(Standing, String)> {
    let named = format!("{}:{}", source.host, source.port);
    let is_it = |other: &&Member| {
        let known = other.last_name.as_deref();
        let is_known =
            !["", "0"].contains(&source.server.as_str()) && known == Some(&*source.server);
        other.backend != member.backend && (is_known || other.backend.to_string() == named)
    };
    let other = all.iter().find(is_it);
    let is_replica =
        |other: &Member| found(other).is_some_and(|found| matches!(found.role, Role::Replica(_)));
    match other {
        Some(other) if is_replica(other) => None,
        Some(other) => {
            let text = format!(
                "no primary: replicates from {}, though it may be written to",
                other.backend
            );
            Some((Standing::Replica, text))
        }
        None if all.iter().all(|other| other.last_name.is_some()) => None,
        None => {
            let text = format!(
                "may be written to and replicates from {named}, which may be a member that has never answered"
            );
            Some((Standing::Unclear, text))
        }
    }
}

fn verdict(members: &[Member], standings: &[Standing]) -> Verdict {
    if members.iter().any(|member| member.heard == Heard::Nothing) {
        return Verdict::Pending;
    }
    let known: Vec<&Found> = members.iter().filter_map(found).collect();
    if known.iter().any(|found| found.family != known[0].family) {
        return Verdict::Nobody("they are of different families");
    }
    if twins(members).is_some() {
        return Verdict::Nobody("two of them are the same server");
    }
    let mut candidates = members.iter().zip(standings);
    let candidates = candidates
        .by_ref()
        .filter(|(_, s)| **s == Standing::Candidate);
    let candidates: Vec<(&Member, &Found)> = candidates
        .filter_map(|(member, _)| Some((member, found(member)?)))
        .collect();
    let Some((first, place)) = candidates.first() else {
        return Verdict::Nobody("none of them is a primary that answers");
    };
    // in a cluster all are alike, and the order of the configuration decides
    let is_alike = |role: &Role| matches!((role, &place.role), (Role::Node { cluster: a }, Role::Node { cluster: b }) if a == b);
    if !candidates
        .iter()
        .skip(1)
        .all(|(_, found)| is_alike(&found.role))
    {
        return Verdict::Nobody("two of them say that they are the primary");
    }
    Verdict::Primary(Place {
        member: first.backend.clone(),
        address: place.address,
        identity: place.identity.clone(),
    })
}

/// Two members that are the same server, and what that says it is.
fn twins(members: &[Member]) -> Option<(&Member, &Member, &str)> {
    let mut seen: HashMap<&str, &Member> = HashMap::new();
    for member in members {
        if let Some(found) = found(member)
            && let Some(before) = seen.insert(&found.identity, member)
        {
            return Some((before, member, &found.identity));
        }
    }
    None
}

fn warning(members: &[Member]) -> Option<String> {
    if let Some((one, other, identity)) = twins(members) {
        return Some(format!(
            "{} and {} are the same server ({identity}): name each server once in backend",
            one.backend, other.backend
        ));
    }
    let known: Vec<(&Member, &Found)> = members
        .iter()
        .filter_map(|m| Some((m, found(m)?)))
        .collect();
    let (first, rest) = known.split_first()?;
    let of_version = |version: &str| {
        version
            .split('.')
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let is_other = |(_, found): &&(&Member, &Found)| {
        found.family != first.1.family || of_version(&found.version) != of_version(&first.1.version)
    };
    let (member, found) = rest.iter().find(is_other)?;
    let what = match found.family == first.1.family {
        true => "versions",
        false => "families",
    };
    Some(format!(
        "the members are of different {what}: {} is {:?} {}, {} is {:?} {}",
        first.0.backend,
        first.1.family,
        first.1.version,
        member.backend,
        found.family,
        found.version
    ))
}

#[cfg(test)]
mod tests;
