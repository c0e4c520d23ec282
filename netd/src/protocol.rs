//! What netd and its clients say to each other: one JSON frame a packet, descriptors beside it.
//!
//! A client asks with a [`Request`] and gets [`Reply`]s; lists are one reply an item, closed by
//! [`Reply::End`]. A subscriber gets [`Reply::Subscribed`] and from then on [`Notice`]s. Unknown fields are
//! errors. No frame holds a path: a namespace is a descriptor, or it is nothing.

use std::collections::BTreeMap;

use policy::{AgentId, Instant, ProfileName};
use serde::{Deserialize, Serialize};

/// Which of an agent's two doors a subscriber serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The egress proxy's listener.
    Proxy,
    /// The gateway's listener.
    Gateway,
}

impl Role {
    /// Both, in the order in which the hand hands their listeners over.
    pub const ALL: [Self; 2] = [Self::Proxy, Self::Gateway];
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Proxy => "proxy",
            Self::Gateway => "gateway",
        })
    }
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Confine the namespace whose descriptor comes beside the frame.
    Confine {
        /// Whose namespace it is.
        agent: AgentId,
        /// The egress profile's name, handed on to the proxy.
        profile: ProfileName,
        /// Whether it outlives this connection.
        #[serde(default)]
        lasting: bool,
    },
    /// End a confinement.
    Release {
        /// Whose.
        agent: AgentId,
    },
    /// All confinements.
    List {},
    /// Compare the kernel's state with the model.
    Verify {
        /// Of one agent; left out: of all.
        #[serde(default)]
        agent: Option<AgentId>,
    },
    /// The rules as nft text.
    Render {
        /// Whose.
        agent: AgentId,
    },
    /// Be given every listener of one role, those that exist first.
    Subscribe {
        /// Which.
        role: Role,
    },
}

/// What netd answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The confinement is up.
    Confined(Confined),
    /// The confinement is gone.
    Released {},
    /// One confinement of a list.
    Status(Status),
    /// One difference between kernel and model.
    Difference(Difference),
    /// A piece of a longer text.
    Text {
        /// The piece, cut between characters.
        text: String,
    },
    /// The last of a list or a text.
    End {},
    /// From here on notices follow.
    Subscribed {},
    /// The request was not done.
    Refused {
        /// Why.
        refusal: Refusal,
    },
}

/// What a subscriber is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Notice {
    /// A listener, whose descriptor comes beside the frame.
    Listener {
        /// Whose connections it accepts: the only proof of the caller's identity there is.
        agent: AgentId,
        /// The egress profile's name.
        profile: ProfileName,
        /// Which confinement of the agent this is; a later one has a greater number.
        generation: u64,
    },
    /// A confinement has ended: its listener accepts no more and can be forgotten.
    Released {
        /// Whose.
        agent: AgentId,
        /// Which.
        generation: u64,
    },
}

/// A confinement that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confined {
    /// Greater than that of every confinement before it, also those of an earlier netd.
    pub generation: u64,
    /// The namespace's `SO_NETNS_COOKIE`.
    pub netns_cookie: u64,
    /// Whether the kernel keeps others from changing the table (5.12 and later).
    pub owner: bool,
    /// Whether the table outlives netd (6.9 and later).
    pub persist: bool,
    /// How many subscribers were given a listener.
    pub subscribers: u32,
}

/// How a confinement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// In force, as read back from the kernel.
    Up,
    /// Changed from outside, being set right.
    Repairing,
    /// It could not be set right; its listeners are shut.
    Failed,
}

/// One confinement, as `list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Whose.
    pub agent: AgentId,
    /// The egress profile's name.
    pub profile: ProfileName,
    /// Which confinement of the agent this is.
    pub generation: u64,
    /// The namespace's `SO_NETNS_COOKIE`.
    pub netns_cookie: u64,
    /// How it stands.
    pub state: State,
    /// Since when it is up.
    pub since_ms: Instant,
    /// Packets refused, by class; the kernel's own counters.
    pub drops: BTreeMap<String, u64>,
    /// Whether the kernel keeps others from changing the table.
    pub owner: bool,
    /// Whether the table outlives netd.
    pub persist: bool,
    /// Tables that somebody else made inside: they can only take away.
    pub foreign_tables: u32,
}

/// One thing in which the kernel's state is not what the model says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// In whose confinement.
    pub agent: AgentId,
    /// Where and how.
    pub what: String,
}

/// Why a request was not done. Texts read after "cannot confine agent-7: ".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller's user may not ask this.
    #[error("user {uid} may not {what}; name it under `clients` in the configuration")]
    NotAllowed {
        /// The caller's user, by `SO_PEERCRED`.
        uid: u32,
        /// What was asked.
        what: String,
    },
    /// The frame is not one that we know.
    #[error("the request is malformed: {why}")]
    Malformed {
        /// The place and the reason.
        why: String,
    },
    /// The wrong number of descriptors beside the frame.
    #[error("the request needs {expected} descriptors and came with {got}")]
    Descriptors {
        /// How many it needs.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// The agent is confined already.
    #[error("{agent} is confined already; release it first")]
    DuplicateAgent {
        /// Which.
        agent: AgentId,
    },
    /// No such confinement.
    #[error("{agent} is not confined")]
    UnknownAgent {
        /// Which.
        agent: AgentId,
    },
    /// The namespace is another agent's.
    #[error("the namespace is that of {agent}")]
    NamespaceTaken {
        /// Whose.
        agent: AgentId,
    },
    /// The descriptor is no network namespace.
    #[error("the descriptor is no network namespace")]
    NoNamespace {},
    /// The namespace is the host's own.
    #[error("the namespace is the host's own")]
    HostNamespace {},
    /// The namespace has a link that is neither `lo` nor our decoy.
    #[error(
        "the namespace has a link {link}: confine it before anything is attached, and where every namespace is born with {link}, set net.core.fb_tunnels_only_for_init_net=2"
    )]
    ForeignLink {
        /// Its name, escaped.
        link: String,
    },
    /// A socket exists in the namespace: whoever holds it may be outside.
    #[error("a socket exists in the namespace already ({socket}): its holder may be a door to the outside")]
    ForeignSocket {
        /// Its kind and address.
        socket: String,
    },
    /// As many confinements as this netd may hold.
    #[error("{limit} confinements are held already, as many as the limit on open files allows")]
    Full {
        /// How many.
        limit: usize,
    },
    /// The kernel lacks something that the confinement needs.
    #[error("the kernel lacks {feature}: {remedy}")]
    MissingFeature {
        /// What is missing.
        feature: String,
        /// What to do about it.
        remedy: String,
    },
    /// A right is missing.
    #[error("the right to {what} is missing: {remedy}")]
    MissingRight {
        /// What was not allowed.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// What the kernel holds after the transaction is not what was asked of it.
    #[error("the rules read back are not those written: {what}")]
    ReadBack {
        /// The first difference.
        what: String,
    },
    /// netd's own failure.
    #[error("netd could not {doing}: {why}")]
    Failed {
        /// What was being done.
        doing: String,
        /// The system's answer.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_reads_back_as_itself() {
        let agent = AgentId::parse("a").unwrap();
        let profile = ProfileName::parse("p").unwrap();
        for request in [
            Request::Confine { agent: agent.clone(), profile, lasting: true },
            Request::Release { agent: agent.clone() },
            Request::List {},
            Request::Verify { agent: None },
            Request::Render { agent },
            Request::Subscribe { role: Role::Proxy },
        ] {
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request, "{text}");
        }
    }

    #[test]
    fn unknown_fields_and_hostile_names_are_no_request() {
        for text in [
            r#"{"request":"list","all":true}"#,
            r#"{"request":"verify","agents":"a"}"#,
            r#"{"request":"confine","agent":"a","profile":"p","netns":"/proc/1/ns/net"}"#,
            r#"{"request":"confine","agent":"a:b","profile":"p"}"#,
            r#"{"request":"confine","agent":"a\n","profile":"p"}"#,
            r#"{"request":"subscribe","role":"root"}"#,
            r#"{"request":"update"}"#,
            r"[]",
            "",
        ] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Request>(r#"{"request":"list"}"#).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(serde_json::from_slice::<Request>(&bytes));
            drop(serde_json::from_slice::<Reply>(&bytes));
            drop(serde_json::from_slice::<Notice>(&bytes));
        }
    }
}
