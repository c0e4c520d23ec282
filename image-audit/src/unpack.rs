//! Undoes compression piece by piece: gzip with many members, zstd with many and skippable frames.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::limits::Limits;

/// The most that one step of a decompressor gives at once.
const PIECE_BYTES: usize = 64 << 10;

/// How bytes are packed, by their first ones. A name or a media type is only somebody's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all.
    Plain,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// A format that is recognised and not read.
    Unread(&'static str),
}

impl Compression {
    /// What the first bytes say.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Unread("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Unread("xz"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Unread("lz4"),
            _ => Self::Plain,
        }
    }
}

/// Why bytes could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The format is recognised and not read.
    #[error("packed with {0}, which this version does not read")]
    Unread(&'static str),
    /// The compressed bytes are wrong or end early.
    #[error("the compressed bytes are broken: {0}")]
    Broken(io::Error),
    /// They end inside a frame.
    #[error("the compressed bytes end too early")]
    Truncated,
    /// Too much came out for what went in.
    #[error("a decompression bomb: {given} bytes out of {taken}, over the limit of {max} to 1")]
    Ratio { taken: u64, given: u64, max: u64 },
}

/// An unpacker in the middle of its stream.
pub(crate) struct Unpacker {
    kind: Kind,
    taken: u64,
    given: u64,
    limits: Limits,
}

enum Kind {
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd { decoder: Decoder<'static>, frame_open: bool, piece: Vec<u8> },
}

impl Unpacker {
    /// An unpacker for bytes of that kind.
    pub(crate) fn new(compression: Compression, limits: &Limits) -> Result<Self, UnpackError> {
        let kind = match compression {
            Compression::Plain => Kind::Plain,
            Compression::Gzip => Kind::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Compression::Zstd => Kind::Zstd {
                decoder: Decoder::new().map_err(UnpackError::Broken)?,
                frame_open: false,
                piece: vec![0; PIECE_BYTES],
            },
            Compression::Unread(name) => return Err(UnpackError::Unread(name)),
        };
        Ok(Self { kind, taken: 0, given: 0, limits: *limits })
    }

    /// Unpacks `input` into `sink`, a piece at a time.
    pub(crate) fn push(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), UnpackError> {
        let Self { kind, taken, given, limits } = self;
        let mut give = |piece: &[u8], used: usize| {
            *taken += used as u64;
            *given += piece.len() as u64;
            sink(piece);
            let over = *given > limits.ratio_free_bytes && *given / (*taken).max(1) > limits.ratio_max;
            let ratio = UnpackError::Ratio { taken: *taken, given: *given, max: limits.ratio_max };
            if over { Err(ratio) } else { Ok(()) }
        };
        match kind {
            Kind::Plain => {
                sink(input);
                Ok(())
            }
            Kind::Gzip(decoder) => gunzip(decoder, input, &mut give),
            Kind::Zstd { decoder, frame_open, piece } => {
                unzstd(decoder, frame_open, (input, piece), &mut give)
            }
        }
    }

    /// The end of the input: an open member or frame is a truncation.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<(), UnpackError> {
        match &mut self.kind {
            Kind::Gzip(decoder) => {
                let finished = decoder.try_finish();
                sink(decoder.get_ref());
                decoder.get_mut().clear();
                finished.map_err(|_early| UnpackError::Truncated)
            }
            Kind::Zstd { frame_open: true, .. } => Err(UnpackError::Truncated),
            Kind::Plain | Kind::Zstd { .. } => Ok(()),
        }
    }
}

type Give<'a> = &'a mut dyn FnMut(&[u8], usize) -> Result<(), UnpackError>;

fn gunzip(
    decoder: &mut MultiGzDecoder<Vec<u8>>,
    mut input: &[u8],
    give: Give<'_>,
) -> Result<(), UnpackError> {
    while !input.is_empty() {
        // One write takes what gives at most its own buffer, so that a bomb never lies in memory.
        let used = decoder.write(input).map_err(UnpackError::Broken)?;
        let piece = decoder.get_mut();
        if used == 0 && piece.is_empty() {
            return Err(UnpackError::Broken(io::ErrorKind::WriteZero.into()));
        }
        give(piece, used)?;
        piece.clear();
        input = input.get(used..).unwrap_or_default();
    }
    Ok(())
}

fn unzstd(
    decoder: &mut Decoder<'static>,
    frame_open: &mut bool,
    (input, piece): (&[u8], &mut Vec<u8>),
    give: Give<'_>,
) -> Result<(), UnpackError> {
    let mut input = InBuffer::around(input);
    loop {
        let before = input.pos();
        let mut output = OutBuffer::around(piece.as_mut_slice());
        let hint = decoder.run(&mut input, &mut output).map_err(UnpackError::Broken)?;
        let (made, full) = (output.pos(), output.pos() == output.capacity());
        // The hint is 0 exactly when a frame was read and given to its end.
        *frame_open = hint != 0;
        give(piece.get(..made).unwrap_or_default(), input.pos() - before)?;
        if input.pos() == input.src.len() && !full {
            return Ok(());
        }
        if hint == 0 {
            decoder.reinit().map_err(UnpackError::Broken)?;
            if input.pos() == input.src.len() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
