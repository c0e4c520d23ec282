//! Follows the spools of signals: every whole line becomes an input, and how far was read is journalled after it.
//!
//! A spool that is missing is waited for, one that was renamed is read to its end before its successor is begun,
//! and a half line is left until its rest is there. What is no signal is skipped and said out loud: a spool must not
//! be stopped by one bad line.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::signal::Signal;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::core::input::Input;
use crate::engine::{Engine, EngineError};

/// How often a spool is looked at.
const EVERY: Duration = Duration::from_millis(50);
/// Longest line that can be a signal.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// Follows one spool until the engine stops.
///
/// # Errors
/// `Stopped`, when the engine has stopped.
pub async fn follow(engine: Engine, path: PathBuf) -> Result<(), EngineError> {
    let name = path.display().to_string();
    let start = engine.read(|core, _now| core.spool_offset(&name));
    let mut reader = Reader { name, path, file: None, lines: Lines::default(), offset: start };
    loop {
        match reader.read_on().await {
            Ok(read) => {
                let more = read.more;
                reader.hand_in(&engine, read.signals).await?;
                if more {
                    continue;
                }
            }
            Err(error) => tracing::warn!(spool = reader.name, "cannot read a spool: {error}"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

struct Reader {
    name: String,
    path: PathBuf,
    file: Option<(File, u64)>,
    lines: Lines,
    /// Bytes of the current file up to the last whole line that was handed in.
    offset: u64,
}

#[derive(Default)]
struct Read {
    signals: Vec<Signal>,
    more: bool,
}

impl Reader {
    async fn read_on(&mut self) -> std::io::Result<Read> {
        if self.file.is_none() {
            self.open().await?;
        }
        let Some((file, inode)) = &mut self.file else { return Ok(Read::default()) };
        let mut buffer = vec![0; READ_BYTES];
        let count = file.read(&mut buffer).await?;
        if count > 0 {
            buffer.truncate(count);
            return Ok(Read { signals: self.take(&buffer), more: true });
        }
        // The end: another file of this name may have taken its place, or it was cut.
        let found = metadata(&self.path).await?;
        let replaced = found.as_ref().is_some_and(|found| found.ino() != *inode);
        let cut = found.is_some_and(|found| found.ino() == *inode && found.len() < self.offset);
        if replaced || cut {
            self.file = None;
            self.offset = 0;
            self.lines = Lines::default();
            return Ok(Read { signals: Vec::new(), more: true });
        }
        Ok(Read::default())
    }

    async fn open(&mut self) -> std::io::Result<()> {
        let Some(found) = metadata(&self.path).await? else { return Ok(()) };
        let mut file = File::open(&self.path).await?;
        if found.len() < self.offset {
            self.offset = 0;
        }
        file.seek(std::io::SeekFrom::Start(self.offset)).await?;
        self.file = Some((file, found.ino()));
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<Signal> {
        let mut signals = Vec::new();
        for line in self.lines.push(bytes) {
            self.offset += line.len() as u64 + 1;
            match serde_json::from_slice(&line) {
                Ok(signal) => signals.push(signal),
                Err(_error) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    tracing::error!(spool = self.name, before = self.offset, "cannot read a signal: {error}");
                }
            }
        }
        self.offset += std::mem::take(&mut self.lines.dropped);
        signals
    }

    async fn hand_in(&self, engine: &Engine, signals: Vec<Signal>) -> Result<(), EngineError> {
        if signals.is_empty() {
            return Ok(());
        }
        for signal in signals {
            engine.submit(Input::SignalSeen { signal }).await?;
        }
        engine.submit(Input::SpoolRead { spool: self.name.clone(), offset: self.offset }).await.map(drop)
    }
}

async fn metadata(path: &Path) -> std::io::Result<Option<std::fs::Metadata>> {
    match tokio::fs::metadata(path).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts lines together from pieces.
#[derive(Default)]
struct Lines {
    half: Vec<u8>,
    /// Whether the line under way is too long to be one.
    skipping: bool,
    /// Bytes that were dropped and belong to no line that was given out.
    dropped: u64,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        for &byte in bytes {
            match (byte, self.skipping) {
                (b'\n', false) => whole.push(std::mem::take(&mut self.half)),
                (b'\n', true) => {
                    self.skipping = false;
                    self.dropped += 1;
                }
                (_, true) => self.dropped += 1,
                (byte, false) => self.half.push(byte),
            }
            if self.half.len() > LINE_BYTES_MAX {
                self.dropped += std::mem::take(&mut self.half).len() as u64;
                self.skipping = true;
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_half_line_waits_for_its_rest() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"{\"a\""), Vec::<Vec<u8>>::new());
        assert_eq!(lines.push(b":1}\n{"), [b"{\"a\":1}"]);
    }

    #[test]
    fn a_line_without_end_is_dropped_and_counted() {
        let mut lines = Lines::default();
        let long = vec![b'x'; LINE_BYTES_MAX + 10];
        assert!(lines.push(&long).is_empty());
        assert_eq!(lines.push(b"x\nnext\n"), [b"next"]);
        assert_eq!(lines.dropped, LINE_BYTES_MAX as u64 + 12);
    }

    proptest! {
        #[test]
        fn cuts_never_change_the_lines(text in "[a-c\n]{0,200}", cut in 0_usize..200) {
            let mut whole = Lines::default();
            let mut cut_up = Lines::default();
            let (head, tail) = text.as_bytes().split_at(cut.min(text.len()));
            let mut pieces = cut_up.push(head);
            pieces.extend(cut_up.push(tail));
            prop_assert_eq!(whole.push(text.as_bytes()), pieces);
        }
    }
}
