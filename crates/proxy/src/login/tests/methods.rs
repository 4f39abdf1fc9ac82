//! The login methods.

use super::*;

#[test]
fn the_servers_refusal_is_passed_on_with_the_right_number() {
    let error = b"\xff\x15\x04#28000Access denied";
    let played = play(
        (Open, Open),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"wrong"));
            assert_eq!(get(client), switch(CACHING_SHA2_PASSWORD, SECOND));
            put(client, b"wrong again");
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &switch(CACHING_SHA2_PASSWORD, SECOND));
            assert_eq!(get(server), b"wrong again");
            put(server, error);
        },
    );
    assert!(played.login.unwrap().is_none());
    assert_eq!(played.client, error);
}

/// Full authentication of `caching_sha2_password` as clients and servers do it on a leg of their
/// own.
fn full_authentication(legs: (Leg, Leg)) {
    let server_key = password_key().unwrap();
    let played = play_with(
        pinned(),
        legs,
        |client| {
            let answer = caching_sha2_password(PASSWORD, SCRAMBLE);
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &answer));
            assert_eq!(get(client), [1, 4]);
            if legs.0 == Secure {
                put(client, &cleartext_password(PASSWORD));
            } else {
                put(client, AuthMoreData::REQUEST_PUBLIC_KEY);
                let key = get(client);
                put(
                    client,
                    &encrypt_password(PASSWORD, SCRAMBLE, &key[1..]).unwrap(),
                );
            }
        },
        |server| {
            let response = greet(server, &greeting());
            assert_eq!(
                response.auth_response,
                caching_sha2_password(PASSWORD, SCRAMBLE)
            );
            put(server, &[1, 4]);
            let password = if legs.1 == Secure {
                get(server)
            } else {
                if legs.0 == Open {
                    assert_eq!(get(server), AuthMoreData::REQUEST_PUBLIC_KEY);
                    let key = [&[1], server_key.public_pem().as_bytes()].concat();
                    put(server, &key);
                }
                let encrypted = get(server);
                assert!(!contains(&encrypted, PASSWORD));
                cleartext_password(&server_key.decrypt_password(&encrypted, SCRAMBLE).unwrap())
            };
            put(server, &ok());
            password
        },
    );
    assert_eq!(played.server, cleartext_password(PASSWORD), "{legs:?}");
    assert!(played.login.unwrap().is_some(), "{legs:?}");
}

#[test]
fn a_password_arrives_over_every_pair_of_legs() {
    for legs in [
        (Secure, Secure),
        (Secure, Open),
        (Open, Secure),
        (Open, Open),
    ] {
        full_authentication(legs);
    }
}

#[test]
fn a_password_under_another_key_is_refused_and_goes_nowhere() {
    let played = play(
        (Open, Secure),
        |client| {
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &[7; 32]));
            get(client);
            put(client, &[9; 256]);
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
            assert_eq!(get(server), [0], "no password, so that the server refuses");
            put(server, DENIED);
            assert!(server.read_payload().is_err());
        },
    );
    assert!(matches!(
        played.login,
        Err(LoginError::Refused(FOREIGN_KEY))
    ));
    assert_eq!(code(&played.client), 1251);
}

#[test]
fn a_password_in_the_first_answer_is_withheld() {
    for plugin in [MYSQL_CLEAR_PASSWORD, "sha256_password", "dialog"] {
        let played = play(
            (Secure, Open),
            |client| {
                answer_greeting(client, &response(plugin, &cleartext_password(PASSWORD)));
                get(client);
                put(client, b"twenty bytes or so..");
            },
            |server| {
                let first = greet(server, &greeting());
                put(server, &switch(MYSQL_NATIVE_PASSWORD, SECOND));
                assert_eq!(get(server), b"twenty bytes or so..");
                put(server, &ok());
                first
            },
        );
        assert!(played.server.auth_response.is_empty(), "{plugin}");
        assert_ne!(played.server.auth_plugin, Some(plugin.into()));
        assert!(played.login.unwrap().is_some());
    }
}

#[test]
fn a_clear_password_needs_two_secure_legs() {
    for legs in [
        (Secure, Open),
        (Open, Secure),
        (Open, Open),
        (Secure, Secure),
    ] {
        let secure = legs == (Secure, Secure);
        let answer = ok();
        let played = play(
            legs,
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
                let asked = get(client);
                if secure {
                    put(client, &cleartext_password(PASSWORD));
                }
                asked
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch(MYSQL_CLEAR_PASSWORD, b""));
                let got = get(server);
                put(server, if secure { &answer } else { DENIED });
                got
            },
        );
        if secure {
            assert_eq!(played.server, cleartext_password(PASSWORD));
            assert!(played.login.unwrap().is_some());
        } else {
            assert_eq!(played.server, b"\xff\0", "{legs:?}");
            assert_eq!(code(&played.client), 1251, "the client is not even asked");
            assert!(played.login.is_err());
        }
    }
}

#[test]
fn an_unknown_method_is_passed_on_between_legs_alike() {
    let played = play(
        (Open, Open),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
            assert_eq!(get(client), switch("dialog", b"\x04One?"));
            put(client, b"first");
            put(client, b"without being asked");
            assert_eq!(get(client), b"\x05Two?");
            put(client, b"second");
            assert_eq!(get(client), b"\x02no answer to this");
        },
        |server| {
            greet(server, &greeting());
            put(server, &switch("dialog", b"\x04One?"));
            assert_eq!(get(server), b"first");
            assert_eq!(get(server), b"without being asked");
            put(server, b"\x05Two?");
            assert_eq!(get(server), b"second");
            put(server, b"\x02no answer to this");
            put(server, &ok());
        },
    );
    assert!(played.login.unwrap().is_some());
}

#[test]
fn an_unknown_method_is_refused_between_legs_unlike() {
    for legs in [(Secure, Open), (Open, Secure)] {
        let played = play(
            legs,
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
                get(client)
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch("dialog", b"\x04Password?"));
                assert_eq!(get(server), [0xff; 20]);
            },
        );
        assert!(matches!(
            played.login,
            Err(LoginError::Refused(UNLIKE_LEGS))
        ));
        assert_eq!(code(&played.client), 1251);
    }
}

#[test]
fn challenges_in_turn_are_passed_on_over_any_legs() {
    let played = play(
        (Open, Secure),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
            assert_eq!(get(client), switch("parsec", SECOND));
            put(client, b"");
            assert_eq!(get(client), b"P0salt");
            put(client, b"signature");
        },
        |server| {
            greet(server, &greeting());
            put(server, &switch("parsec", SECOND));
            assert_eq!(get(server), b"");
            put(server, b"P0salt");
            assert_eq!(get(server), b"signature");
            put(server, &ok());
        },
    );
    assert!(played.login.unwrap().is_some());
}

#[test]
fn data_of_a_method_that_has_none_ends_the_login() {
    let played = play(
        (Open, Open),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
        },
    );
    assert!(matches!(played.login, Err(LoginError::Server(_))));
    assert_eq!(code(&played.client), errors::BACKEND_REFUSED.number);
}
