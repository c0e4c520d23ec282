//! What whoever brought an input is told at once.

use policy::{AgentId, Money};
use serde::{Deserialize, Serialize};

/// The answer to one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Done; also the answer to an input that had been done before with the same key and body.
    Done,
    /// The agent lives.
    Created {
        /// Its identifier.
        agent: AgentId,
    },
    /// The call may be made.
    Held {
        /// What is held for it.
        hold_nano: Money,
        /// The token limit that the balance can pay for: as asked, or less.
        max_tokens: u64,
    },
    /// A tool did its work.
    Tool {
        /// What the agent is told.
        text: String,
    },
    /// Nothing was changed.
    Refused(Refusal),
}

/// Why an input changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refusal", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// The purse cannot pay the cheapest form of this call (402, no Retry-After).
    #[error("the balance of {available_nano} cannot pay for this call")]
    NoMoney {
        /// What there is.
        available_nano: Money,
    },
    /// It could, but for money in open holds (429 with Retry-After).
    #[error("{held_nano} is held for calls that are still open")]
    MoneyHeld {
        /// What is held.
        held_nano: Money,
    },
    /// The episode's own spending limit is reached (402).
    #[error("this episode's spending limit is reached")]
    SpendLimit,
    /// Dead, paused, or the episode is over (403).
    #[error("the agent may not do this now: it is {state}")]
    WrongState {
        /// Its state.
        state: String,
    },
    /// The model is not on the agent's menu, or has no price.
    #[error("model {model} is not on the menu: {menu:?}")]
    ModelNotOnMenu {
        /// As asked for.
        model: String,
        /// What is.
        menu: Vec<String>,
    },
    /// No such agent, episode, call or docket.
    #[error("there is no {what}")]
    Unknown {
        /// What was asked for.
        what: String,
    },
    /// Same key, another body (409).
    #[error("key {key} was used before with another body")]
    Conflict {
        /// The key.
        key: String,
    },
    /// The income was taken back before, under another key (409).
    #[error("income {income} was reversed before")]
    Reversed {
        /// The income's key.
        income: String,
    },
    /// A text over its limit, blank, or a value out of its range.
    #[error("{what}")]
    Invalid {
        /// What is wrong, with the limit.
        what: String,
    },
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
