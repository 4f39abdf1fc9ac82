//! The log of slow statements: what is noted before one runs, and how many lines there may be in a
//! second. A flood of them must not fill a disk.

use onionskin_plan::LexMode;
use onionskin_value::Charset;
use parking_lot::Mutex;

/// What holds when a command arrives: how its text is read, and what the client has got so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Arrival {
    pub lex: LexMode,
    pub charset: Option<Charset>,
    pub is_read: bool,
    pub written: u64,
}

/// Of all sessions, over reloads as well.
#[derive(Default)]
pub(crate) struct SlowLog(Mutex<Second>);

/// The second in which the last line was written.
#[derive(Default)]
struct Second {
    number: u64,
    lines: u32,
    /// Lines that were not written since the last one that was.
    left_out: u64,
}

impl SlowLog {
    /// Whether another line may be written in this second, where there may be `most` of them; and
    /// how many were left out before it.
    pub fn admits(&self, second: u64, most: u32) -> Option<u64> {
        let mut last = self.0.lock();
        if last.number != second {
            last.number = second;
            last.lines = 0;
        }
        if last.lines >= most {
            last.left_out += 1;
            return None;
        }
        last.lines += 1;
        Some(std::mem::take(&mut last.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_lines() {
        let log = SlowLog::default();
        let admitted = [7, 7, 7, 7, 8, 8].map(|second| log.admits(second, 2));
        assert_eq!(admitted, [Some(0), Some(0), None, None, Some(2), Some(0)]);
    }
}
