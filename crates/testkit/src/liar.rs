//! A relay that lies: it stands in front of a real server and changes what that says, packet by
//! packet.
//!
//! Real answers, changed a little, reach deeper into a client than invented ones. Every field that
//! a server sends gets its turn: lengths, counts, flags, definitions, cells, status, numbers and
//! order of packets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// After a lie, a connection on which nothing moves for so long is closed: one side waits for what
/// will not come.
const STALEMATE: Duration = Duration::from_millis(300);

/// The lying relay.
pub struct Liar {
    port: u16,
    facts: Arc<Facts>,
}

struct Facts {
    /// One packet in so many is changed; 0 for none.
    one_in: AtomicU64,
    random: AtomicU64,
    /// How many lies were told.
    lies: AtomicU64,
    closing: AtomicBool,
    to_server: Mutex<Vec<u8>>,
}

impl Facts {
    /// SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
    fn random(&self) -> u64 {
        let mut z = self
            .random
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&self, bound: usize) -> usize {
        (self.random() % bound.max(1) as u64) as usize
    }
}

/// The two kinds of streams.
trait Stream: Read + Write + Send + Sized + 'static {
    fn copy(&self) -> Self;
    fn end(&self);
    fn patience(&self, limit: Option<Duration>);
}

impl Stream for TcpStream {
    fn copy(&self) -> Self {
        self.try_clone().expect("a second handle")
    }
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
    fn patience(&self, limit: Option<Duration>) {
        let _ = self.set_read_timeout(limit);
    }
}

impl Stream for UnixStream {
    fn copy(&self) -> Self {
        self.try_clone().expect("a second handle")
    }
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
    fn patience(&self, limit: Option<Duration>) {
        let _ = self.set_read_timeout(limit);
    }
}

impl Liar {
    fn new(seed: u64) -> Liar {
        Liar {
            port: 0,
            facts: Arc::new(Facts {
                one_in: AtomicU64::new(0),
                random: AtomicU64::new(seed),
                lies: AtomicU64::new(0),
                closing: AtomicBool::new(false),
                to_server: Mutex::default(),
            }),
        }
    }

    /// In front of a TCP port of 127.0.0.1. It says the truth until [`Liar::lie`].
    pub fn tcp(seed: u64, port: u16) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let mut liar = Liar::new(seed);
        liar.port = listener.local_addr().expect("its address").port();
        let facts = Arc::clone(&liar.facts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if facts.closing.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    let _ = (client.set_nodelay(true), server.set_nodelay(true));
                    relay(client, server, &facts);
                }
            }
        });
        liar
    }

    /// In front of a Unix socket, at another path.
    pub fn unix(seed: u64, at: &Path, socket: &Path) -> Liar {
        let listener = UnixListener::bind(at).expect("a listening socket");
        let liar = Liar::new(seed);
        let (facts, socket) = (Arc::clone(&liar.facts), socket.to_path_buf());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if facts.closing.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(server) = UnixStream::connect(&socket) {
                    relay(client, server, &facts);
                }
            }
        });
        liar
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Changes one packet in `one_in` from now on; 0 ends that.
    pub fn lie(&self, one_in: u64) {
        self.facts.one_in.store(one_in, Ordering::Relaxed);
    }

    /// How many packets were changed.
    pub fn lies(&self) -> u64 {
        self.facts.lies.load(Ordering::Relaxed)
    }

    /// Everything that was sent to the server.
    pub fn sent_to_server(&self) -> Vec<u8> {
        let bytes = self.facts.to_server.lock();
        bytes.expect("no thread panics with it").clone()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.facts.closing.store(true, Ordering::Relaxed);
        if self.port != 0 {
            let _ = TcpStream::connect(("127.0.0.1", self.port));
        }
    }
}

fn relay<S: Stream>(client: S, server: S, facts: &Arc<Facts>) {
    let (mut up_from, mut up_to) = (client.copy(), server.copy());
    let record = Arc::clone(facts);
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(n) = up_from.read(&mut buffer) {
            if n == 0 || up_to.write_all(&buffer[..n]).is_err() {
                break;
            }
            let bytes = record.to_server.lock();
            bytes
                .expect("no thread panics with it")
                .extend_from_slice(&buffer[..n]);
        }
        up_from.end();
        up_to.end();
    });
    let facts = Arc::clone(facts);
    thread::spawn(move || {
        let (mut server, mut client) = (server, client);
        lie_along(&mut server, &mut client, &facts);
        server.end();
        client.end();
    });
}

/// Relays packets until an end, changing some.
fn lie_along<S: Stream>(server: &mut S, client: &mut S, facts: &Facts) {
    let mut earlier: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut header = [0; 4];
        if server.read_exact(&mut header).is_err() {
            return;
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; length];
        if server.read_exact(&mut payload).is_err() {
            return;
        }
        let truth = [&header[..], &payload].concat();
        let one_in = facts.one_in.load(Ordering::Relaxed);
        let lies = one_in > 0 && facts.random().is_multiple_of(one_in);
        let said = match lies {
            false => truth.clone(),
            true => {
                facts.lies.fetch_add(1, Ordering::Relaxed);
                server.patience(Some(STALEMATE));
                lie_about(&truth, &earlier, facts)
            }
        };
        if client.write_all(&said).is_err() {
            return;
        }
        if earlier.len() >= 64 {
            earlier.remove(0);
        }
        earlier.push(truth);
    }
}

/// Packets in the place of one.
fn lie_about(truth: &[u8], earlier: &[Vec<u8>], facts: &Facts) -> Vec<u8> {
    let mut packet = truth.to_vec();
    let sequence = truth[3];
    let body = truth.len() - 4;
    let at = 4 + facts.below(body);
    let with_length = |mut packet: Vec<u8>| {
        let length = (packet.len() - 4) as u32;
        packet[..3].copy_from_slice(&length.to_le_bytes()[..3]);
        packet
    };
    let odd = [0x00, 0x01, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff];
    match facts.below(16) {
        // a bit
        0 | 1 if body > 0 => packet[at] ^= 1 << facts.below(8),
        // a byte that means something where lengths and heads are
        2 | 3 if body > 0 => packet[at] = odd[facts.below(odd.len())],
        4 if body > 0 => packet[4] = odd[facts.below(odd.len())],
        // a shorter payload, a longer one
        5 if body > 0 => {
            packet.truncate(at);
            return with_length(packet);
        }
        6 => {
            packet.extend((0..1 + facts.below(40)).map(|_| facts.random() as u8));
            return with_length(packet);
        }
        // nothing, twice, an earlier one
        7 => return Vec::new(),
        8 => return [truth, truth].concat(),
        9 if !earlier.is_empty() => {
            packet.clone_from(&earlier[facts.below(earlier.len())]);
            packet[3] = sequence;
        }
        10 if !earlier.is_empty() => {
            let mut other = earlier[facts.below(earlier.len())].clone();
            other[3] = sequence;
            packet[3] = sequence.wrapping_add(1);
            return [other, packet].concat();
        }
        // another number
        11 => packet[3] = packet[3].wrapping_add(1 + facts.below(255) as u8),
        // a length that does not fit
        12 => packet[facts.below(3)] = facts.random() as u8,
        // an OK, an EOF, an error
        13 => {
            let said: &[u8] = match facts.below(3) {
                0 => &[0x00, 0, 0, 2, 0, 0, 0],
                1 => &[0xfe, 0, 0, 2, 0],
                _ => b"\xff\x28\x04#42000a lie",
            };
            let mut own = vec![0, 0, 0, sequence];
            own.extend_from_slice(said);
            return match facts.below(2) {
                0 => with_length(own),
                _ => [with_length(own), packet].concat(),
            };
        }
        // status flags: more results, cursors, session state
        14 if body >= 5 => {
            let place = truth.len() - 2 - facts.below(4.min(body - 2));
            packet[place] ^= 1 << facts.below(8);
        }
        _ => {
            for _ in 0..4 {
                if body > 0 {
                    packet[4 + facts.below(body)] = facts.random() as u8;
                }
            }
        }
    }
    packet
}
