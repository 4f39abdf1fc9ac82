//! Replicas, and what goes to them.

use super::logs::binary_log_is_plain;
use crate::server::check::{Check, known};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Channel, Facts},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "replicas",
        layer: Layer::Replicas,
        title: "replicas that are connected",
        judge: connected,
    },
    Check {
        code: "replication-tls",
        layer: Layer::Replicas,
        title: "TLS from this server to its sources",
        judge: channels,
    },
];

fn connected(facts: &Facts) -> Verdict {
    // The server shows every account its own processes.
    let hidden = (!facts.rights.process).then(|| "GRANT PROCESS ON *.*".to_owned());
    known(&facts.replicas, "", |replicas| {
        let verdict = match replicas.is_empty() {
            true => Verdict::closed("none is connected"),
            false => {
                let mut evidence = replicas.clone();
                if binary_log_is_plain(facts) {
                    evidence.push("the binary log that they read is not encrypted".into());
                }
                Verdict::open(
                    Severity::Low,
                    "A replica has all that this server has, under its own settings and accounts: encryption of \
                     files, logs and relay logs is turned on there by itself or not at all.",
                    evidence,
                    "onionskin assess server --backend REPLICA",
                )
            }
        };
        verdict.seen_in_part(hidden)
    })
}

fn channels(facts: &Facts) -> Verdict {
    known(&facts.channels, "the server is no replica", |channels| {
        if channels.is_empty() {
            return Verdict::NotHere("the server is no replica".into());
        }
        let line = |channel: &Channel| {
            let name = match channel.name.as_str() {
                "" => "the channel without a name",
                name => name,
            };
            match (channel.tls, channel.verifies) {
                (false, _) => Some(format!("{name}: without TLS")),
                (true, false) => Some(format!("{name}: the source's certificate is not verified")),
                (true, true) => None,
            }
        };
        let open: Vec<String> = channels.iter().filter_map(line).collect();
        match open.is_empty() {
            true => Verdict::closed("TLS with verified certificates"),
            false => Verdict::open(
                Severity::Medium,
                "All changes come over the network, and can be read or changed there.",
                open,
                match facts.is_mariadb() {
                    true => {
                        "CHANGE MASTER TO MASTER_SSL = 1, MASTER_SSL_VERIFY_SERVER_CERT = 1, MASTER_SSL_CA = '...';"
                    }
                    false => {
                        "CHANGE REPLICATION SOURCE TO SOURCE_SSL = 1, SOURCE_SSL_VERIFY_SERVER_CERT = 1, SOURCE_SSL_CA = '...';"
                    }
                },
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::{Seen, samples::facts};

    #[test]
    fn without_process_no_replica_is_seen() {
        let mut facts = facts(Family::MySql, &[]);
        facts.replicas = Seen::Known(Vec::new());
        assert!(matches!(connected(&facts), Verdict::Closed(_)));
        facts.rights.process = false;
        assert!(matches!(connected(&facts), Verdict::NotVisible { .. }));
    }
}
