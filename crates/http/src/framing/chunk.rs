//! A chunked body: only where its chunks begin and end.

use super::head::Head;
use super::{Fault, State, Step, sized};

/// Where a chunked body stands. Extensions and trailers are refused: nobody
/// sends them, and parsers disagree about them.
#[derive(Debug)]
pub(super) enum Chunk {
    Size { digits: u8, size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    LastCr,
    LastLf,
}

impl Chunk {
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<Step, Fault> {
        let mut at = 0;
        while at < bytes.len() {
            if let Chunk::Data { left } = self {
                let (taken, done) = sized(left, &bytes[at..]);
                at += taken;
                if done.is_some() {
                    *self = Chunk::DataCr;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self.after(byte)? {
                Some(next) => *self = next,
                None => return Ok((at, Some(State::Head(Head::default())))),
            }
        }
        Ok((at, None))
    }

    /// The state after one byte outside chunk data; none at the body's end.
    fn after(&self, byte: u8) -> Result<Option<Chunk>, Fault> {
        let next = match (self, byte) {
            (Chunk::Size { digits: 1.., size }, b'\r') => Chunk::SizeLf { size: *size },
            (
                Chunk::Size {
                    digits: digits @ ..8,
                    size,
                },
                _,
            ) => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Chunk)?;
                Chunk::Size {
                    digits: digits + 1,
                    size: size * 16 + u64::from(digit),
                }
            }
            (Chunk::SizeLf { size: 0 }, b'\n') => Chunk::LastCr,
            (Chunk::SizeLf { size }, b'\n') => Chunk::Data { left: *size },
            (Chunk::DataCr, b'\r') => Chunk::DataLf,
            (Chunk::DataLf, b'\n') => Chunk::Size { digits: 0, size: 0 },
            (Chunk::LastCr, b'\r') => Chunk::LastLf,
            (Chunk::LastLf, b'\n') => return Ok(None),
            _ => return Err(Fault::Chunk),
        };
        Ok(Some(next))
    }
}
