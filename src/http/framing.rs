//! Where one HTTP/1 request ends and the next begins, judged more strictly
//! than the parser behind it does: what two parsers could read in two ways is
//! refused, so that nothing can be smuggled past a proxy in front of us.
//!
//! Bodies are only counted, never copied.

/// How large a request head may be.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    pub head_bytes: usize,
    pub uri_bytes: usize,
    pub header_lines: usize,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits {
            head_bytes: 32 * 1024,
            uri_bytes: 8 * 1024,
            // hyper's own limit; beyond it hyper would answer without a body.
            header_lines: 100,
        }
    }
}

/// Why a request was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(
        "this is not an HTTP/1.1 request; only HTTP/1.1 and HTTP/1.0 without TLS are spoken here"
    )]
    NotHttp,
    #[error("the request line is not `METHOD target HTTP/1.1`")]
    RequestLine,
    #[error("lines of a request head end in CRLF")]
    BareLineEnd,
    #[error("a header must not be folded over several lines")]
    Folded,
    #[error(
        "a header line is not `name: value`, or its name holds a character that is not allowed"
    )]
    HeaderName,
    #[error("a header value holds a control character")]
    ControlByte,
    #[error("Content-Length must be given at most once, as one plain number")]
    ContentLength,
    #[error("Transfer-Encoding must be given at most once and be exactly `chunked`")]
    TransferEncoding,
    #[error("Content-Length and Transfer-Encoding must not be given together")]
    TwoLengths,
    #[error("the request target is too long")]
    UriTooLong,
    #[error("the request head is too large")]
    HeadTooLarge,
    #[error("the request head took too long to arrive")]
    HeadTimeout,
    #[error("the chunked body is broken")]
    Chunk,
}

/// What may be passed on of some bytes, and why not the rest.
#[derive(Debug, PartialEq, Eq)]
pub struct Scan {
    pub pass: usize,
    pub stop: Option<Stop>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The rest is the beginning of a head: show it again, with more.
    Head,
    Fault(Fault),
}

#[derive(Debug)]
pub struct Framing {
    limits: HeadLimits,
    state: State,
    heads: u64,
    body_bytes: u64,
}

#[derive(Debug)]
enum State {
    Head(Head),
    Sized { left: u64 },
    Chunked(Chunk),
}

impl Framing {
    pub fn new(limits: HeadLimits) -> Framing {
        Framing {
            limits,
            state: State::Head(Head::default()),
            heads: 0,
            body_bytes: 0,
        }
    }

    /// How many heads have been let through.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    pub fn in_body(&self) -> bool {
        !matches!(self.state, State::Head(_))
    }

    /// How much of the present body has come.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Follows the stream over `bytes`. After [`Stop::Head`] the next call must
    /// begin with the bytes that were not passed.
    pub fn scan(&mut self, bytes: &[u8]) -> Scan {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let step = match &mut self.state {
                State::Head(head) => head.scan(rest, &self.limits),
                State::Sized { left } => Ok(Some(sized(left, rest))),
                State::Chunked(chunk) => chunk.scan(rest).map(Some),
            };
            let (taken, next) = match step {
                Ok(Some(step)) => step,
                Ok(None) => return Scan::stopped(at, Stop::Head),
                Err(fault) => return Scan::stopped(at, Stop::Fault(fault)),
            };
            at += taken;
            if self.in_body() {
                self.body_bytes += taken as u64;
            } else {
                self.heads += 1;
                self.body_bytes = 0;
            }
            if let Some(next) = next {
                self.state = next;
            }
        }
        Scan {
            pass: at,
            stop: None,
        }
    }
}

impl Scan {
    fn stopped(pass: usize, stop: Stop) -> Scan {
        Scan {
            pass,
            stop: Some(stop),
        }
    }
}

/// Bytes taken, and the state that follows if it changes.
type Step = (usize, Option<State>);

fn sized(left: &mut u64, bytes: &[u8]) -> Step {
    let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= taken as u64;
    (taken, (*left == 0).then(|| State::Head(Head::default())))
}

/// A head as far as it has come; offsets count from its first byte.
#[derive(Debug, Default)]
struct Head {
    line: usize,
    seen: usize,
    lines: usize,
    old: bool,
    length: Option<u64>,
    chunked: bool,
}

impl Head {
    fn scan(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Option<Step>, Fault> {
        if !is_token(bytes[0]) {
            return Err(Fault::NotHttp);
        }
        while let Some(found) = bytes[self.seen..].iter().position(|&b| b == b'\n') {
            let end = self.seen + found;
            if end >= limits.head_bytes {
                return Err(Fault::HeadTooLarge);
            }
            let line = bytes[self.line..end]
                .strip_suffix(b"\r")
                .ok_or(Fault::BareLineEnd)?;
            self.line = end + 1;
            self.seen = end + 1;
            if line.is_empty() {
                return self.finish().map(|body| Some((self.seen, Some(body))));
            }
            self.take_line(line, limits)?;
        }
        self.seen = bytes.len();
        if self.lines == 0 && bytes.len() > limits.uri_bytes + 64 {
            return Err(Fault::UriTooLong);
        }
        if bytes.len() >= limits.head_bytes {
            return Err(Fault::HeadTooLarge);
        }
        Ok(None)
    }

    fn take_line(&mut self, line: &[u8], limits: &HeadLimits) -> Result<(), Fault> {
        self.lines += 1;
        if self.lines == 1 {
            return self.request_line(line, limits);
        }
        if self.lines > limits.header_lines + 1 {
            return Err(Fault::HeadTooLarge);
        }
        self.header(line)
    }

    fn request_line(&mut self, line: &[u8], limits: &HeadLimits) -> Result<(), Fault> {
        let mut parts = line.split(|&b| b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Fault::RequestLine);
        };
        match version {
            b"HTTP/1.1" => {}
            b"HTTP/1.0" => self.old = true,
            _ if version.starts_with(b"HTTP/") => return Err(Fault::NotHttp),
            _ => return Err(Fault::RequestLine),
        }
        // CONNECT would turn the rest of the stream into something unframed.
        let method_fits = !method.is_empty()
            && method.iter().all(|&b| is_token(b))
            && !method.eq_ignore_ascii_case(b"CONNECT");
        if !method_fits || target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
            return Err(Fault::RequestLine);
        }
        if target.len() > limits.uri_bytes {
            return Err(Fault::UriTooLong);
        }
        Ok(())
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        if matches!(line[0], b' ' | b'\t') {
            return Err(Fault::Folded);
        }
        let colon = line
            .iter()
            .position(|&b| b == b':')
            .ok_or(Fault::HeaderName)?;
        let name = &line[..colon];
        if name.is_empty() || !name.iter().all(|&b| is_token(b)) {
            return Err(Fault::HeaderName);
        }
        let value = &line[colon + 1..];
        if value.iter().any(|&b| (b < b' ' && b != b'\t') || b == 0x7f) {
            return Err(Fault::ControlByte);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = plain_number(trim(value)).ok_or(Fault::ContentLength)?;
            if self.length.replace(length).is_some() {
                return Err(Fault::ContentLength);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || self.old || trim(value) != b"chunked" {
                return Err(Fault::TransferEncoding);
            }
            self.chunked = true;
        }
        Ok(())
    }

    fn finish(&self) -> Result<State, Fault> {
        match (self.lines, self.length, self.chunked) {
            (0, ..) => Err(Fault::RequestLine),
            (_, Some(_), true) => Err(Fault::TwoLengths),
            (_, None, true) => Ok(State::Chunked(Chunk::Size { digits: 0, size: 0 })),
            (_, Some(left @ 1..), false) => Ok(State::Sized { left }),
            (_, Some(0) | None, false) => Ok(State::Head(Head::default())),
        }
    }
}

/// Where a chunked body stands. Extensions and trailers are refused: nobody
/// sends them, and parsers disagree about them.
#[derive(Debug)]
enum Chunk {
    Size { digits: u8, size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    LastCr,
    LastLf,
}

impl Chunk {
    fn scan(&mut self, bytes: &[u8]) -> Result<Step, Fault> {
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

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn trim(value: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let Some(start) = value.iter().position(|b| !blank(b)) else {
        return b"";
    };
    let end = value.iter().rposition(|b| !blank(b)).unwrap_or(start);
    &value[start..=end]
}

fn plain_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0')))
}

#[cfg(test)]
mod tests;
