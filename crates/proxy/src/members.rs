//! Which of several servers new sessions go to, and since when.
//!
//! Where `backend` is a list, one of its members is the primary, and the program's monitors find
//! out which (`onionskin/src/members`). What they find comes here as a [`Leading`], which is a part
//! of what all sessions share: it is exchanged as a whole, as a configuration is by a reload. So a
//! session meets a change where it looks for one anyway, before each command, and a proxy with one
//! server has nothing to look for.
//!
//! Sessions of `listen_read` go to replicas. What all sessions share is there once more for each
//! member that they are at, as a *side* of its own: with another account's knowledge of tables, of
//! plans and of cells, since replicas are not at the same point in time. A session never changes
//! its side.
//!
//! Each change of the server that the sessions of a side are at begins a new *term*. A session
//! belongs to the term under which it has logged in. One of an earlier term may finish its
//! transaction, for a bounded time, and runs nothing else. Nothing that was known of tables goes
//! over into another term: the new server may be behind, or have other definitions.

use std::net::SocketAddr;
use std::time::Instant;

use onionskin_plan::errors;
use onionskin_wire::Connection;
use serde::{Deserialize, Serialize};

use crate::config::Backend;
use crate::error::Failure;

/// A member that sessions go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// By the name that its certificate is checked against.
    pub member: Backend,
    /// The address at which the monitor has found it; sessions connect to no other. `None`: a Unix
    /// socket.
    pub address: Option<SocketAddr>,
    /// What tells it from all other servers, as it says itself.
    pub identity: String,
}

impl Place {
    /// Whether it is the same server. It may have been found at another of its addresses.
    pub fn is_same(&self, other: &Place) -> bool {
        self.member == other.member && self.identity == other.identity
    }
}

/// Which sessions something is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those of `listen`, which are at the primary.
    #[default]
    Primary,
    /// Those of `listen_read` at one member, by the number that it was given.
    Reading(u32),
}

/// What a session logs in under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Era {
    pub side: Side,
    /// How often the server of the side's sessions has become another one.
    pub term: u64,
}

/// How a session of `listen_read` comes to see what sessions of `listen` have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// It is at the primary, or is not to.
    #[default]
    No,
    /// The server is asked to wait for transactions by their GTIDs.
    Gtids,
    /// The server waits by itself: a node of a Galera cluster.
    Node,
}

/// See the module. The default is that of a proxy with one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leading {
    /// Whose server this is about.
    pub side: Side,
    /// How often the server of the sessions has become another one.
    pub term: u64,
    /// For sessions of `listen_read`.
    pub catch_up: CatchUp,
    /// The server of this term's sessions; `None`: there are none yet, or there is one server only.
    pub place: Option<Place>,
    /// Why there are no new sessions: part of a sentence.
    pub closed: Option<String>,
    /// When the last session of an earlier term is ended.
    pub until: Option<Instant>,
}

impl Leading {
    /// What a session that logs in now belongs to.
    #[inline]
    pub fn era(&self) -> Era {
        Era {
            side: self.side,
            term: self.term,
        }
    }

    /// Whether its sessions are those of `listen_read`.
    #[inline]
    pub fn only_reads(&self) -> bool {
        self.side != Side::Primary
    }

    /// The error of a session of an earlier term. Accounts need not know how members are called.
    pub fn demoted(&self) -> Failure {
        if self.only_reads() {
            let about = self.closed.as_deref().unwrap_or("it is another server");
            return Failure::refused(&errors::NOT_FOR_READS, about);
        }
        let about = match self.closed {
            None => "another one is",
            Some(_) => "none is at the moment",
        };
        Failure::refused(&errors::DEMOTED, about)
    }

    /// Tells the client of such a session why it ends. That it is gone is no error.
    pub fn tell_demoted(&self, client: &mut Connection) {
        if let Some(packet) = self.demoted().packet() {
            let mut out = Vec::new();
            packet.encode(&mut out);
            let _ = client.write_payload(&out).and_then(|()| client.flush());
        }
    }
}

/// How far the sessions of earlier terms have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Sessions that are left.
    pub left: usize,
    /// Sessions that were cut off now, because their time was over.
    pub cut: usize,
}

/// What is told of a member.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MemberState {
    /// As it stands in the configuration.
    pub member: String,
    /// Whether sessions go there.
    pub primary: bool,
    /// Whether sessions of `listen_read` go there; `None` where there is no such address.
    #[serde(default)]
    pub reads: Option<bool>,
    /// How far it is behind the primary, in seconds, as far as is known.
    #[serde(default)]
    pub lag: Option<f64>,
    /// Whether it answered when it was last asked.
    pub up: bool,
    /// What it is, or what is wrong with it: part of a sentence.
    pub state: String,
    /// The version that it tells.
    pub version: Option<String>,
}
