//! How long it takes from the kill of a primary, whose replica is promoted at once, to the first
//! write that succeeds: through the proxy, and through HAProxy with a script that asks for
//! `read_only`, as it is often set up. Both are measured at the same kill.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

/// HAProxy before servers, with a check every second. Dropping it ends it.
struct Balancer {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Balancer {
    fn start(servers: &[Server]) -> Balancer {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("check.sh");
        let text = "#!/bin/sh\n[ \"$(mariadb --skip-ssl -h \"$3\" -P \"$4\" -uwatch '-pwatch secret' -N -e 'SELECT @@read_only' 2>/dev/null)\" = 0 ]\n";
        fs::write(&script, text).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
        let port = free_port();
        let mut config = format!(
            "global\n  external-check\n  insecure-fork-wanted\ndefaults\n  mode tcp\n  timeout connect 3s\n  timeout client 60s\n  timeout server 60s\n\
             listen db\n  bind 127.0.0.1:{port}\n  option external-check\n  external-check path \"/usr/bin:/bin\"\n  external-check command {}\n  \
             default-server inter 1s fall 1 rise 1 on-marked-down shutdown-sessions\n",
            script.display()
        );
        for (number, server) in servers.iter().enumerate() {
            config += &format!("  server s{number} 127.0.0.1:{} check\n", server.port());
        }
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, config).expect("written");
        let mut command = tied_command("haproxy");
        command.arg("-db").arg("-f").arg(&file);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Balancer {
            child: child.expect("haproxy starts"),
            port,
            _folder: folder,
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes again and again, and connects anew after each error. Notes when it last succeeded.
fn write(port: u16, table: &str, begin: Instant, written: &AtomicU64, over: &AtomicBool) {
    let mut session: Option<Session> = None;
    while !over.load(Ordering::SeqCst) {
        let done = match session.as_mut() {
            None => {
                session = Session::try_open(port, APP, PASSWORD, Some("bank")).ok();
                false
            }
            Some(open) => {
                let sql = format!("UPDATE {table} SET amount = amount + 1 WHERE id = 1");
                let done = open.run(&sql).is_ok();
                if !done {
                    session = None;
                }
                done
            }
        };
        if done {
            written.store(begin.elapsed().as_micros() as u64, Ordering::SeqCst);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn times_from_a_kill_to_a_write() {
    if !long_run() {
        return announce(
            "times_from_a_kill_to_a_write ... skipped: ONIONSKIN_TEST_LONG is not set",
        );
    }
    let mut times: [Vec<u64>; 2] = Default::default();
    for round in 0..8 {
        let Some(mut members) = Members::start(Kind::MariaDb, 2, "", "") else {
            return;
        };
        members.table();
        let mut root = members.servers[0].connect();
        root.must("CREATE TABLE bank.plain (id INT PRIMARY KEY, amount INT)");
        root.must("INSERT INTO bank.plain VALUES (1, 0)");
        members.wait_for_replicas(0);
        let balancer = Balancer::start(&members.servers);
        let port = balancer.port;
        wait_until("HAProxy leads to the primary", SOON, || {
            Session::try_open(port, APP, PASSWORD, Some("bank")).is_ok()
        });
        let begin = Instant::now();
        let written = [AtomicU64::new(0), AtomicU64::new(0)];
        let over = AtomicBool::new(false);
        let ways = [(members.proxy.port(), "account"), (port, "plain")];
        let child = members.servers[0].pid();
        thread::scope(|scope| {
            for ((port, table), written) in ways.iter().zip(&written) {
                let over = &over;
                scope.spawn(move || write(*port, table, begin, written, over));
            }
            wait_until("writes are made", SOON, || {
                written.iter().all(|w| w.load(Ordering::SeqCst) > 2_000_000)
            });
            // at any moment between two checks of either
            thread::sleep(Duration::from_millis(round * 230));
            signal("KILL", child);
            let killed = begin.elapsed().as_micros() as u64;
            promote(&members.servers[1]);
            thread::sleep(Duration::from_millis(5));
            for (written, times) in written.iter().zip(&mut times) {
                let until = Instant::now() + SOON;
                // what was under way at the kill
                let settled = killed + 20_000;
                while written.load(Ordering::SeqCst) < settled && Instant::now() < until {
                    thread::sleep(Duration::from_millis(1));
                }
                times.push((written.load(Ordering::SeqCst) - killed) / 1000);
            }
            over.store(true, Ordering::SeqCst);
        });
        members.servers[0].kill9();
    }
    let [proxy, balancer] = times;
    announce(&format!(
        "milliseconds from kill -9 to a write: through the proxy {proxy:?}, through HAProxy {balancer:?}"
    ));
}
