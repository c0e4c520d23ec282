//! Numbers and texts of a tar header, as Go's `archive/tar` reads them.

/// A field up to its first NUL.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// A field in base 256 if its first bit is set, else in octal; `None` for what Go refuses.
pub(super) fn numeric(field: &[u8]) -> Option<i64> {
    match field.first() {
        Some(first) if first & 0x80 != 0 => binary(field),
        _ => octal(field).map(u64::cast_signed),
    }
}

/// Big-endian two's complement whose top bit is the mark; for a negative one all bits are turned, then back.
fn binary(field: &[u8]) -> Option<i64> {
    let negative = field.first().is_some_and(|first| first & 0x40 != 0);
    let mut value = 0_u64;
    for (at, &byte) in field.iter().enumerate() {
        let byte = if negative { !byte } else { byte };
        let byte = if at == 0 { byte & 0x7f } else { byte };
        if value >> 56 > 0 {
            return None;
        }
        value = value << 8 | u64::from(byte);
    }
    let value = i64::try_from(value).ok()?;
    Some(if negative { !value } else { value })
}

/// Octal between any spaces and NULs, up to the first NUL within; empty is 0.
pub(super) fn octal(field: &[u8]) -> Option<u64> {
    let blank = |b: &u8| *b == b' ' || *b == 0;
    let start = field.iter().position(|b| !blank(b)).unwrap_or(field.len());
    let digits = text(field.get(start..).unwrap_or_default());
    let end = digits.iter().rposition(|b| !blank(b)).map_or(0, |last| last + 1);
    let mut value = 0_u64;
    for &digit in digits.get(..end).unwrap_or_default() {
        if !(b'0'..=b'7').contains(&digit) || value >> 61 > 0 {
            return None;
        }
        value = value << 3 | u64::from(digit - b'0');
    }
    Some(value)
}

/// Decimal as Go's `ParseInt` takes it: an optional sign, then digits alone.
pub(super) fn decimal(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let table: [(&[u8], Option<i64>); 14] = [
            (b"0004755\0", Some(0o4755)),
            (b" 4755 \0\0", Some(0o4755)),
            (b"\0 4755\0\0", Some(0o4755)),
            (b"755\0garb", Some(0o755)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"        ", Some(0)),
            (b"0000008\0", None),
            (b"-1\0\0\0\0\0\0", None),
            (b"7 7\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\x09\xed", Some(0o4755)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\x80\x80\0\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", Some(i64::MAX)),
            (b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ];
        for (field, expected) in table {
            assert_eq!(numeric(field), expected, "{field:?}");
        }
    }
}
