//! Where a dump goes: to a file that has its name only when it is whole, or to standard output.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 256 << 10;

/// See the module.
pub enum Output {
    /// A file.
    File {
        /// Under its name of the time before.
        file: BufWriter<File>,
        /// That name.
        unfinished: PathBuf,
        /// The name in the end.
        path: PathBuf,
    },
    /// Standard output, or what tests take for it.
    Stream(BufWriter<Box<dyn Write>>),
}

impl Output {
    /// A new file, which only its owner reads.
    pub fn file(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the file is there, and is not overwritten",
            ));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.unfinished", std::process::id()));
        let unfinished = PathBuf::from(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        Ok(Self::File {
            file: BufWriter::with_capacity(BUFFER, file),
            unfinished,
            path: path.to_owned(),
        })
    }

    /// A stream.
    pub fn stream(to: Box<dyn Write>) -> Self {
        Self::Stream(BufWriter::with_capacity(BUFFER, to))
    }

    /// The dump is whole.
    pub fn finish(mut self) -> io::Result<()> {
        match &mut self {
            Self::Stream(stream) => stream.flush(),
            Self::File {
                file,
                unfinished,
                path,
            } => {
                file.flush()?;
                file.get_ref().sync_all()?;
                // nothing is replaced that came meanwhile
                match fs::hard_link(&*unfinished, &*path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                    // a file system without links
                    Err(_) => fs::rename(&*unfinished, &*path),
                    Ok(()) => fs::remove_file(&*unfinished),
                }
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Self::File { unfinished, .. } = self {
            let _ = fs::remove_file(unfinished);
        }
    }
}
