//! A TCP relay that records every byte, to be put between the proxy and the server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The recording relay. Dropping it closes the listener; connections end with their peers.
pub struct Relay {
    port: u16,
    to_server: Arc<Mutex<Vec<u8>>>,
    to_client: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
}

impl Relay {
    /// Listens on a port of its own and forwards to `port` on 127.0.0.1.
    pub fn start(port: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let own_port = listener.local_addr().expect("its address").port();
        let relay = Relay {
            port: own_port,
            to_server: Arc::default(),
            to_client: Arc::default(),
            closing: Arc::default(),
        };
        let (to_server, to_client) = (relay.to_server.clone(), relay.to_client.clone());
        let closing = relay.closing.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if closing.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let _ = client.set_nodelay(true);
                let _ = server.set_nodelay(true);
                let back = (server.try_clone(), client.try_clone());
                if let (Ok(server), Ok(client)) = back {
                    let record = to_client.clone();
                    thread::spawn(move || forward(server, client, &record));
                }
                let record = to_server.clone();
                thread::spawn(move || forward(client, server, &record));
            }
        });
        relay
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Everything sent to the server so far, all connections in the order of arrival.
    pub fn sent_to_server(&self) -> Vec<u8> {
        self.to_server
            .lock()
            .expect("no thread panics with it")
            .clone()
    }

    /// Everything sent to the client so far.
    pub fn sent_to_client(&self) -> Vec<u8> {
        self.to_client
            .lock()
            .expect("no thread panics with it")
            .clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, record: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1 << 16];
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 {
            break;
        }
        record
            .lock()
            .expect("no thread panics with it")
            .extend_from_slice(&buffer[..n]);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
