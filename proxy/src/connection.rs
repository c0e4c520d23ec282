//! The life of one connection, in the one order that there is:
//!
//! head → one canonical parse → decide → one look-up → judge addresses → dial → 200 → hello → judge → tunnel → one line.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use policy::egress::{
    Authority, Cleared, Code, Destination, Fault, Grounds, Hello, Permit, Refusal, Seen, Surroundings,
    decide, judge_answers, judge_hello, nearest,
};
use policy::signal::Detail;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use crate::caller::Caller;
use crate::config::Policies;
use crate::record::Record;
use crate::reply::{self, Denial};
use crate::server::Shared;
use crate::signals::Details;
use crate::tunnel::{Counters, Ended, Tunnel};
use crate::{dial, head, hello, host};

/// How long, and for how many bytes, a refused client is read on, so that our close does not reset the answer away.
const FAREWELL: Duration = Duration::from_secs(2);
const FAREWELL_BYTES_MAX: usize = 256 * 1024;

/// Why a connection gets no tunnel.
#[derive(Debug)]
struct Stop {
    refusal: Refusal,
    /// Whether the 200 has gone out: then no answer can.
    established: bool,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, established: false }
    }
}

impl From<Code> for Stop {
    fn from(code: Code) -> Self {
        Self::from(Refusal { code, rule: None })
    }
}

impl Stop {
    fn established(refusal: impl Into<Self>) -> Self {
        Self { established: true, ..refusal.into() }
    }
}

/// A connection whose every step has passed.
struct Opened {
    target: TcpStream,
    first: Vec<u8>,
    permit: Permit,
    cleared: Cleared,
    /// None under an opaque rule.
    hello: Option<Hello>,
    address: IpAddr,
    _slot: OwnedSemaphorePermit,
}

struct Connection<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
    begun: Instant,
    record: Record,
    authority: Option<Authority>,
    policies: watch::Receiver<Arc<Policies>>,
}

/// Serves one accepted connection and writes its line.
pub(crate) async fn serve(shared: Arc<Shared>, caller: Arc<Caller>, mut client: TcpStream) {
    let mut connection = Connection::begin(&shared, &caller);
    let opened = tokio::select! {
        opened = connection.open(&mut client) => opened,
        () = caller.gone.cancelled() => Err(Some(Ended::Released)),
        () = shared.cut.cancelled() => Err(Some(Ended::Drain)),
    };
    match opened {
        Ok(opened) => connection.tunnel(client, opened).await,
        Err(ended) => connection.cut_short(ended),
    }
    connection.finish();
}

impl<'a> Connection<'a> {
    fn begin(shared: &'a Shared, caller: &'a Caller) -> Self {
        let record = Record {
            time_ms: host::now().ms(),
            id: shared.next_id(),
            agent: caller.agent.to_string(),
            profile: caller.profile.to_string(),
            ..Record::default()
        };
        let policies = shared.policies.subscribe();
        Self { shared, caller, begun: Instant::now(), record, authority: None, policies }
    }

    /// Everything up to the tunnel; a refusal has been answered when this returns.
    async fn open(&mut self, client: &mut TcpStream) -> Result<Opened, Option<Ended>> {
        let unjudged = self.caller.unjudged.try_acquire();
        let steps = match &unjudged {
            Ok(_room) => self.steps(client).await,
            Err(_full) => Err(Code::CallerBusy.into()),
        };
        let stop = match steps {
            Ok(opened) => return Ok(opened),
            Err(stop) => stop,
        };
        self.note(&stop.refusal);
        self.answer(client, &stop).await;
        Err(None)
    }

    async fn steps(&mut self, client: &mut TcpStream) -> Result<Opened, Stop> {
        let clocks = &self.shared.config.clocks;
        let (head, early) = match head::read(client, clocks.head).await {
            Ok(whole) => whole,
            Err(bad) => {
                self.record.raw_target(&bad.raw_target);
                return Err(bad.code.into());
            }
        };
        let permit = self.decide(head.authority)?;
        let slot = Arc::clone(&self.caller.tunnels).try_acquire_owned().map_err(|_full| Code::CallerBusy)?;
        let destinations = self.resolve(&permit).await?;
        let started = Instant::now();
        let dialled = dial::dial(&destinations, clocks.dial).await;
        self.record.dial_us = Some(micros(started));
        let target = dialled?;
        let address = target.peer_addr().map_err(|_gone| Code::DialFailed)?;
        self.record.dialled = Some(address);
        client.write_all(reply::ESTABLISHED).await.map_err(|_gone| Stop::established(Code::ClientGone))?;
        let (cleared, hello, first) = self.judge_first_bytes(client, &permit, early).await?;
        Ok(Opened { target, first, permit, cleared, hello, address: address.ip(), _slot: slot })
    }

    fn decide(&mut self, authority: Authority) -> Result<Permit, Stop> {
        self.record.target(&authority);
        let wanted = self.authority.insert(authority);
        if self.shared.draining.is_cancelled() {
            return Err(Code::Draining.into());
        }
        let policies = Arc::clone(&self.policies.borrow_and_update());
        self.record.revision.clone_from(&policies.revision);
        let profile = policies.profiles.get(&self.caller.profile);
        let permit = decide(profile, wanted, &self.shared.surroundings())?;
        self.record.permitted(&permit);
        if let Grounds::ReportOnly(refusal) = permit.grounds() {
            self.record.would_deny(refusal);
        }
        Ok(permit)
    }

    /// The one look-up of this connection, and what of its answer may be dialled.
    async fn resolve(&mut self, permit: &Permit) -> Result<Vec<Destination>, Stop> {
        let started = Instant::now();
        let found = self.shared.resolver.look_up(permit).await;
        self.record.lookup_us = Some(micros(started));
        let answers = judge_answers(permit, &found?, &self.shared.surroundings());
        let good = answers.good.iter().map(|destination| destination.address().ip());
        self.record.resolved = good.chain(answers.skipped.iter().map(|skipped| skipped.address)).collect();
        answers.refusal()?;
        // A bad answer beside a good one changes nothing for the client, but somebody should know.
        if let Some(skipped) = answers.skipped.first() {
            let class = Detail::Text(skipped.class.as_str().to_owned());
            self.see(Seen::of(skipped.code, false, None), &[("class", class)]);
        }
        Ok(answers.good)
    }

    /// Reads and judges the hello, unless the rule is opaque. Nothing has gone to the target when this returns.
    async fn judge_first_bytes(
        &mut self,
        client: &mut TcpStream,
        permit: &Permit,
        mut first: Vec<u8>,
    ) -> Result<(Cleared, Option<Hello>, Vec<u8>), Stop> {
        if let Some(cleared) = permit.without_hello() {
            return Ok((cleared, None, first));
        }
        let hello = hello::read(client, &mut first, self.shared.config.clocks.hello).await;
        let mut hello = hello.map_err(Stop::established)?;
        self.record.hello(&hello);
        let cleared = judge_hello(permit, &hello).map_err(Stop::established)?;
        if let Some(refusal) = cleared.would_deny() {
            self.record.would_deny(refusal);
        }
        hello.alpn = Vec::new(); // logged; what stays is what a new policy judges
        Ok((cleared, Some(hello), first))
    }

    async fn tunnel(&mut self, client: TcpStream, opened: Opened) {
        let Opened { target, first, permit, cleared, hello, address, _slot } = opened;
        self.record.verdict = if self.record.would_deny.is_some() { "report" } else { "allow" };
        self.record.reason = match permit.grounds() {
            Grounds::Rule(_) => "rule",
            Grounds::PublicMode => "public_mode",
            Grounds::ReportOnly(_) => "report_only",
        };
        let counters = Counters::default();
        let half_closed = self.shared.config.clocks.half_closed;
        let tunnel = Tunnel { client, target, first, idle: permit.idle(), half_closed, counters: &counters };
        let before_us = micros(self.begun);
        let ended = tunnel.run(cleared, self.stopped(permit.authority(), hello.as_ref(), address)).await;
        self.record.closed_by = Some(ended.as_str());
        self.record.up_bytes = counters.up.load(Ordering::Relaxed);
        self.record.down_bytes = counters.down.load(Ordering::Relaxed);
        let first_byte_us = counters.first_byte_us.load(Ordering::Relaxed);
        self.record.first_byte_us = first_byte_us.checked_sub(1).map(|us| us + before_us);
    }

    /// Resolves when the tunnel may not go on: its caller is gone, the drain is over, or a new policy refuses it.
    async fn stopped(&self, wanted: &Authority, hello: Option<&Hello>, address: IpAddr) -> Ended {
        let mut policies = self.policies.clone();
        let refused = async {
            while policies.changed().await.is_ok() {
                let policies = Arc::clone(&policies.borrow_and_update());
                let profile = policies.profiles.get(&self.caller.profile);
                let surroundings = self.shared.surroundings();
                let permit = decide(profile, wanted, &surroundings);
                if permit.and_then(|permit| judge_again(&permit, hello, address, &surroundings)).is_err() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.caller.gone.cancelled() => Ended::Released,
            () = self.shared.cut.cancelled() => Ended::Drain,
            () = refused => Ended::Policy,
        }
    }

    /// Writes a refusal into the record and into the caller's watch.
    fn note(&mut self, refusal: &Refusal) {
        self.record.verdict = match refusal.code.fault() {
            Fault::Caller | Fault::Policy | Fault::Quota => "deny",
            Fault::Peer | Fault::Host => "error",
        };
        self.record.reason = refusal.code.as_str();
        if let Some(rule) = &refusal.rule {
            self.record.rule = Some(rule.to_string());
        }
        let ech = self.record.ech.unwrap_or(false);
        let seen = Seen::of(refusal.code, ech, self.record.host.as_deref());
        self.see(seen, &[("code", Detail::Text(refusal.code.to_string()))]);
    }

    fn see(&self, seen: Vec<Seen>, more: &[(&str, Detail)]) {
        if seen.is_empty() {
            return;
        }
        let mut detail: Details =
            more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let text = |text: &String| Detail::Text(text.clone());
        detail.extend(self.record.host.as_ref().map(|host| ("host".to_owned(), text(host))));
        detail.extend(self.record.port.map(|port| ("port".to_owned(), Detail::Number(port.into()))));
        detail.extend(self.record.sni.as_ref().map(|sni| ("sni".to_owned(), text(sni))));
        detail.insert("connection".to_owned(), text(&self.record.id));
        self.caller.see(seen, &detail, &self.shared.spool);
    }

    /// Tells the client, if it can still be told, and reads on until it has heard.
    async fn answer(&mut self, client: &mut TcpStream, stop: &Stop) {
        let code = stop.refusal.code;
        // Turning connections away must not cost what serving them would.
        let _room = if code == Code::CallerBusy {
            let Ok(room) = self.caller.turned_away.try_acquire() else { return };
            Some(room)
        } else {
            None
        };
        if code == Code::ClientGone {
            return;
        }
        let bytes = if stop.established { after_the_200(code).to_vec() } else { self.denial(&stop.refusal) };
        // A client that is gone or stuck is not worth a wait: the line is written all the same.
        if timeout(FAREWELL, say(client, &bytes)).await.is_err() {
            tracing::trace!("a refused client did not take its answer");
        }
    }

    fn denial(&self, refusal: &Refusal) -> Vec<u8> {
        let policies = self.shared.policies.borrow();
        let profile = policies.profiles.get(&self.caller.profile);
        let wanted = self.authority.as_ref();
        let hint = profile.zip(wanted).and_then(|(profile, wanted)| nearest(profile, wanted));
        let hint = hint.filter(|_| matches!(refusal.code, Code::HostNotAllowed | Code::PortNotAllowed));
        reply::denial(Denial {
            code: refusal.code,
            authority: wanted,
            rule: refusal.rule.as_ref(),
            profile: &self.caller.profile,
            nearest: hint.as_deref(),
        })
    }

    fn cut_short(&mut self, ended: Option<Ended>) {
        let Some(ended) = ended else { return };
        self.record.verdict = "error";
        self.record.reason = Code::Draining.as_str();
        self.record.closed_by = Some(ended.as_str());
    }

    fn finish(mut self) {
        self.record.total_us = micros(self.begun);
        if self.record.revision.is_empty() {
            self.record.revision.clone_from(&self.policies.borrow().revision);
        }
        self.shared.log.write(self.record);
    }
}

/// What a tunnel that was allowed once is judged by under a new policy: the same three questions.
fn judge_again(
    permit: &Permit,
    hello: Option<&Hello>,
    address: IpAddr,
    surroundings: &Surroundings,
) -> Result<(), Refusal> {
    judge_answers(permit, &[address], surroundings).refusal()?;
    match hello {
        Some(hello) => judge_hello(permit, hello).map(drop),
        None => permit.without_hello().map(drop).ok_or(Refusal { code: Code::NotTls, rule: None }),
    }
}

/// A TLS client gets an alert, anything else a close.
fn after_the_200(code: Code) -> &'static [u8] {
    let was_tls = [
        Code::SniMismatch,
        Code::SniDenied,
        Code::SniMissing,
        Code::SniMalformed,
        Code::EchRefused,
        Code::HelloTooLarge,
    ];
    if was_tls.contains(&code) { reply::TLS_DENIED } else { &[] }
}

async fn say(client: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    client.write_all(bytes).await?;
    client.shutdown().await?;
    let mut rest = client.take(FAREWELL_BYTES_MAX as u64);
    let mut piece = [0; 1024];
    while rest.read(&mut piece).await? > 0 {}
    Ok(())
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
