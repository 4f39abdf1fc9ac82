//! What waiting for one's own writes costs, over loopback and with half a millisecond more for each
//! packet. Nightly.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;

const ROUNDS: u32 = 2000;

/// Microseconds of the median.
fn median(mut all: Vec<Duration>) -> u128 {
    all.sort();
    all[all.len() / 2].as_micros()
}

/// A port that leads to a server, and is this far from it.
fn far(port: u16, one_way: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let own = listener.local_addr().expect("its address").port();
    let pass = move |mut from: TcpStream, mut to: TcpStream| {
        let mut bytes = [0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            thread::sleep(one_way);
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                continue;
            };
            for socket in [&client, &server] {
                socket.set_nodelay(true).expect("set");
            }
            let second = |socket: &TcpStream| socket.try_clone().expect("a handle");
            let (other_client, other_server) = (second(&client), second(&server));
            thread::spawn(move || pass(client, server));
            thread::spawn(move || pass(other_server, other_client));
        }
    });
    own
}

pub fn what_waiting_costs(kind: Kind) {
    if !long_run() {
        return announce("what_waiting_costs ... skipped: ONIONSKIN_TEST_LONG is not set");
    }
    let plain = "max_lag_seconds = 60";
    let causal = "causal_seconds = 5\nmax_lag_seconds = 60";
    for (name, reads, is_far) in [
        ("no", plain, false),
        ("yes", causal, false),
        ("no, 0.5 ms", plain, true),
        ("yes, 0.5 ms", causal, true),
    ] {
        let Some(members) = Members::reading(kind, 2, reads) else {
            return;
        };
        members.table();
        if is_far {
            for (cable, server) in members.cables.iter().zip(&members.servers) {
                cable.lead_to(far(server.port(), Duration::from_micros(500)));
            }
            thread::sleep(Duration::from_secs(2));
        }
        let mut writer = members.app_soon();
        let mut reader = members.reader_soon_at(&[1]);
        let sql = "SELECT amount FROM account WHERE id = 1";
        let timed = |session: &mut Session, sql: &str| {
            let begin = Instant::now();
            session.must(sql);
            begin.elapsed()
        };
        let (mut writes, mut quiet, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            quiet.push(timed(&mut reader, sql));
        }
        for round in 0..ROUNDS {
            let update = format!("UPDATE account SET amount = {round} WHERE id = 1");
            writes.push(timed(&mut writer, &update));
            after.push(timed(&mut reader, sql));
        }
        announce(&format!(
            "{kind:?}, causal {name}: microseconds of a read {}, of a read behind a write {}, of a write {}",
            median(quiet),
            median(after),
            median(writes),
        ));
    }
}
