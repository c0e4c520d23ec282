use std::io::Write;

use proptest::prelude::*;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).expect("in memory")
}

fn unpack_by(packed: &[u8], piece: usize, limits: &Limits) -> Result<Vec<u8>, UnpackError> {
    let mut unpacker = Unpacker::new(Compression::of(packed), limits)?;
    let mut out = Vec::new();
    for chunk in packed.chunks(piece) {
        unpacker.push(chunk, &mut |bytes| out.extend_from_slice(bytes))?;
    }
    unpacker.finish(&mut |bytes| out.extend_from_slice(bytes))?;
    Ok(out)
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, UnpackError> {
    unpack_by(packed, 7, &Limits::default())
}

/// E16.
#[test]
fn every_member_and_every_frame_is_read() {
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let (one, two) = bytes.split_at(123_457);
    assert!(unpack(&[gzip(one), gzip(two)].concat()).expect("gzip") == bytes);
    assert!(unpack(&[zstd(one), zstd(two)].concat()).expect("zstd") == bytes);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    assert!(
        unpack(&[skippable.clone(), zstd(one), skippable.clone(), zstd(two), skippable].concat())
            .expect("zstd")
            == bytes
    );
}

#[test]
fn a_cut_at_any_byte_is_never_taken_for_the_end() {
    let bytes: Vec<u8> = (0..3_000_u32).flat_map(u32::to_le_bytes).collect();
    for packed in [gzip(&bytes), zstd(&bytes)] {
        assert!(unpack(&packed).expect("whole") == bytes);
        for end in 6..packed.len() {
            assert!(unpack(packed.get(..end).expect("shorter")).is_err(), "cut at {end} of {}", packed.len());
        }
    }
}

#[test]
fn bytes_after_the_last_member_are_not_swallowed() {
    for packed in [gzip(b"x"), zstd(b"x")] {
        assert!(unpack(&[&packed[..], b"trailing"].concat()).is_err());
    }
}

#[test]
fn a_flipped_bit_never_gives_other_bytes() {
    // In the header's time, and in bits that fill the last byte, it changes nothing.
    let packed = gzip(&[7; 1000]);
    for at in 0..packed.len() * 8 {
        let mut broken = packed.clone();
        broken[at / 8] ^= 1 << (at % 8);
        if Compression::of(&broken) == Compression::Gzip {
            assert!(unpack(&broken).map_or(true, |bytes| bytes == [7; 1000]), "bit {at}");
        }
    }
}

#[test]
fn a_bomb_is_named_with_its_numbers() {
    let limits = Limits { ratio_free_bytes: 1 << 20, ratio_max: 100, ..Limits::default() };
    let zeros = vec![0; 8 << 20];
    for packed in [gzip(&zeros), zstd(&zeros)] {
        let error = unpack_by(&packed, 4096, &limits).expect_err("a bomb");
        assert!(matches!(error, UnpackError::Ratio { max: 100, .. }), "{error}");
        assert!(unpack_by(&packed, 4096, &Limits::default()).is_ok());
    }
}

#[test]
fn what_is_not_read_is_named() {
    for (head, name) in [(&b"BZh91AY"[..], "bzip2"), (b"\xfd7zXZ\0\0", "xz")] {
        let Err(UnpackError::Unread(found)) =
            Unpacker::new(Compression::of(head), &Limits::default()).map(|_| ())
        else {
            panic!("{name} was taken");
        };
        assert_eq!(found, name);
    }
}

proptest! {
    #[test]
    fn pieces_do_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..4000), piece in 1_usize..900) {
        for packed in [gzip(&bytes), zstd(&bytes)] {
            prop_assert_eq!(unpack_by(&packed, piece, &Limits::default()).expect("whole"), bytes.clone());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(tail in prop::collection::vec(any::<u8>(), 0..300), head in 0_usize..2) {
        let head: &[u8] = [&[0x1f, 0x8b, 8][..], &[0x28, 0xb5, 0x2f, 0xfd]][head];
        let _read = unpack(&[head, &tail].concat());
    }
}
