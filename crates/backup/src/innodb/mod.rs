//! The checksums of InnoDB's pages, computed while a physical backup goes by.
//!
//! A sealed stream shows that a backup is what was written. It does not show that the server's
//! files were sound when it was written. Every InnoDB page carries a checksum of its own; this
//! module computes them, of MariaDB's tablespaces and of MySQL's ([`page`] has the formats). What
//! cannot be checked is counted: pages that were encrypted or compressed after their checksum was
//! computed, and tablespaces whose first page says nothing. The pages of incremental backups stand
//! in files of another kind, which are counted only; mariadb-backup has checked them when it copied
//! them.

mod page;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use crate::mbstream::{Event, Scanner};
pub use page::Unchecked;
use page::{FLAGS_END, Finding, Format};

/// As many damaged pages are named, not more.
const MAX_NAMED: usize = 100;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageReport {
    /// Tablespaces whose pages were checked.
    pub tablespaces: u64,
    /// Pages in them.
    pub pages: u64,
    /// How many pages do not have their checksum.
    pub damaged_pages: u64,
    /// File and number of the first hundred of them.
    pub damaged: Vec<(String, u64)>,
    /// How many pages could not be checked, and why.
    pub unchecked_pages: BTreeMap<Unchecked, u64>,
    /// Tablespaces that were not checked, because their format is not understood, or their first
    /// page was not written yet.
    pub unchecked: Vec<String>,
    /// Files with the changed pages of a tablespace, as incremental backups have them; not checked.
    pub deltas: u64,
}

/// Takes the content of a stream, whatever it is.
pub(crate) struct PhysicalContent {
    scanner: Scanner,
    checker: PageChecker,
}

impl PhysicalContent {
    pub(crate) fn new() -> Self {
        Self {
            scanner: Scanner::new(),
            checker: PageChecker::default(),
        }
    }

    /// The report, if it was the stream of mariadb-backup to its end.
    pub(crate) fn finish(self) -> Option<PageReport> {
        self.scanner.is_mbstream().then(|| self.checker.finish())
    }
}

impl Write for PhysicalContent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let checker = &mut self.checker;
        self.scanner.feed(bytes, |event| {
            if let Event::Content {
                path,
                offset,
                bytes,
            } = event
            {
                checker.feed(path, offset, bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file is a tablespace that begins with its own description. (Of a system tablespace in
/// several files, the others than the first do not.)
fn is_tablespace(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let undo = name
        .strip_prefix("undo")
        // MySQL's are named undo_001.
        .map(|number| number.strip_prefix('_').unwrap_or(number))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    // What mariadb-backup calls `.new` was created while it ran, or shortly before: a tablespace
    // like others, if its first page has been written already.
    [".ibd", ".ibu", ".new"]
        .iter()
        .any(|suffix| name.ends_with(suffix))
        || path == "ibdata1"
        || (undo && name == path)
}

#[derive(Default)]
struct PageChecker {
    spaces: BTreeMap<String, Tablespace>,
    pages: u64,
    damaged_pages: u64,
    damaged: Vec<(String, u64)>,
    unchecked_pages: BTreeMap<Unchecked, u64>,
    deltas: BTreeSet<String>,
}

/// A tablespace as far as it has come.
struct Tablespace {
    format: Known,
    /// Where the next byte is expected; content that comes in another order is not checked.
    next: u64,
    /// A page that has not come in whole.
    partial: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Not enough of the first page is there.
    Pending,
    Yes(Format),
    No,
}

impl PageChecker {
    fn feed(&mut self, path: &str, offset: u64, content: &[u8]) {
        if path.ends_with(".delta") {
            if offset == 0 {
                self.deltas.insert(path.to_owned());
            }
            return;
        }
        if !is_tablespace(path) {
            return;
        }
        // Looked up first, so that no name is copied for every piece.
        if !self.spaces.contains_key(path) {
            self.spaces.insert(path.to_owned(), Tablespace::new());
        }
        let Some(space) = self.spaces.get_mut(path) else {
            return;
        };
        let (pages, damaged, damaged_pages) =
            (&mut self.pages, &mut self.damaged, &mut self.damaged_pages);
        let unchecked_pages = &mut self.unchecked_pages;
        let is_system = path.rsplit('/').next() == Some("ibdata1");
        space.feed(offset, content, |format, number, finding| {
            // encrypted pages of other tablespaces may lie there, with checksums of another kind
            let is_copy = is_system && format.is_doublewrite(number);
            let finding = match finding {
                Finding::Damaged if is_copy => Finding::Unchecked(Unchecked::Doublewrite),
                other => other,
            };
            *pages += u64::from(!matches!(finding, Finding::Unchecked(_)));
            match finding {
                Finding::Sound => {}
                Finding::Unchecked(why) => *unchecked_pages.entry(why).or_default() += 1,
                Finding::Damaged => {
                    *damaged_pages += 1;
                    if damaged.len() < MAX_NAMED {
                        damaged.push((path.to_owned(), number));
                    }
                }
            }
        });
    }

    fn finish(self) -> PageReport {
        let (mut tablespaces, mut unchecked) = (0, Vec::new());
        for (path, space) in self.spaces {
            match space.format {
                // Half a page at the end is no page.
                Known::Yes(_) if space.partial.is_empty() => tablespaces += 1,
                _ => unchecked.push(path),
            }
        }
        PageReport {
            tablespaces,
            pages: self.pages,
            damaged_pages: self.damaged_pages,
            damaged: self.damaged,
            unchecked_pages: self.unchecked_pages,
            unchecked,
            deltas: self.deltas.len() as u64,
        }
    }
}

impl Tablespace {
    fn new() -> Self {
        Self {
            format: Known::Pending,
            next: 0,
            partial: Vec::new(),
        }
    }

    fn feed(
        &mut self,
        offset: u64,
        mut content: &[u8],
        mut found: impl FnMut(&Format, u64, Finding),
    ) {
        if offset != self.next {
            self.format = Known::No;
        }
        self.next = offset.saturating_add(content.len() as u64);
        let mut at = offset.saturating_sub(self.partial.len() as u64);
        if self.format == Known::Pending {
            let missing = FLAGS_END.saturating_sub(self.partial.len());
            let (head, rest) = content.split_at(missing.min(content.len()));
            self.partial.extend_from_slice(head);
            content = rest;
            if self.partial.len() < FLAGS_END {
                return;
            }
            self.format = Format::of(&self.partial).map_or(Known::No, Known::Yes);
        }
        let Known::Yes(format) = self.format else {
            self.partial.clear();
            return;
        };
        let size = format.page_len;
        if !self.partial.is_empty() {
            let (rest_of_page, rest) =
                content.split_at((size - self.partial.len()).min(content.len()));
            self.partial.extend_from_slice(rest_of_page);
            content = rest;
            if self.partial.len() < size {
                return;
            }
            found(&format, at / size as u64, format.check(&self.partial));
            self.partial.clear();
            at += size as u64;
        }
        let pages = content.chunks_exact(size);
        self.partial.extend_from_slice(pages.remainder());
        for page in pages {
            found(&format, at / size as u64, format.check(page));
            at += size as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{page::tests::full_crc32_page, *};

    const PAGE: usize = 4096;

    fn tablespace(pages: u8) -> Vec<u8> {
        let mut space: Vec<u8> = (0..pages).flat_map(full_crc32_page).collect();
        space.extend([0; PAGE]);
        space
    }

    fn check(content: &[u8], step: usize) -> PageReport {
        let mut checker = PageChecker::default();
        for (number, piece) in content.chunks(step).enumerate() {
            checker.feed("app/t.ibd", (number * step) as u64, piece);
            checker.feed("app/t.frm", 0, piece);
        }
        checker.finish()
    }

    #[test]
    fn sound_and_damaged_pages() {
        let sound = tablespace(5);
        for step in [1, 57, 59, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, sound.len()] {
            let report = check(&sound, step);
            assert_eq!((report.tablespaces, report.pages), (1, 6), "step {step}");
            assert_eq!(report.damaged_pages, 0, "step {step}");
            assert!(report.unchecked.is_empty());
            for number in 1..6 {
                for at in [0, 2000, PAGE - 1] {
                    let mut damaged = sound.clone();
                    damaged[number * PAGE + at] ^= 1;
                    let report = check(&damaged, step);
                    assert_eq!(report.damaged, [("app/t.ibd".to_owned(), number as u64)]);
                    assert_eq!(report.damaged_pages, 1);
                }
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let sound = tablespace(2);
        let mut old_format = sound.clone();
        old_format[57] = 0;
        for content in [&old_format[..], &sound[..PAGE + 1], &sound[..50]] {
            let report = check(content, 1000);
            assert_eq!(report.unchecked, ["app/t.ibd"]);
            assert_eq!(report.tablespaces, 0);
        }
        let mut checker = PageChecker::default();
        checker.feed("app/t.ibd.delta", 0, b"changed pages");
        checker.feed("app/t.ibd.delta", 13, b"and more");
        checker.feed("ibdata1", 0, &sound[..PAGE]);
        checker.feed("ibdata1", 2 * PAGE as u64, &sound[2 * PAGE..]);
        let report = checker.finish();
        assert_eq!(report.unchecked, ["ibdata1"]);
        assert_eq!(report.deltas, 1);
    }

    #[test]
    fn which_files_are_tablespaces() {
        for yes in [
            "ibdata1",
            "undo001",
            "undo_002",
            "mysql.ibd",
            "more.ibu",
            "a/b.ibd",
            "a/b#P#c.ibd",
            "a/b.new",
        ] {
            assert!(is_tablespace(yes), "{yes}");
        }
        for no in [
            "ibdata2",
            "undo",
            "undolog",
            "a/undo001",
            "a/ibdata1",
            "a/b.frm",
            "ib_logfile0",
        ] {
            assert!(!is_tablespace(no), "{no}");
        }
    }

    #[test]
    fn no_stream_makes_it_panic() {
        use crate::mbstream::{end_chunk, piece_head};
        use rand::RngExt;
        let space = tablespace(3);
        let mut stream = Vec::new();
        for (number, piece) in space.chunks(5000).enumerate() {
            stream.extend(piece_head("app/t.ibd", (number * 5000) as u64, piece));
            stream.extend(piece);
        }
        stream.extend(end_chunk("app/t.ibd"));
        let report = |stream: &[u8]| {
            let mut content = PhysicalContent::new();
            content.write_all(stream).unwrap();
            content.finish()
        };
        assert_eq!(report(&stream).unwrap().pages, 4);
        let mut rng = rand::rng();
        for _ in 0..3000 {
            let mut stream = stream.clone();
            for _ in 0..rng.random_range(1..4) {
                // Half of them in a head, where they do more.
                let at = match rng.random() {
                    true => rng.random_range(0..stream.len()),
                    false => rng.random_range(0..60),
                };
                stream[at] = rng.random();
            }
            stream.truncate(rng.random_range(0..2 * stream.len()));
            report(&stream);
        }
    }
}
