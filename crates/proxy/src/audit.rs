//! The audit log's place in the proxy: what a configuration says of it, and what of a session
//! stands in its lines.

use std::net::SocketAddr;
use std::sync::Arc;

use onionskin_audit::AuditLog;
use onionskin_wire::messages::attributes;

use crate::catalog::KeyedPlan;
use crate::touched::Cells;

/// The audit log, and what holds where it has no room.
#[derive(Clone)]
pub struct AuditConfig {
    /// The run that is written.
    pub log: Arc<AuditLog>,
    /// Statements on protected columns are refused while there is no room for their lines.
    /// Otherwise they run, and are counted as lost.
    pub stops: bool,
}

/// Connection attributes of a client that are recorded, and bytes of each name and value: a client
/// may say what it likes.
const ATTRIBUTES: usize = 32;
const ATTRIBUTE_BYTES: usize = 256;

/// What is known of a session, and of the command that runs, for its line.
#[derive(Default)]
pub(crate) struct Audited {
    /// Where the client is.
    pub client: String,
    /// What it says of itself.
    pub attributes: Vec<(String, String)>,
    /// Cells that the command has opened.
    pub opened: Cells,
    /// Plans over protected columns that the command has carried out.
    pub plans: Vec<Arc<KeyedPlan>>,
    /// Such a plan has come to where it would be noted, whether a log is written or not.
    #[cfg(debug_assertions)]
    pub has_passed: bool,
}

impl Audited {
    /// Of a new session; `attributes` as they came.
    pub fn of(peer: SocketAddr, attributes: Option<&[u8]>) -> Self {
        Audited {
            client: peer.to_string(),
            attributes: read_attributes(attributes),
            ..Audited::default()
        }
    }
}

/// Attributes as they are recorded.
pub(crate) fn read_attributes(bytes: Option<&[u8]>) -> Vec<(String, String)> {
    let short = |bytes: &[u8]| {
        let bytes = &bytes[..bytes.len().min(ATTRIBUTE_BYTES)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    attributes(bytes.unwrap_or_default())
        .take(ATTRIBUTES)
        .map(|(name, value)| (short(name), short(value)))
        .collect()
}
