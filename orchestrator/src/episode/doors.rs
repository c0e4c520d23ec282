//! Which listener belongs to which episode: what netd hands over is served only where an episode waits for it.
//!
//! A listener that nobody here waits for is not served: after a restart that is the one of a run that died with
//! the process before, and netd takes it down by itself.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use policy::AgentId;
use tokio_util::sync::CancellationToken;

use crate::core::input::EpisodeId;

/// The episodes that wait for their door, or have it.
#[derive(Debug, Default)]
pub struct Doors {
    open: Mutex<HashMap<AgentId, Door>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Door {
    episode: EpisodeId,
    generation: Option<u64>,
    end: CancellationToken,
}

impl Doors {
    /// From here on a listener of this agent is this episode's.
    pub fn expect(&self, agent: &AgentId, episode: EpisodeId) {
        let door = Door { episode, generation: None, end: CancellationToken::new() };
        if let Some(before) = self.with(|open| open.insert(agent.clone(), door)) {
            before.end.cancel();
        }
    }

    /// A listener has come: whose episode it is, and what ends its service. `None`: it must not be served.
    pub fn arrived(&self, agent: &AgentId, generation: u64) -> Option<(EpisodeId, CancellationToken)> {
        let found = self.with(|open| {
            let door = open.get_mut(agent)?;
            // An older confinement's listener that comes late is dead already.
            if door.generation.is_some_and(|known| known > generation) {
                return None;
            }
            if door.generation.replace(generation).is_some() {
                // Made again by netd: the old one is shut.
                std::mem::replace(&mut door.end, CancellationToken::new()).cancel();
            }
            Some((door.episode, door.end.clone()))
        });
        self.arrived.notify_all();
        found
    }

    /// Waits until the listener of this confinement has come; false if it has not.
    pub fn wait(&self, agent: &AgentId, generation: u64, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if open.get(agent).is_some_and(|door| door.generation == Some(generation)) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (open, _) = self.arrived.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// netd says that a confinement has ended.
    pub fn released(&self, agent: &AgentId, generation: u64) {
        let door = self.with(|open| {
            let dead = open.get(agent)?.generation? <= generation;
            if dead { open.remove(agent) } else { None }
        });
        if let Some(door) = door {
            door.end.cancel();
        }
    }

    /// The episode is over; a later one's door stays.
    pub fn forget(&self, agent: &AgentId, episode: EpisodeId) {
        let door = self.with(|open| {
            let same = open.get(agent)?.episode == episode;
            if same { open.remove(agent) } else { None }
        });
        if let Some(door) = door {
            door.end.cancel();
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<AgentId, Door>) -> T) -> T {
        act(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> AgentId {
        AgentId::parse("a").unwrap()
    }

    #[test]
    fn a_listener_that_nobody_waits_for_is_not_served() {
        assert!(Doors::default().arrived(&agent(), 1).is_none());
    }

    #[test]
    fn a_listener_belongs_to_the_episode_that_waits_for_it() {
        let doors = Doors::default();
        doors.expect(&agent(), 7);
        let (episode, end) = doors.arrived(&agent(), 1).unwrap();
        assert_eq!(episode, 7);
        assert!(doors.wait(&agent(), 1, Duration::ZERO));
        assert!(!doors.wait(&agent(), 2, Duration::ZERO));
        doors.forget(&agent(), 7);
        assert!(end.is_cancelled());
    }

    #[test]
    fn the_end_of_an_old_episode_leaves_the_new_ones_door() {
        let doors = Doors::default();
        doors.expect(&agent(), 7);
        doors.expect(&agent(), 8);
        doors.forget(&agent(), 7);
        assert!(doors.arrived(&agent(), 1).is_some());
    }

    #[test]
    fn a_released_confinement_serves_no_more() {
        let doors = Doors::default();
        doors.expect(&agent(), 7);
        let (_, end) = doors.arrived(&agent(), 3).unwrap();
        doors.released(&agent(), 2);
        assert!(!end.is_cancelled());
        doors.released(&agent(), 3);
        assert!(end.is_cancelled());
    }
}
