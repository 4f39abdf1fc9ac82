//! A TCP relay that is cut, mended and frozen, or that cuts itself where a certain statement comes
//! by.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Forwards connections to a port on 127.0.0.1 until it is cut. Dropping it cuts it.
pub struct Cable {
    port: u16,
    inside: Arc<Inside>,
}

#[derive(Default)]
struct Inside {
    /// Where new connections lead.
    server: AtomicU16,
    ends: Mutex<Vec<TcpStream>>,
    trap: Mutex<Option<Trap>>,
    is_cut: AtomicBool,
    is_frozen: AtomicBool,
    is_over: AtomicBool,
}

/// Where a cable cuts or freezes itself.
struct Trap {
    text: Vec<u8>,
    /// How often the text must come by.
    times: u32,
    when: When,
    freezes: bool,
}

/// On which side of a statement a cable is cut or freezes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// The server does not get it.
    Before,
    /// The server gets it, and nobody gets the answer.
    After,
}

impl Cable {
    /// A cable to a server.
    pub fn to(port: u16) -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let own = listener.local_addr().expect("its address").port();
        let inside = Arc::<Inside>::default();
        inside.server.store(port, Ordering::SeqCst);
        let shared = Arc::clone(&inside);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                if shared.is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let port = shared.server.load(Ordering::SeqCst);
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                shared.join(client, server);
            }
        });
        Cable { port: own, inside }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends all connections, and those that come.
    pub fn cut(&self) {
        self.inside.cut();
    }

    /// Ends all connections. New ones lead to another server.
    pub fn lead_to(&self, port: u16) {
        self.cut();
        self.inside.server.store(port, Ordering::SeqCst);
        self.mend();
    }

    /// New connections are made again.
    pub fn mend(&self) {
        self.inside.is_cut.store(false, Ordering::SeqCst);
    }

    /// Holds all bytes back, without a word to either side.
    pub fn freeze(&self, frozen: bool) {
        self.inside.is_frozen.store(frozen, Ordering::SeqCst);
    }

    /// Cuts the cable where a statement with this text comes by for the `times`th time.
    pub fn cut_at(&self, text: &str, times: u32, when: When) {
        self.set(text, times, when, false);
    }

    /// The same, but all bytes are held back from there on, so that whoever said it can be killed
    /// at that moment.
    pub fn freeze_at(&self, text: &str, times: u32, when: When) {
        self.set(text, times, when, true);
    }

    fn set(&self, text: &str, times: u32, when: When, freezes: bool) {
        *self.inside.trap.lock().expect("no thread panics with it") = Some(Trap {
            text: text.into(),
            times,
            when,
            freezes,
        });
    }

    /// Whether all bytes are held back.
    pub fn is_frozen(&self) -> bool {
        self.inside.is_frozen.load(Ordering::SeqCst)
    }

    /// Whether it was cut.
    pub fn is_cut(&self) -> bool {
        self.inside.is_cut.load(Ordering::SeqCst)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.inside.is_over.store(true, Ordering::SeqCst);
        self.inside.cut();
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Inside {
    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        let mut ends = self.ends.lock().expect("no thread panics with it");
        for end in ends.drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let copy = |socket: &TcpStream| socket.try_clone().expect("a socket");
        for (from, to, is_request) in [(&client, &server, true), (&server, &client, false)] {
            let (from, to, inside) = (copy(from), copy(to), Arc::clone(self));
            thread::spawn(move || inside.forward(from, to, is_request));
        }
        self.ends
            .lock()
            .expect("no thread panics with it")
            .extend([client, server]);
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream, is_request: bool) {
        let mut buffer = [0; 1 << 14];
        // What came before, as far as a text may begin there.
        let mut seen = Vec::new();
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            self.wait_while_frozen();
            let sprung = match is_request {
                true => self.springs(&mut seen, &buffer[..n]),
                false => None,
            };
            let (sprung, freezes) = sprung.unzip();
            if freezes == Some(true) {
                self.is_frozen.store(true, Ordering::SeqCst);
                if sprung == Some(When::Before) {
                    self.wait_while_frozen();
                }
            } else if sprung == Some(When::Before) {
                self.cut();
                break;
            }
            if sprung == Some(When::After) && freezes == Some(false) {
                // In this order: a server that is fast would answer before the cut.
                self.is_cut.store(true, Ordering::SeqCst);
                let _ = to.write_all(&buffer[..n]);
                self.cut();
                break;
            }
            // Where another connection has cut the cable, nothing passes any more.
            if self.is_cut.load(Ordering::SeqCst) || to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    fn wait_while_frozen(&self) {
        while self.is_frozen.load(Ordering::SeqCst) && !self.is_cut.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the trap springs at these bytes: on which side of them, and whether it freezes.
    fn springs(&self, seen: &mut Vec<u8>, bytes: &[u8]) -> Option<(When, bool)> {
        let mut trap = self.trap.lock().expect("no thread panics with it");
        let set = trap.as_mut()?;
        seen.extend_from_slice(bytes);
        let length = set.text.len();
        let found = seen.windows(length).filter(|window| *window == set.text);
        let found = found.count() as u32;
        let keep = match found {
            0 => length - 1,
            // Found ones are not to be counted again.
            _ => 0,
        };
        seen.drain(..seen.len() - keep.min(seen.len()));
        set.times = set.times.saturating_sub(found);
        if set.times > 0 || found == 0 {
            return None;
        }
        trap.take().map(|trap| (trap.when, trap.freezes))
    }
}
