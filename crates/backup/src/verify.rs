//! Verifying a file: by its footer in a moment, or every frame.
//!
//! | | by the footer | deep |
//! |---|---|---|
//! | it was sealed with this key, and the header is what was written | yes | yes |
//! | the footer is what was written; the file has the length that it states | yes | yes |
//! | the source ended in order, since otherwise there is no footer | yes | yes |
//! | every frame is what was written, in its place, and decompresses | no | yes |
//! | of a physical backup: every InnoDB page has its checksum | no | yes, see [`innodb`](crate::innodb) |

use std::io::{Read, Seek, SeekFrom};

use onionskin_crypt::{FRAME_TAG_LEN, StreamKey};

use crate::{
    Footer, Header, Progress, SealedStream, StreamError,
    footer::{TRAILER_LEN, check_head, parse_trailer},
    frame::{FRAME_HEAD_LEN, FRAME_OVERHEAD, FrameHead},
    innodb::{PageReport, PhysicalContent},
    open::{Counted, read_header},
};

/// What a stream holds, as far as it was verified.
#[derive(Debug)]
pub struct Verified {
    /// The header.
    pub header: Header,
    /// The footer.
    pub footer: Footer,
    /// Length of the stream in bytes.
    pub stream_len: u64,
    /// Whether every frame was opened.
    pub deep: bool,
    /// What was found in the pages, if every frame was opened and the content is a physical backup.
    /// The stream is what was written all the same: pages are damaged where they were damaged when
    /// the backup was made.
    pub pages: Option<PageReport>,
}

/// Verifies a stream in something that can be sought in; with `deep`, opens every frame on so many
/// threads.
///
/// `key` is called with the header.
pub fn verify<R: Read + Seek + Send + 'static>(
    mut file: R,
    key: impl FnOnce(&Header) -> Result<StreamKey, StreamError>,
    deep: Option<usize>,
    progress: &Progress,
) -> Result<Verified, StreamError> {
    let stream_len = file.seek(SeekFrom::End(0)).map_err(StreamError::Read)?;
    file.rewind().map_err(StreamError::Read)?;
    let header = read_header(&mut Counted {
        input: &mut file,
        at: 0,
    })?;
    let stream_key = key(&header)?;
    let footer = read_footer(&mut file, stream_len, &header, &stream_key)?;
    let mut pages = None;
    if let Some(threads) = deep {
        file.rewind().map_err(StreamError::Read)?;
        let mut content = PhysicalContent::new();
        let stream = SealedStream::begin(file)?;
        let opened = stream.open(stream_key, &mut content, threads, progress)?;
        pages = content.finish();
        if opened != footer {
            return Err(StreamError::FooterDisagrees(
                "the file changes while it is read",
            ));
        }
    }
    Ok(Verified {
        header,
        footer,
        stream_len,
        deep: deep.is_some(),
        pages,
    })
}

/// Finds the footer from the end, opens it, and compares what it says with the file's length.
fn read_footer(
    file: &mut (impl Read + Seek),
    stream_len: u64,
    header: &Header,
    key: &StreamKey,
) -> Result<Footer, StreamError> {
    let shortest = (header.len() + 2 * FRAME_OVERHEAD + TRAILER_LEN) as u64;
    let truncated = |within| StreamError::Truncated {
        at: stream_len,
        within,
    };
    if stream_len < shortest {
        return Err(truncated("before its footer"));
    }
    let trailer_at = stream_len - TRAILER_LEN as u64;
    let mut trailer = [0; TRAILER_LEN];
    read_at(file, trailer_at, &mut trailer)?;
    // Without the end mark the file was cut, or prolonged; a reader from the front can tell, we
    // cannot.
    let offset = parse_trailer(&trailer)?;
    let latest = trailer_at - FRAME_OVERHEAD as u64;
    if !(header.len() as u64..=latest).contains(&offset) {
        return Err(StreamError::Trailer);
    }
    let mut head = [0; FRAME_HEAD_LEN];
    read_at(file, offset, &mut head)?;
    let head = FrameHead::parse(&head).map_err(StreamError::Footer)?;
    check_head(&head, header)?;
    if u64::from(head.body_len) != latest - offset {
        return Err(StreamError::Footer(
            "its length is not that of the room it has",
        ));
    }
    let mut body = vec![0; head.body_len as usize + FRAME_TAG_LEN];
    read_at(file, offset + FRAME_HEAD_LEN as u64, &mut body)?;
    let (body, tag) = body.split_last_chunk_mut().expect("there is room for it");
    let footer = Footer::open(header, key, &head, body, tag)?;
    match footer.offset(header) == offset {
        true => Ok(footer),
        false => Err(StreamError::FooterDisagrees(
            "its seek table adds up to another length",
        )),
    }
}

fn read_at(file: &mut (impl Read + Seek), at: u64, buf: &mut [u8]) -> Result<(), StreamError> {
    file.seek(SeekFrom::Start(at)).map_err(StreamError::Read)?;
    file.read_exact(buf).map_err(StreamError::Read)
}
