//! How long a packet a server takes.

use onionskin_plan::lex::LexMode;

/// What a server takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBound {
    /// `max_allowed_packet`: payloads must be shorter.
    pub packet: usize,
    /// How the server reads texts.
    pub lex: LexMode,
    /// Constants with a character set of their own are for columns of the same one, as those of
    /// loads at the scratch engine are: a binary parameter does as well.
    pub introduced: bool,
}

impl Default for PacketBound {
    fn default() -> Self {
        PacketBound {
            packet: usize::MAX,
            lex: LexMode::default(),
            introduced: false,
        }
    }
}
