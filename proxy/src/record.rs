//! The log: one JSON object on one line of at most 1 KiB for each accepted connection, written off the data path.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use netd::lines::Lines;
use policy::egress::{Authority, Hello, Permit, Refusal};
use serde::Serialize;

use crate::config::LogTarget;

/// Longest line, in bytes, its newline included.
const LINE_BYTES_MAX: usize = 1024;
/// Longest text of a hostile kind in a line, in bytes before escaping.
const HOSTILE_BYTES_MAX: usize = 48;
/// Lines that wait for the disk; beyond them lines are dropped and counted.
const QUEUE_MAX: usize = 16_384;

/// What one connection came to. Fields that a refusal left unknown are null.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Record {
    pub(crate) time_ms: i64,
    pub(crate) id: String,
    pub(crate) revision: String,
    pub(crate) agent: String,
    pub(crate) profile: String,
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) rule: Option<String>,
    pub(crate) verdict: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) resolved: Vec<IpAddr>,
    pub(crate) dialled: Option<SocketAddr>,
    pub(crate) sni: Option<String>,
    pub(crate) alpn: Option<String>,
    pub(crate) hello_bytes: Option<usize>,
    pub(crate) ech: Option<bool>,
    pub(crate) up_bytes: u64,
    pub(crate) down_bytes: u64,
    pub(crate) lookup_us: Option<u64>,
    pub(crate) dial_us: Option<u64>,
    pub(crate) first_byte_us: Option<u64>,
    pub(crate) total_us: u64,
    pub(crate) closed_by: Option<&'static str>,
    pub(crate) would_deny: Option<String>,
}

impl Record {
    pub(crate) fn target(&mut self, authority: &Authority) {
        self.host = Some(authority.host.to_string());
        self.port = Some(authority.port.number());
    }

    /// What a malformed head asked for, escaped.
    pub(crate) fn raw_target(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.host = Some(escaped(bytes));
        }
    }

    pub(crate) fn permitted(&mut self, permit: &Permit) {
        self.rule = permit.grounds().rule().map(ToString::to_string);
    }

    pub(crate) fn hello(&mut self, hello: &Hello) {
        self.sni = hello.sni.as_ref().map(ToString::to_string);
        let alpn: Vec<String> = hello.alpn.iter().take(4).map(|protocol| escaped(protocol)).collect();
        self.alpn = (!alpn.is_empty()).then(|| alpn.join(","));
        self.hello_bytes = Some(hello.hello_bytes);
        self.ech = Some(hello.ech);
    }

    pub(crate) fn would_deny(&mut self, refusal: &Refusal) {
        self.would_deny = Some(refusal.to_string());
    }

    /// The line, shortened where it is longest until it fits.
    fn line(mut self) -> Vec<u8> {
        let mut cuts: [fn(&mut Self); 6] = [
            |record| record.resolved.truncate(4),
            |record| record.alpn = None,
            |record| record.resolved.clear(),
            |record| record.would_deny = record.would_deny.as_deref().map(shortened),
            |record| record.rule = record.rule.as_deref().map(shortened),
            |record| record.sni = record.sni.as_deref().map(shortened),
        ];
        let mut cuts = cuts.iter_mut();
        loop {
            let mut line = serde_json::to_vec(&self).unwrap_or_default();
            line.push(b'\n');
            if line.len() <= LINE_BYTES_MAX {
                return line;
            }
            let Some(cut) = cuts.next() else { return line };
            cut(&mut self);
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(48).chain(['…']).collect()
}

/// Hostile bytes as text: printable ASCII as it is, a backslash doubled, everything else as `\xNN`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes.iter().take(HOSTILE_BYTES_MAX) {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => {
                text.push_str("\\x");
                text.extend(
                    [byte >> 4, byte & 15].iter().filter_map(|&half| char::from_digit(u32::from(half), 16)),
                );
            }
        }
    }
    if bytes.len() > HOSTILE_BYTES_MAX {
        text.push('…');
    }
    text
}

/// Where records go; cheap to copy. The thread behind it ends when the last copy is gone.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    queue: SyncSender<Record>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Opens the log and starts its thread.
    pub(crate) fn open(target: &LogTarget) -> io::Result<(Self, JoinHandle<()>)> {
        let sink = match target {
            // Its descriptor, without the library's buffer: what could not be written must not come twice.
            LogTarget::Stdout => File::from(io::stdout().as_fd().try_clone_to_owned()?),
            LogTarget::File(path) => append(path)?,
        };
        let (queue, records) = sync_channel(QUEUE_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(sink, &records, &lost))?;
        Ok((Self { queue, dropped }, thread))
    }

    pub(crate) fn write(&self, record: Record) {
        match self.queue.try_send(record) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Lines that were lost since the last call: the queue was full, or the disk was.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

/// Opens a file that is only ever appended to.
pub(crate) fn append(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn write_all(sink: File, records: &Receiver<Record>, lost: &AtomicU64) {
    let mut lines = Lines::new(sink);
    while let Ok(record) = records.recv() {
        let written = lines.write(&record.line());
        if !written.is_whole() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(news) = written.news("log lines") {
            tracing::error!("{news}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_bytes_are_escaped() {
        assert_eq!(escaped(b"a\\b\n\"\xff\0"), "a\\\\b\\x0a\"\\xff\\x00");
        assert_eq!(escaped(&[b'a'; 200]).chars().count(), HOSTILE_BYTES_MAX + 1);
    }

    #[test]
    fn a_line_is_one_object_of_at_most_1_kib() {
        let long = "a".repeat(253);
        let record = Record {
            id: "00000000-0000-0000-0000".repeat(2),
            agent: "a".repeat(64),
            profile: "p".repeat(64),
            host: Some(escaped(&[0; 300])),
            rule: Some(format!("rules[9999] allow {long}")),
            sni: Some(long.clone()),
            alpn: Some(escaped(&[1; 96]).repeat(3)),
            resolved: vec!["2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap(); 40],
            dialled: Some("[2001:db8:1111:2222:3333:4444:5555:6666]:65535".parse().unwrap()),
            would_deny: Some(format!("sni_mismatch by rules[9999] allow {long}")),
            verdict: "report",
            reason: "no_client_bytes",
            up_bytes: u64::MAX,
            down_bytes: u64::MAX,
            ..Record::default()
        };
        let line = record.line();
        assert!(line.len() <= LINE_BYTES_MAX, "{}", line.len());
        assert_eq!(line.iter().position(|&b| b == b'\n'), Some(line.len() - 1));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["up_bytes"], u64::MAX);
    }
}
