//! The formats of InnoDB's pages, and what shows that one is sound.
//!
//! The first page of a tablespace tells the format of all, in the four bytes at offset 54
//! (big-endian):
//!
//! | | bits | |
//! |---|---|---|
//! | `full_crc32` (MariaDB since 10.5) | 4 set; 0 to 3: page size | CRC-32C of all before it in the last four bytes, over what is stored: encrypted pages, too |
//! | the format before, and MySQL's | 1 to 4: size of compressed pages, 6 to 9: page size; 0 is 16 KiB | below |
//!
//! Sizes are 512 shifted left by the number. Bit 4 alone would be compressed pages of 128 KiB,
//! which do not exist, so the two cannot be taken for each other.
//!
//! In `full_crc32`, a page whose type (offset 24) has its highest bit set is stored compressed in
//! 256 times the rest of the type bytes, and its checksum stands at the end of these.
//!
//! In the other format a page begins with its checksum, and its last eight bytes repeat the
//! checksum and the lower half of the LSN at offset 16. `crc32` is the CRC-32C of bytes 4 to 25 xor
//! that of bytes 38 up to the last eight. `innodb`, the default of MySQL before 5.7.7, folds the
//! same bytes, and at the page's end bytes 0 to 25. `none` is a constant. Pages of tables with
//! ROW_FORMAT=COMPRESSED have no trailer, and checksums of their own over bytes 4 to 15, 24, 25 and
//! from 34 on.
//!
//! MySQL computes checksums before it encrypts or compresses a page, so such pages cannot be
//! checked without their keys or without decompression. They say what they are in their type.
//! MariaDB has another checksum for encrypted pages, at offset 30.

/// Bytes of the first page that must be there to know the format.
pub(super) const FLAGS_END: usize = 58;

const FULL_CRC32: u32 = 1 << 4;
const COMPRESSED_MARK: u16 = 1 << 15;
const NO_CHECKSUM: u32 = 0xdead_beef;
/// The type of a tablespace's first page.
const FIRST_PAGE: u16 = 8;

/// How the pages of a tablespace are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    kind: Kind,
    /// Bytes of a page in the file.
    pub(super) page_len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    FullCrc32,
    Classic,
    /// ROW_FORMAT=COMPRESSED
    Zip,
}

/// What a page turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Sound,
    Damaged,
    Unchecked(Unchecked),
}

/// Why a page could not be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unchecked {
    /// Its checksum is over what was encrypted.
    Encrypted,
    /// Its checksum is over what was compressed.
    Compressed,
    /// It was written with `innodb_checksum_algorithm=none`.
    NoChecksum,
    /// It lies in the doublewrite buffer and is the copy of another page, perhaps of one in another
    /// format.
    Doublewrite,
}

impl Unchecked {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Encrypted => "encrypted",
            Self::Compressed => "compressed by their server",
            Self::NoChecksum => "written without checksums",
            Self::Doublewrite => "in the doublewrite buffer",
        }
    }
}

impl Format {
    /// Whether a page of this number is in MariaDB's doublewrite buffer, if the tablespace is the
    /// system's: two extents of 64 pages, which a server lays out when it makes the file. (MySQL
    /// has files of their own for it.)
    pub(super) fn is_doublewrite(&self, number: u64) -> bool {
        self.kind == Kind::FullCrc32 && (64..192).contains(&number)
    }

    /// What the beginning of a first page says; at least [`FLAGS_END`] bytes.
    pub(super) fn of(first_page: &[u8]) -> Option<Self> {
        let flags = be32(first_page, 54);
        let size = |log2: u32, allowed: std::ops::RangeInclusive<u32>| {
            let log2 = log2 + 9;
            allowed.contains(&log2).then(|| 1 << log2)
        };
        if flags & FULL_CRC32 != 0 {
            return Some(Self {
                kind: Kind::FullCrc32,
                page_len: size(flags & 0xf, 12..=16)?,
            });
        }
        // Nothing else says that this is a tablespace.
        if be16(first_page, 24) != FIRST_PAGE || first_page[34..38] != first_page[38..42] {
            return None;
        }
        match (flags >> 1) & 0xf {
            0 => Some(Self {
                kind: Kind::Classic,
                page_len: match (flags >> 6) & 0xf {
                    0 => 16384,
                    log2 => size(log2, 12..=16)?,
                },
            }),
            log2 => Some(Self {
                kind: Kind::Zip,
                page_len: size(log2, 10..=14)?,
            }),
        }
    }

    /// Looks at a page of [`Format::page_len`] bytes.
    pub(super) fn check(self, page: &[u8]) -> Finding {
        // Never used.
        if page.iter().all(|&byte| byte == 0) {
            return Finding::Sound;
        }
        match self.kind {
            Kind::FullCrc32 => full_crc32(page),
            Kind::Classic => classic(page),
            Kind::Zip => zip(page),
        }
    }
}

fn be16(page: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([page[at], page[at + 1]])
}

fn be32(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

fn sound_if(sound: bool) -> Finding {
    match sound {
        true => Finding::Sound,
        false => Finding::Damaged,
    }
}

fn full_crc32(page: &[u8]) -> Finding {
    let kind = be16(page, 24);
    let stored = match kind & COMPRESSED_MARK {
        0 => page.len(),
        _ => usize::from(kind & !COMPRESSED_MARK) << 8,
    };
    let stored = page.get(..stored).and_then(|page| page.split_last_chunk());
    sound_if(stored.is_some_and(|(content, checksum)| {
        crc32c::crc32c(content) == u32::from_be_bytes(*checksum)
    }))
}

/// What the type of a page says of one whose checksum is not over what is stored.
fn transformed(page: &[u8]) -> Option<Unchecked> {
    match be16(page, 24) {
        // MySQL's, then MariaDB's.
        14 | 34354 => Some(Unchecked::Compressed),
        15..=17 | 37401 => Some(Unchecked::Encrypted),
        _ => None,
    }
}

fn classic(page: &[u8]) -> Finding {
    if let Some(why) = transformed(page) {
        return Finding::Unchecked(why);
    }
    let trailer = page.len() - 8;
    let (first, last) = (be32(page, 0), be32(page, trailer));
    if (first, last) == (NO_CHECKSUM, NO_CHECKSUM) {
        return Finding::Unchecked(Unchecked::NoChecksum);
    }
    let crc = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..trailer]);
    // MariaDB's key version.
    if be32(page, 26) != 0 && be32(page, 30) == crc {
        return Finding::Sound;
    }
    if page[20..24] != page[trailer + 4..] {
        return Finding::Damaged;
    }
    if (first, last) == (crc, crc) {
        return Finding::Sound;
    }
    let folded = fold(&page[4..26]).wrapping_add(fold(&page[38..trailer]));
    // Before 4.0 the LSN's upper half stood at the end.
    sound_if(first == folded && [fold(&page[..26]), be32(page, 16)].contains(&last))
}

fn zip(page: &[u8]) -> Finding {
    if let Some(why) = transformed(page) {
        return Finding::Unchecked(why);
    }
    let parts = [&page[4..16], &page[24..26], &page[34..]];
    match be32(page, 0) {
        NO_CHECKSUM => Finding::Unchecked(Unchecked::NoChecksum),
        stored => {
            let crc = parts.iter().fold(0, |crc, part| crc ^ crc32c::crc32c(part));
            sound_if(stored == crc || stored == adler32(parts))
        }
    }
}

/// The hash that `innodb_checksum_algorithm=innodb` uses.
fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |fold, byte| {
        let byte = u32::from(*byte);
        let mixed = ((fold ^ byte ^ 1_653_893_711) << 8).wrapping_add(fold);
        (mixed ^ 1_463_735_687).wrapping_add(byte)
    })
}

/// As zlib's, but from 0.
fn adler32(parts: [&[u8]; 3]) -> u32 {
    let (mut a, mut b) = (0, 0);
    for byte in parts.into_iter().flatten() {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    b << 16 | a
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A first page of `full_crc32`, 4 KiB, or an ordinary page with these bytes.
    pub(in crate::innodb) fn full_crc32_page(number: u8) -> Vec<u8> {
        let mut page = vec![number & 0x7f; 4096];
        if number == 0 {
            page[54..58].copy_from_slice(&(FULL_CRC32 | 3).to_be_bytes());
            page[0] = 1;
        }
        let checksum = crc32c::crc32c(&page[..4092]);
        page[4092..].copy_from_slice(&checksum.to_be_bytes());
        page
    }

    fn first_page(flags: u32) -> Vec<u8> {
        let mut page = vec![0; 16384];
        page[25] = FIRST_PAGE as u8;
        page[54..58].copy_from_slice(&flags.to_be_bytes());
        page
    }

    #[test]
    fn flags_tell_the_format() {
        for (flags, kind, page_len) in [
            (0, Kind::Classic, 16384),
            (0x4021, Kind::Classic, 16384),
            (3 << 6, Kind::Classic, 4096),
            (7 << 6 | 1 << 13, Kind::Classic, 65536),
            (0x4029, Kind::Zip, 8192),
            (1 << 1, Kind::Zip, 1024),
            (0x15, Kind::FullCrc32, 16384),
            (0x75, Kind::FullCrc32, 16384),
        ] {
            let format = Format { kind, page_len };
            assert_eq!(Format::of(&first_page(flags)), Some(format), "{flags:#x}");
        }
        for flags in [1 << 6, 8 << 6, 6 << 1, 0x1f] {
            assert_eq!(Format::of(&first_page(flags)), None, "{flags:#x}");
        }
        let mut other = first_page(0);
        other[38] = 1;
        assert_eq!(Format::of(&other), None);
    }

    /// Fills in what `write` says at given offsets, and flips every bit of some bytes afterwards.
    fn sound_then_damaged(format: Format, page: &[u8], covered: &[usize]) {
        assert_eq!(format.check(page), Finding::Sound);
        for at in covered {
            for bit in 0..8 {
                let mut page = page.to_vec();
                page[*at] ^= 1 << bit;
                assert_eq!(format.check(&page), Finding::Damaged, "byte {at}");
            }
        }
    }

    #[test]
    fn classic_pages() {
        let format = Format {
            kind: Kind::Classic,
            page_len: 4096,
        };
        let mut page: Vec<u8> = (0..4096).map(|n| (n * 7) as u8).collect();
        // An index page, not encrypted.
        page[24..34].copy_from_slice(&[0x45, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0]);
        page.copy_within(20..24, 4092);
        let crc = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..4088]);
        page[..4].copy_from_slice(&crc.to_be_bytes());
        page[4088..4092].copy_from_slice(&crc.to_be_bytes());
        let covered = [0, 4, 16, 25, 38, 2000, 4087, 4088, 4095];
        sound_then_damaged(format, &page, &covered);

        let folded = fold(&page[4..26]).wrapping_add(fold(&page[38..4088]));
        page[..4].copy_from_slice(&folded.to_be_bytes());
        let old = fold(&page[..26]);
        page[4088..4092].copy_from_slice(&old.to_be_bytes());
        sound_then_damaged(format, &page, &covered);

        for (kind, why) in [
            (14, Unchecked::Compressed),
            (15, Unchecked::Encrypted),
            (37401, Unchecked::Encrypted),
        ] {
            page[24..26].copy_from_slice(&u16::to_be_bytes(kind));
            assert_eq!(format.check(&page), Finding::Unchecked(why));
        }
        page[24..26].copy_from_slice(&[0x45, 0xbf]);
        page[..4].copy_from_slice(&NO_CHECKSUM.to_be_bytes());
        page[4088..4092].copy_from_slice(&NO_CHECKSUM.to_be_bytes());
        let none = Finding::Unchecked(Unchecked::NoChecksum);
        assert_eq!(format.check(&page), none);
        assert_eq!(format.check(&[0; 4096]), Finding::Sound);
    }

    #[test]
    fn compressed_pages() {
        let format = Format {
            kind: Kind::Zip,
            page_len: 1024,
        };
        let mut page: Vec<u8> = (0..1024).map(|n| (n * 5) as u8).collect();
        page[24..26].copy_from_slice(&[0x45, 0xbf]);
        let parts = [&page[4..16], &page[24..26], &page[34..]];
        let sums = [
            parts.iter().fold(0, |crc, part| crc ^ crc32c::crc32c(part)),
            adler32(parts),
        ];
        for sum in sums {
            page[..4].copy_from_slice(&sum.to_be_bytes());
            sound_then_damaged(format, &page, &[0, 3, 4, 15, 25, 34, 500, 1023]);
        }
    }

    #[test]
    fn pages_that_full_crc32_stores_compressed() {
        let format = Format {
            kind: Kind::FullCrc32,
            page_len: 4096,
        };
        let mut page = vec![7; 4096];
        page[24..26].copy_from_slice(&(COMPRESSED_MARK | 3).to_be_bytes());
        page[768..].fill(0);
        let checksum = crc32c::crc32c(&page[..764]);
        page[764..768].copy_from_slice(&checksum.to_be_bytes());
        sound_then_damaged(format, &page, &[0, 24, 25, 500, 763, 764]);
        page[24..26].copy_from_slice(&(COMPRESSED_MARK | 0x7f).to_be_bytes());
        assert_eq!(format.check(&page), Finding::Damaged);
    }
}
