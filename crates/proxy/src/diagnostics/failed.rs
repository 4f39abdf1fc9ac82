//! What is kept of a statement that failed, for what the client may ask about it.

use onionskin_value::Family;
use onionskin_wire::messages::ErrPacket;

use super::{Diagnostics, hides_token, tell_as, tells_of};
use crate::error::Failure;
use crate::exchange::Rows;
use crate::server_errors::NOT_NULL;
use crate::session::{Session, StatementRun};

/// Errors that a statement meets before it looks at a value: no privilege, no such table or column,
/// its grammar, no such prepared statement, a transaction that only reads; on MySQL, a parameter in
/// letters that a column's character set does not have.
const BEFORE_VALUES: [u16; 10] = [1044, 1045, 1046, 1054, 1064, 1142, 1146, 1243, 1792, 3988];

/// Who can tell of an error.
enum Teller {
    /// The server: it remembers it as its own, or what it said of it before it ran another
    /// statement is at hand.
    Server { list: Option<Rows> },
    /// The proxy. The server never heard of it, or has run another statement since.
    Proxy,
}

impl Session {
    /// The client has been told of a failure in this packet.
    pub(crate) fn keep_failure(&mut self, failure: &Failure, packet: &ErrPacket) {
        let mut run = std::mem::take(&mut self.current);
        let teller = teller(failure, packet, run.interfered, run.list.take());
        let before = std::mem::take(&mut self.diagnostics);
        // warnings of an earlier statement end with one that fails
        let before = match before.of_earlier {
            true => Diagnostics::default(),
            false => before,
        };
        self.diagnostics = match teller {
            Teller::Server { list } => {
                // what it shows stands among the proxy's warnings, unless it has looked at no value
                let saw_none = BEFORE_VALUES.contains(&packet.code);
                let mut kept = Diagnostics {
                    surplus: before.surplus,
                    of_several: before.of_several,
                    warnings: if saw_none {
                        Vec::new()
                    } else {
                        before.warnings
                    },
                    told: (run.reworded || hides_token(&packet.message))
                        .then(|| (packet.code, packet.message.to_vec())),
                    row_count: list.is_some().then_some(-1),
                    list,
                    is_lost: run.is_lost,
                    ..Diagnostics::default()
                };
                kept.failed_at_server(packet.code);
                // each row before the one that failed has raised them
                kept.unclear |= before.each_row && !kept.warnings.is_empty();
                kept.unclear |= run.unclear;
                kept
            }
            Teller::Proxy => {
                let is_value = matches!(failure, Failure::Value(_));
                let said = std::mem::take(&mut self.buffers.before_refused);
                let others = std::mem::take(&mut self.buffers.refused_among_others);
                let is_listed = std::mem::take(&mut self.buffers.refused_in_listed_row);
                let is_null = is_value && packet.code == NOT_NULL;
                Diagnostics {
                    warnings: match is_value && !BEFORE_VALUES.contains(&packet.code) {
                        true => said,
                        false => Vec::new(),
                    },
                    error_times: match is_value {
                        true => self.buffers.refused_times.max(1),
                        false => 1,
                    },
                    error: Some((packet.code, packet.message.to_vec())),
                    has_unknown: is_null && is_listed && self.state.family == Family::MariaDb,
                    row_count: Some(-1),
                    unclear: others && is_value || is_unclear(&run, self.state.family),
                    ..Diagnostics::default()
                }
            }
        };
    }
}

fn teller(
    failure: &Failure,
    packet: &ErrPacket,
    has_interfered: bool,
    list: Option<Rows>,
) -> Teller {
    if !matches!(failure, Failure::Server { .. }) {
        return Teller::Proxy;
    }
    if !has_interfered {
        return Teller::Server { list: None };
    }
    let is_its = |list: &Rows| list.is_empty() || tells_of(list, failure);
    match list.filter(is_its) {
        Some(mut list) => {
            tell_as(&mut list, packet.code, &packet.message);
            Teller::Server { list: Some(list) }
        }
        None => Teller::Proxy,
    }
}

/// Whether the server may have warned beside an error that the proxy has found.
fn is_unclear(run: &StatementRun, family: Family) -> bool {
    run.unclear || family == Family::MySql && run.calls_values
}
