//! What waiting for one's own writes costs, over loopback. Nightly; with 0.5 ms each way more, run
//! it under the relay that the benchmark has.

use super::*;

const ROUNDS: u32 = 3000;

/// Microseconds of the median.
fn median(mut all: Vec<Duration>) -> u128 {
    all.sort();
    all[all.len() / 2].as_micros()
}

pub fn what_waiting_costs(kind: Kind) {
    if !long_run() {
        return announce("what_waiting_costs ... skipped: ONIONSKIN_TEST_LONG is not set");
    }
    for (name, reads) in [
        ("no", "max_lag_seconds = 60"),
        ("yes", "causal_seconds = 5"),
    ] {
        let Some(members) = Members::reading(kind, 2, reads) else {
            return;
        };
        members.table();
        let mut writer = members.app_soon();
        let mut reader = members.reader_soon_at(&[1]);
        let sql = "SELECT amount FROM account WHERE id = 1";
        let timed = |session: &mut Session, sql: &str| {
            let begin = Instant::now();
            session.must(sql);
            begin.elapsed()
        };
        let (mut writes, mut quiet, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            quiet.push(timed(&mut reader, sql));
        }
        for round in 0..ROUNDS {
            let update = format!("UPDATE account SET amount = {round} WHERE id = 1");
            writes.push(timed(&mut writer, &update));
            after.push(timed(&mut reader, sql));
        }
        announce(&format!(
            "{kind:?}, causal {name}: microseconds of a read {}, of a read behind a write {}, of a write {}",
            median(quiet),
            median(after),
            median(writes),
        ));
    }
}
