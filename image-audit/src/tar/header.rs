//! One block of 512 bytes as a header: V7, USTAR, STAR or GNU.

use super::TarError;
use super::number::{numeric, octal, text};

/// Bytes in a block.
pub(super) const BLOCK: usize = 512;
/// A block.
pub(super) type Block = [u8; BLOCK];

/// A header as it stands, before extended headers change it.
#[derive(Debug, Clone)]
pub(super) struct RawHeader {
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) type_flag: u8,
    pub(super) mode: i64,
    pub(super) size: i64,
    pub(super) device: (i64, i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    V7,
    Ustar,
    Star,
    Gnu,
}

/// Whether a block's checksum is right: the one thing that makes it a header.
pub(crate) fn is_header(block: &[u8]) -> bool {
    let Some(block) = block.first_chunk::<BLOCK>() else { return false };
    let Some(stated) = octal(field(block, 148, 8)) else { return false };
    let counted = |byte: (usize, u8)| if (148..156).contains(&byte.0) { b' ' } else { byte.1 };
    let bytes = || block.iter().copied().enumerate().map(counted);
    let unsigned: u64 = bytes().map(u64::from).sum();
    // Some early writers summed signed characters; Go takes either.
    let signed: i64 = bytes().map(|b| i64::from(b.cast_signed())).sum();
    stated == unsigned || stated.cast_signed() == signed
}

impl RawHeader {
    /// Reads a block that begins at byte `at`.
    pub(super) fn read(block: &Block, at: u64) -> Result<Self, TarError> {
        if !is_header(block) {
            return Err(TarError::NotAHeader { at });
        }
        let format = format(block);
        let number = |from, length| numeric(field(block, from, length)).ok_or(TarError::Number { at });
        // Owner, group and time are not used, but Go refuses a header in which they are no numbers.
        let (_owner, _group, _time) = (number(108, 8)?, number(116, 8)?, number(136, 12)?);
        let mut header = Self {
            name: text(field(block, 0, 100)).to_vec(),
            link: text(field(block, 157, 100)).to_vec(),
            type_flag: block.get(156).copied().unwrap_or_default(),
            mode: number(100, 8)?,
            size: number(124, 12)?,
            device: (0, 0),
        };
        if format != Format::V7 {
            header.device = (number(329, 8)?, number(337, 8)?);
        }
        if header.type_flag == b'S' {
            let _real_size = number(483, 12)?;
        }
        let prefix = match format {
            Format::Ustar => text(field(block, 345, 155)),
            Format::Star => text(field(block, 345, 131)),
            Format::Gnu if !times_are_numbers(block) => {
                // Go before 1.8 wrote a prefix where GNU has two times; Go still reads those.
                Some(text(field(block, 345, 155))).filter(|p| p.is_ascii()).unwrap_or_default()
            }
            Format::Gnu | Format::V7 => b"",
        };
        if !prefix.is_empty() {
            header.name = [prefix, b"/", &header.name].concat();
        }
        Ok(header)
    }
}

fn times_are_numbers(block: &Block) -> bool {
    [345, 357].into_iter().map(|from| field(block, from, 12)).all(|time| {
        let absent = time.first() == Some(&0);
        absent || numeric(time).is_some()
    })
}

fn format(block: &Block) -> Format {
    match (field(block, 257, 6), field(block, 263, 2), field(block, 508, 4)) {
        (b"ustar\0", _, b"tar\0") => Format::Star,
        (b"ustar\0", ..) => Format::Ustar,
        (b"ustar ", b" \0", _) => Format::Gnu,
        _ => Format::V7,
    }
}

fn field(block: &Block, from: usize, length: usize) -> &[u8] {
    block.get(from..from + length).unwrap_or_default()
}
