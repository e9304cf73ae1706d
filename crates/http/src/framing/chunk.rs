//! A chunked body: finds only where its chunks begin and end.

use super::head::RequestHead;
use super::{FramingError, FramingState, FramingStep, sized};

/// The position in a chunked body. Extensions and trailers are refused: no
/// client sends them, and parsers disagree about them.
#[derive(Debug)]
pub(super) enum ChunkPosition {
    Size { digits: u8, size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    LastCr,
    LastLf,
}

impl ChunkPosition {
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<FramingStep, FramingError> {
        let mut at = 0;
        while at < bytes.len() {
            if let ChunkPosition::Data { left } = self {
                let (taken, done) = sized(left, &bytes[at..]);
                at += taken;
                if done.is_some() {
                    *self = ChunkPosition::DataCr;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self.after(byte)? {
                Some(next) => *self = next,
                None => return Ok((at, Some(FramingState::Head(RequestHead::default())))),
            }
        }
        Ok((at, None))
    }

    /// The state after one byte outside chunk data; `None` at the body's end.
    fn after(&self, byte: u8) -> Result<Option<ChunkPosition>, FramingError> {
        let next = match (self, byte) {
            (ChunkPosition::Size { digits: 1.., size }, b'\r') => {
                ChunkPosition::SizeLf { size: *size }
            }
            (
                ChunkPosition::Size {
                    digits: digits @ ..8,
                    size,
                },
                _,
            ) => {
                let digit = char::from(byte).to_digit(16).ok_or(FramingError::Chunk)?;
                ChunkPosition::Size {
                    digits: digits + 1,
                    size: size * 16 + u64::from(digit),
                }
            }
            (ChunkPosition::SizeLf { size: 0 }, b'\n') => ChunkPosition::LastCr,
            (ChunkPosition::SizeLf { size }, b'\n') => ChunkPosition::Data { left: *size },
            (ChunkPosition::DataCr, b'\r') => ChunkPosition::DataLf,
            (ChunkPosition::DataLf, b'\n') => ChunkPosition::Size { digits: 0, size: 0 },
            (ChunkPosition::LastCr, b'\r') => ChunkPosition::LastLf,
            (ChunkPosition::LastLf, b'\n') => return Ok(None),
            _ => return Err(FramingError::Chunk),
        };
        Ok(Some(next))
    }
}
