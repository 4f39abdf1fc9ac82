//! What one server says of itself, asked over the one connection that its monitor has.
//!
//! Two or three statements, which the account of `[health]` may run with very few privileges. All
//! begin with SHOW, but for the members of a group: a Galera node that is not ready refuses others.

use std::collections::HashMap;

use onionskin_rowstream::binlog::GtidPosition;
use onionskin_rowstream::client::{Answer, Client, ClientError, ConnectOptions, Family};
use onionskin_wire::Socket;

use super::judge::{Channel, Executed, Found, Role, Source, Standby};

/// What tells what a server is, of either family.
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_id', 'hostname', 'port', \
     'read_only', 'super_read_only', 'offline_mode', 'group_replication_group_name', \
     'group_replication_single_primary_mode', 'wsrep_on', 'wsrep_provider', \
     'gtid_mode', 'gtid_executed', 'gtid_slave_pos', 'gtid_binlog_pos')";
const GALERA: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state', \
     'wsrep_local_state_comment', 'wsrep_cluster_status', 'wsrep_cluster_state_uuid')";
const GROUP: &str =
    "SELECT member_id, member_state, member_role FROM performance_schema.replication_group_members";
/// `wsrep_local_state` of a node that has all that the others have.
const SYNCED: &str = "4";
/// A server's errors for a privilege that is missing: for a table, and for a statement.
const DENIED: [u16; 2] = [1142, 1227];

/// Why a server could not be asked.
pub enum Fault {
    /// It does not answer: part of a sentence.
    Lost(String),
    /// It answers, and not what was asked.
    Unclear(String),
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Fault {
        match &error {
            ClientError::Wire(_) => Fault::Lost(format!("does not answer: {error}")),
            ClientError::Server { code, .. } if DENIED.contains(code) => Fault::Unclear(format!(
                "{error}; the account of [health] needs REPLICATION CLIENT (MySQL) or REPLICA MONITOR (MariaDB), and SELECT on \
                 performance_schema.replication_group_members where there is Group Replication"
            )),
            _ => Fault::Unclear(error.to_string()),
        }
    }
}

/// Connects as the account of `[health]`. `may_be_plain`: TLS is left out where none is offered.
pub fn connect(
    options: &ConnectOptions,
    may_be_plain: bool,
    limit: std::time::Duration,
) -> Result<Client, ClientError> {
    match Client::connect_within(options, limit) {
        Err(ClientError::NoTls) if may_be_plain => {
            let plain = ConnectOptions {
                tls: None,
                ..options.clone()
            };
            Client::connect_within(&plain, limit)
        }
        connected => connected,
    }
}

/// Asks. `reads`: there are sessions that only read, and where they may do so is to be known.
pub fn ask(client: &mut Client, reads: bool) -> Result<Found, Fault> {
    let set = pairs(&client.run(VARIABLES)?);
    let value = |name: &str| set.get(name).map(String::as_str).unwrap_or_default();
    let address = match client.closer()? {
        Socket::Tcp(socket) => socket.peer_addr().ok(),
        Socket::Unix(_) => None,
    };
    let family = client.family();
    let mut found = Found {
        family,
        version: client.version().trim_start_matches("5.5.5-").to_owned(),
        identity: identity(family, value),
        source_name: match family {
            Family::MySql => value("server_uuid").to_owned(),
            Family::MariaDb => value("server_id").to_owned(),
        },
        address,
        role: Role::Writable(Vec::new()),
        standby: Standby::Unasked,
        position: executed(family, value).map(Box::new),
    };
    let blocked = ["super_read_only", "read_only", "offline_mode"];
    let blocked = blocked.into_iter().find(|name| is_on(value(name)));
    let mut standby = Standby::No("it is not read-only".into());
    found.role = if !value("group_replication_group_name").is_empty() {
        let rows = texts(client.run(GROUP)?);
        let mode = value("group_replication_single_primary_mode");
        let open = mode.eq_ignore_ascii_case("OFF");
        standby = group_standby(&rows, value("server_uuid"), open);
        match group_role(&rows, value("server_uuid"), blocked) {
            // all of them say that they are
            Role::GroupPrimary if open => Role::Node {
                cluster: value("group_replication_group_name").to_owned(),
            },
            role => role,
        }
    } else if is_on(value("wsrep_on")) && !["", "none"].contains(&value("wsrep_provider")) {
        let status = pairs(&client.run(GALERA)?);
        // whether it may be written to does not count
        standby = match galera_role(&status, None) {
            Role::Replica(why) => Standby::No(why),
            _ => Standby::Node,
        };
        galera_role(&status, blocked)
    } else if let Some(name) = blocked {
        if reads {
            let channels = sources(client, family)?.into_iter();
            standby = Standby::Replica(channels.map(|(_, channel)| channel).collect());
        }
        Role::Replica(format!("{name} is on"))
    } else {
        let all = sources(client, family)?.into_iter();
        Role::Writable(
            all.filter(|(_, channel)| channel.runs())
                .map(|(source, _)| source)
                .collect(),
        )
    };
    found.standby = match reads {
        false => Standby::Unasked,
        true if is_on(value("offline_mode")) => Standby::No("offline_mode is on".into()),
        true => standby,
    };
    Ok(found)
}

/// What it has executed, from the variables of either family.
fn executed<'a>(family: Family, value: impl Fn(&str) -> &'a str) -> Option<Executed> {
    let (read, received, written) = match family {
        Family::MySql if value("gtid_mode") != "ON" => return None,
        Family::MySql => {
            let all = value("gtid_executed");
            (GtidPosition::parse_mysql(all), all, all)
        }
        // what a replica has written by itself is no part of what its source has
        Family::MariaDb => {
            let received = value("gtid_slave_pos");
            let written = value("gtid_binlog_pos");
            (GtidPosition::parse_mariadb(written), received, written)
        }
    };
    let received = match family {
        Family::MySql => GtidPosition::parse_mysql(received),
        Family::MariaDb => GtidPosition::parse_mariadb(received),
    };
    Some(Executed {
        received: received.ok()?,
        written: read.ok()?,
        words: written.to_owned(),
    })
}

impl Channel {
    /// Whether any part of it runs, or tries to.
    fn runs(&self) -> bool {
        let runs = |state: &str| !state.eq_ignore_ascii_case("no");
        runs(&self.receives) || runs(&self.applies)
    }
}

/// What a member of a group is for those who only read. `open`: all members are written to, and
/// any of them may be the one of the others.
fn group_standby(rows: &[Vec<String>], own: &str, open: bool) -> Standby {
    let field = |row: &[String], index: usize| row.get(index).cloned().unwrap_or_default();
    let own = rows.iter().find(|row| field(row, 0) == own);
    let Some((state, role)) = own.map(|row| (field(row, 1), field(row, 2))) else {
        return Standby::No("it is not in its group".into());
    };
    let (there, all) = (members_there(rows), rows.len());
    let role = match open {
        true if role == "PRIMARY" => "SECONDARY".into(),
        _ => role,
    };
    match (&*state, &*role) {
        ("ONLINE", "SECONDARY") if there * 2 > all => Standby::Secondary,
        ("ONLINE", "SECONDARY") => {
            Standby::No(format!("it sees {there} of {all} members of its group"))
        }
        ("ONLINE", _) => Standby::No(format!("it is the {role} of its group")),
        _ => Standby::No(format!("it is {state} in its group")),
    }
}

/// How many members of a group another one sees.
fn members_there(rows: &[Vec<String>]) -> usize {
    let state = |row: &Vec<String>| row.get(1).cloned().unwrap_or_default();
    let there = |row: &&Vec<String>| ["ONLINE", "RECOVERING"].contains(&state(row).as_str());
    rows.iter().filter(there).count()
}

/// What no two servers have in common. A Galera cluster's nodes often share their `server_id`.
fn identity<'a>(family: Family, value: impl Fn(&str) -> &'a str) -> String {
    match family {
        Family::MySql => format!("server_uuid {}", value("server_uuid")),
        Family::MariaDb => format!(
            "server_id {} on {}:{}",
            value("server_id"),
            value("hostname"),
            value("port")
        ),
    }
}

/// MySQL Group Replication.
fn group_role(rows: &[Vec<String>], own: &str, blocked: Option<&'static str>) -> Role {
    let field = |row: &[String], index: usize| row.get(index).cloned().unwrap_or_default();
    let Some(row) = rows.iter().find(|row| field(row, 0) == own) else {
        return Role::Replica("is not in its group".into());
    };
    let (state, role) = (field(row, 1), field(row, 2));
    let there = members_there(rows);
    if state != "ONLINE" {
        Role::Replica(format!("is {state} in its group"))
    } else if role != "PRIMARY" {
        Role::Replica(format!("{role} of its group"))
    } else if there * 2 <= rows.len() {
        let all = rows.len();
        Role::Replica(format!(
            "sees {there} of {all} members of its group, no majority"
        ))
    } else if let Some(name) = blocked {
        Role::Replica(format!("{name} is on"))
    } else {
        Role::GroupPrimary
    }
}

/// Galera.
fn galera_role(status: &HashMap<String, String>, blocked: Option<&'static str>) -> Role {
    let value = |name: &str| status.get(name).map(String::as_str).unwrap_or_default();
    let (state, comment) = (
        value("wsrep_local_state"),
        value("wsrep_local_state_comment"),
    );
    if value("wsrep_cluster_status") != "Primary" {
        Role::Replica("is in no primary component of its cluster".into())
    } else if !is_on(value("wsrep_ready")) {
        Role::Replica("wsrep_ready is off".into())
    } else if state != SYNCED {
        Role::Replica(format!("wsrep_local_state is {state} ({comment})"))
    } else if let Some(name) = blocked {
        Role::Replica(format!("{name} is on"))
    } else {
        Role::Node {
            cluster: value("wsrep_cluster_state_uuid").to_owned(),
        }
    }
}

/// Where the server replicates from, and what brings it.
fn sources(client: &mut Client, family: Family) -> Result<Vec<(Source, Channel)>, Fault> {
    let (sql, names) = match family {
        Family::MySql => (
            "SHOW REPLICA STATUS",
            [
                "Source_UUID",
                "Source_Host",
                "Source_Port",
                "Replica_IO_Running",
                "Replica_SQL_Running",
            ],
        ),
        Family::MariaDb => (
            "SHOW ALL SLAVES STATUS",
            [
                "Master_Server_Id",
                "Master_Host",
                "Master_Port",
                "Slave_IO_Running",
                "Slave_SQL_Running",
            ],
        ),
    };
    let answer = client.run(sql)?;
    let index = |name: &str| answer.names.iter().position(|known| known == name);
    let mut wanted = Vec::new();
    for name in names {
        let Some(index) = index(name) else {
            return Err(Fault::Unclear(format!("{sql} does not tell {name}")));
        };
        wanted.push(index);
    }
    let rows = texts(answer);
    let channels = rows.iter().map(|row| {
        let [server, host, port, receives, applies] =
            [0, 1, 2, 3, 4].map(|i| row.get(wanted[i]).cloned().unwrap_or_default());
        (Source { server, host, port }, Channel { receives, applies })
    });
    Ok(channels.collect())
}

/// Whether a variable is on. MariaDB 12's `read_only` has more values than two.
fn is_on(value: &str) -> bool {
    !["", "0", "OFF"].contains(&value.to_ascii_uppercase().as_str())
}

fn pairs(answer: &Answer) -> HashMap<String, String> {
    let text = |cell: &Option<Vec<u8>>| {
        String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
    };
    let pair = |row: &Vec<Option<Vec<u8>>>| {
        Some((text(row.first()?).to_ascii_lowercase(), text(row.get(1)?)))
    };
    answer.rows.iter().filter_map(pair).collect()
}

fn texts(answer: Answer) -> Vec<Vec<String>> {
    let text =
        |cell: Option<Vec<u8>>| String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
    let row = |row: Vec<Option<Vec<u8>>>| row.into_iter().map(text).collect();
    answer.rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(rows: &[(&str, &str, &str)]) -> Vec<Vec<String>> {
        let row =
            |&(id, state, role): &(&str, &str, &str)| [id, state, role].map(String::from).to_vec();
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_member_of_a_group_needs_its_majority() {
        let whole = group(&[
            ("a", "ONLINE", "PRIMARY"),
            ("b", "ONLINE", "SECONDARY"),
            ("c", "ONLINE", "SECONDARY"),
        ]);
        assert_eq!(group_role(&whole, "a", None), Role::GroupPrimary);
        assert!(matches!(
            group_role(&whole, "a", Some("read_only")),
            Role::Replica(_)
        ));
        assert!(matches!(group_role(&whole, "b", None), Role::Replica(_)));
        assert!(matches!(group_role(&whole, "d", None), Role::Replica(_)));
        let split = group(&[
            ("a", "ONLINE", "PRIMARY"),
            ("b", "UNREACHABLE", "SECONDARY"),
            ("c", "UNREACHABLE", "SECONDARY"),
        ]);
        let Role::Replica(why) = group_role(&split, "a", None) else {
            panic!("a minority is no primary");
        };
        assert!(why.contains("no majority"), "{why}");
        // stopped: the server may be written to, and is in no group
        let alone = group(&[("a", "OFFLINE", "")]);
        assert!(matches!(group_role(&alone, "a", None), Role::Replica(_)));
    }

    #[test]
    fn a_node_of_a_cluster_has_to_be_synced_and_ready() {
        let node = |ready: &str, state: &str, component: &str| {
            let set = [
                ("wsrep_ready", ready),
                ("wsrep_local_state", state),
                ("wsrep_cluster_status", component),
                ("wsrep_cluster_state_uuid", "u"),
            ];
            let status = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
            galera_role(&status.into_iter().collect(), None)
        };
        assert_eq!(
            node("ON", "4", "Primary"),
            Role::Node {
                cluster: "u".into()
            }
        );
        for (ready, state, component) in [
            ("OFF", "4", "Primary"),
            ("ON", "2", "Primary"),
            ("ON", "4", "non-Primary"),
        ] {
            assert!(matches!(node(ready, state, component), Role::Replica(_)));
        }
        assert!(matches!(
            galera_role(&HashMap::new(), None),
            Role::Replica(_)
        ));
    }

    #[test]
    fn a_secondary_is_for_reads_with_its_majority() {
        let whole = group(&[
            ("a", "ONLINE", "PRIMARY"),
            ("b", "ONLINE", "SECONDARY"),
            ("c", "RECOVERING", "SECONDARY"),
        ]);
        assert_eq!(group_standby(&whole, "b", false), Standby::Secondary);
        for name in ["a", "c", "d"] {
            assert!(
                matches!(group_standby(&whole, name, false), Standby::No(_)),
                "{name}"
            );
        }
        let split = group(&[
            ("a", "UNREACHABLE", "PRIMARY"),
            ("b", "ONLINE", "SECONDARY"),
        ]);
        assert!(matches!(group_standby(&split, "b", false), Standby::No(_)));
        // of a group that all members write to, any of them
        assert!(matches!(group_standby(&whole, "a", false), Standby::No(_)));
        assert_eq!(group_standby(&whole, "a", true), Standby::Secondary);
    }

    #[test]
    fn what_a_replica_has_written_itself_is_not_what_it_has_received() {
        let set = [
            ("gtid_slave_pos", "0-1-7"),
            ("gtid_binlog_pos", "0-2-500,3-2-1"),
            ("gtid_mode", "OFF"),
        ];
        let value = |name: &str| set.iter().find(|(n, _)| *n == name).map_or("", |(_, v)| *v);
        let executed_by = |family| executed(family, value);
        let found = executed_by(Family::MariaDb).expect("a position");
        assert_eq!(found.received.to_string(), "0-1-7");
        assert_eq!(found.written.to_string(), "0-2-500,3-2-1");
        assert_eq!(found.words, "0-2-500,3-2-1");
        assert_eq!(executed_by(Family::MySql), None);
    }

    #[test]
    fn what_is_not_off_is_on() {
        assert!(is_on("1") && is_on("ON") && is_on("NO_LOCK_NO_ADMIN"));
        assert!(!is_on("0") && !is_on("off") && !is_on(""));
    }
}
