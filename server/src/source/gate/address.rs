//! Addresses that only the operator may name as targets: those that mean this machine, its links or its cloud.
//!
//! Addresses of IPv6 that carry one of IPv4 inside are judged by that one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds answer instances about themselves and their credentials, beyond the link-local addresses: Amazon (with the
/// agents of EKS), Google, Alibaba, Oracle, Azure.
const METADATA: [Metadata; 5] = [
    Metadata::Prefix(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    Metadata::Prefix(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    Metadata::V4(Ipv4Addr::new(100, 100, 100, 200)),
    Metadata::V4(Ipv4Addr::new(192, 0, 0, 192)),
    Metadata::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

enum Metadata {
    V4(Ipv4Addr),
    Prefix(Ipv6Addr, u32),
}

/// What is special about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// `0.0.0.0/8`, `::`: to connect there is to connect to this machine.
    Unspecified,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `169.254.0.0/16`, `fe80::/10`: neighbours, and the metadata of most clouds.
    LinkLocal,
    /// Metadata of clouds elsewhere.
    Metadata,
    /// Multicast and broadcast: no process alone.
    Multicast,
}

impl Special {
    /// What is special about `ip`. `None`: a worker may be there.
    pub fn of(ip: IpAddr) -> Option<Self> {
        match plain(ip) {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Option<Self> {
        Some(match ip {
            _ if ip.octets()[0] == 0 => Self::Unspecified,
            _ if ip.is_loopback() => Self::Loopback,
            _ if ip.is_link_local() => Self::LinkLocal,
            _ if ip.is_multicast() || ip.is_broadcast() => Self::Multicast,
            _ if METADATA.iter().any(|of| matches!(of, Metadata::V4(at) if *at == ip)) => Self::Metadata,
            _ => return None,
        })
    }

    fn of_v6(ip: Ipv6Addr) -> Option<Self> {
        let is_within = |prefix: Ipv6Addr, bits: u32| (ip.to_bits() ^ prefix.to_bits()) >> (128 - bits) == 0;
        let is_metadata =
            |of: &Metadata| matches!(of, Metadata::Prefix(prefix, bits) if is_within(*prefix, *bits));
        Some(match ip {
            _ if ip.is_unspecified() => Self::Unspecified,
            _ if ip.is_loopback() => Self::Loopback,
            _ if ip.is_unicast_link_local() => Self::LinkLocal,
            _ if ip.is_multicast() => Self::Multicast,
            _ if METADATA.iter().any(is_metadata) => Self::Metadata,
            _ => return None,
        })
    }

    /// As a label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified_address",
            Self::Loopback => "loopback_address",
            Self::LinkLocal => "link_local_address",
            Self::Metadata => "metadata_address",
            Self::Multicast => "multicast_address",
        }
    }

    /// In a sentence, after "is".
    pub const fn in_text(self) -> &'static str {
        match self {
            Self::Unspecified => "the unspecified address, which means this machine",
            Self::Loopback => "a loopback address, which means this machine",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::Multicast => "a multicast or broadcast address",
        }
    }
}

/// The address that packets to `ip` reach: the one of IPv4 inside one of IPv6 where it is mapped, compatible, translated
/// (NAT64) or tunnelled (6to4).
pub fn plain(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let v4 = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] => v4(g, h),
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0] if g != 0 || h > 1 => v4(g, h),
        [0x64, 0xff9b, 0, 0, 0, 0] => v4(g, h),
        [0x2002, high, low, ..] => v4(high, low),
        _ => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_its_links_and_its_cloud_are_special() {
        for (text, expected) in [
            ("10.0.0.7", None),
            ("172.16.3.4", None),
            ("192.168.1.9", None),
            ("100.64.0.9", None),
            ("8.8.8.8", None),
            ("fd00::7", None),
            ("2001:db8::7", None),
            ("::ffff:10.0.0.7", None),
            ("64:ff9b::10.0.0.7", None),
            ("0.0.0.0", Some(Special::Unspecified)),
            ("0.1.2.3", Some(Special::Unspecified)),
            ("::", Some(Special::Unspecified)),
            ("::ffff:0.0.0.0", Some(Special::Unspecified)),
            ("127.0.0.1", Some(Special::Loopback)),
            ("127.255.255.254", Some(Special::Loopback)),
            ("::1", Some(Special::Loopback)),
            ("::ffff:127.0.0.1", Some(Special::Loopback)),
            ("::127.0.0.1", Some(Special::Loopback)),
            ("64:ff9b::127.0.0.1", Some(Special::Loopback)),
            ("2002:7f00:1::1", Some(Special::Loopback)),
            ("169.254.169.254", Some(Special::LinkLocal)),
            ("169.254.170.2", Some(Special::LinkLocal)),
            ("::ffff:169.254.169.254", Some(Special::LinkLocal)),
            ("64:ff9b::a9fe:a9fe", Some(Special::LinkLocal)),
            ("fe80::1", Some(Special::LinkLocal)),
            ("febf::1", Some(Special::LinkLocal)),
            ("fd00:ec2::254", Some(Special::Metadata)),
            ("fd00:ec2::23", Some(Special::Metadata)),
            ("fd20:ce::254", Some(Special::Metadata)),
            ("100.100.100.200", Some(Special::Metadata)),
            ("::ffff:100.100.100.200", Some(Special::Metadata)),
            ("168.63.129.16", Some(Special::Metadata)),
            ("192.0.0.192", Some(Special::Metadata)),
            ("224.0.0.1", Some(Special::Multicast)),
            ("255.255.255.255", Some(Special::Multicast)),
            ("ff02::1", Some(Special::Multicast)),
        ] {
            assert_eq!(Special::of(text.parse().unwrap()), expected, "{text}");
        }
    }
}
