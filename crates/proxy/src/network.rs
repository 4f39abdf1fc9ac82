//! Addresses that the configuration lists.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address, or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether an address is in it. An IPv4 address is the same one on a socket for both.
    pub fn contains(&self, address: IpAddr) -> bool {
        let of = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let address = address.to_canonical();
        let mask = match self.bits {
            0 => 0,
            bits => u128::MAX << (128 - bits),
        };
        address.is_ipv4() == self.address.is_ipv4() && (of(address) ^ of(self.address)) & mask == 0
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither an address nor a network such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if address.to_canonical() != address {
            // peers are compared by their IPv4 address, so that this would never be one of them
            return Err(format!(
                "{text:?} is an IPv4 address in the form of IPv6: write {}",
                address.to_canonical()
            ));
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.starts_with('+') => return Err(wrong()),
            Some(bits) => bits.parse().map_err(|_| wrong())?,
            None => most,
        };
        match bits <= most {
            true => Ok(Network { address, bits }),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_what_they_say() {
        let holds = |network: &str, address: &str| {
            let network: Network = network.parse().expect(network);
            network.contains(address.parse().expect(address))
        };
        assert!(holds("10.0.0.0/8", "10.255.1.2") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::9") && !holds("2001:db8::/32", "2001:db9::"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "::1"));
        for wrong in [
            "",
            "localhost",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.0/104",
            "10.0.0.0/+8",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
