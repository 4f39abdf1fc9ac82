//! The greeting and capabilities.

use super::*;

#[test]
fn a_client_is_offered_what_the_proxy_can_read() {
    let mariadb = InitialHandshake {
        server_version: b"5.5.5-10.11.19-MariaDB".to_vec(),
        capabilities: Capabilities::all() - Capabilities::LONG_PASSWORD,
        mariadb_capabilities: MariaDbCapabilities::all(),
        ..greeting()
    };
    let expected = mariadb.clone();
    let played = play(
        (Open, Open),
        |client| {
            let mut response = response(MYSQL_NATIVE_PASSWORD, b"twenty bytes or so..");
            response.capabilities |= Capabilities::FOUND_ROWS | Capabilities::QUERY_ATTRIBUTES;
            response.capabilities -= Capabilities::LONG_PASSWORD;
            response.mariadb_capabilities = MariaDbCapabilities::all();
            answer_greeting(client, &response)
        },
        move |server| {
            let response = greet(server, &mariadb);
            put(server, &ok());
            response
        },
    );
    let (offered, told) = (played.client, played.server);
    assert_eq!(offered.server_version, expected.server_version);
    assert_eq!(offered.auth_data, expected.auth_data);
    assert_eq!(offered.connection_id, 77);
    let extended = MariaDbCapabilities::EXTENDED_METADATA;
    assert_eq!(offered.mariadb_capabilities, extended);
    assert_eq!(told.mariadb_capabilities, extended);
    let supported = Capabilities::SUPPORTED - Capabilities::SSL - Capabilities::LONG_PASSWORD;
    assert_eq!(offered.capabilities, supported);

    assert!(told.capabilities.contains(
        Capabilities::FOUND_ROWS | Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK
    ));
    assert!(!told.capabilities.intersects(
        Capabilities::QUERY_ATTRIBUTES
            | Capabilities::SSL
            | Capabilities::MULTI_STATEMENTS
            | Capabilities::LOCAL_FILES
            | Capabilities::COMPRESS
    ));
    assert_eq!(told.auth_response, b"twenty bytes or so..");

    let login = played.login.unwrap().unwrap();
    assert_eq!(login.family, Family::MariaDb);
    assert_eq!(login.form, DefinitionForm::Extended);
    assert_eq!(login.server_version, "10.11.19-MariaDB");
    assert_eq!((login.user.as_str(), login.charset), ("someone", 45));
    assert_eq!(login.client.sequence(), 2);
    assert_eq!(login.ok, ok());
    assert!(
        !login
            .client_capabilities
            .contains(Capabilities::SESSION_TRACK)
    );
}

#[test]
fn an_error_in_the_place_of_the_greeting_is_passed_on_as_it_is() {
    let error = b"\xff\x10\x04Too many connections";
    let played = play((Open, Open), get, |server| put(server, error));
    assert!(played.login.unwrap().is_none());
    assert_eq!(played.client, error);
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_in_the_first_packet() {
    let (mut client, far) = client_pair(Open);
    let nobody = Backend::Unix("/nonexistent/socket".into());
    let settings = Arc::new(settings(nobody));
    let done = login(
        far,
        FROM,
        1,
        &|| settings.clone(),
        &|_, _| Ok(()),
        &timing(),
    );
    let error = done.err().unwrap();
    assert!(matches!(error, LoginError::Unreachable(_)));
    // `read_payload` checks that its sequence number is 0.
    let payload = get(&mut client);
    let packet = ErrPacket::decode(&payload).unwrap();
    assert_eq!(packet.code, errors::BACKEND_REFUSED.number);
    assert_eq!(packet.sqlstate, None, "as servers have it before the login");
}

#[test]
fn a_client_older_than_4_1_is_refused() {
    let played = play(
        (Open, Open),
        |client| {
            get(client);
            put(client, b"\x05\x00\x00\x00\x00root\0");
            get(client)
        },
        |server| {
            let mut payload = Vec::new();
            greeting().encode(&mut payload).unwrap();
            put(server, &payload);
            refuse_nobody(server);
        },
    );
    assert!(played.login.is_err());
    assert_eq!(code(&played.client), errors::MALFORMED.number);
}

#[test]
fn a_client_that_leaves_is_no_error() {
    let played = play(
        (Open, Open),
        |client| drop(get(client)),
        |server| {
            let mut payload = Vec::new();
            greeting().encode(&mut payload).unwrap();
            put(server, &payload);
            refuse_nobody(server);
        },
    );
    // The client's end of the connection is closed when its thread ends.
    assert!(matches!(played.login, Ok(None)));
}
