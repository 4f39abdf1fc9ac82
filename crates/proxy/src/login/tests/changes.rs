//! COM_CHANGE_USER.

use super::*;

#[test]
fn a_change_of_user_asks_for_a_scramble_where_a_password_may_be_encrypted() {
    let capabilities =
        Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH;
    let command = ComChangeUser {
        username: b"other".to_vec(),
        auth_response: vec![7; 32],
        database: b"app".to_vec(),
        charset: Some(45),
        auth_plugin: Some(CACHING_SHA2_PASSWORD.into()),
        connect_attrs: None,
    };
    let (mut near, far) = client_pair(Secure);
    let (mut server, back) = client_pair(Open);
    let (mut client, mut back) = (Connection::new(far), Connection::new(back));
    let mut payload = Vec::new();
    command.encode(&mut payload, capabilities).unwrap();
    let own = password_key().unwrap();
    thread::scope(|scope| {
        let application = scope.spawn(move || {
            put(&mut near, &payload);
            assert_eq!(get(&mut near), switch(CACHING_SHA2_PASSWORD, SECOND));
            put(&mut near, &caching_sha2_password(PASSWORD, SECOND));
            assert_eq!(get(&mut near), [1, 4]);
            put(&mut near, &cleartext_password(PASSWORD));
        });
        let database = scope.spawn(move || {
            let first = ComChangeUser::decode(&get(&mut server), capabilities).unwrap();
            assert!(first.auth_response.is_empty());
            assert_eq!(
                (&first.username[..], &first.database[..]),
                (&b"other"[..], &b"app"[..])
            );
            put(&mut server, &switch(CACHING_SHA2_PASSWORD, SECOND));
            assert_eq!(get(&mut server), caching_sha2_password(PASSWORD, SECOND));
            put(&mut server, &[1, 4]);
            let password = own.decrypt_password(&get(&mut server), SECOND).unwrap();
            assert_eq!(password, PASSWORD);
            put(&mut server, &ok());
        });
        let payload = client.read_command().unwrap().to_vec();
        let verdict = change_user(
            &mut client,
            &mut back,
            &payload,
            pinned(),
            capabilities,
            capabilities,
        )
        .unwrap();
        assert_eq!(verdict, Some(ok()));
        application.join().unwrap();
        database.join().unwrap();
    });
}
