//! Children: a parent's gift, its brief, and what is copied from its state (E9).

use policy::economy::reproduction::{BRIEF_CHARS_MAX, Nursery, Parent, may_reproduce};
use policy::judge::sanitise::sanitise;
use policy::{AgentId, Instant};

use super::ledger::Account;
use super::lives::{born, missing};
use super::reply::{Refusal, Reply};
use super::state::{Event, Life};
use super::{Core, Fault};

impl Core {
    /// An agent has a child. The child's money is a gift: it moves from purse to purse, and is neither the child's
    /// income nor the parent's cost, since no profit of the platform's came or went.
    pub(super) fn reproduce(&mut self, now: Instant, id: &AgentId, brief: &str) -> Result<Reply, Fault> {
        let (parent, nursery) = self.parent_and_nursery(now, id)?;
        if let Err(no_child) = may_reproduce(&parent, &nursery) {
            return Ok(Refusal::Invalid { what: no_child.to_string() }.into());
        }
        let child = self.child_name()?;
        let purses = (Account::Agent(id.clone()), Account::Agent(child.clone()));
        self.post(now, purses, nursery.gift, "gift", child.as_str())?;
        let agent = self.agent_mut(id)?;
        agent.children = agent.children.saturating_add(1);
        agent.last_child_ms = Some(now);
        let image = agent.image.clone();
        // A parent's words reach a child as any agent's words reach another: cleaned, and quoted as its own.
        let brief = sanitise(brief, BRIEF_CHARS_MAX).0.as_str().to_owned();
        let mut agent = born(now, &child, [child.as_str(), &image, &brief]);
        agent.parent = Some(id.clone());
        let text = format!(
            "You were born, a child of {id}. Copies of its history.md and lessons.md, where it kept them, are in your \
             state. Its brief for you:"
        );
        self.bear(now, &child, (agent, Event { text, quoted: Some(("brief".to_owned(), brief)) }));
        self.announce(format!("{child} is born, a child of {id}"));
        Ok(Reply::Tool { text: format!("{child} is born. You gave it {}.", nursery.gift) })
    }

    fn parent_and_nursery(&self, now: Instant, id: &AgentId) -> Result<(Parent, Nursery), Fault> {
        let agent = self.state.agents.get(id).ok_or_else(|| missing(&format!("agent {id}")))?;
        let living = self.state.agents.values().filter(|agent| !matches!(agent.life, Life::Dead { .. }));
        let parent = Parent {
            state: agent.life.for_rules(),
            paused: agent.paused,
            tier_allows: self.tier(id, now).1.may_reproduce,
            available: self.balance(id).available(),
            cheapest_hold: self.cheapest_hold(id, now),
            last_child: agent.last_child_ms,
        };
        let nursery = Nursery {
            gift: self.state.settings.money.grant_nano,
            period_start: self.period_start(now),
            living: living.count(),
            population_max: self.state.settings.lives.population_max as usize,
        };
        Ok((parent, nursery))
    }

    /// The platform names children, by their number: a name of the parent's choosing could be another's.
    fn child_name(&self) -> Result<AgentId, Fault> {
        let first = self.state.agents.len() as u64 + 1;
        let free = |number: u64| {
            let id = AgentId::parse(&format!("child-{number}")).ok()?;
            (!self.state.agents.contains_key(&id)).then_some(id)
        };
        // Of one more name than there are agents, one is free.
        (first..=first.saturating_mul(2)).find_map(free).ok_or_else(|| missing("a name for a child"))
    }
}
