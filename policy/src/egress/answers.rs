//! The addresses that a look-up gave: which of them may be dialled.

use std::net::{IpAddr, SocketAddr};

use super::{AddressClass, Code, Host, Permit, Refusal, Surroundings, classify};

/// An address that may be dialled for one permit; only [`judge_answers`] makes one.
#[must_use = "a destination is to be dialled"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination(SocketAddr);

impl Destination {
    /// Where to.
    pub const fn address(self) -> SocketAddr {
        self.0
    }
}

/// An answer that was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// The address.
    pub address: IpAddr,
    /// Why not.
    pub code: Code,
    /// What it is.
    pub class: AddressClass,
}

/// What a look-up's answers come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    /// What may be dialled, in the order of the answer, each once.
    pub good: Vec<Destination>,
    /// What may not, which is worth a signal.
    pub skipped: Vec<Skipped>,
}

impl Answers {
    /// The refusal if nothing may be dialled: of the worst answer, or that there was none.
    ///
    /// # Errors
    /// [`Refusal`] with the code of the answer that says most.
    pub fn refusal(&self) -> Result<(), Refusal> {
        if !self.good.is_empty() {
            return Ok(());
        }
        let worst = [Code::Metadata, Code::Loop, Code::PinMismatch, Code::AddressRefused]
            .into_iter()
            .find(|&code| self.skipped.iter().any(|skipped| skipped.code == code));
        Err(Refusal::of(worst.unwrap_or(Code::NameNotFound)))
    }
}

/// Judges every address that the one look-up of this connection gave (for an address asked for as such: that one).
///
/// Metadata services and the proxy itself are never dialled, whatever a rule says. A pinned name may resolve to the
/// addresses that its rule lists and to nothing else; any other name to public addresses that are not the host's own.
pub fn judge_answers(permit: &Permit, found: &[IpAddr], surroundings: &Surroundings) -> Answers {
    let mut answers = Answers::default();
    let found = match &permit.authority().host {
        Host::Name(_) => found,
        Host::Address(address) => std::slice::from_ref(address),
    };
    for &address in found {
        let destination = Destination(SocketAddr::new(address, permit.authority().port.number()));
        match judge(permit, address, surroundings) {
            Ok(()) if answers.good.contains(&destination) => {}
            Ok(()) => answers.good.push(destination),
            Err(code) => answers.skipped.push(Skipped { address, code, class: classify(address) }),
        }
    }
    answers
}

fn judge(permit: &Permit, address: IpAddr, surroundings: &Surroundings) -> Result<(), Code> {
    let class = classify(address);
    if class == AddressClass::Metadata {
        return Err(Code::Metadata);
    }
    if surroundings.is_loop(address, permit.authority().port) {
        return Err(Code::Loop);
    }
    let pin = &permit.terms.pin;
    if !pin.is_empty() {
        return if pin.binary_search(&address).is_ok() { Ok(()) } else { Err(Code::PinMismatch) };
    }
    if class != AddressClass::Public || surroundings.is_own(address) {
        return Err(Code::AddressRefused);
    }
    Ok(())
}
