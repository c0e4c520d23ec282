//! PAX extended headers: records that say their own length, and are believed about nothing else.

use std::collections::BTreeMap;

use super::number::decimal;

/// The records of one extended header; the last of a key counts.
pub(super) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Reads `LENGTH KEY=VALUE\n` records; `None` for what Go refuses.
///
/// The length counts the whole record, and a value may hold any byte, newlines too: splitting at newlines is how
/// other readers are made to see a second record inside a value.
pub(super) fn records(mut bytes: &[u8]) -> Option<Records> {
    let mut records = Records::new();
    let mut sparse_map: Vec<Vec<u8>> = Vec::new();
    while !bytes.is_empty() {
        let (key, value, rest) = record(bytes)?;
        bytes = rest;
        let sparse: Option<usize> = match key {
            b"GNU.sparse.offset" => Some(0),
            b"GNU.sparse.numbytes" => Some(1),
            _ => None,
        };
        match sparse {
            Some(turn) if sparse_map.len() % 2 != turn || value.contains(&b',') => return None,
            Some(_) => sparse_map.push(value.to_vec()),
            None => {
                records.insert(key.to_vec(), value.to_vec());
            }
        }
    }
    if !sparse_map.is_empty() {
        records.insert(b"GNU.sparse.map".to_vec(), sparse_map.join(&b','));
    }
    Some(records)
}

/// The first record's key and value, and what follows it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().position(|&b| b == b' ')?;
    let length = usize::try_from(decimal(bytes.get(..space)?)?).ok()?;
    if length < 5 {
        return None;
    }
    let (body, rest) = (bytes.get(space + 1..length)?, bytes.get(length..)?);
    let (b'\n', body) = body.split_last()? else { return None };
    let equals = body.iter().position(|&b| b == b'=')?;
    let (key, value) = (body.get(..equals)?, body.get(equals + 1..)?);
    let nul_in = |text: &[u8]| text.contains(&0);
    let valid = match key {
        b"" => false,
        b"path" | b"linkpath" | b"uname" | b"gname" => !nul_in(value),
        key => !nul_in(key),
    };
    valid.then_some((key, value, rest))
}

/// What a reader that splits at newlines would find inside a value: the smuggled record's key and value.
pub(super) fn smuggled(value: &[u8]) -> Option<(&[u8], &[u8])> {
    value.split(|&b| b == b'\n').skip(1).find_map(|line| {
        let space = line.iter().position(|&b| b == b' ')?;
        let digits = line.get(..space)?;
        let rest = line.get(space + 1..)?;
        let equals = rest.iter().position(|&b| b == b'=')?;
        let numbered = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        numbered.then_some((rest.get(..equals)?, rest.get(equals + 1..)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_in_a_value_forges_no_record() {
        let found = records(b"31 comment=a\n17 path=bin/calm\n\n").expect("one record");
        assert_eq!(found.len(), 1);
        let value = found.get(b"comment".as_slice()).expect("comment");
        assert_eq!(smuggled(value), Some((b"path".as_slice(), b"bin/calm".as_slice())));
        assert_eq!(smuggled(b"two\nlines of prose"), None);
    }

    #[test]
    fn records_that_go_refuses_are_refused() {
        let table: [&[u8]; 8] = [
            b"x",
            b"5 a=\nrest",
            b"4 =\n",
            b"99 path=a\n",
            b"9 path=aX",
            b"-9 path=a\n",
            b"10 path=\0a\n",
            b"0 \n",
        ];
        for bytes in table {
            assert_eq!(records(bytes), None, "{bytes:?}");
        }
        assert_eq!(records(b"10 path=a\n").map(|r| r.len()), Some(1));
        assert_eq!(records(b"5 a=\n5 a=\n").map(|r| r.len()), Some(1));
    }
}
