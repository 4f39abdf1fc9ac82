//! Where a client is.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a client is: as the system says, or a balancer that is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// At the other end of a TCP connection.
    Tcp(SocketAddr),
    /// At the other end of a Unix socket: a process of this user, if the system tells.
    Unix {
        /// The user's number.
        user: Option<u32>,
    },
}

impl ClientAddress {
    /// The address that TCP knows it by.
    pub(crate) fn tcp(self) -> Option<SocketAddr> {
        match self {
            ClientAddress::Tcp(address) => Some(address),
            ClientAddress::Unix { .. } => None,
        }
    }

    /// Those that it is counted with.
    pub(crate) fn group(self) -> Group {
        match self {
            ClientAddress::Tcp(address) => address.ip().into(),
            ClientAddress::Unix { .. } => Group(None),
        }
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAddress::Tcp(address) => address.fmt(f),
            ClientAddress::Unix { user: Some(user) } => write!(f, "unix:uid={user}"),
            ClientAddress::Unix { user: None } => f.write_str("unix"),
        }
    }
}

/// Addresses that are counted as one: an IPv4 address, an IPv6 network of 64 bits, of which one
/// host has all addresses, or all clients of Unix sockets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Group(Option<IpAddr>);

impl From<IpAddr> for Group {
    fn from(address: IpAddr) -> Self {
        // An IPv4 address is the same one on a socket for both.
        Group(Some(match address.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
            v4 => v4,
        }))
    }
}
