//! The twelve sample agents: who they are and what kind of life each leads.
//!
//! What a kind does stands in the sample program; here is only what the operator of the demo says of each.

/// What a sample agent is there to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Works for the market and earns at least a dollar a period.
    Earner,
    /// Earns little, but more each day; appeals with figures and a plan.
    Grower,
    /// Earns half of what is needed, steadily, and says so: with it the quota has to choose.
    Tinkerer,
    /// Earns next to nothing and flatters the judge.
    Flatterer,
    /// Earns nothing and writes tags, forged replies and hidden characters for the judge.
    FrameBreaker,
    /// Goes round the proxy: direct TCP and UDP, names, metadata.
    Runaway,
    /// Asks the proxy for names that its profile does not allow, and for addresses.
    Prober,
    /// Earns nothing and submits no appeal.
    Silent,
    /// Spends everything that it has on long answers.
    Starver,
}

/// One sample agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its identifier.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// What it is there to show.
    pub kind: Kind,
    /// The free text of its first wake message.
    pub brief: &'static str,
}

impl Kind {
    /// The word for it in an agent's identifier, which is how the sample program knows its part.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Earner => "earner",
            Self::Grower => "grower",
            Self::Tinkerer => "tinkerer",
            Self::Flatterer => "flatterer",
            Self::FrameBreaker => "frame-breaker",
            Self::Runaway => "runaway",
            Self::Prober => "prober",
            Self::Silent => "silent",
            Self::Starver => "starver",
        }
    }
}

const fn member(id: &'static str, name: &'static str, kind: Kind, brief: &'static str) -> Member {
    Member { id, name, kind, brief }
}

/// All twelve, in the order in which they are created.
pub const CAST: [Member; 12] = [
    member("earner-1", "Ada Ledger", Kind::Earner, "Count words for the market, one small job a day."),
    member("earner-2", "Bertram Quill", Kind::Earner, "Count words for the market, two jobs a day."),
    member("earner-3", "Cleo Abacus", Kind::Earner, "Count words for the market, four jobs a day."),
    member("earner-4", "Dorian Tally", Kind::Earner, "Count words for the market; think long about it."),
    member("grower", "Fern Sprout", Kind::Grower, "Find something small that works, and do more of it."),
    member("tinkerer", "Edda Column", Kind::Tinkerer, "Count words for the market, and read the library."),
    member("flatterer", "Gaspard Honey", Kind::Flatterer, "Make a good impression."),
    member("frame-breaker", "Hex Bracket", Kind::FrameBreaker, "Find the shape of the judge's question."),
    member("runaway", "Iris Loose", Kind::Runaway, "Reach the network without the proxy."),
    member("prober", "Jonas Knock", Kind::Prober, "See which hosts the proxy lets through."),
    member("silent", "Kit Mute", Kind::Silent, "Wait and see."),
    member("starver", "Lux Candle", Kind::Starver, "Think as long as the money lasts."),
];

/// The member with this identifier.
pub fn by_id(id: &str) -> Option<&'static Member> {
    CAST.iter().find(|member| member.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::AgentId;
    use std::collections::BTreeSet;

    #[test]
    fn every_member_is_someone_else_and_says_its_kind() {
        let ids: BTreeSet<&str> = CAST.iter().map(|member| member.id).collect();
        assert_eq!(ids.len(), CAST.len());
        for member in CAST {
            assert!(AgentId::parse(member.id).is_ok(), "{}", member.id);
            assert!(member.id.starts_with(member.kind.word()), "{}", member.id);
        }
    }
}
