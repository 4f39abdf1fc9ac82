//! A relay in front of a server that says something else where a test wants it to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What becomes of a packet of the server's: the packets in its place. It is given the payload of
/// the client's last command, how many packets of the answer came before, and the packet's payload.
type Hook = dyn Fn(&[u8], usize, &[u8]) -> Vec<Vec<u8>> + Send + Sync;

/// Relays connections to a port on 127.0.0.1, packet by packet, without TLS.
pub struct Meddler {
    port: u16,
    asked: Arc<Mutex<Vec<u8>>>,
}

impl Meddler {
    /// In front of this port.
    pub fn to(
        port: u16,
        hook: impl Fn(&[u8], usize, &[u8]) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) -> Meddler {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let own = listener.local_addr().expect("its address").port();
        let asked = Arc::<Mutex<Vec<u8>>>::default();
        let (hook, all): (Arc<Hook>, _) = (Arc::new(hook), Arc::clone(&asked));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    join(client, server, &hook, &all);
                }
            }
        });
        Meddler { port: own, asked }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Whether the server's side was sent this text, in any packet.
    pub fn was_sent(&self, text: &str) -> bool {
        let all = self.asked.lock().expect("no panic while it is held");
        all.windows(text.len()).any(|part| part == text.as_bytes())
    }
}

fn join(client: TcpStream, server: TcpStream, hook: &Arc<Hook>, all: &Arc<Mutex<Vec<u8>>>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    // the last command, and the packets of its answer
    let last = Arc::<Mutex<(Vec<u8>, usize)>>::default();
    let (hook, all, asked) = (Arc::clone(hook), Arc::clone(all), Arc::clone(&last));
    thread::spawn(move || {
        let ask = |mut from: TcpStream, mut to: TcpStream| -> io::Result<()> {
            loop {
                let (sequence, payload) = read(&mut from)?;
                all.lock()
                    .expect("no panic while it is held")
                    .extend_from_slice(&payload);
                if sequence == 0 {
                    *asked.lock().expect("no panic while it is held") = (payload.clone(), 0);
                }
                write(&mut to, sequence, &payload)?;
            }
        };
        let ends = [from_client.try_clone(), server.try_clone()];
        let _ = ask(from_client, server);
        end(ends);
    });
    thread::spawn(move || {
        let answer = |mut from: TcpStream, mut to: TcpStream| -> io::Result<()> {
            loop {
                let (sequence, payload) = read(&mut from)?;
                let instead = {
                    let mut last = last.lock().expect("no panic while it is held");
                    last.1 += 1;
                    hook(&last.0, last.1 - 1, &payload)
                };
                for (sequence, payload) in (sequence..).zip(&instead) {
                    write(&mut to, sequence, payload)?;
                }
            }
        };
        let ends = [from_server.try_clone(), client.try_clone()];
        let _ = answer(from_server, client);
        end(ends);
    });
}

fn end(both: [io::Result<TcpStream>; 2]) {
    for stream in both.into_iter().flatten() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn read(from: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
    let mut payload = vec![0; length as usize];
    from.read_exact(&mut payload)?;
    Ok((head[3], payload))
}

fn write(to: &mut TcpStream, sequence: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).expect("a packet");
    let [a, b, c, _] = length.to_le_bytes();
    to.write_all(&[&[a, b, c, sequence], payload].concat())
}
