//! Where a command's sealed files lie: in a folder, or in a bucket of an object store.
//!
//! An argument that begins with `s3://` names a bucket. Everything else is a path.

use std::{ffi::OsStr, io, path::Path, sync::Arc};

use onionskin_backup::{
    WholeFile,
    store::{LocalFolder, Opened, Store, Unfinished},
    whole_folder::parent_of,
};
use onionskin_objects::{Address, Bucket, Fault, Settings};

use crate::{error::CommandError, stream_io::file_error};

/// What the names of sealed files end with.
const SEALED: &str = ".sealed";

/// The address of a bucket, if an argument is one.
fn address(path: &Path) -> Result<Option<Address>, CommandError> {
    match path.to_str().filter(|text| Address::is_one(text)) {
        Some(text) => Address::parse(text).map(Some).map_err(of_setup),
        None => Ok(None),
    }
}

fn of_setup(fault: Fault) -> CommandError {
    CommandError::Arguments(fault.to_string())
}

fn bucket(address: &Address) -> Result<Arc<dyn Store>, CommandError> {
    let settings = Settings::from_environment().map_err(of_setup)?;
    let bucket = Bucket::new(address, settings).map_err(of_setup)?;
    Ok(Arc::new(bucket))
}

/// Whether an argument names a bucket.
pub fn is_bucket(path: &Path) -> bool {
    path.to_str().is_some_and(Address::is_one)
}

/// Whether a new file is to be named in this place, and not by it: a folder that is there, or what
/// lies in a bucket and has not the ending of a sealed file.
pub fn is_folder(path: &Path) -> bool {
    match is_bucket(path) {
        true => !path.to_string_lossy().ends_with(SEALED),
        false => path.is_dir(),
    }
}

/// All files of a folder.
pub fn folder(path: &Path) -> Result<Arc<dyn Store>, CommandError> {
    match address(path)? {
        Some(address) => bucket(&address.as_folder()),
        None => Ok(Arc::new(LocalFolder::new(path))),
    }
}

/// A file's name, and the folder that it is in.
pub fn file(path: &Path) -> Result<(Arc<dyn Store>, String), CommandError> {
    let no_name = || file_error(path, io::ErrorKind::IsADirectory.into());
    match address(path)? {
        Some(address) if address.name.is_empty() => Err(no_name()),
        Some(address) => Ok((bucket(&address)?, address.name)),
        None => {
            let name = path.file_name().and_then(OsStr::to_str);
            let store = LocalFolder::new(parent_of(path));
            Ok((Arc::new(store), name.ok_or_else(no_name)?.to_owned()))
        }
    }
}

/// Opens a file of a bucket; `None` for a path.
pub fn open_remote(path: &Path) -> Result<Option<Opened>, CommandError> {
    if !is_bucket(path) {
        return Ok(None);
    }
    let (store, name) = file(path)?;
    let opened = store.open(&name);
    opened.map(Some).map_err(|source| file_error(path, source))
}

/// Begins a new file.
pub fn create(path: &Path) -> Result<Box<dyn Unfinished>, CommandError> {
    let created = match is_bucket(path) {
        true => {
            let (store, name) = file(path)?;
            store.create(&name)
        }
        false => WholeFile::create(path).map(|file| Box::new(file) as Box<dyn Unfinished>),
    };
    created.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => {
            CommandError::Arguments(format!("{} exists and is not overwritten", path.display()))
        }
        _ => file_error(path, source),
    })
}
