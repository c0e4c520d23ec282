//! What the core wants done. Each effect has a key and is carried out at least once.

use policy::{AgentId, Money, ProfileName};
use serde::{Deserialize, Serialize};

use super::input::{DocketId, EpisodeId};

/// One thing to do, or to do again after a restart until its answer is in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start one confined run. Open until `EpisodeEnded`.
    StartEpisode(StartEpisode),
    /// End a run that goes on. Open until `EpisodeEnded`.
    StopEpisode {
        /// Which.
        episode: EpisodeId,
        /// Whose.
        agent: AgentId,
        /// Why, for the log.
        why: String,
    },
    /// Take away everything that runs or could run for an agent before its death is published.
    /// Open until `AgentRemoved`.
    RemoveAgent {
        /// Whose.
        agent: AgentId,
    },
    /// Ask the judge about one batch. Open until `JudgeAnswered` or `JudgeUnavailable`.
    AskJudge {
        /// Which docket.
        docket: DocketId,
        /// The batch's number; a batch asked again has a new one.
        batch: u32,
        /// Model to ask.
        model: String,
        /// The system prompt.
        system: String,
        /// The user message.
        user: String,
        /// The JSON schema of the reply, for the provider's structured output.
        schema: String,
        /// Most tokens that it may answer with; the treasury's hold covers them.
        max_tokens: u64,
    },
    /// Ask for the digest of a day. Open until `DigestAnswered` or `DigestUnavailable`.
    AskDigest {
        /// The UTC day that it tells of, counted from 1970.
        day: i64,
        /// Model to ask.
        model: String,
        /// The system prompt.
        system: String,
        /// The user message.
        user: String,
        /// Most tokens that it may answer with.
        max_tokens: u64,
    },
    /// Something for people who watch: nothing depends on its being seen.
    Announce {
        /// One line.
        text: String,
    },
}

/// Everything that the shell needs for one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartEpisode {
    /// Which.
    pub episode: EpisodeId,
    /// Whose.
    pub agent: AgentId,
    /// Which configured image it runs from.
    pub image: String,
    /// The egress profile while it runs (the empty one for a condemned agent).
    pub profile: ProfileName,
    /// Whether it is a condemned agent's last one.
    pub last: bool,
    /// The wake message (E11), sanitised and wrapped where it quotes others.
    pub wake: String,
    /// Whose history and lessons are copied into its state before it runs: a child's first run (E9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherits: Option<AgentId>,
    /// Wall-clock limit, in milliseconds of the core's clock.
    pub wall_limit_ms: i64,
    /// Most that it may spend, in nano-dollars.
    pub spend_limit_nano: Money,
}

impl Effect {
    /// The key: the same effect issued again has the same one. `None` for announcements.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::StartEpisode(start) => Some(format!("start-episode/{}", start.episode)),
            Self::StopEpisode { episode, .. } => Some(format!("stop-episode/{episode}")),
            Self::RemoveAgent { agent } => Some(format!("remove-agent/{agent}")),
            Self::AskJudge { docket, batch, .. } => Some(format!("ask-judge/{docket}/{batch}")),
            Self::AskDigest { day, .. } => Some(format!("ask-digest/{day}")),
            Self::Announce { .. } => None,
        }
    }
}
