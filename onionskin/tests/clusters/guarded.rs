//! A cluster with a proxy before each node. All proxies have the same keys and the same scratch
//! engine.

use onionskin_testkit::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// In every protected text.
pub const SECRET: &str = "Zk7QvWm3";
/// In texts of columns that are not protected.
pub const CONTROL: &str = "Gd5HtRx9";
/// Longer than what a proxy knows may be old.
pub const A_SECOND: Duration = Duration::from_millis(1300);
/// A table that comes and goes while others write to it: they know beforehand what is protected.
const POLICY: &str = "[protect.\"app.d\"]\nname = [\"eq\"]\nn = [\"range\"]\n";
pub const SOON: Duration = Duration::from_secs(30);

pub struct Guarded {
    pub cluster: Cluster,
    pub proxies: Vec<Proxy>,
    pub engine: Lent,
}

impl Guarded {
    /// `None`, with a loud message, where there is no such cluster.
    pub fn start(topology: Topology) -> Option<Guarded> {
        if direct_mode() {
            return None;
        }
        let options = ServerOptions {
            general_log: true,
            ..ServerOptions::default()
        };
        let mut cluster = Cluster::start(topology, &options)?;
        let engine = Lent::of(topology.kind())?;
        let mut proxies: Vec<Proxy> = Vec::new();
        for node in cluster.nodes() {
            let options = ProxyOptions {
                keys: proxies.first().map(Proxy::keys),
                tables: POLICY.to_owned() + &scratch(&engine),
                ..ProxyOptions::default()
            };
            proxies.push(Proxy::start_with(node, options));
        }
        let primary = cluster.primary();
        let mut root = cluster.connect(primary);
        root.must("CREATE DATABASE app CHARACTER SET utf8mb4");
        root.must("CREATE DATABASE bare CHARACTER SET utf8mb4");
        // what a search has to find
        root.must("CREATE TABLE bare.open (id INT PRIMARY KEY, name VARCHAR(40))");
        root.must(&format!("INSERT INTO bare.open VALUES (1, '{CONTROL}')"));
        cluster.wait_until_same();
        Some(Guarded {
            cluster,
            proxies,
            engine,
        })
    }

    /// The nodes that are written to.
    pub fn writers(&mut self) -> Vec<usize> {
        match self.cluster.topology() {
            Topology::Group => vec![self.cluster.primary()],
            _ => self.cluster.running(),
        }
    }

    /// A session through the proxy before a node.
    pub fn at(&self, number: usize) -> Session {
        self.proxies[number].connect_to("app")
    }

    /// Waits until the other nodes have what one of them has.
    pub fn settle(&mut self) {
        self.cluster.wait_until_same();
    }

    /// The same, and until all proxies know the tables of their nodes: values of a table that
    /// another proxy has just made are sent as those of a plain one for a second.
    pub fn settle_tables(&mut self) {
        self.settle();
        thread::sleep(A_SECOND);
    }

    /// What every proxy answers alike, whichever node it stands before.
    pub fn same(&mut self, sql: &str) -> String {
        self.settle();
        let mut answers = Vec::new();
        for number in self.cluster.running() {
            let answer = self.at(number).text(sql);
            answers.push(answer.unwrap_or_else(|e| panic!("at node {number}: {sql}: {e}")));
        }
        assert!(
            answers.windows(2).all(|two| two[0] == two[1]),
            "{sql}: {answers:?}"
        );
        answers.swap_remove(0)
    }

    /// The tables are the same on all nodes, cell by cell, and nothing that is protected is in any
    /// file of any of them.
    pub fn conclude(mut self) {
        self.cluster.same_tables();
        for proxy in &mut self.proxies {
            proxy.assert_healthy();
        }
        for number in self.cluster.running() {
            self.cluster.node_mut(number).shutdown();
            let node = self.cluster.node(number);
            assert!(has_trace(node, CONTROL), "the search works");
            node.assert_no_trace_of(&[SECRET]);
        }
        for proxy in &self.proxies {
            assert!(!proxy.log().contains(SECRET));
        }
    }
}

/// The section of the proxy's configuration that names its engine.
pub fn scratch(engine: &Server) -> String {
    format!("[scratch]\nsocket = \"{}\"\n", engine.socket().display())
}

fn has_trace(server: &Server, text: &str) -> bool {
    let patterns = Pattern::of_text(text);
    let files = server.data_files();
    let mut files = files.iter();
    files.any(|file| !find_all(&patterns, &written_in(file)).is_empty())
}

/// Ends the threads beside it however the scope is left.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The same in such a thread.
pub struct OverIfPanicking<'a>(pub &'a AtomicBool);

impl Drop for OverIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
