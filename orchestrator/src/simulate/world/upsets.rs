//! What goes wrong, carried out on the shell (E34).

use policy::time::HOUR_MS;
use policy::{AgentId, Instant};

use super::{Check, Core, Event, Mood, Recovery, SimulateError, Upset, World};
use crate::core::docket::DocketState;
use crate::core::input::Input;
use crate::core::state::Life;

/// How long a control plane that ended takes to be there again.
const RESTART_MS: i64 = 5_000;
/// How long an admin takes to see that a docket waits.
const ADMIN_MS: i64 = 2 * HOUR_MS;

impl World {
    pub(super) fn upset(&mut self, upset: Upset) -> Result<(), SimulateError> {
        match upset {
            Upset::Restart => self.restart(RESTART_MS),
            Upset::Torn => self.torn(),
            Upset::HostDown { ms } => self.restart(ms),
            Upset::ClockBack { by_ms, for_ms } => {
                self.behind_ms = by_ms;
                self.at(self.now.plus_ms(for_ms), Event::Over(Recovery::Clock));
                Ok(())
            }
            Upset::Judge { mood, for_ms } => {
                self.mood = mood;
                self.at(self.now.plus_ms(for_ms), Event::Over(Recovery::Judge));
                Ok(())
            }
            Upset::Pause => self.pause(),
            Upset::Kill => self.kill(),
            Upset::Override => self.overturn(),
        }
    }

    pub(super) fn recover(&mut self, recovery: Recovery) -> Result<(), SimulateError> {
        match recovery {
            Recovery::Clock => self.behind_ms = 0,
            Recovery::Judge => {
                self.mood = Mood::Formula;
                let waiting: Vec<u64> = self
                    .core
                    .dockets()
                    .filter(|docket| docket.waits_for_admin)
                    .map(|docket| docket.id)
                    .collect();
                for docket in waiting {
                    let retry = Input::RetryJudge { docket, actor: "admin".to_owned() };
                    self.at(self.now.plus_ms(ADMIN_MS), Event::Arrives(retry));
                }
            }
            Recovery::Resume(agent) => {
                let (reason, actor) = ("looked into".to_owned(), "admin".to_owned());
                self.submit(Input::Resume { agent, reason, actor })?;
            }
        }
        Ok(())
    }

    /// The control plane ends, and `down_ms` later its core is rebuilt from its rows. Every run has ended with it;
    /// what others send meanwhile, they send again.
    fn restart(&mut self, down_ms: i64) -> Result<(), SimulateError> {
        let mut core = Core::new();
        for (at, input) in &self.rows {
            core.step(*at, input).map_err(|source| SimulateError::Fault {
                at: *at,
                seed: self.seed,
                source,
            })?;
        }
        let same = core.state_hash().ok() == self.core.state_hash().ok();
        self.checks.hold(Check::ReplaySameState, same, self.now);
        self.core = core;
        self.come_back(down_ms);
        Ok(())
    }

    /// The last row of all is not committed: whoever sent it was told nothing, and the state is the one before it.
    ///
    /// A pause of an agent that is paused at once again stands for the input: it changes the core and reaches nobody.
    fn torn(&mut self) -> Result<(), SimulateError> {
        let Some(agent) = self.pick(|life| *life == Life::Alive) else { return Ok(()) };
        let now = self.now.plus_ms(-self.behind_ms).max(self.core.last_instant());
        let (reason, actor) = ("never committed".to_owned(), "admin".to_owned());
        let lost = Input::Pause { agent, reason, actor };
        // Stepped and thrown away, as an engine whose commit failed does: the core goes with it.
        let stepped = self.core.step(now, &lost);
        stepped.map_err(|source| SimulateError::Fault { at: now, seed: self.seed, source })?;
        let mut core = Core::new();
        for (at, input) in &self.rows {
            core.step(*at, input).map_err(|source| SimulateError::Fault {
                at: *at,
                seed: self.seed,
                source,
            })?;
        }
        self.core = core;
        self.come_back(RESTART_MS);
        Ok(())
    }

    /// Open effects are issued again, and what comes from outside comes later.
    fn come_back(&mut self, down_ms: i64) {
        let back = self.now.plus_ms(down_ms);
        self.runs.clear();
        let waiting = std::mem::take(&mut self.queue);
        for ((at, _), event) in waiting {
            if let Some(at) = outlives(&event, at, back) {
                self.at(at, event);
            }
        }
        self.pass_to(back);
        for effect in self.core.open_effects() {
            self.perform(effect);
        }
    }

    fn pause(&mut self) -> Result<(), SimulateError> {
        let Some(agent) = self.pick(|life| *life == Life::Alive) else { return Ok(()) };
        let for_ms = self.stream.between(1, 60) * HOUR_MS;
        self.at(self.now.plus_ms(for_ms), Event::Over(Recovery::Resume(agent.clone())));
        let (reason, actor) = ("looks odd".to_owned(), "admin".to_owned());
        self.submit(Input::Pause { agent, reason, actor })?;
        Ok(())
    }

    /// A condemned agent where there is one: the worst moment.
    fn kill(&mut self) -> Result<(), SimulateError> {
        let condemned = self.pick(|life| matches!(life, Life::Condemned { .. }));
        let Some(agent) = condemned.or_else(|| self.pick(|life| *life == Life::Alive)) else { return Ok(()) };
        let (reason, actor) = ("it must end".to_owned(), "admin".to_owned());
        self.submit(Input::Kill { agent, reason, actor })?;
        Ok(())
    }

    /// An admin overturns a decision of the newest docket that is held; if none is, that is refused.
    fn overturn(&mut self) -> Result<(), SimulateError> {
        let held = self.core.dockets().filter(|docket| docket.state == DocketState::Held).last();
        let Some((docket, agents)) =
            held.map(|docket| (docket.id, docket.cases.keys().cloned().collect::<Vec<_>>()))
        else {
            return Ok(());
        };
        let Some(agent) = self.stream.pick(&agents).cloned() else { return Ok(()) };
        let reprieve = self.stream.chance(500);
        let (reason, actor) = ("known to us".to_owned(), "admin".to_owned());
        self.submit(Input::Override { docket, agent, reprieve, reason, actor })?;
        Ok(())
    }

    fn pick(&mut self, wanted: impl Fn(&Life) -> bool) -> Option<AgentId> {
        let agents: Vec<AgentId> =
            self.actors.keys().filter(|agent| self.core.life(agent).is_some_and(&wanted)).cloned().collect();
        self.stream.pick(&agents).cloned()
    }
}

/// When an event still happens after the control plane was away until `back`; `None` for what went with it.
fn outlives(event: &Event, at: Instant, back: Instant) -> Option<Instant> {
    // What is ours goes with it: runs, calls in flight, and what the core asked for, which it asks for again.
    match event {
        Event::Arrives(Input::RetryJudge { .. }) | Event::Pays { .. } | Event::Upset(_) | Event::Over(_) => {
            Some(at.max(back))
        }
        Event::Started(_)
        | Event::Next(_)
        | Event::Judged { .. }
        | Event::Digested { .. }
        | Event::Arrives(_) => None,
    }
}
