//! The stage for the tests of bad input: protected tables with rows in them, and a bystander.

use crate::{
    Kind, Pattern, Proxy, RawClient, Server, ServerOptions, Session, direct_mode, find_all,
    written_in,
};

/// `[protect]` of [`Scene`].
pub const PROTECT: &str = r#"
[protect."app.*"]
k = ["eq", "range"]
c = []
v = ["eq"]
"#;

/// In every protected text.
pub const MARKER: &str = "Vd8LsGt2";

/// A proxy with a table, a session that exists from the beginning, and the promise that both
/// outlive anything.
pub struct Scene {
    /// The server.
    pub server: Server,
    /// The proxy before it.
    pub proxy: Proxy,
    /// A session that exists from the beginning.
    pub bystander: Session,
}

impl Scene {
    /// Starts both, and creates the tables.
    pub fn start(kind: Kind) -> Option<Scene> {
        let server = Server::start(kind, ServerOptions::default())?;
        let proxy = Proxy::start(&server, PROTECT);
        server.connect().must("CREATE DATABASE app");
        let mut bystander = proxy.connect_to("app");
        bystander.must("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(100), v VARCHAR(100)) CHARSET utf8mb4");
        bystander.must("CREATE TABLE other (id INT PRIMARY KEY, k INT, c VARCHAR(100), v VARCHAR(100)) CHARSET utf8mb4");
        bystander.must("CREATE TABLE open (id INT PRIMARY KEY, plain VARCHAR(100))");
        bystander.must(&format!("INSERT INTO t VALUES (1, 10, '{MARKER} c1', '{MARKER} v1'), (2, 20, '{MARKER} c2', 'v2')"));
        bystander.must(&format!(
            "INSERT INTO other VALUES (1, 10, '{MARKER} o1', '{MARKER} p1')"
        ));
        bystander.must("INSERT INTO open VALUES (1, 'plain')");
        Some(Scene {
            server,
            proxy,
            bystander,
        })
    }

    /// Called after every misdeed.
    pub fn others_still_work(&mut self, misdeed: &str) {
        let expected = format!("{MARKER} c2");
        let query = "SELECT c FROM app.t WHERE k = 20";
        assert_eq!(
            self.bystander.text(query).as_ref(),
            Ok(&expected),
            "an old session after {misdeed}"
        );
        assert_eq!(
            self.proxy.connect().text(query).as_ref(),
            Ok(&expected),
            "a new session after {misdeed}"
        );
        self.proxy.assert_healthy();
    }

    /// A TCP connection to the proxy.
    pub fn raw(&self) -> RawClient {
        RawClient::connect(self.proxy.port())
    }

    /// A session of the proxy, by hand.
    pub fn raw_login(&self) -> RawClient {
        RawClient::login(self.proxy.port())
    }

    /// Searches the server's files for the marker; false in direct mode.
    pub fn stores_plaintext(&mut self) -> bool {
        self.server.shutdown();
        !direct_mode()
            && self.server.data_files().iter().any(|file| {
                let found = find_all(&Pattern::of_text(MARKER), &written_in(file));
                if !found.is_empty() {
                    eprintln!("{}: {found:?}", file.display());
                }
                !found.is_empty()
            })
    }
}

/// Bytes without a pattern, the same in every run.
pub fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    std::iter::repeat_with(|| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    })
    .take(length)
    .collect()
}
