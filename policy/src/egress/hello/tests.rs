use proptest::prelude::*;

use super::*;

/// A list with a length of two bytes.
fn list16(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &list16(body)].concat()
}

fn names(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let list: Vec<u8> =
        entries.iter().flat_map(|(kind, name)| [vec![*kind], list16(name)].concat()).collect();
    extension(0, &list16(&list))
}

fn sni(name: &str) -> Vec<u8> {
    names(&[(0, name.as_bytes())])
}

fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]); // no session, one suite, no compression
    body.extend(list16(&extensions.concat()));
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1, len[1], len[2], len[3]][..], &body].concat()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|chunk| [vec![22, 3, 1], list16(chunk)].concat()).collect()
}

pub(in crate::egress) fn hello(extensions: &[Vec<u8>]) -> Result<Hello, HelloError> {
    read(&records(&message(extensions), RECORD_BYTES_MAX))
}

pub(in crate::egress) fn hello_for(name: Option<&str>, ech: bool) -> Hello {
    let mut extensions: Vec<Vec<u8>> = name.map(sni).into_iter().collect();
    if ech {
        extensions.push(extension(0xfe0d, &[0; 40]));
    }
    hello(&extensions).unwrap()
}

fn read(wire: &[u8]) -> Result<Hello, HelloError> {
    match HelloReader::new().push(wire)? {
        HelloStep::Done(hello) => Ok(hello),
        HelloStep::More => panic!("not whole"),
    }
}

fn name_of(hello: Result<Hello, HelloError>) -> String {
    hello.unwrap().sni.unwrap().to_string()
}

#[test]
fn the_server_name_is_found_however_the_hello_is_cut() {
    let plain = message(&[sni("Allowed.EXAMPLE")]);
    for size in [1, 2, 3, 5, 17, 46, RECORD_BYTES_MAX] {
        let wire = records(&plain, size);
        assert_eq!(name_of(read(&wire)), "allowed.example");
        let mut reader = HelloReader::new();
        let (last, most) = wire.split_last().unwrap();
        for byte in most {
            assert_eq!(reader.push(&[*byte]), Ok(HelloStep::More));
        }
        assert!(matches!(reader.push(&[*last]), Ok(HelloStep::Done(_))));
    }
}

#[test]
fn a_segment_may_end_inside_the_second_records_header() {
    let message = message(&[sni("allowed.example")]);
    let wire = records(&message, 60);
    for cut in 60..72 {
        let mut reader = HelloReader::new();
        assert_eq!(reader.push(&wire[..cut]), Ok(HelloStep::More));
        assert!(matches!(reader.push(&wire[cut..]), Ok(HelloStep::Done(_))), "{cut}");
    }
}

#[test]
fn large_hellos_are_read_up_to_64_kib() {
    for size in [1_216, 12 << 10, 20 << 10, 60 << 10] {
        assert_eq!(
            name_of(hello(&[extension(51, &vec![0; size]), sni("allowed.example")])),
            "allowed.example"
        );
    }
    let overhead = message(&[extension(51, &[]), sni("allowed.example")]).len();
    let fits = HELLO_BYTES_MAX - overhead;
    assert!(hello(&[extension(51, &vec![0; fits]), sni("allowed.example")]).is_ok());
    assert_eq!(
        hello(&[extension(51, &vec![0; fits + 1]), sni("allowed.example")]),
        Err(HelloError::TooLarge)
    );
}

#[test]
fn alpn_and_ech_are_reported() {
    let hello = hello(&[
        sni("a.example"),
        extension(16, &list16(b"\x02h2\x08http/1.1")),
        extension(0xfe0d, &[0; 99]),
    ]);
    let hello = hello.unwrap();
    assert_eq!(hello.alpn, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    assert!(hello.ech);
    assert!(!hello_for(Some("a.example"), false).ech);
}

#[test]
fn a_hello_without_the_extension_has_no_name() {
    assert_eq!(hello(&[]).unwrap().sni, None);
    let mut bare = message(&[]);
    bare.truncate(bare.len() - 2); // no extensions field at all
    bare[3] -= 2;
    assert_eq!(read(&records(&bare, RECORD_BYTES_MAX)).unwrap().sni, None);
}

#[test]
fn a_name_list_holds_exactly_one_host_name() {
    for entries in [
        &[][..],
        &[(0, &b"allowed.example"[..]), (0, b"evil.example")],
        &[(0, b"evil.example"), (0, b"allowed.example")],
        &[(1, b"allowed.example")],
        &[(0, b"allowed.example"), (1, b"x")],
    ] {
        assert_eq!(hello(&[names(entries)]), Err(HelloError::NameList));
    }
    assert_eq!(hello(&[sni("a.example"), sni("a.example")]), Err(HelloError::NameList));
}

#[test]
fn a_server_name_is_canonical_and_without_a_dot() {
    for name in [
        "",
        "allowed.example.",
        "127.0.0.1",
        "::1",
        "allowed\0.example",
        "allowed.example\0",
        "a b",
        "é.example",
    ] {
        assert!(matches!(hello(&[sni(name)]), Err(HelloError::Name(_))), "{name:?}");
    }
}

#[test]
fn whatever_is_no_hello_is_refused_at_once() {
    for (wire, expected) in [
        (&b"\x15\x03\x01\x00\x02\x02\x28"[..], HelloError::NotTls(21)),
        (b"\x14\x03\x01\x00\x01\x01", HelloError::NotTls(20)),
        (b"\x17", HelloError::NotTls(23)),
        (b"\x80\x2e\x01\x00\x02", HelloError::NotTls(0x80)),
        (b"GET / HTTP/1.1\r\n", HelloError::NotTls(b'G')),
        (b"SSH-2.0-x\r\n", HelloError::NotTls(b'S')),
        (b"\x16\x03\x01\x00\x00", HelloError::Record),
        (b"\x16\x03\x01\xff\xff", HelloError::Record),
        (b"\x16\x03\x01\x40\x01", HelloError::Record),
        (b"\x16\x02", HelloError::Record),
        (b"\x16\x03\x05", HelloError::Record),
        (b"\x16\x03\x01\x00\x04\x02", HelloError::NotHello(2)),
        (b"\x16\x03\x01\x00\x04\x01\x01\x00\x00", HelloError::TooLarge),
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", HelloError::Malformed),
    ] {
        assert_eq!(HelloReader::new().push(wire), Err(expected), "{wire:02x?}");
    }
}

#[test]
fn another_record_or_message_in_the_midst_is_refused() {
    let plain = message(&[sni("allowed.example")]);
    let mut mixed = records(&plain[..40], 40);
    mixed.extend([21, 3, 1, 0, 2, 2, 40]);
    assert_eq!(HelloReader::new().push(&mixed), Err(HelloError::Record));
    let doubled = [plain.clone(), plain.clone()].concat();
    assert_eq!(HelloReader::new().push(&records(&doubled, RECORD_BYTES_MAX)), Err(HelloError::Malformed));
    let mut followed = records(&plain, RECORD_BYTES_MAX);
    followed.extend([20, 3, 3, 0, 1, 1]); // a compatibility change-cipher-spec after it is the tunnel's business
    assert_eq!(name_of(read(&followed)), "allowed.example");
}

#[test]
fn lengths_that_do_not_add_up_are_refused() {
    let plain = message(&[sni("allowed.example"), extension(16, &list16(b"\x02h2"))]);
    for at in [38, 40, 43, 46, 49, 51, 54] {
        let mut bent = plain.clone();
        bent[at] = bent[at].wrapping_add(1);
        assert!(HelloReader::new().push(&records(&bent, RECORD_BYTES_MAX)).is_err(), "{at}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), keep in 0..12_usize) {
        let mut wire = records(&message(&[sni("allowed.example")]), 50);
        wire.truncate(keep);
        wire.extend(bytes);
        let seen = HelloReader::new().push(&wire);
        if let Ok(HelloStep::Done(hello)) = seen {
            prop_assert!(hello.hello_bytes <= wire.len());
        }
    }

    #[test]
    fn a_changed_byte_never_changes_the_name_unseen(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut wire = records(&message(&[extension(51, &[0; 30]), sni("allowed.example")]), 60);
        let at = at.index(wire.len());
        wire[at] = to;
        if let Ok(HelloStep::Done(Hello { sni: Some(name), .. })) = HelloReader::new().push(&wire) {
            let shown = wire.windows(5).filter(|w| w.iter().all(u8::is_ascii_alphanumeric)).count() > 0;
            prop_assert!(shown && name.as_str().len() == "allowed.example".len());
        }
    }

    #[test]
    fn every_prefix_is_unfinished(size in 1..200_usize, cut in any::<prop::sample::Index>()) {
        let wire = records(&message(&[sni("allowed.example")]), size);
        let cut = cut.index(wire.len());
        prop_assert_eq!(HelloReader::new().push(&wire[..cut]), Ok(HelloStep::More));
    }
}
