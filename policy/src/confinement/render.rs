//! The rules as nft text, for people and snapshots. Nothing is loaded from it but in tests.

use std::fmt;

use super::ruleset::{Act, Chain, Family, Hook, Match, Protocol, Rule, Ruleset};

impl Ruleset {
    /// The rules as nft text.
    ///
    /// `flags` are the table's own, which depend on the kernel: `owner`, `persist`.
    pub fn render(&self, flags: &[&str]) -> String {
        let mut text = format!("table inet {} {{\n", Self::TABLE);
        if !flags.is_empty() {
            text = text + "\tflags " + &flags.join(",") + "\n\n";
        }
        let chains: Vec<String> = self.chains().iter().map(chain).collect();
        text + &chains.join("\n") + "}\n"
    }
}

fn chain(chain: &Chain) -> String {
    let mut text = format!("\tchain {} {{\n", chain.name.name());
    if let Some(hook) = chain.hook() {
        let hook = match hook {
            Hook::Output => "output",
            Hook::Input => "input",
            Hook::Forward => "forward",
        };
        text = text + "\t\ttype filter hook " + hook + " priority filter; policy drop;\n";
    }
    for rule in &chain.rules {
        text = text + "\t\t" + &rule.to_string() + "\n";
    }
    text + "\t}\n"
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matches = self.matches.iter().map(ToString::to_string);
        let acts = self.acts.iter().map(ToString::to_string);
        f.write_str(&matches.chain(acts).collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutLoopback => f.write_str("oif \"lo\""),
            Self::InLoopback => f.write_str("iif \"lo\""),
            Self::Destination(block) => match Family::of(block.address()) {
                Family::V4 => write!(f, "ip daddr {block}"),
                Family::V6 => write!(f, "ip6 daddr {block}"),
            },
            Self::Protocol(Protocol::Tcp) => f.write_str("meta l4proto tcp"),
            Self::Protocol(Protocol::Udp) => f.write_str("meta l4proto udp"),
            Self::Protocol(Protocol::Icmp(Family::V4)) => f.write_str("meta nfproto ipv4 meta l4proto icmp"),
            Self::Protocol(Protocol::Icmp(Family::V6)) => {
                f.write_str("meta nfproto ipv6 meta l4proto icmpv6")
            }
            Self::DestinationPort(port) => write!(f, "th dport {port}"),
            Self::Reset => f.write_str("tcp flags & rst == rst"),
            Self::Unreachable(Family::V4) => f.write_str("icmp type destination-unreachable"),
            Self::Unreachable(Family::V6) => f.write_str("icmpv6 type destination-unreachable"),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("counter"),
            Self::Within(limit) => {
                write!(f, "limit rate {}/second burst {} packets", limit.per_s, limit.burst)
            }
            Self::Log { group } => {
                write!(f, "log group {group} snaplen {} queue-threshold 1", Ruleset::LOGGED_BYTES)
            }
            Self::Accept => f.write_str("accept"),
            Self::Goto(chain) => write!(f, "goto {}", chain.name()),
            Self::RejectReset => f.write_str("reject with tcp reset"),
            Self::RejectProhibited => f.write_str("reject with icmpx admin-prohibited"),
        }
    }
}
