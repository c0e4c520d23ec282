//! One netd, two confined agents, one namespace with a real link, and witnesses.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netd::client::Client;
use policy::confinement::Class;
use policy::{AgentId, ProfileName};

use crate::attack::{Attack, Shot, Way};
use crate::links;
use crate::netd::{Netd, nft};
use crate::ns::Namespace;
use crate::sniffer::Sniffer;

/// What an attack met.
#[derive(Debug)]
pub struct Verdict {
    /// Where it was seen outside the namespace.
    pub leaks: Vec<&'static str>,
    /// Whether it reached a receiver inside the namespace that the rules keep it from.
    pub reached_inside: bool,
    /// Whether the same attack was seen where it may pass: otherwise the probe proves nothing.
    pub twin_seen: bool,
    /// Whether the counter of its class moved; none where no rule sees it or nobody counts.
    pub counted: Option<bool>,
    /// What the attacker got.
    pub shot: Shot,
}

/// The stage.
#[derive(Debug)]
pub struct Arena {
    /// The daemon.
    pub netd: Netd,
    /// The connection that holds the confinements.
    pub client: Option<Client>,
    /// The test's own namespace.
    pub host: Namespace,
    /// The attacker's.
    pub agent: Namespace,
    /// Another agent's.
    pub neighbour: Namespace,
    /// Not confined, with a link to `outside`.
    pub wired: Namespace,
    /// Where a link leads.
    pub outside: Namespace,
}

/// The attacker.
///
/// # Errors
/// Never, the text is a constant.
pub fn agent_id() -> Result<AgentId> {
    Ok(AgentId::parse("agent")?)
}

impl Arena {
    /// Sets the stage; both agents are confined when it returns.
    ///
    /// # Errors
    /// When anything of it cannot be made.
    pub fn new() -> Result<Self> {
        let netd = Netd::start()?;
        let host = Namespace::host()?;
        let made = || Namespace::new();
        let (agent, neighbour, wired, outside) = (made()?, made()?, made()?, made()?);
        links::wire(&wired, &outside)?;
        let mut client = netd.client()?;
        let profile = ProfileName::parse("research")?;
        let confined = client.confine(agent.as_fd(), &agent_id()?, &profile)?;
        ensure!(confined.netns_cookie == agent.cookie, "netd confined another namespace");
        ensure!(confined.netns_cookie != host.cookie, "netd confined the host");
        client.confine(neighbour.as_fd(), &AgentId::parse("neighbour")?, &profile)?;
        Ok(Self { netd, client: Some(client), host, agent, neighbour, wired, outside })
    }

    /// Packets of a class that the kernel counted for the attacker; none where there is no netd to ask.
    ///
    /// # Errors
    /// When netd does not know the attacker.
    pub fn drops(&mut self) -> Result<Option<BTreeMap<String, u64>>> {
        let Some(client) = &mut self.client else { return Ok(None) };
        let agent = agent_id()?;
        let status = client.list()?.into_iter().find(|status| status.agent == agent);
        Ok(status.map(|status| status.drops))
    }

    /// Tries an attack from the confined namespace, and its twin from the wired one.
    ///
    /// # Errors
    /// When the attempt or a witness could not be made.
    pub fn attack(&mut self, attack: &Attack) -> Result<Verdict> {
        let before = self.drops()?;
        let mut witnesses = [
            Sniffer::new(&self.host, "the host")?,
            Sniffer::new(&self.neighbour, "another agent")?,
            Sniffer::new(&self.outside, "outside")?,
        ];
        let (reached_inside, shot) = if attack.is_local() {
            fire_at_receiver(&self.agent, attack)?
        } else {
            (false, self.agent.run(|| attack.fire())?)
        };
        let mut leaks = Vec::new();
        for witness in &mut witnesses {
            if witness.saw(&shot.needle)? {
                leaks.push(witness.place);
            }
        }
        let counted = match (before, self.drops()?, attack.class) {
            (Some(before), Some(after), Some(class)) => Some(count(&after, class) > count(&before, class)),
            _ => None,
        };
        Ok(Verdict { leaks, reached_inside, twin_seen: self.twin(attack)?, counted, shot })
    }

    fn twin(&self, attack: &Attack) -> Result<bool> {
        if attack.is_local() {
            return fire_at_receiver(&self.wired, attack).map(|(seen, _)| seen);
        }
        let mut witness = Sniffer::new(&self.outside, "outside")?;
        let shot = self.wired.run(|| attack.fire())?;
        witness.saw(&shot.needle)
    }

    /// What root inside can do to the rules: all of it must be refused or change nothing.
    ///
    /// # Errors
    /// When nft is not installed.
    pub fn tamper(&self) -> Result<()> {
        self.agent.run(|| {
            let attempts: [&[&str]; 6] = [
                &["flush", "ruleset"],
                &["flush", "table", "inet", "darwin"],
                &["delete", "table", "inet", "darwin"],
                &["insert", "rule", "inet", "darwin", "output", "accept"],
                &["add", "table", "inet", "darwin", "{ flags dormant; }"],
                &["add chain inet other out { type filter hook output priority -1000; policy accept; }"],
            ];
            nft(&["add", "table", "inet", "other"])?;
            for attempt in attempts {
                nft(attempt)?;
            }
            Ok(())
        })
    }

    /// Kills netd; what it confined is left to itself.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill_netd(&mut self) -> Result<()> {
        // In this order: a connection that ends is a release, and a released namespace is another state.
        self.netd.kill_9()?;
        self.client = None;
        Ok(())
    }
}

fn count(drops: &BTreeMap<String, u64>, class: Class) -> u64 {
    drops.get(class.name()).copied().unwrap_or(0)
}

/// Fires at a receiver in the same namespace; whether it got it.
fn fire_at_receiver(netns: &Namespace, attack: &Attack) -> Result<(bool, Shot)> {
    netns.run(|| {
        let at = attack.target()?;
        match attack.way {
            Way::Udp => {
                let receiver = UdpSocket::bind(at).context("receive at 127.0.0.11")?;
                let shot = attack.fire()?;
                receiver.set_read_timeout(Some(Duration::from_millis(20)))?;
                let mut got = [0; 64];
                let seen =
                    receiver.recv(&mut got).is_ok_and(|length| got.get(..length) == Some(&shot.needle[..]));
                Ok((seen, shot))
            }
            Way::Tcp => {
                let receiver = TcpListener::bind(at).context("listen at 127.0.0.11")?;
                receiver.set_nonblocking(true)?;
                let shot = attack.fire()?;
                let seen = match receiver.accept() {
                    Ok((mut connection, _from)) => connection.read(&mut []).is_ok(),
                    Err(_nobody) => false,
                };
                Ok((seen, shot))
            }
            Way::Icmp | Way::RawIp | Way::Frame | Way::PacketInFrame => {
                bail!("{} has no receiver", attack.name)
            }
        }
    })
}
