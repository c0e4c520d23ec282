//! Lines on a file that may be full: a line that was cut short spoils no other, and the failing is told once.

use std::io::{self, Write};

/// How one line went.
#[derive(Debug)]
pub enum Written {
    /// It stands.
    Whole,
    /// It stands, the first after this many that do not.
    Again {
        /// How many were lost in between.
        lost: u64,
    },
    /// It is lost, the first after one that stands.
    Failing(io::Error),
    /// It is lost, as the one before it.
    StillFailing,
}

impl Written {
    /// Whether the line stands.
    pub const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole | Self::Again { .. })
    }

    /// What an operator is told, if it is news.
    pub fn news(&self, what: &str) -> Option<String> {
        match self {
            Self::Failing(error) => Some(format!("cannot write {what}: {error}; they are lost until it can")),
            Self::Again { lost } => Some(format!("can write {what} again; {lost} were lost")),
            Self::Whole | Self::StillFailing => None,
        }
    }
}

/// A sink of lines. It must not buffer: what it takes has to be in the file.
#[derive(Debug)]
pub struct Lines<W> {
    sink: W,
    /// The sink ends inside a line.
    torn: bool,
    lost: u64,
}

impl<W: Write> Lines<W> {
    /// Over a sink that ends with a whole line.
    pub const fn new(sink: W) -> Self {
        Self { sink, torn: false, lost: 0 }
    }

    /// The sink.
    pub const fn sink(&self) -> &W {
        &self.sink
    }

    /// Writes one line, its newline included, in one call where the sink takes it whole.
    ///
    /// A line that was cut short before is ended first, so that this one stands for itself.
    pub fn write(&mut self, line: &[u8]) -> Written {
        let mended = if self.torn { [b"\n", line].concat() } else { Vec::new() };
        let bytes = if self.torn { mended.as_slice() } else { line };
        match self.push(bytes) {
            Ok(()) if self.lost == 0 => Written::Whole,
            Ok(()) => Written::Again { lost: std::mem::take(&mut self.lost) },
            Err(error) => {
                self.lost += 1;
                if self.lost == 1 { Written::Failing(error) } else { Written::StillFailing }
            }
        }
    }

    fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = match self.sink.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (taken, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            self.torn = taken.last() != Some(&b'\n');
            bytes = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::path::Path;

    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    /// Runs `test` on a thread of its own, where `place` is a filesystem of two pages that only it sees.
    fn on_a_tiny_disk(test: impl FnOnce(&Path) + Send + 'static) {
        if !nix::unistd::geteuid().is_root() {
            return; // only root may mount; the writer below that takes little runs for everybody
        }
        let run = move || {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
            let folder = tempfile::tempdir().unwrap();
            mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some("size=8k")).unwrap();
            test(folder.path());
            nix::mount::umount(folder.path()).unwrap();
        };
        std::thread::spawn(run).join().unwrap();
    }

    fn line(number: u32) -> Vec<u8> {
        format!("{{\"number\":{number},\"filling\":\"{}\"}}\n", "x".repeat(100)).into_bytes()
    }

    fn numbers(text: &str) -> Vec<Option<u64>> {
        let number = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["number"].as_u64();
        text.lines().map(number).collect()
    }

    #[test]
    fn a_disk_that_was_full_leaves_one_torn_line_and_every_later_one_whole() {
        on_a_tiny_disk(|folder| {
            let ballast = folder.join("ballast");
            std::fs::write(&ballast, vec![0; 4096]).unwrap();
            let path = folder.join("log");
            let mut lines = Lines::new(OpenOptions::new().append(true).create(true).open(&path).unwrap());
            let whole = (0..).take_while(|&number| matches!(lines.write(&line(number)), Written::Whole));
            let whole = u32::try_from(whole.count()).unwrap();
            assert!(whole > 10, "{whole}");
            for number in 0..3 {
                assert!(matches!(lines.write(&line(number)), Written::StillFailing));
            }
            std::fs::remove_file(&ballast).unwrap();
            assert!(matches!(lines.write(&line(1000)), Written::Again { lost: 4 }));
            assert!(matches!(lines.write(&line(1001)), Written::Whole));
            let mut expected: Vec<_> = (0..u64::from(whole)).map(Some).collect();
            expected.extend([None, Some(1000), Some(1001)]);
            assert_eq!(numbers(&std::fs::read_to_string(&path).unwrap()), expected);
        });
    }

    /// Takes as many bytes as there is room for, then says what a full disk says.
    struct Little {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Little {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= count;
            self.taken.extend(bytes.iter().take(count));
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn wherever_a_line_is_cut_the_next_one_stands() {
        let (first, second) = (line(1), line(2));
        for room in 0..first.len() {
            let mut lines = Lines::new(Little { taken: Vec::new(), room });
            assert!(!lines.write(&first).is_whole());
            // Room for the newline alone: the torn line is ended, and no second newline follows it.
            lines.sink.room = 1;
            assert!(!lines.write(&second).is_whole());
            lines.sink.room = 1000;
            let again = lines.write(&second);
            assert!(again.is_whole() && again.news("lines").unwrap().ends_with("2 were lost"), "{again:?}");
            let text = String::from_utf8(lines.sink.taken).unwrap();
            assert_eq!(numbers(&text).last(), Some(&Some(2)), "{room}: {text}");
            assert!(text.lines().count() <= 2 && !text.contains("\n\n"), "{room}: {text}");
        }
    }

    #[test]
    fn a_sink_that_fails_is_told_once_and_one_that_works_never() {
        let mut full = Lines::new(OpenOptions::new().append(true).open("/dev/full").unwrap());
        let news: Vec<_> = (0..100).filter_map(|number| full.write(&line(number)).news("lines")).collect();
        assert_eq!(news.len(), 1, "{news:?}");
        let mut sound = Lines::new(Vec::new());
        assert!((0..100).all(|number| sound.write(&line(number)).news("lines").is_none()));
    }
}
