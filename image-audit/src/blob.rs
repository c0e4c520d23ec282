//! One blob of an image archive, recognised by its bytes: a layer, a JSON document, or neither.

use policy::image::Digest;
use sha2::{Digest as _, Sha256};

use crate::content::finish;
use crate::layer::{LayerRead, LayerReader};
use crate::limits::Limits;
use crate::tally::Tally;
use crate::tar::is_header;
use crate::unpack::{Compression, UnpackError, Unpacker};

/// A blob that was read.
#[derive(Debug)]
pub(crate) struct Blob {
    /// Of its bytes as they are stored.
    pub digest: Digest,
    /// Their number.
    pub size_bytes: u64,
    /// What they are.
    pub body: Body,
}

/// What a blob is.
#[derive(Debug)]
pub(crate) enum Body {
    /// A tar, packed as it says.
    Layer(LayerRead, Compression),
    /// A document that begins like JSON.
    Json(Vec<u8>),
    /// Neither.
    Other,
    /// It looks like a layer or a document, and could not be read.
    Unread(String),
}

/// A blob being read.
pub(crate) struct BlobReader {
    hash: Sha256,
    size_bytes: u64,
    /// The first bytes, until there are enough to tell.
    head: Vec<u8>,
    reading: Reading,
    limits: Limits,
}

enum Reading {
    Undecided,
    Layer {
        layer: Box<LayerReader>,
        unpacker: Box<Unpacker>,
        compression: Compression,
        failed: Option<UnpackError>,
    },
    Json(Vec<u8>),
    Other,
    Unread(String),
}

impl BlobReader {
    /// A reader at a blob's first byte.
    pub(crate) fn new(limits: &Limits) -> Self {
        let reading = Reading::Undecided;
        Self { hash: Sha256::new(), size_bytes: 0, head: Vec::new(), reading, limits: *limits }
    }

    /// The next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], tally: &mut Tally) {
        self.hash.update(bytes);
        self.size_bytes += bytes.len() as u64;
        if matches!(self.reading, Reading::Undecided) {
            // A tar cannot be told from its first bytes: its checksum is over a block.
            self.head.extend_from_slice(bytes);
            if self.head.len() >= 512 {
                self.decide(tally);
            }
        } else {
            self.take(bytes, tally);
        }
    }

    /// The blob, after its last byte.
    pub(crate) fn finish(mut self, tally: &mut Tally) -> Blob {
        if matches!(self.reading, Reading::Undecided) {
            self.decide(tally);
        }
        let body = match self.reading {
            Reading::Layer { mut layer, mut unpacker, compression, failed } => {
                let finished = match failed {
                    Some(error) => Err(error),
                    None => unpacker.finish(&mut |bytes| layer.push(bytes, tally)),
                };
                let mut read = layer.finish();
                if let Err(error) = finished {
                    read.problem = Some(error.to_string());
                }
                tally.read.layers += 1;
                Body::Layer(read, compression)
            }
            Reading::Json(bytes) => Body::Json(bytes),
            Reading::Unread(why) => Body::Unread(why),
            Reading::Other | Reading::Undecided => Body::Other,
        };
        Blob { digest: finish(self.hash), size_bytes: self.size_bytes, body }
    }

    fn decide(&mut self, tally: &mut Tally) {
        let head = std::mem::take(&mut self.head);
        let compression = Compression::of(&head);
        let tar =
            head.first_chunk::<512>().is_some_and(|block| is_header(block) || block.iter().all(|&b| b == 0));
        let json = matches!(head.trim_ascii_start(), [b'{' | b'[', ..]);
        self.reading = match (compression, Unpacker::new(compression, &self.limits)) {
            (_, Err(error)) => Reading::Unread(error.to_string()),
            (Compression::Plain, Ok(_)) if json && !tar => Reading::Json(Vec::new()),
            (Compression::Plain, Ok(_)) if !tar => Reading::Other,
            (compression, Ok(unpacker)) => Reading::Layer {
                layer: Box::new(LayerReader::new(&self.limits)),
                unpacker: Box::new(unpacker),
                compression,
                failed: None,
            },
        };
        self.take(&head, tally);
    }

    fn take(&mut self, bytes: &[u8], tally: &mut Tally) {
        match &mut self.reading {
            Reading::Layer { layer, unpacker, failed, .. } if failed.is_none() => {
                *failed = unpacker.push(bytes, &mut |piece| layer.push(piece, tally)).err();
            }
            Reading::Json(kept) => {
                let max = self.limits.json_bytes_max;
                kept.extend_from_slice(bytes);
                let over = tally.json(bytes.len(), &self.limits).err();
                let long = (kept.len() > max).then(|| format!("a document of more than {max} bytes"));
                if let Some(limit) = long.or(over) {
                    self.reading = Reading::Unread(limit);
                }
            }
            Reading::Layer { .. } | Reading::Other | Reading::Unread(_) | Reading::Undecided => {}
        }
    }
}
