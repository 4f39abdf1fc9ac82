//! An optional argument of an SQL function.

/// An argument that may be left out, and that may be NULL. To the servers these are two things:
/// MySQL refuses a call without an initialization vector by another error than one with NULL.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Argument<'a> {
    /// The call has no such argument.
    #[default]
    Absent,
    /// The argument is an SQL NULL.
    Null,
    /// The argument's bytes.
    Bytes(&'a [u8]),
}

impl<'a> Argument<'a> {
    /// The bytes, if there are any.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Argument::Bytes(bytes) => Some(bytes),
            Argument::Absent | Argument::Null => None,
        }
    }
}

impl<'a> From<Option<&'a [u8]>> for Argument<'a> {
    /// An argument that is there: `None` is NULL.
    fn from(value: Option<&'a [u8]>) -> Self {
        value.map_or(Argument::Null, Argument::Bytes)
    }
}

impl std::fmt::Debug for Argument<'_> {
    /// Shows the length, never the bytes: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Argument::Absent => f.write_str("Absent"),
            Argument::Null => f.write_str("Null"),
            Argument::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}
