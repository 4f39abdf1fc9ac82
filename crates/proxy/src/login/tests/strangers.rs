//! A server that may be anybody.

use super::*;

/// It asks for the password's full check, and would have an RSA key of its own for it.
#[test]
fn a_password_is_not_encrypted_for_a_key_that_the_peer_sends() {
    let played = play(
        (Secure, Open),
        |client| {
            let answer = caching_sha2_password(PASSWORD, SCRAMBLE);
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &answer));
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
            let got = get(server);
            put(server, DENIED);
            got
        },
    );
    assert_eq!(played.server, [0], "no request for a key, no password");
    assert_eq!(code(&played.client), 1251, "the client is not even asked");
    assert!(matches!(played.login, Err(LoginError::Refused(UNTRUSTED))));
}

#[test]
fn methods_that_give_passwords_away_need_a_server_that_is_known() {
    for (plugin, wrong) in [("mysql_old_password", 8), ("dialog", 20)] {
        let played = play(
            (Secure, Open),
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b""));
                get(client)
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch(plugin, SECOND));
                let got = get(server);
                put(server, DENIED);
                got
            },
        );
        assert_eq!(played.server, vec![0xff; wrong], "{plugin}");
        assert_eq!(code(&played.client), 1251, "the client is not even asked");
        assert!(matches!(played.login, Err(LoginError::Refused(_))));
    }
}

#[test]
fn another_key_than_the_configured_one_is_not_shown_to_the_client() {
    let other = PasswordKey::generate().unwrap();
    let played = play_with(
        pinned(),
        (Open, Open),
        |client| {
            let answer = caching_sha2_password(PASSWORD, SCRAMBLE);
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &answer));
            get(client);
            put(client, AuthMoreData::REQUEST_PUBLIC_KEY);
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
            get(server);
            put(server, &[&[1], other.public_pem().as_bytes()].concat());
            let got = get(server);
            put(server, DENIED);
            got
        },
    );
    assert_eq!(played.server, [0xff; 20]);
    assert_eq!(code(&played.client), 1251);
    assert!(matches!(
        played.login,
        Err(LoginError::Refused(OTHER_SERVER_KEY))
    ));
}
