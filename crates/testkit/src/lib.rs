//! The harness of the integration tests: private database servers, the proxy under test in front of
//! them, a recording relay between the two, sysbench, and the command-line clients.
//!
//! A test takes a [`Kind`] of server and is listed in [`on_both_servers!`], which runs it on
//! MariaDB and on MySQL:
//!
//! ```ignore
//! use onionskin_testkit::*;
//!
//! on_both_servers!(answers_a_ping);
//!
//! fn answers_a_ping(kind: Kind) {
//!     let Some(server) = Server::start(kind, ServerOptions::default()) else { return };
//!     let proxy = Proxy::start(&server, "");
//!     assert_eq!(proxy.connect().text("SELECT 1").unwrap(), "1");
//! }
//! ```
//!
//! Every server has its own data directory (a copy of a template that is initialised once), Unix
//! socket and TCP port, and is killed and removed when its handle is dropped. A plain server that
//! only answers is [`Lent`] to one test after the other. Where MySQL could not
//! be installed, `Server::start` says so on the terminal, whatever the test runner captures, and
//! returns `None`.
//!
//! With `ONIONSKIN_TEST_CLUSTER=galera`, `group` or `multi-primary`, the servers of tests are nodes
//! of clusters of two; when one is dropped, both have the same tables, cell by cell. Servers that
//! are lent stay alone.
//!
//! With `ONIONSKIN_TEST_DIRECT=1` in the environment, `Proxy::start` starts nothing and hands out
//! the server's own address: a way to check the harness, and a test's expectations, against a plain
//! server.

mod cable;
mod cli;
mod cluster;
mod far;
mod killed;
mod lent;
mod liar;
mod meddler;
mod migration;
mod pair;
mod proxy;
mod raw;
mod relay;
mod scene;
mod scenery;
mod search;
mod server;
mod session;
mod sysbench;
mod trips;
mod twin;

pub use cable::{Cable, When};
pub use cli::{Cli, CliOutput};
pub use cluster::{Cluster, Topology};
pub use far::{Far, own_address};
pub use killed::{Point, its_statements_have_ended, kill, kill_at};
pub use lent::Lent;
pub use liar::Liar;
pub use meddler::Meddler;
pub use migration::{
    assert_equal_audits, assert_same_rows, audit, end_of_migration, logging_server, migrate,
    migrate_at, must_migrate, must_not_migrate, run_migration, server_of_its_own, set_state,
    start_migration, table_with_rows,
};
pub use pair::{Engine, Pair, PairOptions, SECRET, Said, with_and_without_protection};
pub use proxy::{Proxy, ProxyOptions, direct_mode};
pub use raw::{RawClient, Reply, login_payload, login_payload_of, packet};
pub use relay::Relay;
pub use scene::{MARKER, PROTECT, Scene, noise};
pub use scenery::{Scenery, TABLES, checksums, has_mariadb_backup};
pub use search::{Pattern, find_all, written_in};
pub use server::{Binlog, Kind, Server, ServerOptions, TestUser};
pub use session::{Failure, Outcome, ResultSet, Session};
pub use sysbench::{Sysbench, SysbenchReport};
pub use trips::{Counted, Trips};
pub use twin::{
    assert_equal_to_twin, beside_a_writer, beside_an_application, one_or_a_transaction,
    table_and_twin,
};

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Makes two tests, `mariadb::name` and `mysql::name`, of each function `fn name(kind: Kind)`.
#[macro_export]
macro_rules! on_both_servers {
    ($($name:ident),* $(,)?) => {
        mod mariadb {
            $(#[test] fn $name() { super::$name($crate::Kind::MariaDb) })*
        }
        mod mysql {
            $(#[test] fn $name() { super::$name($crate::Kind::MySql) })*
        }
    };
}

/// The program under test, which cargo has built beside the tests.
pub fn onionskin_program() -> PathBuf {
    build_folder().join("onionskin")
}

/// What outlives a test run: templates of data directories, tools that are made once.
pub fn lasting_folder() -> PathBuf {
    build_folder().with_file_name("tmp")
}

/// The folder of the profile: tests lie in its `deps`.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("this program's path");
    let folder = test.ancestors().nth(2).expect("a folder of the profile");
    folder.to_path_buf()
}

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("ONIONSKIN_CHECKOUT")
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            package
                .ancestors()
                .nth(2)
                .expect("the package lies in the workspace")
                .to_path_buf()
        })
}

/// A TCP port on 127.0.0.1 that is free, and that no other test of this machine is given while this
/// process lives.
///
/// Taken from below the range that the kernel uses for outgoing connections, so that no connection
/// of another test takes it before the server that it is meant for.
pub fn free_port() -> u16 {
    static PORTS: LazyLock<Range<u16>> = LazyLock::new(|| {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        below_outgoing(&range.unwrap_or_default())
    });
    // A server listens some time after its port was chosen. A name of a socket that no file stands
    // for keeps others from it meanwhile: test files run side by side, and a test that met another
    // one's server would take it for its own.
    static GIVEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    for _ in 0..1000 {
        let port = rand::random_range(PORTS.clone());
        let name = format!("onionskin-test-port-{port}");
        let name = SocketAddr::from_abstract_name(name).expect("a short name");
        let Ok(claim) = UnixListener::bind_addr(&name) else {
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            let mut given = GIVEN
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            given.push(claim);
            return port;
        }
    }
    panic!("no free TCP port of {:?}", *PORTS);
}

/// The ports that servers of tests get, by the kernel's range for outgoing connections.
fn below_outgoing(range: &str) -> Range<u16> {
    let first = range.split_whitespace().next().and_then(|n| n.parse().ok());
    match first.unwrap_or(32_768_u16) {
        // some kernels begin at 16000
        first @ 12_000..20_000 => 10_000..first,
        first => 15_000..first.clamp(20_000, 32_000),
    }
}

/// Whether somebody listens on a port of 127.0.0.1.
pub fn is_listening(port: u16) -> bool {
    // Where nobody does, and the kernel takes that very port for the outgoing end, a connection
    // meets itself.
    let is_other = |socket: TcpStream| match (socket.local_addr(), socket.peer_addr()) {
        (Ok(local), Ok(peer)) => local != peer,
        _ => false,
    };
    TcpStream::connect(("127.0.0.1", port)).is_ok_and(is_other)
}

/// Repeats `condition` until it holds; panics with `what` when it has not within `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal by name (`TERM`, `STOP`, …) to exactly one process.
pub fn signal(name: &str, pid: u32) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(
        status.is_ok_and(|s| s.success()),
        "kill -{name} {pid} failed"
    );
}

/// A command that is killed by the kernel when the test process dies, however that happens, so that
/// an interrupted test run leaves no servers behind. The command must be started from the test's
/// own thread: the kernel watches the thread, not the process.
pub fn tied_command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Whether `ONIONSKIN_TEST_LONG` asks for the long versions of the tests (`make nightly`).
pub fn long_run() -> bool {
    std::env::var_os("ONIONSKIN_TEST_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

/// Writes to the terminal even where the test runner captures output.
pub fn announce(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_servers_are_none_of_outgoing_connections() {
        assert_eq!(below_outgoing("32768\t60999\n"), 15_000..32_000);
        assert_eq!(below_outgoing("16000\t65535\n"), 10_000..16_000);
        assert_eq!(below_outgoing("1024 65535"), 15_000..20_000);
        assert_eq!(below_outgoing(""), 15_000..32_000);
    }

    #[test]
    fn nobody_listens_on_a_free_port() {
        let port = free_port();
        assert!(!is_listening(port));
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("it is free");
        assert!(is_listening(port));
        drop(listener);
    }
}
