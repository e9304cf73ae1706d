//! The lines of a child's output, bounded, and their form that is safe to show.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use config::Redactor;

/// The least and the most that one read asks for. The most is what a pipe holds.
const LEAST: usize = 4 << 10;
const MOST: usize = 64 << 10;
/// The length limit of a quote from a server in an error.
const QUOTE: usize = 200;

/// Splits a byte stream at newlines. Memory is bounded by the limit.
pub struct LineReader<R> {
    source: R,
    buffer: BytesMut,
    /// The length of the buffer's prefix that contains no newline.
    scanned: usize,
    limit: usize,
    /// How much the next read asks for: more after a read that got all of it.
    chunk: usize,
}

pub enum OutputLine {
    Whole(BytesMut),
    /// The limit is reached without a newline: the bytes so far.
    TooLong(BytesMut),
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(source: R, limit: usize) -> LineReader<R> {
        LineReader {
            source,
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            chunk: LEAST,
        }
    }

    /// The next line without its line ending, or `None` at the end of the
    /// stream. A last line without a newline is a line too.
    pub async fn next(&mut self) -> std::io::Result<Option<OutputLine>> {
        loop {
            let fresh = &self.buffer[self.scanned..];
            if let Some(at) = fresh.iter().position(|&byte| byte == b'\n') {
                let mut line = self.buffer.split_to(self.scanned + at);
                self.buffer.advance(1);
                self.scanned = 0;
                if line.last() == Some(&b'\r') {
                    line.truncate(line.len() - 1);
                }
                return Ok(Some(OutputLine::Whole(line)));
            }
            self.scanned = self.buffer.len();
            if self.buffer.len() >= self.limit {
                self.scanned = 0;
                return Ok(Some(OutputLine::TooLong(self.buffer.split())));
            }
            self.buffer.reserve(self.chunk);
            let read = self.source.read_buf(&mut self.buffer).await?;
            if read == 0 {
                self.scanned = 0;
                let rest = self.buffer.split();
                return Ok((!rest.is_empty()).then_some(OutputLine::Whole(rest)));
            }
            self.chunk = match read >= self.chunk {
                true => (self.chunk * 2).min(MOST),
                false => LEAST.max(self.chunk / 2),
            };
        }
    }
}

/// A server's text in the form that is safe in an error: one short line,
/// without the secrets that the server was given.
pub(crate) fn quote(text: &str, redactor: &Redactor) -> String {
    let text = redactor.redact(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(QUOTE).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    printable(&short)
}

/// A server's text for a log or an error: control and format characters
/// escaped, so that no terminal interprets them.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let invisible = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if (c.is_control() && c != '\t') || invisible {
            out.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn collect(input: &[u8], limit: usize) -> Vec<(bool, Vec<u8>)> {
        let mut lines = LineReader::new(input, limit);
        let mut out = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            out.push(match line {
                OutputLine::Whole(line) => (true, line.to_vec()),
                OutputLine::TooLong(line) => (false, line.to_vec()),
            });
        }
        out
    }

    #[tokio::test]
    async fn splits_at_newlines_and_keeps_the_last() {
        let got = collect(b"a\r\n\nbc\nlast", 100).await;
        let want: Vec<&[u8]> = vec![b"a", b"", b"bc", b"last"];
        assert_eq!(got.iter().map(|(_, l)| &l[..]).collect::<Vec<_>>(), want);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_handed_out_as_too_long() {
        let got = collect(&[b'x'; 5000], 1000).await;
        assert!(!got[0].0 && got[0].1.len() >= 1000);
        assert_eq!(got.iter().map(|(_, l)| l.len()).sum::<usize>(), 5000);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            printable("a\u{1b}]52;x\u{7}b\tc"),
            "a\\u001b]52;x\\u0007b\tc"
        );
    }
}
