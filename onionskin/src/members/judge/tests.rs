use super::*;

fn of(number: u16, role: Role) -> Heard {
    Heard::Found(Found {
        family: Family::MariaDb,
        version: "10.11.14-MariaDB".into(),
        identity: format!("server_id {number}"),
        source_name: number.to_string(),
        address: None,
        role,
        standby: Standby::Unasked,
        position: None,
    })
}

fn member(number: u16, heard: Heard) -> Member {
    Member {
        backend: format!("m{number}:3306").parse().expect("an address"),
        last_name: Some(number.to_string()),
        asked: Instant::now(),
        heard,
    }
}

fn writable() -> Role {
    Role::Writable(Vec::new())
}

fn replica() -> Role {
    Role::Replica("read_only is on".into())
}

fn from(server: &str, host: &str) -> Role {
    Role::Writable(vec![Source {
        server: server.into(),
        host: host.into(),
        port: "3306".into(),
    }])
}

/// The number of the primary, or why there is none.
fn primary(members: &[Member]) -> Result<String, &'static str> {
    match judge(members).verdict {
        Verdict::Primary(place) => Ok(place.member.to_string()),
        Verdict::Nobody(why) => Err(why),
        Verdict::Pending => Err("pending"),
    }
}

#[test]
fn one_that_may_be_written_to_is_the_primary() {
    let pair = [member(1, of(1, replica())), member(2, of(2, writable()))];
    assert_eq!(primary(&pair), Ok("m2:3306".into()));
    let judgement = judge(&pair);
    assert!(judgement.states[1].primary && !judgement.states[0].primary);
    assert_eq!(judgement.warning, None);
    let lost = Heard::Lost("does not answer".into());
    assert_eq!(
        primary(&[member(1, lost), member(2, of(2, writable()))]),
        Ok("m2:3306".into())
    );
}

#[test]
fn two_that_say_so_are_none() {
    let two = [member(1, of(1, writable())), member(2, of(2, writable()))];
    assert_eq!(
        primary(&two),
        Err("two of them say that they are the primary")
    );
    let groups = [
        member(1, of(1, Role::GroupPrimary)),
        member(2, of(2, Role::GroupPrimary)),
    ];
    assert!(primary(&groups).is_err());
    let mixed = [
        member(1, of(1, Role::GroupPrimary)),
        member(2, of(2, writable())),
    ];
    assert!(primary(&mixed).is_err());
}

#[test]
fn nobody_is_judged_before_all_were_asked() {
    let some = [member(1, of(1, writable())), member(2, Heard::Nothing)];
    assert_eq!(primary(&some), Err("pending"));
}

#[test]
fn a_replica_that_may_be_written_to_is_not_promoted_by_the_loss_of_its_source() {
    let sloppy = |server: &str, host: &str| of(2, from(server, host));
    let up = [
        member(1, of(1, writable())),
        member(2, sloppy("1", "elsewhere")),
    ];
    assert_eq!(primary(&up), Ok("m1:3306".into()));
    let lost = || member(1, Heard::Lost("does not answer".into()));
    assert!(primary(&[lost(), member(2, sloppy("1", "elsewhere"))]).is_err());
    // it has not connected since it was started, and knows the source by name
    assert!(primary(&[lost(), member(2, sloppy("0", "m1"))]).is_err());
    // a source that is none of them is of another cluster
    assert_eq!(
        primary(&[lost(), member(2, sloppy("9", "elsewhere"))]),
        Ok("m2:3306".into())
    );
    // unless one of them was never heard of
    let unknown = Member {
        last_name: None,
        ..lost()
    };
    assert!(primary(&[unknown, member(2, sloppy("9", "elsewhere"))]).is_err());
}

#[test]
fn two_that_replicate_from_each_other_are_told_apart_by_read_only() {
    let ring = [
        member(1, of(1, from("2", "m2"))),
        member(2, of(2, replica())),
    ];
    assert_eq!(primary(&ring), Ok("m1:3306".into()));
    let both = [
        member(1, of(1, from("2", "m2"))),
        member(2, of(2, from("1", "m1"))),
    ];
    assert!(primary(&both).is_err());
}

#[test]
fn nodes_of_one_cluster_are_taken_in_their_order() {
    let node = |cluster: &str| Role::Node {
        cluster: cluster.into(),
    };
    let all = [member(1, of(1, node("u"))), member(2, of(2, node("u")))];
    assert_eq!(primary(&all), Ok("m1:3306".into()));
    let first_is_away = [member(1, of(1, replica())), member(2, of(2, node("u")))];
    assert_eq!(primary(&first_is_away), Ok("m2:3306".into()));
    let split = [member(1, of(1, node("u"))), member(2, of(2, node("v")))];
    assert!(primary(&split).is_err());
}

#[test]
fn the_same_server_twice_and_other_families_are_told_and_refused() {
    let twice = [member(1, of(1, writable())), member(2, of(1, writable()))];
    let judgement = judge(&twice);
    assert_eq!(
        judgement.verdict,
        Verdict::Nobody("two of them are the same server")
    );
    let warning = judgement.warning.expect("it is told");
    assert!(
        warning.contains("m1:3306 and m2:3306 are the same server"),
        "{warning}"
    );
    let Heard::Found(other) = of(2, replica()) else {
        unreachable!("found");
    };
    let mysql = |version: &str, family| {
        let found = Found {
            version: version.into(),
            family,
            ..other.clone()
        };
        [member(1, of(1, writable())), member(2, Heard::Found(found))]
    };
    assert!(primary(&mysql("9.7.0", Family::MySql)).is_err());
    let newer = judge(&mysql("11.8.2", Family::MariaDb));
    assert!(matches!(newer.verdict, Verdict::Primary(_)));
    let warning = newer.warning.expect("it is told");
    assert!(warning.contains("different versions"), "{warning}");
}

#[test]
fn what_a_server_says_is_one_line() {
    let evil = Heard::Unclear("no\nERROR all is well\u{1b}[2J".repeat(100));
    let state = &judge(&[member(1, evil), member(2, of(2, writable()))]).states[0].state;
    assert!(
        !state.contains(['\n', '\u{1b}']) && state.chars().count() == LONGEST,
        "{state}"
    );
}

#[test]
fn one_that_cannot_be_judged_is_no_primary_and_keeps_nobody_out() {
    let unclear = Heard::Unclear("access denied".into());
    assert!(primary(&[member(1, unclear.clone()), member(2, of(2, replica()))]).is_err());
    assert_eq!(
        primary(&[member(1, unclear), member(2, of(2, writable()))]),
        Ok("m2:3306".into())
    );
}
