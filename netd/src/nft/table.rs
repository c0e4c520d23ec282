//! The table of one confinement: written in one transaction, read back, counted, deleted.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kernel's attributes are an open set: what is not named here is not ours"
)]

use std::collections::BTreeMap;

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_netfilter::nftables::{
    ChainAttribute, ChainFlags, ChainMessage, ExpressionAttribute, Hook as HookAttribute, HookNumber,
    InetHookNumber, ListAttribute, NfTablesMessage, RuleAttribute, RuleMessage, TableAttribute, TableFlags,
    TableMessage,
};
use netlink_packet_netfilter::none::ControlMessage;
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
};
use nix::errno::Errno;
use policy::confinement::{Chain, ChainName, Class, Hook, Rule, Ruleset};

use super::expression::{self, Expression};
use crate::netlink::{Channel, NetlinkError};

/// `NFNL_SUBSYS_NFTABLES`, which a batch names.
const SUBSYSTEM: u16 = 10;
const POLICY_DROP: u32 = 0;

/// Why the table is not what it should be. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    /// The transaction.
    #[error("write the rules")]
    Write(#[source] NetlinkError),
    /// The dump.
    #[error("read the rules back")]
    Read(#[source] NetlinkError),
    /// The kernel has no `nf_tables`.
    #[error("find nf_tables in the kernel")]
    Missing(#[source] NetlinkError),
    /// The table.
    #[error("delete the table")]
    Delete(#[source] NetlinkError),
}

/// The table's flags that the kernel took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Nobody but the owner's socket changes it.
    pub(crate) owner: bool,
    /// It outlives its owner.
    pub(crate) persist: bool,
}

impl Flags {
    /// From the best to none, to be tried in this order.
    const LADDER: [Self; 3] = [
        Self { owner: true, persist: true },
        Self { owner: true, persist: false },
        Self { owner: false, persist: false },
    ];

    fn bits(self) -> TableFlags {
        let mut bits = TableFlags::empty();
        bits.set(TableFlags::Owner, self.owner);
        bits.set(TableFlags::Persisent, self.persist);
        bits
    }

    /// As nft writes them.
    pub(crate) fn names(self) -> Vec<&'static str> {
        [(self.owner, "owner"), (self.persist, "persist")]
            .into_iter()
            .filter_map(|(set, name)| set.then_some(name))
            .collect()
    }
}

/// The table and the socket that owns it.
#[derive(Debug)]
pub(crate) struct Table {
    channel: Channel,
    rules: Ruleset,
    flags: Flags,
}

impl Table {
    /// Writes the rules in one transaction, in place of what an earlier netd left.
    pub(crate) fn write(mut channel: Channel, rules: Ruleset) -> Result<Self, TableError> {
        let left = tables(&mut channel).map_err(TableError::Missing)?.ours.is_some();
        let mut last = NetlinkError::Kernel(Errno::EOPNOTSUPP);
        for flags in Flags::LADDER {
            match channel.batch(transaction(&rules, flags, left), 1) {
                // Lost answers say nothing: the reading back does.
                Ok(()) | Err(NetlinkError::Overrun) => return Ok(Self { channel, rules, flags }),
                Err(NetlinkError::Kernel(errno @ (Errno::EOPNOTSUPP | Errno::EINVAL))) => {
                    last = NetlinkError::Kernel(errno);
                }
                Err(error) => return Err(TableError::Write(error)),
            }
        }
        Err(TableError::Write(last))
    }

    /// The flags that the kernel took.
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// The rules, as text for people.
    pub(crate) fn render(&self) -> String {
        self.rules.render(&self.flags.names())
    }

    /// Where the kernel's state differs from the model. Empty: nowhere.
    pub(crate) fn differences(&mut self) -> Result<Vec<String>, TableError> {
        let mut found = Vec::new();
        let tables = tables(&mut self.channel).map_err(TableError::Read)?;
        let Some(ours) = tables.ours else {
            return Ok(vec![format!("table inet {} is gone", Ruleset::TABLE)]);
        };
        if ours.flags != self.flags.bits() {
            found.push(format!("the table's flags are {:#x}, not {:#x}", ours.flags, self.flags.bits()));
        }
        if usize::try_from(ours.chains) != Ok(self.rules.chains().len()) {
            let (is, should) = (ours.chains, self.rules.chains().len());
            found.push(format!("the table has {is} chains, not {should}"));
        }
        let rules = rules(&mut self.channel).map_err(TableError::Read)?;
        for chain in self.rules.chains() {
            let name = chain.name.name();
            match base(&mut self.channel, name) {
                Ok(is) if is == base_wanted(chain) => {}
                Ok(is) => found.push(format!("chain {name} is {is:?}, not {:?}", base_wanted(chain))),
                Err(NetlinkError::Kernel(Errno::ENOENT)) => found.push(format!("chain {name} is gone")),
                Err(error) => return Err(TableError::Read(error)),
            }
            compare(chain, rules.get(name).map(Vec::as_slice).unwrap_or_default(), &mut found);
        }
        Ok(found)
    }

    /// Packets refused so far, by class.
    pub(crate) fn drops(&mut self) -> Result<BTreeMap<Class, u64>, TableError> {
        let rules = rules(&mut self.channel).map_err(TableError::Read)?;
        let count = |class: Class| {
            let rules = rules.get(class.name())?;
            rules.iter().flatten().flatten().find_map(|expression| match expression {
                Expression::Counter(counted) => Some(counted.0),
                _ => None,
            })
        };
        Ok(Class::ALL.into_iter().filter_map(|class| Some((class, count(class)?))).collect())
    }

    /// How many tables somebody else made inside.
    pub(crate) fn foreign(&mut self) -> Result<u32, TableError> {
        Ok(tables(&mut self.channel).map_err(TableError::Read)?.foreign)
    }

    /// Deletes the table through the socket that owns it.
    pub(crate) fn delete(mut self) -> Result<(), TableError> {
        let batch = vec![begin(), (table(Flags::LADDER[2], Verb::Delete), 0), end()];
        match self.channel.batch(batch, 1) {
            Ok(()) | Err(NetlinkError::Kernel(Errno::ENOENT)) => Ok(()),
            Err(error) => Err(TableError::Delete(error)),
        }
    }
}

/// The chains' rules, each a list of expressions, none where one is not ours.
type Dumped = BTreeMap<String, Vec<Option<Vec<Expression>>>>;

fn compare(chain: &Chain, is: &[Option<Vec<Expression>>], found: &mut Vec<String>) {
    let name = chain.name.name();
    if is.len() != chain.rules.len() {
        found.push(format!("chain {name} has {} rules, not {}", is.len(), chain.rules.len()));
    }
    for (at, (should, is)) in chain.rules.iter().zip(is).enumerate() {
        if is.as_ref() != Some(&expression::lower(should)) {
            found.push(format!("rule {} of chain {name} is not `{should}`", at + 1));
        }
    }
}

#[derive(Clone, Copy)]
enum Verb {
    Create,
    Delete,
}

fn message(inner: impl Into<NetfilterMessageInner>) -> NetfilterMessage {
    NetfilterMessage::new(NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0), inner)
}

fn control(inner: ControlMessage) -> NetfilterMessage {
    let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, SUBSYSTEM);
    NetfilterMessage::new(header, NetfilterMessageInner::None(inner))
}

fn begin() -> (NetfilterMessage, u16) {
    (control(ControlMessage::BatchBegin), 0)
}

fn end() -> (NetfilterMessage, u16) {
    (control(ControlMessage::BatchEnd), 0)
}

fn table(flags: Flags, verb: Verb) -> NetfilterMessage {
    let mut attributes = vec![TableAttribute::Name(Ruleset::TABLE.to_owned())];
    match verb {
        Verb::Create => {
            attributes.push(TableAttribute::Flags(flags.bits()));
            message(NfTablesMessage::NewTable(TableMessage { attributes }))
        }
        Verb::Delete => message(NfTablesMessage::DeleteTable(TableMessage { attributes })),
    }
}

/// Everything in one transaction, so that no packet ever meets half of it.
fn transaction(rules: &Ruleset, flags: Flags, replace: bool) -> Vec<(NetfilterMessage, u16)> {
    let mut batch = vec![begin()];
    if replace {
        // What a dead netd left has no owner: taking it over is the only way to be allowed to delete it.
        batch.push((table(flags, Verb::Create), NLM_F_CREATE));
        batch.push((table(flags, Verb::Delete), 0));
    }
    batch.push((table(flags, Verb::Create), NLM_F_CREATE | NLM_F_EXCL));
    batch.extend(rules.chains().iter().map(|chain| (new_chain(chain), NLM_F_CREATE)));
    for chain in rules.chains() {
        batch
            .extend(chain.rules.iter().map(|rule| (new_rule(chain.name, rule), NLM_F_CREATE | NLM_F_APPEND)));
    }
    batch.push(end());
    batch
}

fn hook_number(hook: Hook) -> InetHookNumber {
    match hook {
        Hook::Output => InetHookNumber::LocalOut,
        Hook::Input => InetHookNumber::LocalIn,
        Hook::Forward => InetHookNumber::Forward,
    }
}

fn new_chain(chain: &Chain) -> NetfilterMessage {
    let mut attributes = vec![
        ChainAttribute::Table(Ruleset::TABLE.to_owned()),
        ChainAttribute::Name(chain.name.name().to_owned()),
    ];
    if let Some(hook) = chain.hook() {
        attributes.push(ChainAttribute::Hook(vec![
            HookAttribute::Number(HookNumber::Inet(hook_number(hook))),
            HookAttribute::Priority(Ruleset::PRIORITY.cast_unsigned()),
        ]));
        attributes.push(ChainAttribute::Policy(POLICY_DROP));
        attributes.push(ChainAttribute::Type("filter".to_owned()));
    }
    message(NfTablesMessage::NewChain(ChainMessage { attributes }))
}

fn new_rule(chain: ChainName, rule: &Rule) -> NetfilterMessage {
    let expressions = expression::lower(rule)
        .iter()
        .map(|expression| ListAttribute::from(expression::emit(expression)))
        .collect();
    let attributes = vec![
        RuleAttribute::Table(Ruleset::TABLE.to_owned()),
        RuleAttribute::Chain(chain.name().to_owned()),
        RuleAttribute::Expressions(expressions),
    ];
    message(NfTablesMessage::NewRule(RuleMessage { attributes }))
}

struct Ours {
    flags: TableFlags,
    chains: u32,
}

struct Tables {
    ours: Option<Ours>,
    foreign: u32,
}

fn tables(channel: &mut Channel) -> Result<Tables, NetlinkError> {
    let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, 0);
    let every = NfTablesMessage::GetTable(TableMessage { attributes: Vec::new() });
    let mut found = Tables { ours: None, foreign: 0 };
    for answer in channel.dump(&NetfilterMessage::new(header, every))? {
        // One that cannot be read is not ours.
        match answer.read::<NetfilterMessage>().ok().and_then(|message| ours(&message)) {
            Some(ours) => found.ours = Some(ours),
            None => found.foreign += 1,
        }
    }
    Ok(found)
}

fn ours(message: &NetfilterMessage) -> Option<Ours> {
    let NetfilterMessageInner::NfTables(NfTablesMessage::NewTable(table)) = &message.inner else {
        return None;
    };
    let mut ours = Ours { flags: TableFlags::empty(), chains: 0 };
    let mut named = false;
    for attribute in &table.attributes {
        match attribute {
            TableAttribute::Name(name) => named = name == Ruleset::TABLE,
            TableAttribute::Flags(flags) => ours.flags = *flags,
            TableAttribute::Use(chains) => ours.chains = *chains,
            _ => {}
        }
    }
    (named && message.header.family == NetfilterProtoFamily::Inet).then_some(ours)
}

/// What a chain hangs from, by the kernel's numbers: hook, priority, policy, type.
#[derive(Debug, PartialEq, Eq, Default)]
struct Base {
    hook: Option<u32>,
    priority: Option<u32>,
    policy: Option<u32>,
    kind: Option<String>,
}

fn base_wanted(chain: &Chain) -> Base {
    chain.hook().map_or_else(Base::default, |hook| Base {
        hook: Some(hook_number(hook).into()),
        priority: Some(Ruleset::PRIORITY.cast_unsigned()),
        policy: Some(POLICY_DROP),
        kind: Some("filter".to_owned()),
    })
}

/// Asked for by name and not by dump: other tables' chains are not ours to read.
fn base(channel: &mut Channel, name: &str) -> Result<Base, NetlinkError> {
    let attributes =
        vec![ChainAttribute::Table(Ruleset::TABLE.to_owned()), ChainAttribute::Name(name.to_owned())];
    let question = message(NfTablesMessage::GetChain(ChainMessage { attributes }));
    let mut base = Base::default();
    for answer in channel.ask(question, netlink_packet_core::NLM_F_ACK)? {
        let message: NetfilterMessage = answer.read()?;
        let NetfilterMessageInner::NfTables(NfTablesMessage::NewChain(chain)) = message.inner else {
            continue;
        };
        for attribute in chain.attributes {
            match attribute {
                ChainAttribute::Hook(parts) => hang(&parts, &mut base),
                ChainAttribute::Policy(policy) => base.policy = Some(policy),
                ChainAttribute::Type(kind) => base.kind = Some(kind),
                ChainAttribute::Flags(flags) if flags.contains(ChainFlags::HwOffload) => {
                    base.kind = Some("offloaded".to_owned());
                }
                _ => {}
            }
        }
    }
    Ok(base)
}

fn hang(parts: &[HookAttribute], base: &mut Base) {
    for part in parts {
        match part {
            HookAttribute::Number(number) => base.hook = Some((*number).into()),
            HookAttribute::Priority(priority) => base.priority = Some(*priority),
            _ => {}
        }
    }
}

fn rules(channel: &mut Channel) -> Result<Dumped, NetlinkError> {
    let attributes = vec![RuleAttribute::Table(Ruleset::TABLE.to_owned())];
    let question = message(NfTablesMessage::GetRule(RuleMessage { attributes }));
    let mut found = Dumped::new();
    for answer in channel.dump(&question)? {
        // The kernel has narrowed the dump to our table; what still cannot be read differs from the model.
        let Ok(message) = answer.read::<NetfilterMessage>() else {
            found.entry(String::new()).or_default().push(None);
            continue;
        };
        let NetfilterMessageInner::NfTables(NfTablesMessage::NewRule(rule)) = message.inner else { continue };
        let (mut chain, mut table, mut body) = (String::new(), String::new(), None);
        for attribute in rule.attributes {
            match attribute {
                RuleAttribute::Table(name) => table = name,
                RuleAttribute::Chain(name) => chain = name,
                RuleAttribute::Expressions(list) => body = parse_list(&list),
                _ => {}
            }
        }
        if table == Ruleset::TABLE {
            found.entry(chain).or_default().push(body);
        }
    }
    Ok(found)
}

fn parse_list(list: &[ListAttribute<ExpressionAttribute>]) -> Option<Vec<Expression>> {
    list.iter()
        .map(|element| {
            let ListAttribute::Element(parts) = element else { return None };
            parts.iter().find_map(|part| match part {
                ExpressionAttribute::Data(data) => expression::parse(data),
                _ => None,
            })
        })
        .collect()
}
