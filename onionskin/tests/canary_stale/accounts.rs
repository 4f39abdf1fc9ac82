//! Accounts that see no columns, and roles that see other tables.

use super::*;

/// The account may delete rows and nothing else, so that the server shows it no columns.
pub fn accounts_that_see_no_columns(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.protected("people");
    two.plain("places");
    let mut direct = two.server.connect();
    direct.must("CREATE USER 'deleter'@'%' IDENTIFIED BY ''");
    direct.must("GRANT DELETE ON app.people TO 'deleter'@'%'");
    direct.must("GRANT DELETE ON app.places TO 'deleter'@'%'");
    direct.must(&format!("DO '{CONTROL}'"));
    for known in [false, true] {
        if known {
            let count = "SELECT COUNT(*) FROM people";
            two.here.connect_to("app").must(count);
        }
        let mut session = Session::open(two.here.port(), "deleter", "", Some("app"));
        let secret = two.secret();
        let sql = format!("DELETE FROM people WHERE name = '{secret}'");
        session.must_fail(&sql);
        session.must_fail(&sql);
        assert!(
            session
                .conn()
                .exec_drop("DELETE FROM people WHERE name = ?", (&secret,))
                .is_err()
        );
        session.must("DELETE FROM people");
        session.must("DELETE FROM people LIMIT 5");
        session.must("DELETE FROM places");
    }
    two.conclude();
}

/// Two sessions of one account, of which only one has the role that sees the table.
pub fn roles_see_other_tables(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.protected("people");
    two.plain("places");
    let mut direct = two.server.connect();
    direct.must(&format!("DO '{CONTROL}'"));
    direct.must("CREATE ROLE reader");
    direct.must("GRANT SELECT, INSERT ON app.people TO reader");
    direct.must("CREATE USER 'player'@'%' IDENTIFIED BY ''");
    direct.must("GRANT SELECT ON app.places TO 'player'@'%'");
    direct.must(match kind {
        Kind::MariaDb => "GRANT reader TO 'player'@'%'",
        Kind::MySql => "GRANT reader TO 'player'@'%' WITH ADMIN OPTION",
    });
    let open = || Session::open(two.here.port(), "player", "", Some("app"));
    let (mut with, mut without) = (open(), open());
    without.must("SELECT COUNT(*) FROM places");
    with.must("SET ROLE reader");
    for _ in 0..3 {
        let secret = format!("{SECRET}-role");
        with.must(&format!("INSERT INTO people (name) VALUES ('{secret}')"));
        sleep(A_SECOND);
        // the other session looks up what it sees
        without.must("SELECT COUNT(*) FROM places");
        without.must_fail("SELECT COUNT(*) FROM people");
    }
    // the role is taken by a prepared statement, where the server prepares such
    let mut later = open();
    later.must_fail("SELECT COUNT(*) FROM people");
    if let Ok(set) = later.conn().prep("SET ROLE reader") {
        later.conn().exec_drop(&set, ()).expect("the role");
        later.must(&format!(
            "INSERT INTO people (name) VALUES ('{SECRET}-prepared')"
        ));
    }
    two.conclude();
}
