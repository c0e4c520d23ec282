//! Dockets as people may see them: a sealed death report is shown to nobody while its agent lives (E23), and what
//! the judge is being asked is nobody's to read before it has answered.

use std::collections::BTreeMap;

use policy::economy::Reason;
use policy::judge::Facts;
use policy::{AgentId, Instant};
use serde::Serialize;

use super::Core;
use super::docket::{Case, Docket, DocketKind, DocketState, Overturned, Score, Verdict, Version};
use super::input::{DocketId, EpisodeId};
use super::state::Life;

/// A docket without the requests to the judge that are under way.
#[derive(Debug, Clone, Serialize)]
pub struct DocketView<'a> {
    id: DocketId,
    kind: DocketKind,
    at_ms: Instant,
    condemned_ms: Option<Instant>,
    deadline_ms: Option<Instant>,
    state: DocketState,
    note: &'a str,
    eligible: usize,
    performance_ran: bool,
    quota: usize,
    cases: BTreeMap<&'a AgentId, CaseView<'a>>,
    /// How many requests to the judge are not answered yet.
    unanswered: usize,
    outage_ms: Option<Instant>,
    waits_for_admin: bool,
}

/// One case; its death report only where the agent is dead.
#[derive(Debug, Clone, Serialize)]
struct CaseView<'a> {
    reason: Reason,
    facts: &'a Facts,
    created: u64,
    born_ms: Instant,
    episode: Option<EpisodeId>,
    appeals: &'a [Version],
    #[serde(skip_serializing_if = "Option::is_none")]
    death_reports: Option<&'a [Version]>,
    scores: &'a BTreeMap<u32, Score>,
    decision: Option<Verdict>,
    overturned: Option<&'a Overturned>,
    withdrawn: bool,
    done: bool,
}

impl Core {
    /// Every docket for people to look at, in order of their numbers.
    pub fn docket_views(&self) -> impl Iterator<Item = DocketView<'_>> {
        self.dockets().map(|docket| self.docket_view(docket))
    }

    fn docket_view<'a>(&'a self, docket: &'a Docket) -> DocketView<'a> {
        let is_dead = |agent: &AgentId| matches!(self.life(agent), Some(Life::Dead { .. }));
        let cases = docket.cases.iter().map(|(agent, case)| (agent, case_view(case, is_dead(agent))));
        DocketView {
            id: docket.id,
            kind: docket.kind,
            at_ms: docket.at_ms,
            condemned_ms: docket.condemned_ms,
            deadline_ms: docket.deadline_ms,
            state: docket.state,
            note: &docket.note,
            eligible: docket.eligible,
            performance_ran: docket.performance_ran,
            quota: docket.quota,
            cases: cases.collect(),
            unanswered: docket.batches.len(),
            outage_ms: docket.outage_ms,
            waits_for_admin: docket.waits_for_admin,
        }
    }
}

fn case_view(case: &Case, is_dead: bool) -> CaseView<'_> {
    CaseView {
        reason: case.reason,
        facts: &case.facts,
        created: case.created,
        born_ms: case.born_ms,
        episode: case.episode,
        appeals: &case.appeals,
        death_reports: is_dead.then_some(case.death_reports.as_slice()),
        scores: &case.scores,
        decision: case.decision,
        overturned: case.overturned.as_ref(),
        withdrawn: case.withdrawn,
        done: case.done,
    }
}
