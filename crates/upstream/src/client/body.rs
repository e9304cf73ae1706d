//! The body of a response. At its end the connection becomes idle; dropping the
//! body earlier closes the connection.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use super::idle::{HttpConnection, IdleConnections};

/// The limit of one line of a chunked body; real ones have a few digits.
const LINE_LIMIT: usize = 4 << 10;

/// The least and the most that one read of a body asks for.
const READ: usize = 8 << 10;
const MOST: usize = 256 << 10;

/// The way the end of a body is found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(u64),
    Chunked(ChunkState),
    /// The body ends with the connection.
    Close,
}

/// The next element of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    End,
}

impl BodyFraming {
    pub(super) fn chunked() -> BodyFraming {
        BodyFraming::Chunked(ChunkState::Size)
    }

    fn is_over(&self) -> bool {
        matches!(
            self,
            BodyFraming::Length(0) | BodyFraming::Chunked(ChunkState::End)
        )
    }

    /// How much to read at once.
    fn read_size(&self) -> usize {
        match self {
            BodyFraming::Length(left) => (*left).clamp(READ as u64, MOST as u64) as usize,
            _ => READ,
        }
    }

    /// The next piece of the body that is in `buffer`; `None` if more must be
    /// read first, or the body has ended.
    fn take(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, BodyError> {
        loop {
            let next = match self {
                BodyFraming::Length(0) | BodyFraming::Chunked(ChunkState::End) => return Ok(None),
                BodyFraming::Close => return Ok(piece(buffer, u64::MAX)),
                BodyFraming::Chunked(ChunkState::Data(0)) => ChunkState::DataEnd,
                BodyFraming::Length(left) | BodyFraming::Chunked(ChunkState::Data(left)) => {
                    let piece = piece(buffer, *left);
                    *left -= piece.as_ref().map_or(0, Bytes::len) as u64;
                    return Ok(piece);
                }
                BodyFraming::Chunked(state) => {
                    let Some(line) = line(buffer)? else {
                        return Ok(None);
                    };
                    match (state, line.is_empty()) {
                        (ChunkState::Size, _) => match size(&line)? {
                            0 => ChunkState::Trailer,
                            size => ChunkState::Data(size),
                        },
                        (ChunkState::DataEnd, true) => ChunkState::Size,
                        (ChunkState::DataEnd, false) => return Err(BodyError::Chunk),
                        (_, true) => ChunkState::End,
                        (_, false) => ChunkState::Trailer,
                    }
                }
            };
            *self = BodyFraming::Chunked(next);
        }
    }
}

fn piece(buffer: &mut BytesMut, most: u64) -> Option<Bytes> {
    let size = usize::try_from(most).map_or(buffer.len(), |most| most.min(buffer.len()));
    (size > 0).then(|| buffer.split_to(size).freeze())
}

/// One line, without its line ending.
fn line(buffer: &mut BytesMut) -> Result<Option<BytesMut>, BodyError> {
    match buffer.iter().take(LINE_LIMIT).position(|b| *b == b'\n') {
        Some(end) => {
            let mut line = buffer.split_to(end);
            buffer.advance(1);
            if line.last() != Some(&b'\r') {
                return Err(BodyError::Chunk);
            }
            line.truncate(end - 1);
            Ok(Some(line))
        }
        None if buffer.len() >= LINE_LIMIT => Err(BodyError::Chunk),
        None => Ok(None),
    }
}

/// The size before a chunk; extensions after it are ignored.
fn size(line: &[u8]) -> Result<u64, BodyError> {
    let digits = line.split(|b| matches!(b, b';' | b' ' | b'\t')).next();
    let digits = digits.filter(|digits| (1..=15).contains(&digits.len()));
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    digits
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or(BodyError::Chunk)
}

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("connection closed before the end of the body")]
    Short,
    #[error("invalid chunked encoding")]
    Chunk,
    #[error("body too large")]
    TooLarge,
}

pub struct ResponseBody {
    /// `None` at the end of the body.
    connection: Option<HttpConnection>,
    framing: BodyFraming,
    /// Takes the connection at the end, if it may be used again.
    idle: Option<Arc<IdleConnections>>,
}

impl ResponseBody {
    pub(super) fn new(
        connection: HttpConnection,
        framing: BodyFraming,
        idle: Option<Arc<IdleConnections>>,
    ) -> ResponseBody {
        let mut body = ResponseBody {
            connection: Some(connection),
            framing,
            idle,
        };
        body.end();
        body
    }

    /// The remaining length, if the head of the response stated one.
    pub fn length(&self) -> Option<u64> {
        match self.framing {
            BodyFraming::Length(left) => Some(left),
            _ => None,
        }
    }

    /// The next piece; `None` at the end. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Ok(None);
            };
            if let Some(piece) = self.framing.take(&mut connection.buffer)? {
                self.end();
                return Ok(Some(piece));
            }
            if self.end() {
                return Ok(None);
            }
            let Some(connection) = &mut self.connection else {
                return Ok(None);
            };
            connection.buffer.reserve(self.framing.read_size());
            match connection.socket.read_buf(&mut connection.buffer).await? {
                0 if self.framing == BodyFraming::Close => self.connection = None,
                0 => return Err(BodyError::Short),
                _ => {}
            }
        }
    }

    /// The whole body, within `limit`.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, BodyError> {
        if let Some(length) = self.length() {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            return match length <= limit {
                true => self.whole(length).await,
                false => Err(BodyError::TooLarge),
            };
        }
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        if self.connection.is_none() && first.len() <= limit {
            return Ok(first);
        }
        let mut whole = BytesMut::from(first);
        while whole.len() <= limit {
            match self.chunk().await? {
                Some(piece) => whole.extend_from_slice(&piece),
                None => return Ok(whole.freeze()),
            }
        }
        Err(BodyError::TooLarge)
    }

    /// A body of known length, in one piece of memory.
    async fn whole(mut self, length: usize) -> Result<Bytes, BodyError> {
        let Some(HttpConnection { socket, buffer, .. }) = &mut self.connection else {
            return Ok(Bytes::new());
        };
        buffer.reserve(length.saturating_sub(buffer.len()));
        while buffer.len() < length {
            if socket.read_buf(buffer).await? == 0 {
                return Err(BodyError::Short);
            }
        }
        let body = buffer.split_to(length).freeze();
        self.framing = BodyFraming::Length(0);
        self.end();
        Ok(body)
    }

    /// Whether the body has ended; if so, releases the connection.
    fn end(&mut self) -> bool {
        if !self.framing.is_over() {
            return self.connection.is_none();
        }
        if let Some(connection) = self.connection.take()
            && let Some(idle) = &self.idle
            // Bytes after the body belong to no request.
            && connection.buffer.is_empty()
        {
            idle.put(connection);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of `text`, received in pieces of `step` bytes.
    fn read(
        mut framing: BodyFraming,
        text: &str,
        step: usize,
    ) -> Result<(String, String), BodyError> {
        let (mut buffer, mut body) = (BytesMut::new(), Vec::new());
        for bytes in text.as_bytes().chunks(step) {
            buffer.extend_from_slice(bytes);
            while let Some(piece) = framing.take(&mut buffer)? {
                body.extend_from_slice(&piece);
            }
        }
        let over = if framing.is_over() { "over" } else { "open" };
        Ok((String::from_utf8(body).unwrap(), over.to_owned()))
    }

    #[test]
    fn c1_bodies_end_where_their_framing_says() {
        let chunks = "3\r\nabc\r\n0A;ext=1\r\n0123456789\r\n0\r\nx: y\r\n\r\n";
        for step in 1..chunks.len() {
            let both = read(BodyFraming::chunked(), chunks, step).unwrap();
            assert_eq!(both, ("abc0123456789".into(), "over".into()), "{step}");
            let (body, over) = read(BodyFraming::Length(5), "abcdefg", step).unwrap();
            assert_eq!((body.as_str(), over.as_str()), ("abcde", "over"));
            let (body, over) = read(BodyFraming::Close, "abc", step).unwrap();
            assert_eq!((body.as_str(), over.as_str()), ("abc", "open"));
        }
        let (body, over) = read(BodyFraming::chunked(), "3\r\nabc\r\n", 1).unwrap();
        assert_eq!((body.as_str(), over.as_str()), ("abc", "open"));
    }

    #[test]
    fn c1_broken_chunks_are_an_error() {
        for text in [
            "x\r\n",
            "\r\n",
            "-1\r\n",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "1000000000000000\r\n",
        ] {
            assert!(read(BodyFraming::chunked(), text, 1).is_err(), "{text:?}");
        }
        let endless = "1".repeat(LINE_LIMIT + 1);
        assert!(read(BodyFraming::chunked(), &endless, 100).is_err());
    }
}
