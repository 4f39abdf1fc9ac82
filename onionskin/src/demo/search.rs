//! Looks for plaintexts in files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use memchr::memmem::Finder;

/// All files below a folder with their sizes.
pub fn files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push((entry.path(), entry.metadata()?.len()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The files that hold `text` somewhere.
pub fn find(files: &[(PathBuf, u64)], text: &[u8]) -> io::Result<Vec<PathBuf>> {
    let finder = Finder::new(text);
    let mut found = Vec::new();
    for (path, _) in files {
        if finder.find(&fs::read(path)?).is_some() {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Of all of them.
pub fn megabytes(files: &[(PathBuf, u64)]) -> u64 {
    files.iter().map(|(_, size)| size).sum::<u64>() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_every_file_that_holds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("deep")).expect("made");
        for (name, content) in [("a", "xxsecretxx"), ("deep/b", "secret"), ("c", "secre t")] {
            fs::write(folder.path().join(name), content).expect("written");
        }
        let all = files(folder.path()).expect("listed");
        assert_eq!(all.len(), 3);
        let found = find(&all, b"secret").expect("read");
        assert_eq!(
            found,
            [folder.path().join("a"), folder.path().join("deep/b")]
        );
    }
}
