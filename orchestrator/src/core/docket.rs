//! Dockets.
use policy::{AgentId, Instant};
use serde::Serialize;

use super::effect::Effect;
use super::input::{DocketId, EpisodeId, Input, ToolUse, Usage};
use super::reply::{Refusal, Reply};
use super::{Core, Fault};

/// A docket.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Docket {}

fn nothing() -> Result<Reply, Fault> {
    Ok(Refusal::Unknown { what: "docket".to_owned() }.into())
}

impl Core {
    pub(super) fn withdraw(&mut self, _d: DocketId, _a: &AgentId) {}
    pub(super) fn start_last_episode(
        &mut self,
        _n: Instant,
        _d: DocketId,
        _a: &AgentId,
    ) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn close_appeals(&mut self, _n: Instant, _d: DocketId) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn ask_again(&mut self, _n: Instant, _d: DocketId, _b: u32) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn execute(&mut self, _n: Instant, _d: DocketId) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn warn(&mut self, _n: Instant) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn digest_due(&mut self, _n: Instant) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn condemn_starving(&mut self, _n: Instant) -> Result<(), Fault> {
        Ok(())
    }
    pub(super) fn submit(
        &mut self,
        _n: Instant,
        _d: DocketId,
        _a: &AgentId,
        _t: &ToolUse,
    ) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn judge_answered(&mut self, _n: Instant, _i: &Input) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn judge_unavailable(
        &mut self,
        _n: Instant,
        _b: (DocketId, u32),
        _w: &str,
    ) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn retry_judge(&mut self, _n: Instant, _d: DocketId) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn override_decision(&mut self, _i: &Input) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn digest_answered(
        &mut self,
        _n: Instant,
        _d: i64,
        _t: &str,
        _u: &Usage,
    ) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn digest_unavailable(&mut self, _n: Instant, _d: i64, _w: &str) -> Result<Reply, Fault> {
        nothing()
    }
    pub(super) fn agent_removed(&mut self, _n: Instant, id: &AgentId) -> Result<Reply, Fault> {
        self.state.open.remove(&Effect::RemoveAgent { agent: id.clone() }.key().unwrap_or_default());
        Ok(Reply::Done)
    }
    pub(super) fn wake_text(&self, id: &AgentId, now: Instant) -> Option<String> {
        let agent = self.state.agents.get(id)?;
        Some(format!("It is {now}.\n{}", agent.events.join("\n")))
    }
    /// x
    pub fn episode_placeholder(&self) -> EpisodeId {
        0
    }
}
