//! Faults for tests, in builds with debug assertions only: `ONIONSKIN_TEST_FAULTS=SEED:N` lets one
//! in `N` exchanges with a server, or with the scratch engine, fail where it stands: after a
//! question was asked, before its answer, or in the middle of it. Whatever the code above does with
//! such a failure, the next question must get its own answer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use onionskin_plan::errors;

use crate::error::{Failure, Outcome};

struct Faults {
    state: AtomicU64,
    one_in: u64,
}

static FAULTS: OnceLock<Option<Faults>> = OnceLock::new();

fn configured() -> Option<Faults> {
    let setting = std::env::var("ONIONSKIN_TEST_FAULTS").ok()?;
    let (seed, one_in) = setting.split_once(':')?;
    Some(Faults {
        state: AtomicU64::new(seed.parse().ok()?),
        one_in: one_in.parse().ok().filter(|n| *n > 0)?,
    })
}

/// Whether a test wants faults.
pub(crate) fn are_wanted() -> bool {
    FAULTS.get_or_init(configured).is_some()
}

/// A failure, if it is time for one.
pub(crate) fn strike() -> Outcome<()> {
    let Some(faults) = FAULTS.get_or_init(configured) else {
        return Ok(());
    };
    // SplitMix64: Steele, Lea and Flood, OOPSLA 2014
    let mut z = faults
        .state
        .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    if !z.is_multiple_of(faults.one_in) {
        return Ok(());
    }
    Err(match (z >> 32) % 4 {
        0 => Failure::Stale,
        1 => Failure::Server {
            code: 1317,
            state: *b"70100",
            message: b"Query execution was interrupted".to_vec(),
        },
        2 => Failure::refused(&errors::TAMPERED, "an injected fault"),
        _ => Failure::refused(&errors::INTERNAL, "an injected fault"),
    })
}
