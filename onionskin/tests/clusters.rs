//! Clusters of three nodes, and a proxy before each of them: MySQL Group Replication with one
//! primary and with three, and Galera.
//!
//! A cluster takes seconds to start, so each test does many things on one. `ONIONSKIN_TEST_LONG`
//! makes the loads long, and runs both tests on all three kinds.

#[path = "clusters/conflicts.rs"]
mod conflicts;
#[path = "clusters/definitions.rs"]
mod definitions;
#[path = "clusters/failover.rs"]
mod failover;
#[path = "clusters/guarded.rs"]
mod guarded;
#[path = "clusters/load.rs"]
mod load;
#[path = "clusters/migrations.rs"]
mod migrations;
#[path = "clusters/rows.rs"]
mod rows;

use guarded::Guarded;
use onionskin_testkit::*;

macro_rules! on_clusters {
    ($($name:ident),* $(,)?) => {
        mod galera {
            $(#[test] fn $name() { super::$name(super::Topology::Galera) })*
        }
        mod multi_primary {
            $(#[test] fn $name() { super::$name(super::Topology::MultiPrimary) })*
        }
        mod group {
            $(#[test] fn $name() { super::$name(super::Topology::Group) })*
        }
    };
}

on_clusters!(
    statements_are_the_same_everywhere,
    nothing_is_lost_with_a_node
);

/// Of a group, the ordinary run takes one kind for each test: three servers of MySQL are slow.
fn is_left_to_long_runs(topology: Topology, left: Topology, test: &str) -> bool {
    let is_left = topology == left && !long_run();
    if is_left {
        announce(&format!(
            "{test} on {topology:?} ... skipped: ONIONSKIN_TEST_LONG is not set"
        ));
    }
    is_left
}

fn statements_are_the_same_everywhere(topology: Topology) {
    if is_left_to_long_runs(
        topology,
        Topology::Group,
        "statements_are_the_same_everywhere",
    ) {
        return;
    }
    let Some(mut guarded) = Guarded::start(topology) else {
        return;
    };
    rows::of_every_type(&mut guarded);
    rows::tables_are_protected_everywhere(&mut guarded);
    conflicts::are_told_as_without_a_proxy(&mut guarded);
    conflicts::leave_no_transaction_behind(&mut guarded);
    conflicts::of_a_statement_in_parts(&mut guarded);
    definitions::beside_other_sessions(&mut guarded);
    definitions::made_on_one_node_alone(&mut guarded);
    definitions::that_need_a_lock(&mut guarded);
    if topology == Topology::MultiPrimary {
        migrations::are_refused(&mut guarded);
    }
    guarded.conclude();
}

#[test]
fn tables_are_migrated_on_galera() {
    let Some(mut guarded) = Guarded::start(Topology::Galera) else {
        return;
    };
    migrations::of_what_does_not_suit(&mut guarded);
    migrations::beside_writers_at_all_nodes(&mut guarded);
    migrations::wait_for_snapshots_of_other_nodes(&mut guarded);
    migrations::that_are_killed(&mut guarded);
    migrations::whose_network_fails(&mut guarded);
    migrations::whose_name_is_taken(&mut guarded);
    if long_run() {
        migrations::while_a_node_leaves(&mut guarded);
        migrations::by_two_processes(&mut guarded);
    }
    guarded.conclude();
}

fn nothing_is_lost_with_a_node(topology: Topology) {
    if is_left_to_long_runs(
        topology,
        Topology::MultiPrimary,
        "nothing_is_lost_with_a_node",
    ) {
        return;
    }
    let Some(mut guarded) = Guarded::start(topology) else {
        return;
    };
    failover::to_another_node(&mut guarded);
    // of a group with one primary nobody is in anybody's way
    if topology != Topology::Group || long_run() {
        load::with_a_node_killed(&mut guarded);
    }
    guarded.conclude();
}
