use proptest::prelude::*;

use super::*;

/// A header block with a right checksum over whatever the fields hold.
fn block(fields: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut block = vec![0_u8; BLOCK];
    for (at, bytes) in fields {
        block.iter_mut().skip(*at).zip(bytes).for_each(|(slot, byte)| *slot = *byte);
    }
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Every event as text, then how it ended, when the bytes come in pieces of that size.
fn events(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut reader = TarReader::new(&Limits::default());
    let mut seen: Vec<String> = Vec::new();
    let mut data = 0;
    for mut chunk in bytes.chunks(piece) {
        while !chunk.is_empty() || reader.is_due() {
            match reader.step(chunk) {
                Ok((taken, event)) => {
                    assert!(taken > 0 || event.is_some() || !reader.is_due(), "no progress");
                    match event {
                        Some(Event::Member(member)) => seen.push(format!("{member:?}")),
                        Some(Event::Data(bytes)) => data += bytes.len(),
                        Some(Event::MemberEnd) => seen.push(format!("{} bytes", std::mem::take(&mut data))),
                        None => {}
                    }
                    chunk = chunk.get(taken..).expect("no more than there was");
                }
                Err(error) => {
                    seen.push(error.to_string());
                    return seen;
                }
            }
        }
    }
    seen.push(format!("{:?}", reader.ending()));
    seen
}

fn sample() -> Vec<u8> {
    let file = block(&[(0, b"a".to_vec()), (124, b"00000000003\0".to_vec()), (156, b"0".to_vec())]);
    let mut content = b"abc".to_vec();
    content.resize(BLOCK, 0);
    [file, content, vec![0; 2 * BLOCK]].concat()
}

#[test]
fn a_cut_is_told_from_an_end() {
    let whole = sample();
    let ending = |length: usize| events(whole.get(..length).expect("shorter"), 512).pop().expect("an end");
    assert_eq!(ending(4 * BLOCK), "Whole");
    assert_eq!(ending(3 * BLOCK), "HalfEndMarker");
    assert_eq!(ending(2 * BLOCK), "NoEndMarker");
    assert_eq!(ending(BLOCK + 3), "Truncated");
    assert_eq!(ending(BLOCK), "Truncated");
    assert_eq!(ending(BLOCK - 1), "Truncated");
    assert_eq!(ending(0), "NoEndMarker");
    let dangling = [block(&[(0, b"p".to_vec()), (156, b"L".to_vec()), (124, b"00000000001\0".to_vec())]), {
        let mut name = b"n".to_vec();
        name.resize(BLOCK, 0);
        name
    }];
    assert_eq!(
        events(&[dangling.concat(), vec![0; 2 * BLOCK]].concat(), 100).pop().expect("an end"),
        "Dangling"
    );
}

#[test]
fn a_gnu_sparse_header_has_its_map_read_before_its_content() {
    let header = block(&[
        (0, b"s".to_vec()),
        (124, b"00000000003\0".to_vec()),
        (156, b"S".to_vec()),
        (257, b"ustar  \0".to_vec()),
        (482, vec![1]),
    ]);
    let mut more = vec![0; BLOCK];
    more[504] = 1;
    let bytes = [header, more, vec![0; BLOCK], sample()[BLOCK..].to_vec()].concat();
    let seen = events(&bytes, 512);
    assert_eq!(seen[1..], ["3 bytes", "Whole"]);
}

#[test]
fn a_negative_size_is_refused() {
    let size = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
    let bytes = block(&[(0, b"a".to_vec()), (124, size), (156, b"0".to_vec())]);
    assert_eq!(events(&bytes, 512).len(), 1);
}

proptest! {
    #[test]
    fn pieces_do_not_matter(
        fields in prop::collection::vec((0_usize..512, prop::collection::vec(any::<u8>(), 1..16)), 0..6),
        kind in prop::sample::select(b"\x000123567xgLKSZ".to_vec()),
        size in 0_u64..2000,
        tail in prop::collection::vec(any::<u8>(), 0..1500),
        piece in 1_usize..700,
    ) {
        let mut fields = fields;
        fields.push((156, vec![kind]));
        fields.push((124, format!("{size:011o}\0").into_bytes()));
        let bytes = [block(&fields), tail, sample()].concat();
        prop_assert_eq!(events(&bytes, piece), events(&bytes, bytes.len()));
    }

    #[test]
    fn extended_headers_of_any_bytes_do_not_make_it_panic(
        records in prop::collection::vec((
            prop::sample::select(vec!["path", "linkpath", "size", "GNU.sparse.map", "GNU.sparse.name", "GNU.sparse.major",
                "GNU.sparse.offset", "SCHILY.xattr.security.capability", "uid", "comment"]),
            prop::collection::vec(any::<u8>(), 0..20),
        ), 0..5),
        kind in prop::sample::select(b"xgLK".to_vec()),
    ) {
        let mut data = Vec::new();
        for (key, value) in &records {
            let body = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
            let digits = if body.len() + 2 < 100 { 2 } else { 3 };
            data.extend_from_slice(format!("{}", body.len() + digits).as_bytes());
            data.extend_from_slice(&body);
        }
        let size = format!("{:011o}\0", data.len()).into_bytes();
        data.resize(data.len().next_multiple_of(BLOCK), 0);
        let header = block(&[(0, b"p".to_vec()), (124, size), (156, vec![kind])]);
        prop_assert!(!events(&[header, data, sample()].concat(), 333).is_empty());
    }
}
