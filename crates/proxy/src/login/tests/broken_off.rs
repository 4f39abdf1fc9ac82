//! Logins that end early.

use super::*;

/// Wherever the client leaves, the server gets an answer that it refuses as a wrong password.
#[test]
fn a_client_that_leaves_after_a_switch_is_refused_and_not_broken_off() {
    for (plugin, expected) in [
        (MYSQL_NATIVE_PASSWORD, 20),
        ("client_ed25519", 64),
        (CACHING_SHA2_PASSWORD, 20),
        ("parsec", 20),
    ] {
        let played = play(
            (Open, Open),
            |client| {
                answer_greeting(client, &response(MYSQL_CLEAR_PASSWORD, b"x"));
                drop(get(client));
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch(plugin, SECOND));
                let got = get(server);
                put(server, DENIED);
                got
            },
        );
        assert_eq!(played.server, vec![0xff; expected], "{plugin}");
        assert!(matches!(played.login, Ok(None)));
    }
}

/// MariaDB counts an answer of another length as a broken greeting.
#[test]
fn an_answer_of_a_strange_length_does_not_reach_the_server() {
    for (plugin, length) in [(MYSQL_NATIVE_PASSWORD, 5), ("client_ed25519", 0)] {
        let played = play(
            (Open, Open),
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"12345"));
                get(client);
                put(client, &vec![b'x'; length]);
                get(client)
            },
            |server| {
                let first = greet(server, &greeting());
                assert!(first.auth_response.is_empty(), "withheld");
                put(server, &switch(plugin, SECOND));
                let got = get(server);
                put(server, DENIED);
                got
            },
        );
        assert!(played.server.iter().all(|byte| *byte == 0xff), "{plugin}");
        assert_eq!(code(&played.client), errors::MALFORMED.number);
    }
}

/// Each byte comes in time for a limit that begins anew with each.
#[test]
fn a_client_that_drips_its_login_is_not_waited_for() {
    let (mut near, far) = client_pair(Open);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap().to_string().parse().unwrap();
    let whole = Duration::from_millis(600);
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let socket = listener.accept().unwrap().0;
            let mut server = Connection::new(Transport::Tcp(socket));
            let mut payload = Vec::new();
            greeting().encode(&mut payload).unwrap();
            put(&mut server, &payload);
            refuse_nobody(&mut server);
        });
        scope.spawn(move || {
            get(&mut near);
            let socket = near.transport().try_clone_socket().unwrap();
            let mut socket = Transport::from(socket);
            for byte in [&[200, 0, 0, 1][..], &[b'x'; 60]].concat() {
                thread::sleep(Duration::from_millis(50));
                if std::io::Write::write_all(&mut socket, &[byte]).is_err() {
                    return;
                }
            }
        });
        let begin = Instant::now();
        let timing = Timing {
            whole: begin + whole,
            pace: None,
        };
        let settings = Arc::new(settings(backend));
        let done = login(far, FROM, 1, &|| settings.clone(), &|_, _| Ok(()), &timing);
        assert!(matches!(done, Err(LoginError::Client(e)) if e.is_timeout()));
        assert!(begin.elapsed() >= whole);
        server.join().unwrap();
    });
}

#[test]
fn a_name_that_is_not_found_in_time_ends_the_login() {
    let begin = Instant::now();
    let slow = || {
        thread::sleep(Duration::from_secs(20));
        Ok(())
    };
    let error = within(Duration::from_millis(50), slow).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(within(Duration::from_secs(20), || Ok(7)).unwrap(), 7);
}
