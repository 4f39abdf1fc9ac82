//! Clusters of three nodes on one machine: MySQL Group Replication and Galera.
//!
//! All nodes begin with copies of one data directory that says it is the cluster's, so that nobody
//! has to be sent a whole one when it joins.

use crate::server::{copy, template};
use crate::{
    Binlog, Kind, Server, ServerOptions, Session, announce, free_port, lasting_folder, wait_until,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Debian's place for it.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
/// The name of the group.
const NAME: &str = "0a1b2c3d-0a1b-11ef-8000-0a1b2c3d4e5f";
const LIMIT: Duration = Duration::from_secs(90);

/// What kind of cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topology {
    /// Group Replication, of which one member is written to.
    Group,
    /// Group Replication, all members of which are written to.
    MultiPrimary,
    /// Galera, all nodes of which are written to.
    Galera,
}

impl Topology {
    /// Which servers it consists of.
    pub fn kind(self) -> Kind {
        match self {
            Topology::Group | Topology::MultiPrimary => Kind::MySql,
            Topology::Galera => Kind::MariaDb,
        }
    }

    /// The one that `ONIONSKIN_TEST_CLUSTER` asks for, where servers of this kind can be of it.
    pub(crate) fn asked_for(kind: Kind, options: &ServerOptions) -> Option<Topology> {
        let asked = std::env::var("ONIONSKIN_TEST_CLUSTER").unwrap_or_default();
        let topology = match &*asked {
            "" => return None,
            "group" => Topology::Group,
            "multi-primary" => Topology::MultiPrimary,
            "galera" => Topology::Galera,
            other => panic!("ONIONSKIN_TEST_CLUSTER={other}: group, multi-primary or galera"),
        };
        // all of them replicate rows
        let rows = options.binlog != Some(Binlog::Statement);
        (topology.kind() == kind && rows).then_some(topology)
    }

    /// Why it cannot be had, if so. That there is no MySQL is said elsewhere.
    fn unavailable(self) -> Option<String> {
        match self {
            Topology::Galera if !Path::new(PROVIDER).exists() => Some(format!(
                "Galera is not there: {PROVIDER}; run scripts/install-deps.sh tests"
            )),
            Topology::Galera => None,
            _ => {
                let folder = crate::checkout().join(".servers/mysql");
                let plugin = folder.join("usr/lib/mysql/plugin/group_replication.so");
                let is_missing = folder.exists() && !plugin.exists();
                is_missing.then(|| "this MySQL has no group_replication.so".into())
            }
        }
    }
}

/// Nodes that replicate to each other. Dropping it kills all of them.
pub struct Cluster {
    topology: Topology,
    nodes: Vec<Server>,
    /// Where the nodes speak to each other.
    ports: Vec<u16>,
}

impl Cluster {
    /// Three nodes. `None`, with a loud message, where they cannot be had.
    pub fn start(topology: Topology, options: &ServerOptions) -> Option<Cluster> {
        Self::of(topology, options, 3)
    }

    /// So many nodes.
    pub fn of(topology: Topology, options: &ServerOptions, count: usize) -> Option<Cluster> {
        if let Some(reason) = topology.unavailable() {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            announce(&format!("{test} ... skipped: {reason}"));
            return None;
        }
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let mut nodes = Vec::new();
        for number in 0..count {
            let mut own = options.clone();
            own.quiet_accounts = true;
            own.binlog = Some(own.binlog.unwrap_or(Binlog::Row));
            own.extra.extend(arguments(topology, number, &ports));
            let node = match topology {
                Topology::Galera => Server::prepared_on(Kind::MariaDb, own, &galera_template()),
                _ => Server::prepared(Kind::MySql, own)?,
            };
            if topology.kind() == Kind::MySql {
                // a name of its own, which it makes when it starts
                let _ = fs::remove_file(node.data_dir().join("auto.cnf"));
            }
            nodes.push(node);
        }
        let mut cluster = Cluster {
            topology,
            nodes,
            ports,
        };
        for number in 0..count {
            cluster.nodes[number].begins(topology, number == 0);
        }
        if topology.kind() == Kind::MySql {
            std::thread::scope(|scope| {
                for node in &cluster.nodes[1..] {
                    scope.spawn(move || node.joins_its_group());
                }
            });
        }
        cluster.wait_until_whole();
        Some(cluster)
    }

    /// What kind of cluster it is.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// All nodes, those that were killed among them.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// One of them.
    pub fn node(&self, number: usize) -> &Server {
        &self.nodes[number]
    }

    /// To shut it down, or to start it anew by hand.
    pub fn node_mut(&mut self, number: usize) -> &mut Server {
        &mut self.nodes[number]
    }

    /// A session of root's at a node.
    pub fn connect(&self, number: usize) -> Session {
        self.nodes[number].connect()
    }

    /// Numbers of the nodes that run.
    pub fn running(&mut self) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if node.is_running() {
                numbers.push(number);
            }
        }
        numbers
    }

    /// Which node is written to: of a cluster that writes everywhere, the first that runs.
    pub fn primary(&mut self) -> usize {
        let running = self.running();
        if self.topology != Topology::Group {
            return running[0];
        }
        let is_it = |number: &&usize| {
            let sql = "SELECT COUNT(*) FROM performance_schema.replication_group_members \
                       WHERE MEMBER_ID = @@server_uuid AND MEMBER_ROLE = 'PRIMARY' AND MEMBER_STATE = 'ONLINE' \
                       AND @@super_read_only = 0";
            let answer = self.nodes[**number].connect().text(sql);
            answer.is_ok_and(|count| count == "1")
        };
        let mut primary = None;
        wait_until("the group has a primary", LIMIT, || {
            primary = running.iter().find(is_it).copied();
            primary.is_some()
        });
        primary.expect("found")
    }

    /// `kill -9` of a node.
    pub fn kill9(&mut self, number: usize) {
        self.nodes[number].kill9();
    }

    /// Starts a node that was killed or has ended, and waits until it has what the others have.
    pub fn rejoin(&mut self, number: usize) {
        rejoin(&mut self.nodes[number], self.topology);
        self.wait_until_whole();
    }

    pub(crate) fn into_nodes(self) -> Vec<Server> {
        self.nodes
    }

    fn of_those_that_run(&mut self) -> (Topology, Vec<&Server>) {
        let running = self.running();
        let nodes = running.iter().map(|number| &self.nodes[*number]);
        (self.topology, nodes.collect())
    }

    /// Waits until all nodes that run are in the cluster and see each other.
    pub fn wait_until_whole(&mut self) {
        let running = self.running();
        let sql = match self.topology {
            Topology::Galera => {
                "SELECT IF((SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                 WHERE VARIABLE_NAME = 'wsrep_local_state') = 4, (SELECT VARIABLE_VALUE \
                 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size'), 0)"
            }
            _ => {
                "SELECT SUM(MEMBER_STATE = 'ONLINE') FROM performance_schema.replication_group_members"
            }
        };
        for number in &running {
            wait_until("the cluster is whole", LIMIT, || {
                let session = Session::try_open(self.nodes[*number].port(), "root", "", None);
                let size = session.and_then(|mut session| session.text(sql));
                size.is_ok_and(|size| size == running.len().to_string())
            });
        }
    }

    /// Waits until every node that runs has applied all that was committed before at any of them.
    pub fn wait_until_same(&mut self) {
        let (topology, nodes) = self.of_those_that_run();
        wait_until_same(topology, &nodes);
    }

    /// Rows of a statement that every node that runs gives alike, sorted.
    pub fn same_everywhere(&mut self, sql: &str) -> Vec<String> {
        let (topology, nodes) = self.of_those_that_run();
        same_everywhere(topology, &nodes, sql)
    }

    /// Every cell of a table as its bytes, companions and columns that nobody sees among them, and
    /// its definition: the same at every node that runs. Returns the rows.
    pub fn same_cells(&mut self, database: &str, table: &str) -> Vec<String> {
        let (topology, nodes) = self.of_those_that_run();
        same_cells(topology, &nodes, database, table)
    }

    /// The same of every table that is not the server's own.
    pub fn same_tables(&mut self) {
        let (topology, nodes) = self.of_those_that_run();
        same_tables(topology, &nodes);
    }

    /// Where the nodes speak to each other.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }
}

fn wait_until_same(topology: Topology, nodes: &[&Server]) {
    for node in nodes {
        let mut session = node.connect();
        session.must(match topology {
            Topology::Galera => "SET SESSION wsrep_sync_wait = 1",
            _ => "SET SESSION group_replication_consistency = 'BEFORE'",
        });
        wait_until("a node has what the others have", LIMIT, || {
            session.text("SELECT COUNT(*) FROM mysql.user").is_ok()
        });
    }
}

fn same_everywhere(topology: Topology, nodes: &[&Server], sql: &str) -> Vec<String> {
    wait_until_same(topology, nodes);
    let mut first: Option<Vec<String>> = None;
    for (number, node) in nodes.iter().enumerate() {
        let text = node.connect().text(sql);
        let text = text.unwrap_or_else(|e| panic!("node {number}: {sql}: {e}"));
        let mut rows: Vec<String> = text.lines().map(without_counter).collect();
        rows.sort();
        match &first {
            Some(first) => assert_eq!(*first, rows, "{sql}\nthe first node and {number}"),
            None => first = Some(rows),
        }
    }
    first.expect("a node that runs")
}

fn same_cells(topology: Topology, nodes: &[&Server], database: &str, table: &str) -> Vec<String> {
    let same = |sql: &str| same_everywhere(topology, nodes, sql);
    let name = format!(
        "`{}`.`{}`",
        database.replace('`', "``"),
        table.replace('`', "``")
    );
    let literal = |text: &str| {
        format!(
            "x'{}'",
            text.bytes().map(|b| format!("{b:02x}")).collect::<String>()
        )
    };
    same(&format!("SHOW CREATE TABLE {name}"));
    let columns = same(&format!(
        "SELECT LPAD(ordinal_position, 4, '0'), column_name FROM information_schema.columns \
         WHERE table_schema = CONVERT({} USING utf8mb3) AND table_name = CONVERT({} USING utf8mb3)",
        literal(database),
        literal(table)
    ));
    let hex: Vec<String> = columns
        .iter()
        .filter_map(|line| line.split('\t').nth(1))
        .map(|name| format!("COALESCE(HEX(`{}`), 'NULL')", name.replace('`', "``")))
        .collect();
    assert!(!hex.is_empty(), "{database}.{table} has columns");
    let list = hex.join(", ");
    same(&format!("SELECT {list} FROM {name}"))
}

/// All nodes have the same tables, cell by cell.
pub(crate) fn same_tables(topology: Topology, nodes: &[&Server]) {
    let tables = same_everywhere(
        topology,
        nodes,
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
         AND engine = 'InnoDB' AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')",
    );
    for line in tables {
        let (database, table) = line.split_once('\t').expect("two cells");
        same_cells(topology, nodes, database, table);
    }
}

/// Starts a node that was killed or has ended.
pub(crate) fn rejoin(node: &mut Server, topology: Topology) {
    if topology == Topology::Galera {
        let position = recovered_position(node);
        let options = node.options_mut();
        options.retain(|o| !o.starts_with("--wsrep-start-position="));
        options.push(format!("--wsrep-start-position={position}"));
    }
    node.launch();
    if topology.kind() == Kind::MySql {
        node.joins_its_group();
    }
}

impl Server {
    /// The first start of a node.
    fn begins(&mut self, topology: Topology, bootstraps: bool) {
        if topology == Topology::Galera {
            if bootstraps {
                self.options_mut().push("--wsrep-new-cluster".into());
            }
            self.launch();
            self.options_mut().retain(|o| o != "--wsrep-new-cluster");
            return;
        }
        self.launch();
        let mut root = self.connect();
        // what its accounts left there is no part of the group
        root.must("RESET BINARY LOGS AND GTIDS");
        if bootstraps {
            root.must("SET GLOBAL group_replication_bootstrap_group = ON");
            self.joins_its_group();
            root.must("SET GLOBAL group_replication_bootstrap_group = OFF");
        }
    }

    fn joins_its_group(&self) {
        self.connect()
            .must("START GROUP_REPLICATION USER = 'root', PASSWORD = ''");
    }
}

/// A line of a definition without what AUTO_INCREMENT would give next: each node has a counter of
/// its own.
fn without_counter(line: &str) -> String {
    let Some((before, rest)) = line.split_once(" AUTO_INCREMENT=") else {
        return line.to_owned();
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}{rest}")
}

fn arguments(topology: Topology, number: usize, ports: &[u16]) -> Vec<String> {
    let addresses: Vec<String> = ports.iter().map(|p| format!("127.0.0.1:{p}")).collect();
    let all = addresses.join(",");
    let (own, id) = (&addresses[number], number + 1);
    if topology == Topology::Galera {
        let (incremental, whole) = (free_port(), free_port());
        return [
            "--wsrep-on=ON".into(),
            format!("--wsrep-provider={PROVIDER}"),
            format!("--wsrep-cluster-address=gcomm://{all}"),
            "--wsrep-cluster-name=onionskin-test".into(),
            "--wsrep-node-address=127.0.0.1".into(),
            format!("--wsrep-node-name=node{number}"),
            format!(
                "--wsrep-provider-options=gmcast.listen_addr=tcp://{own};ist.recv_addr=127.0.0.1:{incremental};\
                 gcache.size=32M;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;evs.keepalive_period=PT0.5S;\
                 pc.recovery=FALSE"
            ),
            format!("--wsrep-sst-receive-address=127.0.0.1:{whole}"),
            // of a node that was away for too long; rsync's daemon cannot write to these folders
            "--wsrep-sst-method=mariabackup".into(),
            "--wsrep-sst-auth=root:".into(),
            "--innodb-autoinc-lock-mode=2".into(),
            "--log-slave-updates".into(),
        ]
        .into();
    }
    let single = match topology {
        Topology::Group => ["ON", "OFF"],
        _ => ["OFF", "ON"],
    };
    [
        format!("--server-id={id}"),
        "--gtid-mode=ON".into(),
        "--enforce-gtid-consistency=ON".into(),
        "--report-host=127.0.0.1".into(),
        "--plugin-load-add=group_replication.so".into(),
        format!("--loose-group-replication-group-name={NAME}"),
        "--loose-group-replication-start-on-boot=OFF".into(),
        format!("--loose-group-replication-local-address={own}"),
        format!("--loose-group-replication-group-seeds={all}"),
        "--loose-group-replication-recovery-get-public-key=ON".into(),
        "--loose-group-replication-ip-allowlist=127.0.0.1".into(),
        "--loose-group-replication-member-expel-timeout=0".into(),
        "--loose-group-replication-recovery-reconnect-interval=1".into(),
        format!(
            "--loose-group-replication-single-primary-mode={}",
            single[0]
        ),
        format!(
            "--loose-group-replication-enforce-update-everywhere-checks={}",
            single[1]
        ),
    ]
    .into()
}

/// A data directory at the beginning of a cluster's history, made once and kept with the build's
/// files. Copies of it join without being sent a whole one.
fn galera_template() -> PathBuf {
    static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    made.get_or_insert_with(make_galera_template).clone()
}

fn make_galera_template() -> PathBuf {
    let plain = template(Kind::MariaDb);
    let name = plain.file_name().expect("a name").to_string_lossy();
    let template = plain.with_file_name(format!("galera-{name}"));
    if template.exists() {
        return template;
    }
    let ports = [free_port()];
    let mut options = ServerOptions {
        quiet_accounts: true,
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    options.extra = arguments(Topology::Galera, 0, &ports);
    options.extra.push("--wsrep-new-cluster".into());
    let mut server = Server::prepared(Kind::MariaDb, options).expect("never skipped");
    server.launch();
    server.shutdown();
    // Another test program may do the same at the same time: the first rename wins.
    let making = tempfile::Builder::new()
        .prefix("tpl")
        .tempdir_in(lasting_folder())
        .expect("a temporary folder");
    let data = making.path().join("data");
    copy(&server.data_dir(), &data);
    for file in fs::read_dir(&data).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let of_its_own = ["galera.cache", "gvwstate.dat", "error.log"];
        if of_its_own.contains(&&*name) || name.starts_with("binlog.") {
            fs::remove_file(file.path()).expect("removed");
        }
    }
    if fs::rename(&data, &template).is_err() {
        assert!(template.exists(), "{} cannot be made", template.display());
    }
    template
}

/// Up to where a node that was killed has what the cluster has.
fn recovered_position(node: &Server) -> String {
    let said = node.data_dir().join("recovered.log");
    let _ = fs::remove_file(&said);
    let log = format!("--log-error={}", said.display());
    node.run_program(&["--wsrep-recover", &log]);
    let text = fs::read_to_string(&said).unwrap_or_default();
    let position = text
        .lines()
        .filter_map(|line| line.split_once("WSREP: Recovered position: "))
        .map(|(_, position)| position.trim().to_owned())
        .next_back();
    position.unwrap_or_else(|| panic!("no position of the cluster: {text}"))
}
