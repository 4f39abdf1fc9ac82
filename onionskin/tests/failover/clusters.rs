//! MySQL Group Replication and Galera, three nodes each. They take their time to start: nightly.

use super::*;

const READS: &str = "[reads]\ncausal_seconds = 5\n";

/// What is written at the primary is read at the others, and nothing is written there.
fn others_are_read_from(members: &Members, primary: usize) {
    let others: Vec<usize> = (0..3).filter(|server| *server != primary).collect();
    let mut writer = members.app_soon();
    for server in &others {
        let mut reader = members.reader_soon_at(&[*server]);
        for amount in 1..300 {
            writer.must(&format!(
                "UPDATE account SET amount = {amount} WHERE id = 3"
            ));
            let read = reader.text("SELECT amount FROM account WHERE owner = 'eve'");
            assert_eq!(read.expect("rows"), amount.to_string());
        }
        assert_eq!(reader.must_fail("UPDATE account SET amount = 1"), 1792);
        // the next one goes to the other
        std::mem::forget(reader);
    }
}

/// Three nodes in single-primary mode: one is killed, and the group chooses another one itself.
#[test]
fn a_group_chooses_its_primary() {
    if !long_run() {
        return announce("a_group_chooses_its_primary ... skipped: ONIONSKIN_TEST_LONG is not set");
    }
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let seeds: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let mut servers = Vec::new();
    for (number, seed) in seeds.iter().enumerate() {
        let id = number + 1;
        let options = ServerOptions {
            binlog: Some(Binlog::Row),
            extra: [
                format!("--server-id={id}"),
                "--gtid-mode=ON".into(),
                "--enforce-gtid-consistency=ON".into(),
                "--report-host=127.0.0.1".into(),
                "--plugin-load-add=group_replication.so".into(),
                "--loose-group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".into(),
                "--loose-group-replication-start-on-boot=OFF".into(),
                format!("--loose-group-replication-local-address={seed}"),
                format!("--loose-group-replication-group-seeds={}", seeds.join(",")),
                "--loose-group-replication-recovery-get-public-key=ON".into(),
                "--loose-group-replication-ip-allowlist=127.0.0.1".into(),
                "--loose-group-replication-member-expel-timeout=0".into(),
            ]
            .into(),
            ..ServerOptions::default()
        };
        let Some(mut server) = Server::start(Kind::MySql, options) else {
            return;
        };
        let own_id = server.data_dir().join("auto.cnf");
        if own_id.exists() {
            server.shutdown();
            fs::remove_file(&own_id).expect("removed");
            server.restart();
        }
        accounts(&server);
        let mut root = server.connect();
        root.must("RESET BINARY LOGS AND GTIDS");
        root.must("SET sql_log_bin = 0");
        root.must(
            "GRANT BACKUP_ADMIN, CONNECTION_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO follower@'%'",
        );
        root.must("SET sql_log_bin = 1");
        root.must("CHANGE REPLICATION SOURCE TO SOURCE_USER = 'follower', SOURCE_PASSWORD = 'follower secret' FOR CHANNEL 'group_replication_recovery'");
        if number == 0 {
            root.must("SET GLOBAL group_replication_bootstrap_group = ON");
        }
        root.must("START GROUP_REPLICATION");
        root.must("SET GLOBAL group_replication_bootstrap_group = OFF");
        servers.push(server);
    }
    let mut members = Members::before(servers, &[], "interval_seconds = 0.5\n", READS);
    members.table();
    let mut session = members.app_soon();
    let first = members.at(&mut session);
    others_are_read_from(&members, first);
    session.must("UPDATE account SET amount = 1 WHERE owner = 'ada'");
    members.servers[first].kill9();
    let begin = Instant::now();
    assert!(session.run("SELECT 1").is_err());
    // the group takes some seconds to notice
    let limit = Duration::from_secs(60);
    let mut after = loop {
        match members.app() {
            Ok(session) => break session,
            Err(failure) => assert!(
                begin.elapsed() < limit,
                "{failure}\n{}",
                members.proxy.log()
            ),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let second = members.at(&mut after);
    assert_ne!(second, first);
    after.must("UPDATE account SET amount = amount + 1 WHERE owner = 'ada'");
    assert_eq!(
        after
            .text("SELECT amount FROM account WHERE id = 1")
            .expect("an answer"),
        "2"
    );
    announce(&format!(
        "a group's first write after kill -9: {:?}",
        begin.elapsed()
    ));
    // without its majority the last two can do nothing, and nobody is let in
    let third = 3 - first - second;
    members.servers[third].kill9();
    members.closed_soon();
}

/// Three nodes, all of which may be written to: the first of the list that is ready is used.
#[test]
fn a_cluster_has_its_first_node_used() {
    if !long_run() {
        return announce(
            "a_cluster_has_its_first_node_used ... skipped: ONIONSKIN_TEST_LONG is not set",
        );
    }
    let provider = "/usr/lib/galera/libgalera_smm.so";
    if !std::path::Path::new(provider).exists() {
        return announce("SKIPPED: Galera's library is not installed");
    }
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let options = |number: usize| {
        let others = match number {
            0 => String::new(),
            _ => format!("127.0.0.1:{}", ports[0]),
        };
        let (port, ist) = (ports[number], free_port());
        ServerOptions {
            binlog: Some(Binlog::Row),
            extra: [
                "--wsrep-on=ON".into(),
                format!("--wsrep-provider={provider}"),
                format!("--wsrep-cluster-address=gcomm://{others}"),
                "--wsrep-cluster-name=onionskin-test".into(),
                "--wsrep-node-address=127.0.0.1".into(),
                format!("--wsrep-node-name=node{number}"),
                format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port};ist.recv_addr=127.0.0.1:{ist};gcache.size=16M"
                ),
                // the others get the first one's data; rsync's daemon cannot write to their folders
                "--wsrep-sst-method=mariabackup".into(),
                "--wsrep-sst-auth=root:".into(),
                "--innodb-autoinc-lock-mode=2".into(),
            ]
            .into(),
            ..ServerOptions::default()
        }
    };
    let mut servers = Vec::new();
    for number in 0..3 {
        let server = Server::start(Kind::MariaDb, options(number));
        let server = server.expect("MariaDB is never skipped");
        if number == 0 {
            accounts(&server);
        }
        servers.push(server);
    }
    let mut members = Members::before(servers, &[], "interval_seconds = 0.5\n", READS);
    members.table();
    let mut session = members.app_soon();
    assert_eq!(members.at(&mut session), 0);
    others_are_read_from(&members, 0);
    members.servers[0].kill9();
    assert!(session.run("SELECT 1").is_err());
    let mut after = members.app_soon();
    assert_eq!(members.at(&mut after), 1);
    after.must("UPDATE account SET amount = 2 WHERE owner = 'ada'");
    // a node alone is in no primary component
    members.servers[1].shutdown();
    let mut last = members.app_soon();
    assert_eq!(members.at(&mut last), 2);
    assert_eq!(
        last.text("SELECT amount FROM account WHERE id = 1")
            .expect("an answer"),
        "2"
    );
}
