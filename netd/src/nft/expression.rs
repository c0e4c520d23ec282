//! The kernel's expressions that our rules are made of: a closed set, written and read.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kernel's attributes are an open set: what is not named here is not ours"
)]

use netlink_packet_core::{DefaultNla, Nla};
use netlink_packet_netfilter::nftables::{
    Bitwise, Cmp, DataAttribute, Expressions, Immediate, Meta, MetaKey, Operator, Payload, Register, Verdict,
    VerdictAttribute,
};
use policy::confinement::{Act, Family, Match, Prefix, Protocol, Rule, Ruleset};

/// `NF_ACCEPT`.
const ACCEPT: u32 = 1;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
/// `lo` is the first link of every namespace.
const LOOPBACK_INDEX: u32 = 1;

// Of include/uapi/linux/netfilter/nf_tables.h.
const LIMIT_RATE: u16 = 1;
const LIMIT_UNIT: u16 = 2;
const LIMIT_BURST: u16 = 3;
const LIMIT_TYPE: u16 = 4;
const LIMIT_FLAGS: u16 = 5;
const LOG_GROUP: u16 = 1;
const LOG_SNAPLEN: u16 = 3;
const LOG_QTHRESHOLD: u16 = 4;
const REJECT_TYPE: u16 = 1;
const REJECT_ICMP_CODE: u16 = 2;
const REJECT_TCP_RST: u32 = 1;
const REJECT_ICMPX: u32 = 2;
const ICMPX_ADMIN_PROHIBITED: u8 = 3;
const COUNTER_BYTES: u16 = 1;
const COUNTER_PACKETS: u16 = 2;

/// One expression. Loads go to the first register, comparisons read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// Load something that is known of the packet.
    Meta(MetaKey),
    /// Load bytes of a header.
    Payload { base: u32, offset: u32, bytes: u32 },
    /// Mask what was loaded.
    Mask(Vec<u8>),
    /// Go on only if what was loaded is this.
    Equal(Vec<u8>),
    /// Count. What it counted so far is no part of what it is.
    Counter(Counted),
    /// Go on only within a rate.
    Limit { per_s: u64, burst: u32 },
    /// Copy to a group.
    Log { group: u16, bytes: u32, threshold: u16 },
    /// Answer and drop.
    Reject { how: u32, code: Option<u8> },
    /// Accept.
    Accept,
    /// Go on elsewhere.
    Goto(String),
}

/// A counter's figure, equal to every other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted(pub(crate) u64);

impl PartialEq for Counted {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
impl Eq for Counted {}

/// A rule in expressions.
pub(crate) fn lower(rule: &Rule) -> Vec<Expression> {
    let mut expressions = Vec::new();
    for condition in &rule.matches {
        lower_match(*condition, &mut expressions);
    }
    for act in &rule.acts {
        expressions.push(lower_act(*act));
    }
    expressions
}

fn lower_match(condition: Match, out: &mut Vec<Expression>) {
    let index = LOOPBACK_INDEX.to_ne_bytes().to_vec();
    match condition {
        Match::OutLoopback => out.extend([Expression::Meta(MetaKey::Oif), Expression::Equal(index)]),
        Match::InLoopback => out.extend([Expression::Meta(MetaKey::Iif), Expression::Equal(index)]),
        Match::Destination(block) => lower_destination(block, out),
        Match::Protocol(Protocol::Tcp) => out.extend(transport(6)),
        Match::Protocol(Protocol::Udp) => out.extend(transport(17)),
        Match::Protocol(Protocol::Icmp(family)) => {
            out.extend(of_family(family));
            out.extend(transport(if family == Family::V4 { 1 } else { 58 }));
        }
        Match::DestinationPort(port) => {
            out.push(Expression::Payload { base: TRANSPORT_HEADER, offset: 2, bytes: 2 });
            out.push(Expression::Equal(port.to_be_bytes().to_vec()));
        }
        Match::Reset => {
            out.push(Expression::Payload { base: TRANSPORT_HEADER, offset: 13, bytes: 1 });
            out.extend([Expression::Mask(vec![4]), Expression::Equal(vec![4])]);
        }
        Match::Unreachable(family) => {
            out.push(Expression::Payload { base: TRANSPORT_HEADER, offset: 0, bytes: 1 });
            out.push(Expression::Equal(vec![if family == Family::V4 { 3 } else { 1 }]));
        }
    }
}

fn lower_destination(block: Prefix, out: &mut Vec<Expression>) {
    let (offset, address) = match block.address() {
        std::net::IpAddr::V4(v4) => (16, v4.octets().to_vec()),
        std::net::IpAddr::V6(v6) => (24, v6.octets().to_vec()),
    };
    out.extend(of_family(Family::of(block.address())));
    let bytes = if address.len() == 4 { 4 } else { 16 };
    out.push(Expression::Payload { base: NETWORK_HEADER, offset, bytes });
    if !block.is_host() {
        out.push(Expression::Mask(block.mask()));
    }
    out.push(Expression::Equal(address));
}

fn of_family(family: Family) -> [Expression; 2] {
    let number = if family == Family::V4 { NFPROTO_IPV4 } else { NFPROTO_IPV6 };
    [Expression::Meta(MetaKey::Nfproto), Expression::Equal(vec![number])]
}

fn transport(number: u8) -> [Expression; 2] {
    [Expression::Meta(MetaKey::L4Proto), Expression::Equal(vec![number])]
}

fn lower_act(act: Act) -> Expression {
    match act {
        Act::Count => Expression::Counter(Counted(0)),
        Act::Within(limit) => Expression::Limit { per_s: u64::from(limit.per_s), burst: limit.burst },
        Act::Log { group } => Expression::Log { group, bytes: Ruleset::LOGGED_BYTES, threshold: 1 },
        Act::Accept => Expression::Accept,
        Act::Goto(chain) => Expression::Goto(chain.name().to_owned()),
        Act::RejectReset => Expression::Reject { how: REJECT_TCP_RST, code: None },
        Act::RejectProhibited => Expression::Reject { how: REJECT_ICMPX, code: Some(ICMPX_ADMIN_PROHIBITED) },
    }
}

fn other(name: &str, attributes: Vec<DefaultNla>) -> Expressions {
    Expressions::Other { expression_type: name.to_owned(), attributes }
}

fn be32(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_be_bytes().to_vec())
}

fn be64(kind: u16, value: u64) -> DefaultNla {
    DefaultNla::new(kind, value.to_be_bytes().to_vec())
}

fn be16(kind: u16, value: u16) -> DefaultNla {
    DefaultNla::new(kind, value.to_be_bytes().to_vec())
}

fn verdict(attributes: Vec<VerdictAttribute>) -> Expressions {
    Expressions::Immediate(vec![
        Immediate::DestinationRegister(Register::Verdict),
        Immediate::Data(DataAttribute::Verdict(attributes)),
    ])
}

/// An expression as the kernel takes it.
pub(crate) fn emit(expression: &Expression) -> Expressions {
    let register = Register::Reg1;
    match expression {
        Expression::Meta(key) => {
            Expressions::Meta(vec![Meta::Key(*key), Meta::DestinationRegister(register)])
        }
        Expression::Payload { base, offset, bytes } => Expressions::Payload(vec![
            Payload::DestinationRegister(register),
            Payload::Base(*base),
            Payload::Offset(*offset),
            Payload::Len(*bytes),
        ]),
        Expression::Mask(mask) => Expressions::Bitwise(vec![
            Bitwise::SourceRegister(register),
            Bitwise::DestinationRegister(register),
            Bitwise::Length(u32::try_from(mask.len()).unwrap_or(u32::MAX)),
            Bitwise::Mask(DataAttribute::Value(mask.clone())),
            Bitwise::Xor(DataAttribute::Value(vec![0; mask.len()])),
        ]),
        Expression::Equal(value) => Expressions::Cmp(vec![
            Cmp::SourceRegister(register),
            Cmp::Op(Operator::Equal),
            Cmp::Data(DataAttribute::Value(value.clone())),
        ]),
        Expression::Counter(_) => other("counter", vec![be64(COUNTER_BYTES, 0), be64(COUNTER_PACKETS, 0)]),
        Expression::Limit { per_s, burst } => other(
            "limit",
            vec![
                be64(LIMIT_RATE, *per_s),
                be64(LIMIT_UNIT, 1),
                be32(LIMIT_BURST, *burst),
                be32(LIMIT_TYPE, 0),
                be32(LIMIT_FLAGS, 0),
            ],
        ),
        Expression::Log { group, bytes, threshold } => other(
            "log",
            vec![be16(LOG_GROUP, *group), be32(LOG_SNAPLEN, *bytes), be16(LOG_QTHRESHOLD, *threshold)],
        ),
        Expression::Reject { how, code } => {
            let code = code.map(|code| DefaultNla::new(REJECT_ICMP_CODE, vec![code]));
            other("reject", std::iter::once(be32(REJECT_TYPE, *how)).chain(code).collect())
        }
        Expression::Accept => verdict(vec![VerdictAttribute::Code(Verdict::Other(ACCEPT))]),
        Expression::Goto(chain) => {
            verdict(vec![VerdictAttribute::Code(Verdict::Goto), VerdictAttribute::Chain(chain.clone())])
        }
    }
}

/// Reads an expression that the kernel dumped; none: it is not one of ours.
pub(crate) fn parse(expression: &Expressions) -> Option<Expression> {
    match expression {
        Expressions::Meta(parts) => parse_meta(parts),
        Expressions::Payload(parts) => parse_payload(parts),
        Expressions::Bitwise(parts) => parse_mask(parts),
        Expressions::Cmp(parts) => parse_equal(parts),
        Expressions::Immediate(parts) => parse_verdict(parts),
        Expressions::Other { expression_type, attributes } => parse_other(expression_type, attributes),
        _ => None,
    }
}

fn parse_meta(parts: &[Meta]) -> Option<Expression> {
    let key = parts.iter().find_map(|part| if let Meta::Key(key) = part { Some(*key) } else { None })?;
    parts.contains(&Meta::DestinationRegister(Register::Reg1)).then_some(Expression::Meta(key))
}

fn parse_payload(parts: &[Payload]) -> Option<Expression> {
    let find = |pick: fn(&Payload) -> Option<u32>| parts.iter().find_map(pick);
    let base = find(|part| if let Payload::Base(base) = part { Some(*base) } else { None })?;
    let offset = find(|part| if let Payload::Offset(offset) = part { Some(*offset) } else { None })?;
    let bytes = find(|part| if let Payload::Len(bytes) = part { Some(*bytes) } else { None })?;
    parts.contains(&Payload::DestinationRegister(Register::Reg1)).then_some(Expression::Payload {
        base,
        offset,
        bytes,
    })
}

fn parse_mask(parts: &[Bitwise]) -> Option<Expression> {
    let value = |pick: fn(&Bitwise) -> Option<&Vec<u8>>| parts.iter().find_map(pick);
    let mask = value(|part| match part {
        Bitwise::Mask(DataAttribute::Value(value)) => Some(value),
        _ => None,
    })?;
    let flip = value(|part| match part {
        Bitwise::Xor(DataAttribute::Value(value)) => Some(value),
        _ => None,
    })?;
    let boolean = parts.iter().all(|part| !matches!(part, Bitwise::Op(op) if *op != 0));
    let registers = parts.contains(&Bitwise::SourceRegister(Register::Reg1))
        && parts.contains(&Bitwise::DestinationRegister(Register::Reg1));
    let plain = boolean && registers && flip.iter().all(|&byte| byte == 0);
    plain.then(|| Expression::Mask(mask.clone()))
}

fn parse_equal(parts: &[Cmp]) -> Option<Expression> {
    let value = parts.iter().find_map(|part| match part {
        Cmp::Data(DataAttribute::Value(value)) => Some(value),
        _ => None,
    })?;
    let plain =
        parts.contains(&Cmp::SourceRegister(Register::Reg1)) && parts.contains(&Cmp::Op(Operator::Equal));
    plain.then(|| Expression::Equal(value.clone()))
}

fn parse_verdict(parts: &[Immediate]) -> Option<Expression> {
    let attributes = parts.iter().find_map(|part| match part {
        Immediate::Data(DataAttribute::Verdict(attributes)) => Some(attributes),
        _ => None,
    })?;
    let code = attributes.iter().find_map(|part| match part {
        VerdictAttribute::Code(code) => Some(*code),
        _ => None,
    })?;
    let chain = attributes.iter().find_map(|part| match part {
        VerdictAttribute::Chain(chain) => Some(chain.clone()),
        _ => None,
    });
    match (code, chain) {
        (Verdict::Other(ACCEPT), None) => Some(Expression::Accept),
        (Verdict::Goto, Some(chain)) => Some(Expression::Goto(chain)),
        _ => None,
    }
}

fn parse_other(name: &str, attributes: &[DefaultNla]) -> Option<Expression> {
    let number = |kind: u16| -> Option<u64> {
        let attribute = attributes.iter().find(|attribute| attribute.kind() == kind)?;
        let mut bytes = vec![0_u8; attribute.value_len()];
        attribute.emit_value(&mut bytes);
        (bytes.len() <= 8).then(|| bytes.iter().fold(0, |sum, &byte| (sum << 8) | u64::from(byte)))
    };
    let word = |kind: u16| number(kind).and_then(|value| u32::try_from(value).ok());
    let half = |kind: u16| number(kind).and_then(|value| u16::try_from(value).ok());
    match name {
        "counter" => Some(Expression::Counter(Counted(number(COUNTER_PACKETS)?))),
        "limit" => {
            let plain = number(LIMIT_UNIT) == Some(1)
                && number(LIMIT_TYPE).unwrap_or(0) == 0
                && number(LIMIT_FLAGS).unwrap_or(0) == 0;
            let limit = Expression::Limit { per_s: number(LIMIT_RATE)?, burst: word(LIMIT_BURST)? };
            plain.then_some(limit)
        }
        "log" => Some(Expression::Log {
            group: half(LOG_GROUP)?,
            bytes: word(LOG_SNAPLEN)?,
            threshold: half(LOG_QTHRESHOLD)?,
        }),
        "reject" => {
            let how = word(REJECT_TYPE)?;
            // The kernel dumps a code for resets too, on some versions; it means nothing there.
            let code = number(REJECT_ICMP_CODE).and_then(|code| u8::try_from(code).ok());
            Some(Expression::Reject { how, code: if how == REJECT_TCP_RST { None } else { code } })
        }
        _ => None,
    }
}
