//! Births, wakes, episodes, pauses and ends by an admin (E1, E10).

use policy::time::DAY_MS;
use policy::{AgentId, Instant};

use super::effect::{Effect, StartEpisode};
use super::input::{DocketId, EpisodeEnd, EpisodeId};
use super::ledger::Account;
use super::reply::{Refusal, Reply};
use super::state::{Agent, Due, Episode, Event, Flow, Life};
use super::{Core, Fault};

/// Longest name and image name, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Longest brief and event, in characters.
const TEXT_CHARS_MAX: usize = 4_000;

/// What the platform's own parts go by where agents are named: signals of and rules for an agent of such a name
/// could be taken for theirs.
const RESERVED: [&str; 2] = ["darwin-proxy", "selftest"];
const RESERVED_PREFIX: &str = "listen-";

impl Core {
    /// An agent is born with its grant, and its birth wakes it.
    pub(super) fn create_agent(
        &mut self,
        now: Instant,
        id: &AgentId,
        [name, image, brief]: [&str; 3],
    ) -> Result<Reply, Fault> {
        if self.state.agents.contains_key(id) {
            return Ok(Refusal::Invalid { what: format!("agent {id} exists, or existed, already") }.into());
        }
        if is_reserved(id) {
            let what = format!(
                "agent {id}: {RESERVED:?} and names that begin with {RESERVED_PREFIX} are the platform's"
            );
            return Ok(Refusal::Invalid { what }.into());
        }
        let texts = [
            ("name", name, NAME_CHARS_MAX),
            ("image", image, NAME_CHARS_MAX),
            ("brief", brief, TEXT_CHARS_MAX),
        ];
        if let Some(refusal) = texts.iter().find_map(|(what, text, limit)| over_limit(what, text, *limit)) {
            return Ok(refusal.into());
        }
        if name.trim().is_empty() {
            return Ok(Refusal::Invalid { what: "the name is blank".to_owned() }.into());
        }
        let grant = self.state.settings.money.grant_nano;
        let available_nano = self.state.ledger.balance(&Account::Treasury).available();
        if available_nano < grant {
            return Ok(Refusal::NoMoney { available_nano }.into());
        }
        self.post(now, (Account::Treasury, Account::Agent(id.clone())), grant, "grant", id.as_str())?;
        let told = Event::platform(format!("You were born. Your brief: {brief}"));
        self.bear(now, id, (born(now, id, [name, image, brief]), told));
        Ok(Reply::Created { agent: id.clone() })
    }

    /// Puts a new agent, whose purse is filled, among the others; its birth wakes it.
    pub(super) fn bear(&mut self, now: Instant, id: &AgentId, (mut agent, told): (Agent, Event)) {
        agent.created = self.state.agents.len() as u64 + 1;
        agent.next_wake_ms = self.first_wake(now, agent.created);
        agent.events.push(told);
        self.due_at(agent.next_wake_ms, Due::Wake(id.clone()));
        self.state.agents.insert(id.clone(), agent);
        self.state.wanting.insert(id.clone());
        self.out.agents.insert(id.clone());
    }

    pub(super) fn pause(&mut self, id: &AgentId, paused: bool) -> Reply {
        let Some(agent) = self.state.agents.get_mut(id) else { return unknown_agent(id) };
        if agent.life != Life::Alive {
            return Refusal::WrongState { state: agent.life.word().to_owned() }.into();
        }
        agent.paused = paused;
        let episode = agent.episode;
        self.out.agents.insert(id.clone());
        if let (true, Some(episode)) = (paused, episode) {
            self.stop_episode(episode, "paused by an admin");
        }
        Reply::Done
    }

    /// An admin ends an agent: what runs for it goes first, and its death is published when that is done.
    pub(super) fn kill(&mut self, id: &AgentId, why: &str) -> Reply {
        let Some(agent) = self.state.agents.get_mut(id) else { return unknown_agent(id) };
        let docket = match agent.life {
            Life::Alive => None,
            Life::Condemned { docket } => Some(docket),
            Life::Removing { .. } => return Reply::Done,
            Life::Dead { .. } => return Refusal::WrongState { state: "dead".to_owned() }.into(),
        };
        agent.life = Life::Removing { cause: format!("ended by an admin: {why}"), docket };
        if let Some(docket) = docket {
            self.withdraw(docket, id);
        }
        self.remove_agent(id);
        Reply::Done
    }

    /// Asks the shell to take away everything that runs for an agent.
    pub(super) fn remove_agent(&mut self, id: &AgentId) {
        let episode = self.state.agents.get(id).and_then(|agent| agent.episode);
        if let Some(episode) = episode {
            self.stop_episode(episode, "the agent is removed");
        }
        self.state.wanting.remove(id);
        self.out.agents.insert(id.clone());
        self.emit(Effect::RemoveAgent { agent: id.clone() });
    }

    /// Something that an agent is told at its next wake, which it causes.
    pub(super) fn event(&mut self, id: &AgentId, event: &str) -> Reply {
        let Some(agent) = self.state.agents.get_mut(id) else { return unknown_agent(id) };
        if matches!(agent.life, Life::Dead { .. } | Life::Removing { .. }) {
            return Refusal::WrongState { state: agent.life.word().to_owned() }.into();
        }
        if let Some(refusal) = over_limit("event", event, TEXT_CHARS_MAX) {
            return refusal.into();
        }
        agent.events.push(Event {
            text: "A message for you:".to_owned(),
            quoted: Some(("message".to_owned(), event.to_owned())),
        });
        self.state.wanting.insert(id.clone());
        Reply::Done
    }

    /// A wake that the schedule brings; those that were missed meanwhile are made up for by this one.
    pub(super) fn wake_by_schedule(&mut self, now: Instant, id: AgentId) {
        let every = self.state.settings.lives.wake_every_ms;
        let Some(agent) = self.state.agents.get_mut(&id) else { return };
        if matches!(agent.life, Life::Dead { .. } | Life::Removing { .. }) {
            return;
        }
        let missed = now.since_ms(agent.next_wake_ms).div_euclid(every);
        agent.next_wake_ms = agent.next_wake_ms.plus_ms(every.saturating_mul(missed.saturating_add(1)));
        let next = agent.next_wake_ms;
        let wakes = agent.life == Life::Alive && !agent.paused && agent.episode.is_none();
        if wakes {
            self.state.wanting.insert(id.clone());
        }
        self.due_at(next, Due::Wake(id));
    }

    /// Starts an episode for each agent that something wakes and that can be woken.
    pub(super) fn start_wanted(&mut self, now: Instant) -> Result<(), Fault> {
        let ready = |id: &&AgentId| {
            self.state
                .agents
                .get(id)
                .is_some_and(|agent| agent.life == Life::Alive && !agent.paused && agent.episode.is_none())
        };
        let ready: Vec<AgentId> = self.state.wanting.iter().filter(ready).cloned().collect();
        for id in ready {
            self.state.wanting.remove(&id);
            self.start_episode(now, &id, None)?;
        }
        Ok(())
    }

    /// Starts one run: an ordinary one, or a condemned agent's last one that its docket pays for.
    pub(super) fn start_episode(
        &mut self,
        now: Instant,
        id: &AgentId,
        docket: Option<(DocketId, Instant)>,
    ) -> Result<(), Fault> {
        let wake = self.wake_text(id, now).unwrap_or_default();
        self.state.episodes_made += 1;
        let episode = self.state.episodes_made;
        let lives = &self.state.settings.lives;
        let (profile, spend_limit_nano) = if docket.is_some() {
            (lives.condemned_profile.clone(), self.state.settings.appeal.budget_nano)
        } else {
            let profile = self.tier(id, now).1.profile.as_ref().unwrap_or(&lives.profile);
            (profile.clone(), lives.episode_spend_nano)
        };
        let wall_limit_ms = docket
            .map_or(lives.episode_wall_ms, |(_, deadline)| deadline.since_ms(now).min(lives.episode_wall_ms));
        let agent = self.state.agents.get_mut(id).ok_or_else(|| missing(&format!("agent {id}")))?;
        agent.episode = Some(episode);
        let told = std::mem::take(&mut agent.events);
        if let Some(at) = agent.again_ms.take() {
            self.state.due.remove(&(at, Due::Again(id.clone())));
        }
        let start = StartEpisode {
            episode,
            agent: id.clone(),
            image: agent.image.clone(),
            profile,
            last: docket.is_some(),
            wake,
            inherits: agent.parent.clone().filter(|_| !agent.has_run),
            wall_limit_ms,
            spend_limit_nano,
        };
        let open = Episode {
            start: start.clone(),
            docket: docket.map(|(docket, _)| docket),
            started_ms: None,
            ends_ms: None,
            stop: None,
            spent_nano: policy::Money::ZERO,
            told,
        };
        self.state.episodes.insert(episode, open);
        self.emit(Effect::StartEpisode(start));
        Ok(())
    }

    pub(super) fn episode_started(&mut self, now: Instant, id: EpisodeId) -> Reply {
        let Some(episode) = self.state.episodes.get_mut(&id) else {
            return Refusal::Unknown { what: format!("open episode {id}") }.into();
        };
        // Started again after a restart: its wall clock starts again with it.
        let before = episode.ends_ms;
        let ends = now.plus_ms(episode.start.wall_limit_ms);
        episode.started_ms = Some(now);
        episode.ends_ms = Some(ends);
        if let Some(agent) = self.state.agents.get_mut(&episode.start.agent) {
            agent.has_run = true;
        }
        if let Some(before) = before {
            self.state.due.remove(&(before, Due::EpisodeLimit(id)));
        }
        self.due_at(ends, Due::EpisodeLimit(id));
        Reply::Done
    }

    /// Asks the shell to end a run. The run's start is no longer open: after a restart only the stop is asked for,
    /// and the shell answers it for a run that it does not know as well.
    pub(super) fn stop_episode(&mut self, id: EpisodeId, why: &str) {
        let Some(episode) = self.state.episodes.get_mut(&id) else { return };
        if episode.stop.is_some() {
            return;
        }
        episode.stop = Some(why.to_owned());
        let agent = episode.start.agent.clone();
        self.state.open.remove(&format!("start-episode/{id}"));
        self.emit(Effect::StopEpisode { episode: id, agent, why: why.to_owned() });
    }

    pub(super) fn episode_ended(
        &mut self,
        now: Instant,
        id: EpisodeId,
        end: &EpisodeEnd,
    ) -> Result<Reply, Fault> {
        let Some(episode) = self.forget_episode(id) else {
            if id <= self.state.episodes_made && id > 0 {
                return Ok(Reply::Done);
            }
            return Ok(Refusal::Unknown { what: format!("episode {id}") }.into());
        };
        let why = match end {
            EpisodeEnd::Failed { why } => format!("could not be started: {why}"),
            EpisodeEnd::Stopped if episode.stop.is_none() => "was lost: the host ended it".to_owned(),
            EpisodeEnd::Stopped | EpisodeEnd::Exit { .. } | EpisodeEnd::Time | EpisodeEnd::Money => {
                return self.after_episode(now, &episode, false);
            }
        };
        self.announce(format!("episode {id} of {} {why}", episode.start.agent));
        if let Some(agent) = self.state.agents.get_mut(&episode.start.agent) {
            agent.events.splice(0..0, episode.told.iter().cloned());
        }
        self.after_episode(now, &episode, episode.stop.is_none())
    }

    /// Takes an episode out of the state, with its timers and effects.
    pub(super) fn forget_episode(&mut self, id: EpisodeId) -> Option<Episode> {
        let episode = self.state.episodes.remove(&id)?;
        self.state.open.remove(&format!("start-episode/{id}"));
        self.state.open.remove(&format!("stop-episode/{id}"));
        if let Some(ends) = episode.ends_ms {
            self.state.due.remove(&(ends, Due::EpisodeLimit(id)));
        }
        if let Some(agent) = self.state.agents.get_mut(&episode.start.agent) {
            agent.episode = None;
        }
        Some(episode)
    }

    /// A condemned agent's last episode waits for the end of the one that it was in. A run that was `lost` (it did
    /// not start, or it ended though nobody asked for that) is an outage of ours: it is made again.
    fn after_episode(&mut self, now: Instant, episode: &Episode, lost: bool) -> Result<Reply, Fault> {
        let id = &episode.start.agent;
        let Some(agent) = self.state.agents.get_mut(id) else { return Ok(Reply::Done) };
        agent.lost = if lost { agent.lost.saturating_add(1) } else { 0 };
        match agent.life {
            Life::Condemned { docket } if episode.docket.is_none() => {
                self.start_last_episode(now, docket, id)?;
            }
            Life::Condemned { docket } if lost => self.retry_last_episode(now, docket, id)?,
            Life::Condemned { docket } => self.close_if_over(now, docket)?,
            Life::Alive if lost => self.want_again(now, id),
            Life::Alive | Life::Removing { .. } | Life::Dead { .. } => {}
        }
        Ok(Reply::Done)
    }

    /// Has an ordinary run that was lost made again: each time after twice the wait, up to a schedule's own.
    fn want_again(&mut self, now: Instant, id: &AgentId) {
        let (first, longest) = (self.state.settings.appeal.retry_ms, self.state.settings.lives.wake_every_ms);
        let Some(agent) = self.state.agents.get_mut(id) else { return };
        let doublings = agent.lost.saturating_sub(1).min(30);
        let at = now.plus_ms(first.saturating_mul(1_i64 << doublings).min(longest));
        agent.again_ms = Some(at);
        self.due_at(at, Due::Again(id.clone()));
    }

    /// The wait after a lost run is over.
    pub(super) fn wake_again(&mut self, id: AgentId) {
        let Some(agent) = self.state.agents.get_mut(&id) else { return };
        agent.again_ms = None;
        if agent.life == Life::Alive && agent.episode.is_none() {
            self.state.wanting.insert(id);
        }
    }

    /// The agent's first wake by the schedule: its place in the day, after its birth.
    fn first_wake(&self, now: Instant, created: u64) -> Instant {
        let lives = &self.state.settings.lives;
        let number = i64::try_from(created).unwrap_or(i64::MAX).saturating_sub(1);
        let spread = number.saturating_mul(lives.wake_spread_ms).rem_euclid(lives.wake_every_ms);
        let base = now.midnight().plus_ms(lives.wake_at_ms).plus_ms(spread).plus_ms(-DAY_MS);
        let missed = now.since_ms(base).div_euclid(lives.wake_every_ms);
        base.plus_ms(lives.wake_every_ms.saturating_mul(missed.saturating_add(1)))
    }
}

fn is_reserved(id: &AgentId) -> bool {
    RESERVED.contains(&id.as_str()) || id.as_str().starts_with(RESERVED_PREFIX)
}

/// A new agent, without a number or a wake yet.
pub(super) fn born(now: Instant, id: &AgentId, [name, image, brief]: [&str; 3]) -> Agent {
    Agent {
        id: id.clone(),
        name: name.to_owned(),
        image: image.to_owned(),
        brief: brief.to_owned(),
        created: 0,
        born_ms: now,
        life: Life::Alive,
        paused: false,
        reprieves: 0,
        parent: None,
        has_run: false,
        children: 0,
        last_child_ms: None,
        exempt: false,
        next_wake_ms: now,
        events: Vec::new(),
        episode: None,
        lost: 0,
        again_ms: None,
        days: std::collections::BTreeMap::new(),
        lifetime: Flow::default(),
        internal_nano: policy::Money::ZERO,
        clearing_nano: policy::Money::ZERO,
        earned: Vec::new(),
        report: None,
        report_versions: 0,
        reports: Vec::new(),
    }
}

/// A refusal of a text over its limit, with both lengths.
pub(super) fn over_limit(what: &str, text: &str, limit: usize) -> Option<Refusal> {
    let chars = text.chars().count();
    (chars > limit)
        .then(|| Refusal::Invalid { what: format!("the {what} has {chars} characters, more than {limit}") })
}

pub(super) fn unknown_agent(id: &AgentId) -> Reply {
    Refusal::Unknown { what: format!("agent {id}") }.into()
}

pub(super) fn missing(what: &str) -> Fault {
    Fault::Missing { what: what.to_owned() }
}
