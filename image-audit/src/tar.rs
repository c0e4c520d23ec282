//! Reads tar as Go's `archive/tar` does, because that is what Docker, containerd, `BuildKit` and Podman use.
//!
//! Bytes in, events out: the reader opens nothing, holds one header at a time and never more than its limits. Where
//! another reader is known to see something else in the same bytes, the member says so in `anomalies`.

mod header;
mod member;
mod number;
mod pax;

pub(crate) use header::is_header;
pub(crate) use member::Member;

use crate::limits::Limits;
use header::{BLOCK, Block, RawHeader};
use member::Extended;

/// What the reader saw.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// A member begins.
    Member(Box<Member>),
    /// Bytes of its content.
    Data(&'a [u8]),
    /// It ends.
    MemberEnd,
}

/// Why no further member can be read. The place is in bytes from the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TarError {
    /// No reader takes this block for a header.
    #[error("no tar header at byte {at}")]
    NotAHeader { at: u64 },
    /// A number in a header is none.
    #[error("a number that is none in the tar header at byte {at}")]
    Number { at: u64 },
    /// An extended header breaks its own rules.
    #[error("a malformed extended header before byte {at}")]
    Extended { at: u64 },
    /// One zero block, where the end has two.
    #[error("a lone zero block before byte {at}: some readers stop there and some refuse the archive")]
    LoneZeroBlock { at: u64 },
    /// An extended header over the limit.
    #[error("an extended header of {size} bytes, over the limit of {max}, at byte {at}")]
    ExtendedTooLong { at: u64, size: u64, max: usize },
    /// Global headers over the limit.
    #[error(
        "global extended headers of more than {records_max} records or {bytes_max} bytes, before byte {at}"
    )]
    GlobalTooMuch { at: u64, records_max: usize, bytes_max: usize },
    /// More to say of one member than is kept of all.
    #[error("more than {max} bytes of anomalies before byte {at}")]
    TooManyAnomalies { at: u64, max: usize },
    /// A name over the limit.
    #[error("a name of {size} bytes, over the limit of {max}, at byte {at}")]
    NameTooLong { at: u64, size: usize, max: usize },
}

/// How an archive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With two zero blocks and nothing but zeros after them.
    Whole,
    /// With two zero blocks, then bytes that are no header.
    Trailing,
    /// Between two members, without the two zero blocks.
    NoEndMarker,
    /// After one zero block of two.
    HalfEndMarker,
    /// Inside a header or a content.
    Truncated,
    /// With an extended header that nothing follows.
    Dangling,
}

#[derive(Debug)]
enum State {
    /// Waiting for a header.
    Header,
    /// After one zero block.
    ZeroSeen,
    /// Inside a member that describes the next one.
    Special { kind: u8, left: u64, padding: u64, bytes: Vec<u8> },
    /// Between an old GNU sparse header and its content.
    SparseMap { size: u64 },
    /// Inside a content.
    Data { left: u64, padding: u64 },
    /// Before the next header.
    Padding { left: u64 },
    /// After the end marker: zeros are filling.
    Ended,
    /// After the end marker and something that is no header.
    Trailing,
}

/// The state machine: feed it with [`TarReader::step`].
#[derive(Debug)]
pub(crate) struct TarReader {
    state: State,
    block: Block,
    filled: usize,
    at: u64,
    extended: Extended,
    after_end: bool,
    limits: Limits,
}

impl TarReader {
    /// A reader at the start of an archive.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            state: State::Header,
            block: [0; BLOCK],
            filled: 0,
            at: 0,
            extended: Extended::default(),
            after_end: false,
            limits: *limits,
        }
    }

    /// Takes some of `input`, at least one byte unless it gives an event, and says how much.
    ///
    /// # Errors
    /// [`TarError`]; the reader must not be used after one.
    pub(crate) fn step<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Option<Event<'a>>), TarError> {
        match &mut self.state {
            State::Header | State::ZeroSeen | State::SparseMap { .. } | State::Ended => {
                let taken = self.fill(input);
                if self.filled < BLOCK {
                    return Ok((taken, None));
                }
                self.filled = 0;
                Ok((taken, self.block_done()?))
            }
            State::Special { left, bytes, .. } => {
                let taken = at_most(input, *left);
                bytes.extend_from_slice(taken);
                *left -= taken.len() as u64;
                self.at += taken.len() as u64;
                if matches!(self.state, State::Special { left: 0, .. }) {
                    self.special_done()?;
                }
                Ok((taken.len(), None))
            }
            State::Data { left: 0, padding } => {
                self.state = State::Padding { left: *padding };
                Ok((0, Some(Event::MemberEnd)))
            }
            State::Data { left, .. } => {
                let taken = at_most(input, *left);
                *left -= taken.len() as u64;
                self.at += taken.len() as u64;
                Ok((taken.len(), Some(Event::Data(taken))))
            }
            State::Padding { left: 0 } => {
                self.state = State::Header;
                Ok((0, None))
            }
            State::Padding { left } => {
                let taken = at_most(input, *left).len();
                *left -= taken as u64;
                self.at += taken as u64;
                Ok((taken, None))
            }
            State::Trailing => {
                self.at += input.len() as u64;
                Ok((input.len(), None))
            }
        }
    }

    /// How the archive ended, if no more bytes follow.
    pub(crate) fn ending(&self) -> Ending {
        let between = self.filled == 0;
        match &self.state {
            State::Ended | State::Trailing | State::Header | State::Padding { left: 0 }
                if between && self.extended.is_pending() =>
            {
                Ending::Dangling
            }
            State::Ended if between || self.block.iter().take(self.filled).all(|&b| b == 0) => Ending::Whole,
            State::Ended | State::Trailing => Ending::Trailing,
            // Members after the end marker need none of their own: no engine looks at them.
            State::Header | State::Padding { left: 0 } if between && self.after_end => Ending::Trailing,
            State::Header | State::Padding { left: 0 } if between => Ending::NoEndMarker,
            State::ZeroSeen if between => Ending::HalfEndMarker,
            State::Header
            | State::ZeroSeen
            | State::Special { .. }
            | State::SparseMap { .. }
            | State::Data { .. }
            | State::Padding { .. } => Ending::Truncated,
        }
    }

    /// Whether the machine has an event to give without any input.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.state, State::Data { left: 0, .. } | State::Padding { left: 0 })
    }

    fn fill(&mut self, input: &[u8]) -> usize {
        let room = self.block.get_mut(self.filled..).unwrap_or_default();
        let taken = room.len().min(input.len());
        room.iter_mut().zip(input).for_each(|(slot, byte)| *slot = *byte);
        self.filled += taken;
        self.at += taken as u64;
        taken
    }

    fn block_done(&mut self) -> Result<Option<Event<'static>>, TarError> {
        let zero = self.block.iter().all(|&b| b == 0);
        match self.state {
            State::Header if zero => self.state = State::ZeroSeen,
            State::ZeroSeen if zero => self.state = State::Ended,
            State::ZeroSeen if self.after_end => self.state = State::Trailing,
            State::ZeroSeen => return Err(TarError::LoneZeroBlock { at: self.at }),
            State::Ended if zero => {}
            State::Ended if !is_header(&self.block) => self.state = State::Trailing,
            State::SparseMap { size } => {
                // The last byte but seven of a map's block says whether another follows.
                if self.block.get(504).is_none_or(|more| *more == 0) {
                    self.state = State::Data { left: size, padding: padding(size) };
                }
            }
            State::Ended => {
                self.after_end = true;
                return self.header_done();
            }
            State::Header => return self.header_done(),
            State::Special { .. } | State::Data { .. } | State::Padding { .. } | State::Trailing => {}
        }
        Ok(None)
    }

    fn header_done(&mut self) -> Result<Option<Event<'static>>, TarError> {
        let at = self.at.saturating_sub(BLOCK as u64);
        let raw = match RawHeader::read(&self.block, at) {
            Ok(raw) => raw,
            // What no engine looks at cannot break the archive.
            Err(_) if self.after_end => {
                self.state = State::Trailing;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if matches!(raw.type_flag, b'x' | b'g' | b'L' | b'K') {
            let size = u64::try_from(raw.size).map_err(|_negative| TarError::Number { at })?;
            let max = self.limits.pax_bytes_max;
            if size > max as u64 {
                return Err(TarError::ExtendedTooLong { at, size, max });
            }
            self.state =
                State::Special { kind: raw.type_flag, left: size, padding: padding(size), bytes: Vec::new() };
            if size == 0 {
                self.special_done()?;
            }
            return Ok(None);
        }
        let sparse_map_follows = raw.type_flag == b'S' && self.block.get(482).is_some_and(|more| *more != 0);
        let (mut member, size) = self.extended.take(&raw).ok_or(TarError::Extended { at })?;
        member.after_end = self.after_end;
        let longest = member.name.len().max(member.link.len());
        if longest > self.limits.name_bytes_max {
            return Err(TarError::NameTooLong { at, size: longest, max: self.limits.name_bytes_max });
        }
        self.state = if sparse_map_follows {
            State::SparseMap { size }
        } else {
            State::Data { left: size, padding: padding(size) }
        };
        Ok(Some(Event::Member(Box::new(member))))
    }

    fn special_done(&mut self) -> Result<(), TarError> {
        let State::Special { kind, padding, bytes, .. } = std::mem::replace(&mut self.state, State::Header)
        else {
            return Ok(());
        };
        self.state = State::Padding { left: padding };
        let at = self.at;
        self.extended.add(kind, &bytes).ok_or(TarError::Extended { at })?;
        let (records_max, bytes_max) = (self.limits.global_records_max, self.limits.global_bytes_max);
        let (records, bytes) = self.extended.global_size();
        if records > records_max || bytes > bytes_max {
            return Err(TarError::GlobalTooMuch { at, records_max, bytes_max });
        }
        let max = self.limits.anomaly_bytes_max;
        // Headers that no member follows say something too, and are held until one does.
        if self.extended.anomaly_bytes() > max {
            return Err(TarError::TooManyAnomalies { at, max });
        }
        Ok(())
    }
}

fn at_most(input: &[u8], left: u64) -> &[u8] {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    input.get(..count).unwrap_or_default()
}

/// Zeros after `size` bytes up to the next block.
fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}

#[cfg(test)]
mod tests;
