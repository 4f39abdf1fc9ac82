//! A relay that understands every packet and changes none but the greeting: the smallest program on
//! this crate.
//!
//! ```text
//! cargo run -p onionskin-wire --example relay -- 127.0.0.1:3307 127.0.0.1:3306 [trace]
//! mariadb -h 127.0.0.1 -P 3307 ...
//! ```
//!
//! The server may also be `unix:/path`. With `trace`, every packet to and from the server is shown
//! as one line.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;

use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, Command, HandshakeResponse41, InitialHandshake,
};
use onionskin_wire::response::relay_rows;
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{
    Capabilities, Connection, MariaDbCapabilities, ResponseTracker, Step, Transport, WireError,
    WireResult,
};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(listen), Some(backend)) = (args.next(), args.next()) else {
        eprintln!("usage: relay LISTEN BACKEND [trace]");
        std::process::exit(2);
    };
    let trace = args.next().is_some();
    for (id, stream) in TcpListener::bind(listen)?.incoming().enumerate() {
        let (stream, backend) = (stream?, backend.clone());
        thread::spawn(move || match session(id, stream, &backend, trace) {
            Ok(()) | Err(WireError::Closed) => {}
            Err(e) => eprintln!("session {id}: {e}"),
        });
    }
    Ok(())
}

fn session(id: usize, client: TcpStream, backend: &str, trace: bool) -> WireResult<()> {
    let mut client = Connection::new(Transport::tcp(client)?);
    let mut server = Connection::new(match backend.strip_prefix("unix:") {
        Some(path) => Transport::Unix(UnixStream::connect(path)?),
        None => Transport::tcp(TcpStream::connect(backend)?)?,
    });
    if trace {
        let sink = Box::new(|line: &str| println!("{line}"));
        let tracer = Tracer::new(format!("server {id}"), Peer::Server, sink);
        server.set_tracer(Some(tracer));
    }
    let Some(capabilities) = login(&mut client, &mut server)? else {
        return Ok(());
    };
    let mut tracker = ResponseTracker::new(capabilities);
    loop {
        client.shrink_idle();
        server.shrink_idle();
        let command = Command::of(client.read_command()?)?;
        server.reset_sequence();
        server.write_payload(client.last_payload())?;
        server.flush()?;
        match command {
            Command::Quit => return Ok(()),
            Command::ChangeUser => {
                login_answers(&mut client, &mut server)?;
            }
            _ => {
                tracker.begin(command)?;
                response(&mut client, &mut server, &mut tracker)?;
            }
        }
    }
}

/// Relays the login; the capabilities it ends with, or `None` when the server refused it.
fn login(client: &mut Connection, server: &mut Connection) -> WireResult<Option<Capabilities>> {
    let payload = server.read_payload()?;
    if !InitialHandshake::is_handshake(payload) {
        client.write_payload(payload)?;
        client.flush()?;
        return Ok(None);
    }
    let mut greeting = InitialHandshake::decode(payload)?;
    greeting.capabilities &= Capabilities::SUPPORTED - Capabilities::SSL;
    greeting.mariadb_capabilities &= MariaDbCapabilities::SUPPORTED;
    greeting.encode(client.begin_payload())?;
    client.end_payload()?;
    client.flush()?;
    let mut login = HandshakeResponse41::decode(client.read_payload()?)?;
    // MySQL's client asks for query attributes whether they were offered or not, and the server
    // would believe it.
    login.capabilities &= greeting.capabilities;
    login.mariadb_capabilities &= greeting.mariadb_capabilities;
    login.encode(server.begin_payload())?;
    server.end_payload()?;
    server.flush()?;
    let logged_in = login_answers(client, server)?;
    Ok(logged_in.then_some(login.capabilities))
}

/// Relays what follows a login or COM_CHANGE_USER, up to OK or an error.
fn login_answers(client: &mut Connection, server: &mut Connection) -> WireResult<bool> {
    loop {
        server.relay_payload(client)?;
        client.flush()?;
        match server.last_payload() {
            [0x00, ..] => return Ok(true),
            [AuthMoreData::HEADER, data @ ..] if data == AuthMoreData::FAST_AUTH_OK => continue,
            [AuthMoreData::HEADER | AuthSwitchRequest::HEADER, ..] => {}
            _ => return Ok(false),
        }
        client.relay_payload(server)?;
        server.flush()?;
    }
}

/// Relays the answer to one command.
fn response(
    client: &mut Connection,
    server: &mut Connection,
    tracker: &mut ResponseTracker,
) -> WireResult<()> {
    while !tracker.is_complete() {
        let step = relay_rows(tracker, server, client)?;
        client.write_payload(server.last_payload())?;
        if step == Step::LocalInfileRequest {
            client.flush()?;
            loop {
                client.relay_payload(server)?;
                if client.last_payload().is_empty() {
                    break;
                }
            }
            server.flush()?;
        }
    }
    client.flush()
}
