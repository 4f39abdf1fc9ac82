//! The interface between a key set and whatever holds the root key.

use onionskin_crypt::{DataKey, KeyId};

use crate::KeyError;

/// What a wrapped key is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPurpose {
    /// Source of the columns' keys.
    Data,
    /// Authenticates schema comments.
    Metadata,
    /// Wraps the keys of a key file; is itself wrapped by whoever keeps no key files.
    Root,
}

impl KeyPurpose {
    /// The purpose's number in stored formats.
    pub const fn id(self) -> u8 {
        match self {
            KeyPurpose::Data => 1,
            KeyPurpose::Metadata => 2,
            KeyPurpose::Root => 3,
        }
    }
}

/// Which key is wrapped. Providers authenticate it (as associated data, or as encryption context),
/// so that a wrapped key cannot be put in the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyContext {
    /// The key's use.
    pub purpose: KeyPurpose,
    /// The key's number; 0 for the metadata key and for a root key.
    pub id: KeyId,
}

impl KeyContext {
    /// That of the root key of a key file.
    pub const ROOT: KeyContext = KeyContext {
        purpose: KeyPurpose::Root,
        id: 0,
    };

    /// As words, for providers that are told what a key is for.
    pub fn words(&self) -> String {
        match self.purpose {
            KeyPurpose::Root => "onionskin/1 root key".into(),
            KeyPurpose::Metadata => "onionskin/1 metadata key".into(),
            KeyPurpose::Data => format!("onionskin/1 data key {}", self.id),
        }
    }
}

/// A key as its provider gave it out: safe to store, opaque to everyone else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey(pub Vec<u8>);

/// Wraps keys under one that it holds.
///
/// That of a key file wraps the file's data keys; one that lies elsewhere, at a server or in a
/// token, wraps the root key of a key file ([`KeyContext::ROOT`]).
///
/// An implementation takes raw bytes out of and into a [`DataKey`] by
/// [`onionskin_crypt::dangerous_bytes`].
pub trait KeyProvider: Send + Sync {
    /// Encrypts `plain` and binds it to `context`.
    fn wrap(&self, plain: &DataKey, context: KeyContext) -> Result<WrappedKey, KeyError>;

    /// The reverse; [`KeyError::Tampered`] unless `wrapped` was made for just this context.
    fn unwrap(&self, wrapped: &WrappedKey, context: KeyContext) -> Result<DataKey, KeyError>;

    /// A short name for logs and `onionskin` output, without secrets: small letters, digits and
    /// hyphens, at most 32.
    fn name(&self) -> &str;
}
