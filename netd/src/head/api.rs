//! What clients may ask, and what they are told.

use std::os::fd::{AsFd, OwnedFd};

use policy::{AgentId, ProfileName};

use super::{Confinement, Head, HeadError, Name, Watched};
use crate::hand;
use crate::protocol::{Confined, Difference, Notice, Refusal, Reply, Request, Role};
use crate::seqpacket::{self, Packet, PacketError};

/// Packets of one client before the others have their turn.
const PACKETS_A_TURN: usize = 16;
/// Bytes of one piece of a longer text; escaped it still fits a frame.
const PIECE_BYTES: usize = 1500;

impl Head {
    pub(super) fn serve_connection(&mut self, token: u64) -> Result<(), HeadError> {
        self.flush(token);
        for _ in 0..PACKETS_A_TURN {
            let Some(connection) = self.connections.get(&token) else { return Ok(()) };
            let packet = match seqpacket::receive(connection.socket()) {
                Ok(packet) => packet,
                Err(error) if error.would_block() => return Ok(()),
                Err(_gone) => {
                    self.hang_up(token);
                    return Ok(());
                }
            };
            let replies = self.answer(token, packet)?;
            self.reply(token, &replies);
        }
        Ok(())
    }

    fn reply(&mut self, token: u64, replies: &[Reply]) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let told: Result<(), PacketError> = replies.iter().try_for_each(|reply| connection.tell(reply, None));
        match told {
            Ok(()) => self.flush(token),
            Err(_slow) => self.hang_up(token),
        }
    }

    fn answer(&mut self, token: u64, packet: Packet) -> Result<Vec<Reply>, HeadError> {
        let refused = |refusal| Ok(vec![Reply::Refused { refusal }]);
        let request: Request = match packet.frame() {
            Ok(request) => request,
            Err(error) => return refused(Refusal::Malformed { why: shortened(&error.to_string()) }),
        };
        if let Err(refusal) = self.allowed(token, &request) {
            return refused(refusal);
        }
        let expected = usize::from(matches!(request, Request::Confine { .. }));
        let got = packet.descriptors.len();
        if got != expected {
            return refused(Refusal::Descriptors { expected, got });
        }
        let netns = packet.descriptors.into_iter().next();
        match (request, netns) {
            (Request::Confine { agent, profile, lasting }, Some(netns)) => {
                let held_by = (!lasting).then_some(token);
                match self.confine(&netns, agent, profile, held_by)? {
                    Ok(confined) => Ok(vec![Reply::Confined(confined)]),
                    Err(refusal) => refused(refusal),
                }
            }
            (Request::Confine { .. }, None) => refused(Refusal::Descriptors { expected, got }),
            (Request::Subscribe { role }, _) => Ok(self.subscribe(token, role)),
            (Request::Release { agent }, _) => Ok(vec![if self.release(&agent) {
                Reply::Released {}
            } else {
                Reply::Refused { refusal: Refusal::UnknownAgent { agent } }
            }]),
            (Request::List {}, _) => Ok(self.list()),
            (Request::Verify { agent }, _) => Ok(self.verify(agent.as_ref())),
            (Request::Render { agent }, _) => Ok(self.render(agent)),
        }
    }

    fn allowed(&self, token: u64, request: &Request) -> Result<(), Refusal> {
        let uid = self.connections.get(&token).map_or(u32::MAX, |connection| connection.uid);
        let (users, what) = match request {
            Request::Subscribe { role } => {
                (self.config.clients.of(*role), format!("have the {role}'s listeners"))
            }
            Request::Confine { .. }
            | Request::Release { .. }
            | Request::List {}
            | Request::Verify { .. }
            | Request::Render { .. } => {
                (self.config.clients.control.as_slice(), "control confinements".to_owned())
            }
        };
        if users.contains(&uid) { Ok(()) } else { Err(Refusal::NotAllowed { uid, what }) }
    }

    /// The outer error ends netd; the inner one is the caller's.
    fn confine(
        &mut self,
        netns: &OwnedFd,
        agent: AgentId,
        profile: ProfileName,
        held_by: Option<u64>,
    ) -> Result<Result<Confined, Refusal>, HeadError> {
        if self.confinements.contains_key(&agent) {
            return Ok(Err(Refusal::DuplicateAgent { agent }));
        }
        if self.confinements.len() >= self.confinements_max {
            return Ok(Err(Refusal::Full { limit: self.confinements_max }));
        }
        let opened = match hand::have_entered(self.hand.as_fd(), netns.as_fd()).map_err(HeadError::Hand)? {
            Ok(opened) => opened,
            Err((refusal, cookie)) => return Ok(Err(self.name_holder(refusal, cookie))),
        };
        self.next_generation += 1;
        let name = Name { agent: agent.clone(), profile, generation: self.next_generation, held_by };
        let confinement = match Confinement::put_up(name, opened, &self.around) {
            Ok(confinement) => confinement,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.watch(&confinement.log(), Watched::Log(agent.clone()))?;
        let (owner, persist) = confinement.flags();
        let (generation, netns_cookie) = (confinement.name.generation, confinement.cookie);
        self.confinements.insert(agent.clone(), confinement);
        let subscribers = self.hand_over(&agent);
        Ok(Ok(Confined { generation, netns_cookie, owner, persist, subscribers }))
    }

    /// A namespace that is confined already has sockets and links: whose it is says more.
    fn name_holder(&self, refusal: Refusal, cookie: Option<u64>) -> Refusal {
        let holder = self.confinements.values().find(|confinement| Some(confinement.cookie) == cookie);
        holder.map_or(refusal, |holder| Refusal::NamespaceTaken { agent: holder.name.agent.clone() })
    }

    /// Gives the listeners of one confinement to all subscribers; says how many got one.
    fn hand_over(&mut self, agent: &AgentId) -> u32 {
        let subscribers: Vec<(u64, Role)> = self
            .connections
            .iter()
            .filter_map(|(&token, connection)| Some((token, connection.role?)))
            .collect();
        let mut given = 0;
        for (token, role) in subscribers {
            given += u32::from(self.give(token, role, agent));
            self.flush(token);
        }
        given
    }

    fn give(&mut self, token: u64, role: Role, agent: &AgentId) -> bool {
        let Some(confinement) = self.confinements.get(agent) else { return false };
        let notice = Notice::Listener {
            agent: agent.clone(),
            profile: confinement.name.profile.clone(),
            generation: confinement.name.generation,
        };
        let Ok(copy) = confinement.listener(role).try_clone_to_owned() else {
            crate::say(&format!("{agent}: no descriptor is left for the {role}'s listener"));
            return false;
        };
        let Some(connection) = self.connections.get_mut(&token) else { return false };
        let given = connection.tell(&notice, Some(copy)).is_ok();
        if !given {
            self.hang_up(token);
        }
        given
    }

    fn subscribe(&mut self, token: u64, role: Role) -> Vec<Reply> {
        let Some(connection) = self.connections.get_mut(&token) else { return Vec::new() };
        connection.role = Some(role);
        // First the answer, then what exists: the order of the queue.
        self.reply(token, &[Reply::Subscribed {}]);
        let agents: Vec<AgentId> = self.confinements.keys().cloned().collect();
        for agent in agents {
            self.give(token, role, &agent);
            self.flush(token);
        }
        Vec::new()
    }

    fn list(&mut self) -> Vec<Reply> {
        let all = self.confinements.values_mut().map(|confinement| Reply::Status(confinement.status()));
        all.chain([Reply::End {}]).collect()
    }

    fn verify(&mut self, only: Option<&AgentId>) -> Vec<Reply> {
        if let Some(agent) = only
            && !self.confinements.contains_key(agent)
        {
            return vec![Reply::Refused { refusal: Refusal::UnknownAgent { agent: agent.clone() } }];
        }
        let mut replies = Vec::new();
        for (agent, confinement) in &mut self.confinements {
            if only.is_none_or(|only| only == agent) {
                replies.extend(confinement.differences().into_iter().map(|what| {
                    Reply::Difference(Difference { agent: agent.clone(), what: shortened(&what) })
                }));
            }
        }
        replies.push(Reply::End {});
        replies
    }

    fn render(&self, agent: AgentId) -> Vec<Reply> {
        let Some(confinement) = self.confinements.get(&agent) else {
            return vec![Reply::Refused { refusal: Refusal::UnknownAgent { agent } }];
        };
        pieces(&confinement.render()).map(|text| Reply::Text { text }).chain([Reply::End {}]).collect()
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    // A character of our own rules is one byte.
    let pieces: Vec<String> = characters.chunks(PIECE_BYTES).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

fn shortened(text: &str) -> String {
    text.chars().take(300).collect()
}
