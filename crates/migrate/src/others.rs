//! The other nodes of a Galera cluster.
//!
//! Three things are not of the node alone at which a migration works, and are asked of the others:
//! who holds the named locks, which transactions keep a snapshot, and whether they can be asked at
//! all.

use std::time::Duration;

use onionskin_rowstream::client::Address;
use onionskin_rowstream::session::{Login, Session};

use crate::cluster::{catch_up, is_galera, must_be_whole, refused, values};
use crate::error::Result;
use crate::job::Job;

/// How long another node may take to answer.
const ANSWER: Duration = Duration::from_secs(60);
/// What a cluster is called by itself, and a node in it.
const CLUSTER: &str = "wsrep_cluster_state_uuid";
const NODE: &str = "wsrep_gcomm_uuid";

/// A session at another node.
struct Other {
    /// The node's name of itself in the cluster.
    node: String,
    session: Session,
}

/// Sessions at the other nodes, each of which holds the named locks of the migration there.
#[derive(Default)]
pub(crate) struct Others {
    /// `None` where there is no cluster.
    job: Option<Job>,
    others: Vec<Other>,
}

impl Others {
    /// Of a job's server. Whoever works at another node on the same table holds the locks there.
    pub fn of(job: &Job, control: &mut Session) -> Result<Self> {
        if !is_galera(control)? {
            return Ok(Self::default());
        }
        let mut others = Self {
            job: Some(job.clone()),
            others: Vec::new(),
        };
        others.connect(control)?;
        Ok(others)
    }

    /// Whether there is a cluster, be it of one node.
    pub fn is_cluster(&self) -> bool {
        self.job.is_some()
    }

    /// Connects to the nodes that are there now, and waits until they have what this one has.
    pub fn renew(&mut self, control: &mut Session) -> Result<()> {
        let Some(size) = self.size(control)? else {
            return Ok(());
        };
        let mut is_lost = self.others.len() + 1 != size;
        for Other { session, .. } in &mut self.others {
            is_lost |= catch_up(session).is_err();
        }
        match is_lost {
            true => self.connect(control),
            false => Ok(()),
        }
    }

    /// How many nodes there are, this one among them; `None` where there is no cluster.
    fn size(&self, control: &mut Session) -> Result<Option<usize>> {
        if !self.is_cluster() {
            return Ok(None);
        }
        let found = values(control, "GLOBAL STATUS", &["wsrep_cluster_size"])?;
        Ok(found[0].parse().ok())
    }

    fn connect(&mut self, control: &mut Session) -> Result<()> {
        let Some(job) = &self.job else {
            return Ok(());
        };
        self.others.clear();
        let own = values(control, "GLOBAL STATUS", &[CLUSTER, NODE])?;
        let mut reasons = Vec::new();
        for login in logins(job, control)? {
            match other(&login, &own[0]) {
                Ok(other) => {
                    let is_known = self.others.iter().any(|one| one.node == other.node);
                    if other.node != own[1] && !is_known {
                        self.others.push(other);
                    }
                }
                Err(error) => reasons.push(format!("{:?}: {error}", login.address)),
            }
        }
        let size = self.size(control)?.unwrap_or_default();
        let found = self.others.len() + 1;
        if found != size {
            let reasons = reasons.iter().map(|reason| format!("; {reason}"));
            return Err(refused(format!(
                "the Galera cluster has {size} nodes, and {found} of them can be asked which transactions they have: \
                 name all of them with --node, or as backend in the configuration, or set wsrep_node_incoming_address \
                 at each{}",
                reasons.collect::<String>()
            )));
        }
        for Other { session, .. } in &mut self.others {
            job.lock_out(session)?;
        }
        Ok(())
    }

    /// The other nodes by their names, and sessions there that see what was committed at this one.
    pub fn sessions(&mut self) -> impl Iterator<Item = (&str, &mut Session)> {
        self.others
            .iter_mut()
            .map(|other| (other.node.as_str(), &mut other.session))
    }
}

/// How all nodes are reached: as was said, or as the cluster says.
fn logins(job: &Job, control: &mut Session) -> Result<Vec<Login>> {
    if !job.nodes.is_empty() {
        return Ok(job.nodes.clone());
    }
    let found = values(control, "GLOBAL STATUS", &["wsrep_incoming_addresses"])?;
    // Where nobody has told a node its address, AUTO stands there.
    let places = found[0].split(',').filter_map(|address| {
        let (host, port) = address.trim().rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some((host.to_owned(), port.parse().ok()?))
    });
    Ok(places
        .map(|(host, port)| Login {
            address: Address::Tcp { host, port },
            ..job.login.clone()
        })
        .collect())
}

/// A session at a node of this cluster.
fn other(login: &Login, cluster: &str) -> Result<Other> {
    let login = Login {
        identity: None,
        ..login.clone()
    };
    let mut session = Session::connect(&login)?;
    must_be_whole(&mut session, "this node")?;
    session.set_longest_answer(Some(ANSWER))?;
    let found = values(&mut session, "GLOBAL STATUS", &[CLUSTER, NODE])?;
    if found[0] != cluster {
        return Err(refused("it is of another cluster".into()));
    }
    catch_up(&mut session)?;
    Ok(Other {
        node: found.into_iter().nth(1).unwrap_or_default(),
        session,
    })
}
