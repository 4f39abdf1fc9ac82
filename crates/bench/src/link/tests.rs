//! Links between real sockets.

use std::{net::SocketAddr, time::Instant};

use rand::RngExt;

use super::*;

/// A server that says what it hears until it hears the end.
pub(crate) fn echo_server() -> u16 {
    server(|mut socket| {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = socket.read(&mut buffer) {
            if socket.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
    })
}

fn server(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> u16 {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let _ = socket.set_nodelay(true);
            let serve = serve.clone();
            thread::spawn(move || serve(socket));
        }
    });
    port
}

fn link(port: u16, one_way_ms: u64) -> Link {
    let link = Link::to("127.0.0.1", port).expect("a link");
    link.set_one_way(Duration::from_millis(one_way_ms));
    link
}

fn connect(link: &Link) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", link.port())).expect("connected");
    socket.set_nodelay(true).expect("no delay");
    let patience = Some(Duration::from_secs(30));
    socket.set_read_timeout(patience).expect("a limit");
    socket
}

fn read_all(mut socket: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).expect("read to the end");
    bytes
}

fn noise(length: usize) -> Vec<u8> {
    let mut rng = rand::rng();
    (0..length).map(|_| rng.random()).collect()
}

#[test]
fn each_direction_takes_half_of_the_round_trip() {
    let link = link(echo_server(), 4);
    let mut socket = connect(&link);
    let mut quickest = Duration::MAX;
    for _ in 0..20 {
        let begin = Instant::now();
        socket.write_all(b"a").expect("written");
        socket.read_exact(&mut [0]).expect("answered");
        let taken = begin.elapsed();
        // It aims at the moment, so that some are a little early.
        assert!(taken >= Duration::from_micros(7_500), "{taken:?}");
        quickest = quickest.min(taken);
    }
    // A busy machine makes some of them slow, not all.
    assert!(quickest < Duration::from_millis(10), "{quickest:?}");

    // One direction alone: the server writes when it has heard something.
    let (heard, when) = mpsc::channel();
    let port = server(move |mut socket| {
        let _ = socket.read(&mut [0; 9]);
        let _ = heard.send(Instant::now());
    });
    let link = super::tests::link(port, 30);
    let mut socket = connect(&link);
    let begin = Instant::now();
    socket.write_all(b"a").expect("written");
    let taken = when.recv().expect("heard") - begin;
    let expected = Duration::from_micros(29_700)..Duration::from_millis(60);
    assert!(expected.contains(&taken), "{taken:?}");
}

#[test]
fn without_a_delay_it_is_a_relay() {
    let link = link(echo_server(), 0);
    let mut socket = connect(&link);
    let mut quickest = Duration::MAX;
    for _ in 0..50 {
        let begin = Instant::now();
        socket.write_all(b"a").expect("written");
        socket.read_exact(&mut [0]).expect("answered");
        quickest = quickest.min(begin.elapsed());
    }
    assert!(quickest < Duration::from_millis(1), "{quickest:?}");
}

#[test]
fn many_connections_keep_their_order() {
    let link = link(echo_server(), 2);
    let clients: Vec<_> = (0..48)
        .map(|_| {
            let mut socket = connect(&link);
            thread::spawn(move || {
                let sent: Vec<Vec<u8>> = (0..150)
                    .map(|_| noise(rand::rng().random_range(1..3000)))
                    .collect();
                let hearing = socket.try_clone().expect("a socket");
                let heard = thread::spawn(move || read_all(&hearing));
                for piece in &sent {
                    socket.write_all(piece).expect("written");
                    if rand::rng().random_range(0..8) == 0 {
                        thread::sleep(Duration::from_micros(700));
                    }
                }
                socket.shutdown(Shutdown::Write).expect("the end");
                assert!(heard.join().expect("heard") == sent.concat());
            })
        })
        .collect();
    for client in clients {
        client.join().expect("in order");
    }
}

#[test]
fn a_change_of_the_delay_overtakes_nothing() {
    let link = link(echo_server(), 60);
    let mut socket = connect(&link);
    let begin = Instant::now();
    socket.write_all(b"slow ").expect("written");
    // The relay must have read it.
    while link.counted().trips == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    link.set_one_way(Duration::ZERO);
    socket.write_all(b"quick").expect("written");
    let mut heard = [0; 10];
    socket.read_exact(&mut heard).expect("answered");
    assert_eq!(&heard, b"slow quick");
    assert!(begin.elapsed() >= Duration::from_millis(59));
}

#[test]
fn half_closed_connections_stay_half_open() {
    let port = server(|mut socket| {
        let heard = read_all(&socket);
        thread::sleep(Duration::from_millis(20));
        let answer = format!("{} bytes", heard.len());
        let _ = socket.write_all(answer.as_bytes());
    });
    let link = link(port, 5);
    let mut socket = connect(&link);
    let begin = Instant::now();
    socket.write_all(&[7; 1000]).expect("written");
    socket.shutdown(Shutdown::Write).expect("the end");
    assert_eq!(read_all(&socket), b"1000 bytes");
    assert!(begin.elapsed() >= Duration::from_millis(29));
}

#[test]
fn an_end_follows_the_last_bytes() {
    // Whoever sees the server go must have seen what it said.
    let port = server(|mut socket| {
        let _ = socket.write_all(b"bye");
    });
    let link = link(port, 20);
    assert_eq!(read_all(&connect(&link)), b"bye");
    // Nobody listens there any more: the connection ends, the relay stays.
    let gone = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = gone.local_addr().expect("its address").port();
    drop(gone);
    let link = super::tests::link(port, 1);
    for _ in 0..3 {
        assert_eq!(read_all(&connect(&link)), b"");
    }
}

/// 48 MiB both ways. One piece a round trip would take 15 s, and what a socket buffers 5.
#[test]
fn big_packets_know_no_bandwidth() {
    let link = link(echo_server(), 40);
    let mut socket = connect(&link);
    let sent = noise(48 << 20);
    let hearing = socket.try_clone().expect("a socket");
    let begin = Instant::now();
    let heard = thread::spawn(move || read_all(&hearing));
    socket.write_all(&sent).expect("written");
    socket.shutdown(Shutdown::Write).expect("the end");
    assert!(heard.join().expect("heard") == sent);
    let taken = begin.elapsed();
    assert!(taken < Duration::from_secs(4), "{taken:?}");
}

#[test]
fn a_receiver_that_does_not_keep_up_holds_the_sender() {
    let (go, gone) = mpsc::channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let port = server(move |socket| {
        let _ = gone.lock().expect("no thread panics").recv();
        let heard = read_all(&socket);
        let sum = heard.iter().fold(0_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add((*byte).into())
        });
        let _ = (&socket).write_all(&sum.to_be_bytes());
    });
    let link = link(port, 1);
    let mut socket = connect(&link);
    let short = Some(Duration::from_millis(500));
    socket.set_write_timeout(short).expect("a limit");
    let piece = noise(1 << 20);
    let mut sent = Vec::new();
    while let Ok(written @ 1..) = socket.write(&piece) {
        sent.extend_from_slice(&piece[..written]);
        assert!(sent.len() < 2 * ON_ITS_WAY, "nothing holds the sender");
    }
    assert!(sent.len() > ON_ITS_WAY, "{}", sent.len());
    go.send(()).expect("the server waits");
    socket.shutdown(Shutdown::Write).expect("the end");
    let sum = sent.iter().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add((*byte).into())
    });
    assert_eq!(read_all(&socket), sum.to_be_bytes());
}

#[test]
fn questions_that_are_asked_together_are_one_round_trip() {
    let link = link(echo_server(), 10);
    let mut socket = connect(&link);
    for _ in 0..3 {
        socket.write_all(b"ab").expect("written");
        thread::sleep(Duration::from_millis(2));
        socket.write_all(b"c").expect("written");
        socket.read_exact(&mut [0; 3]).expect("answered");
    }
    let counted = link.counted();
    assert_eq!(counted.trips, 3);
    assert!(counted.pieces >= 6, "{counted:?}");
    assert!(counted.off_seconds / (counted.pieces as f64) < 5e-3);
}

#[test]
fn an_idle_link_uses_no_processor() {
    let link = link(echo_server(), 10);
    let _sockets: Vec<_> = (0..64).map(|_| connect(&link)).collect();
    thread::sleep(Duration::from_millis(100));
    let before = link.counted().cpu_seconds;
    thread::sleep(Duration::from_millis(300));
    let after = link.counted().cpu_seconds;
    // The kernel may not tell.
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after - before < 0.01, "{before} {after}");
    }
}
