//! What may leave: names, addresses, egress profiles and the decision on one CONNECT.
//!
//! One connection meets these in order: [`HeadReader`] turns bytes into one [`Authority`]; [`decide`] turns it into
//! a [`Permit`] or a [`Refusal`]; [`judge_answers`] turns the look-up's answers into [`Destination`]s;
//! [`HelloReader`] and [`judge_hello`] turn the first bytes of the tunnel into a [`Cleared`]. None of the three can
//! be made elsewhere, so what resolves, dials and copies cannot do so without a decision.

mod address;
mod answers;
mod authority;
mod code;
mod decide;
mod head;
mod hello;
mod name;
mod nearest;
mod profile;
mod published;
mod sni;
mod watch;

pub use address::{AddressClass, classify, is_metadata_address};
pub use answers::{Answers, Destination, Skipped, judge_answers};
pub use authority::{Authority, AuthorityError, Host, Port, PortError};
pub use code::{Code, Fault};
pub use decide::{Cleared, Grounds, Permit, Refusal, Surroundings, decide};
pub use head::{HEAD_BYTES_MAX, Head, HeadError, HeadReader, HeadStep, Version};
pub use hello::{HELLO_BYTES_MAX, Hello, HelloError, HelloReader, HelloStep};
pub use name::{HostName, NameError};
pub use nearest::nearest;
pub use profile::{
    Action, EchRule, HostPattern, Mistake, MistakeKind, Mode, Profile, ProfileText, QuotaText, RULES_MAX,
    RuleId, RuleText, TlsRule, compile,
};
pub use published::{is_metadata_name, is_public_suffix, is_resolver_name};
pub use sni::judge_hello;
pub use watch::{Alert, Seen, SeenKind, Watch};
