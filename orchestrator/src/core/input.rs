//! What can happen to the core. One input is one row of the journal.

use std::collections::BTreeMap;

use policy::signal::Signal;
use policy::{AgentId, Money};
use serde::{Deserialize, Serialize};

/// The key of one request that moves money or starts something: same key and body, same answer (E4).
pub type Key = String;
/// Number of an episode, counted from one over the life of the journal.
pub type EpisodeId = u64;
/// Number of a docket (a cull's or a starvation's), counted from one.
pub type DocketId = u64;

/// One thing that happened, as journalled. `now` comes beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// First row of every journal: the settings that the rules run with, and the secret seed that the judge's
    /// sigils and shuffles are drawn from (32 bytes, hexadecimal).
    Genesis {
        /// The economy's settings.
        settings: Box<super::settings::Settings>,
        /// 64 hexadecimal digits from the operating system's random source.
        seed: String,
    },
    /// Time has passed: whatever is due by `now` is done, in the order of its instants.
    Tick,
    /// An admin makes an agent; it gets its grant.
    CreateAgent {
        /// Idempotency key.
        key: Key,
        /// The identifier that netd, proxy and logs know it by.
        agent: AgentId,
        /// What people call it; masked before the judge.
        name: String,
        /// Which configured image it runs from.
        image: String,
        /// Free text in its first wake message.
        brief: String,
    },
    /// An admin stops an agent from waking and being culled.
    Pause {
        /// Whose.
        agent: AgentId,
        /// Why; kept in the audit log.
        reason: String,
        /// Who did it.
        actor: String,
    },
    /// The reverse of `Pause`.
    Resume {
        /// Whose.
        agent: AgentId,
        /// Why; kept in the audit log.
        reason: String,
        /// Who did it.
        actor: String,
    },
    /// An admin ends an agent at once, without appeal.
    Kill {
        /// Whose.
        agent: AgentId,
        /// Why; kept in the audit log.
        reason: String,
        /// Who did it.
        actor: String,
    },
    /// Income by a signed webhook or the operator's command (E5).
    Income {
        /// `webhook-id`, or the operator's key.
        key: Key,
        /// Whose.
        agent: AgentId,
        /// Where it came from, such as a site's name.
        source: String,
        /// For which project.
        project: String,
        /// Who paid; the agent itself or another agent makes it internal.
        payer: String,
        /// How much; more than nothing.
        amount_nano: Money,
    },
    /// Income is taken back, by a signed webhook or the operator's command (E5).
    ReverseIncome {
        /// `webhook-id`, or the operator's key.
        key: Key,
        /// The key of the income.
        income: Key,
        /// Why.
        reason: String,
        /// Who did it.
        actor: String,
    },
    /// An event asks for an agent's attention: it is told at its next wake, and wakes it now.
    Wake {
        /// Idempotency key.
        key: Key,
        /// Whose.
        agent: AgentId,
        /// What it is told.
        event: String,
    },
    /// The shell has a confined process running for this episode.
    EpisodeStarted {
        /// Which.
        episode: EpisodeId,
    },
    /// The confined process is gone, its confinement released.
    EpisodeEnded {
        /// Which.
        episode: EpisodeId,
        /// How it ended.
        end: EpisodeEnd,
    },
    /// Everything that ran for this agent is gone: keys, processes, confinement (answers `RemoveAgent`).
    AgentRemoved {
        /// Whose.
        agent: AgentId,
    },
    /// A model call asks for its hold (E3, G3).
    CallWanted {
        /// Unique over all calls.
        call: Key,
        /// Who calls.
        agent: AgentId,
        /// The episode whose gateway listener it came in on.
        episode: EpisodeId,
        /// Model as asked for; the core checks menu and price.
        model: String,
        /// Upper bound of the prompt, in tokens.
        input_tokens_max: u64,
        /// The one token-limit field of the request.
        max_tokens: u64,
    },
    /// The provider reported what the call used: the hold is settled.
    CallSettled {
        /// Which.
        call: Key,
        /// As the provider counted.
        usage: Usage,
        /// Whether `usage` is our own estimate.
        estimated: bool,
    },
    /// The call never reached the provider, or was not billed: the hold is given back.
    CallVoided {
        /// Which.
        call: Key,
        /// Why.
        why: String,
    },
    /// A tool that changes something was used.
    ToolUsed {
        /// Who.
        agent: AgentId,
        /// In which episode.
        episode: EpisodeId,
        /// What.
        tool: ToolUse,
    },
    /// The judge answered (answers `AskJudge`); whether it is a judgement is for the reader to say.
    JudgeAnswered {
        /// Which docket.
        docket: DocketId,
        /// The batch's number as asked.
        batch: u32,
        /// The model as returned.
        model: String,
        /// `stop_reason` as returned.
        stop_reason: String,
        /// The text, untouched.
        text: String,
        /// What it used.
        usage: Usage,
    },
    /// No judgement could be had (E26).
    JudgeUnavailable {
        /// Which docket.
        docket: DocketId,
        /// The batch's number as asked.
        batch: u32,
        /// Why.
        why: String,
        /// Whether the provider may bill it all the same: then it is settled at its bound.
        #[serde(default)]
        maybe_billed: bool,
    },
    /// An admin has a docket's judge asked again that an outage has stopped for good (E26).
    RetryJudge {
        /// Which docket.
        docket: DocketId,
        /// Who did it.
        actor: String,
    },
    /// An admin overturns a decision within its hold window (E25); it stands beside the judge's score.
    Override {
        /// Which docket.
        docket: DocketId,
        /// Whose decision.
        agent: AgentId,
        /// Whether it lives.
        reprieve: bool,
        /// Why.
        reason: String,
        /// Who did it.
        actor: String,
    },
    /// The digest's model answered (answers `AskDigest`).
    DigestAnswered {
        /// The UTC day that it tells of, counted from 1970.
        day: i64,
        /// The text, untouched.
        text: String,
        /// What it used.
        usage: Usage,
    },
    /// No digest could be had: the platform writes a plain one.
    DigestUnavailable {
        /// The UTC day that it tells of, counted from 1970.
        day: i64,
        /// Why.
        why: String,
        /// Whether the provider may bill it all the same: then it is settled at its bound.
        #[serde(default)]
        maybe_billed: bool,
    },
    /// A signal from a spool; a second one with the same id changes nothing.
    SignalSeen {
        /// The signal.
        signal: Signal,
    },
    /// Where a spool has been read to, journalled with the signals before it.
    SpoolRead {
        /// The spool's path.
        spool: String,
        /// Bytes read.
        offset: u64,
    },
    /// An admin closes a flag.
    CloseFlag {
        /// The signal's id.
        signal: String,
        /// Why.
        reason: String,
        /// Who did it.
        actor: String,
    },
}

impl Input {
    /// Under what its answer is remembered (E4); `None` where the state itself makes a second time a no-op.
    ///
    /// A call ends once: its settlement and its voiding share a key.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::CreateAgent { key, .. } => Some(format!("create/{key}")),
            Self::Income { key, .. } => Some(format!("income/{key}")),
            Self::ReverseIncome { key, .. } => Some(format!("reverse/{key}")),
            Self::Wake { key, .. } => Some(format!("wake/{key}")),
            Self::CallWanted { call, .. } => Some(format!("call/{call}")),
            Self::CallSettled { call, .. } | Self::CallVoided { call, .. } => Some(format!("end/{call}")),
            Self::Genesis { .. }
            | Self::Tick
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Kill { .. }
            | Self::EpisodeStarted { .. }
            | Self::EpisodeEnded { .. }
            | Self::AgentRemoved { .. }
            | Self::ToolUsed { .. }
            | Self::JudgeAnswered { .. }
            | Self::JudgeUnavailable { .. }
            | Self::RetryJudge { .. }
            | Self::Override { .. }
            | Self::DigestAnswered { .. }
            | Self::DigestUnavailable { .. }
            | Self::SignalSeen { .. }
            | Self::SpoolRead { .. }
            | Self::CloseFlag { .. } => None,
        }
    }
}

/// How an episode ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub enum EpisodeEnd {
    /// The process ended by itself.
    Exit {
        /// Its exit code, or 128 and the signal's number.
        code: i32,
    },
    /// The wall clock's limit.
    Time,
    /// Its spending limit, or an empty purse.
    Money,
    /// An admin, a cull or the platform's own stop.
    Stopped,
    /// It could not be started; nothing of the agent ran.
    Failed {
        /// Why.
        why: String,
    },
}

/// What a call used, in tokens, as the provider counts. Unknown fields of the provider's are kept as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Uncached prompt tokens.
    pub input_tokens: u64,
    /// Tokens written to the five-minute cache.
    #[serde(default)]
    pub cache_write_5m_tokens: u64,
    /// Tokens written to the one-hour cache.
    #[serde(default)]
    pub cache_write_1h_tokens: u64,
    /// Tokens read from the cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Output tokens, thinking included.
    pub output_tokens: u64,
    /// What else the provider said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other: BTreeMap<String, String>,
}

/// A tool that changes something; the read-only ones are queries and are not journalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolUse {
    /// The day's report: one paragraph, at most 1,000 characters.
    WriteDailyReport {
        /// Its text.
        text: String,
    },
    /// A child, with a brief of at most 1,000 characters (E9). It needs no key: a second one in a period is refused.
    Reproduce {
        /// Its brief.
        text: String,
    },
    /// The appeal of a condemned agent, at most 2,000 characters.
    SubmitAppeal {
        /// Its text.
        text: String,
    },
    /// The death report of a condemned agent, at most 3,000 characters.
    SubmitDeathReport {
        /// Its text.
        text: String,
    },
}
