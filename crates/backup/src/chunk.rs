//! Cutting input into chunks of equal size, of which the last is known to be the last.

use std::io;

/// Cuts what `read` gives into chunks. It reads one byte ahead, which tells whether a full chunk is
/// the last.
pub(crate) struct Chunks<F> {
    read: F,
    ahead: Option<u8>,
}

impl<F: FnMut(&mut [u8]) -> io::Result<usize>> Chunks<F> {
    /// `ahead` is what [`Chunks::ahead`] gave, if the input was begun.
    pub(crate) fn resume(read: F, ahead: Option<u8>) -> Self {
        Self { read, ahead }
    }

    /// The byte that was read ahead.
    pub(crate) fn ahead(&self) -> Option<u8> {
        self.ahead
    }

    /// Fills `buf` but for its last byte, which is used on the way. Returns the length of the
    /// chunk, and whether the input ends with it.
    pub(crate) fn next(&mut self, buf: &mut [u8]) -> io::Result<(usize, bool)> {
        let size = buf.len() - 1;
        let mut len = 0;
        if let Some(byte) = self.ahead.take() {
            buf[0] = byte;
            len = 1;
        }
        while len <= size {
            match (self.read)(&mut buf[len..]) {
                Ok(0) => return Ok((len, true)),
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.ahead = Some(buf[size]);
        Ok((size, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Gives at most `step` bytes at a time.
    fn cut(input: &[u8], size: usize, step: usize) -> Vec<(Vec<u8>, bool)> {
        let mut rest = input;
        let read = |buf: &mut [u8]| {
            let step = step.min(buf.len());
            rest.read(&mut buf[..step])
        };
        let mut chunks = Chunks::resume(read, None);
        let mut found = Vec::new();
        let mut buf = vec![0; size + 1];
        loop {
            let (len, last) = chunks.next(&mut buf).unwrap();
            found.push((buf[..len].to_vec(), last));
            if last {
                return found;
            }
        }
    }

    #[test]
    fn the_last_chunk_is_known_however_the_input_comes() {
        let input: Vec<u8> = (0..40).collect();
        for len in 0..=40 {
            for step in [1, 3, 8, 100] {
                let chunks = cut(&input[..len], 8, step);
                let expected = len.div_ceil(8).max(1);
                assert_eq!(chunks.len(), expected);
                let whole: Vec<u8> = chunks.iter().flat_map(|(chunk, _)| chunk.clone()).collect();
                assert_eq!(whole, input[..len]);
                for (at, (chunk, last)) in chunks.iter().enumerate() {
                    assert_eq!(*last, at + 1 == expected);
                    assert!(*last || chunk.len() == 8);
                }
            }
        }
    }
}
