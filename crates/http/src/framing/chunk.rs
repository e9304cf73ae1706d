//! A chunked body.

use bytes::{Buf, BytesMut};

use super::{BodyPart, FramingError, take_data};

/// The position in a chunked body. Extensions and trailers are refused: no
/// client sends them, and parsers disagree about them.
#[derive(Debug)]
pub enum ChunkPosition {
    Size { digits: u8, size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    LastCr,
    LastLf,
}

impl ChunkPosition {
    pub(super) const START: ChunkPosition = ChunkPosition::Size { digits: 0, size: 0 };

    /// Takes the data of the next chunk, as far as it has arrived.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<BodyPart, FramingError> {
        loop {
            if let ChunkPosition::Data { left } = self {
                let data = take_data(left, buffer);
                if *left == 0 {
                    *self = ChunkPosition::DataCr;
                }
                return Ok(data.map_or(BodyPart::Missing, BodyPart::Data));
            }
            let Some(&byte) = buffer.first() else {
                return Ok(BodyPart::Missing);
            };
            let next = self.after(byte)?;
            buffer.advance(1);
            match next {
                Some(next) => *self = next,
                None => return Ok(BodyPart::End),
            }
        }
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
            (ChunkPosition::DataLf, b'\n') => ChunkPosition::START,
            (ChunkPosition::LastCr, b'\r') => ChunkPosition::LastLf,
            (ChunkPosition::LastLf, b'\n') => return Ok(None),
            _ => return Err(FramingError::Chunk),
        };
        Ok(Some(next))
    }
}
