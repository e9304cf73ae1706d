//! Server-sent events: a decoder and an encoder.

#[cfg(test)]
mod tests;

use std::fmt;

use memchr::memchr2;

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// None for the default, which is `message`.
    pub name: Option<String>,
    /// Empty in events that only carry an id or a delay.
    pub data: Vec<u8>,
    /// Some("") resets the last id.
    pub id: Option<String>,
    /// Milliseconds to wait before a reconnect.
    pub retry: Option<u64>,
}

// The data may hold secrets: only its size is shown.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            data,
            id,
            retry,
        } = self;
        write!(
            f,
            "Event({name:?}, {} bytes, id {id:?}, retry {retry:?})",
            data.len()
        )
    }
}

impl Event {
    /// Whether this carries a message: not some other event, not a priming or
    /// keep-alive event without data.
    pub fn is_message(&self) -> bool {
        !self.data.is_empty() && self.name.as_deref().is_none_or(|name| name == "message")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes")]
pub struct EventTooLong {
    pub limit: usize,
}

/// Decodes events from chunks cut anywhere. Buffers at most one event, up to
/// its limit; after an error the stream cannot be read further.
pub struct Decoder {
    limit: usize,
    /// The start of a line that is not complete yet.
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_cr: bool,
    started: bool,
}

impl Decoder {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            after_cr: false,
            started: false,
        }
    }

    /// Reads from `input` until an event is complete; None when all of `input`
    /// is consumed. Call again with the rest of `input`.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Event>, EventTooLong> {
        while let Some(&first) = input.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                *input = &input[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', input) else {
                self.hold(input)?;
                *input = &[];
                break;
            };
            let line = &input[..end];
            self.after_cr = input[end] == b'\r';
            *input = &input[end + 1..];
            if let Some(event) = self.end_line(line)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Passes every event that `chunk` completes to `sink`.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(Event)) -> Result<(), EventTooLong> {
        let mut input = chunk;
        while let Some(event) = self.next(&mut input)? {
            sink(event);
        }
        Ok(())
    }

    fn hold(&mut self, part: &[u8]) -> Result<(), EventTooLong> {
        // An endless comment takes no memory: its first byte is enough.
        if self.line.first().or(part.first()) == Some(&b':') {
            self.line.clear();
            self.line.push(b':');
            return Ok(());
        }
        self.fits(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn fits(&self, more: usize) -> Result<(), EventTooLong> {
        let text = |field: &Option<String>| field.as_ref().map_or(0, String::len);
        let held = self.event.data.len() + text(&self.event.name) + text(&self.event.id);
        if held + more > self.limit {
            return Err(EventTooLong { limit: self.limit });
        }
        Ok(())
    }

    fn end_line(&mut self, rest: &[u8]) -> Result<Option<Event>, EventTooLong> {
        // A line that arrived whole is read in place.
        if self.line.is_empty() {
            return self.read_line(rest);
        }
        self.hold(rest)?;
        let mut line = std::mem::take(&mut self.line);
        if self.started && !self.has_data && line.starts_with(b"data:") {
            // The bulk of a long event: it becomes the data, uncopied.
            let prefix = if line.starts_with(b"data: ") { 6 } else { 5 };
            line.drain(..prefix);
            self.event.data = line;
            self.has_data = true;
            return Ok(None);
        }
        let event = self.read_line(&line);
        line.clear();
        self.line = line;
        event
    }

    fn read_line(&mut self, line: &[u8]) -> Result<Option<Event>, EventTooLong> {
        let mut line = line;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(0) => return Ok(None),
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        self.fits(value.len() + 1)?;
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.name = Some(lossy(value)).filter(|name| !name.is_empty()),
            b"id" if !value.contains(&0) => self.event.id = Some(lossy(value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = lossy(value).parse().ok();
            }
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        // A browser reports no event without data; here the caller reconnects
        // and needs the id and the delay.
        let worth =
            std::mem::take(&mut self.has_data) || event.id.is_some() || event.retry.is_some();
        worth.then_some(event)
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Appends one event. Newlines in `data` become several `data:` lines; in a
/// name or id they would start fields of their own and are left out.
pub fn encode(
    name: Option<&str>,
    id: Option<&str>,
    retry: Option<u64>,
    data: &[u8],
    out: &mut Vec<u8>,
) {
    out.reserve(data.len() + 64);
    if let Some(name) = name {
        push_field("event", name, out);
    }
    if let Some(id) = id {
        push_field("id", id, out);
    }
    if let Some(retry) = retry {
        push_field("retry", &retry.to_string(), out);
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = memchr2(b'\n', b'\r', rest) else {
            out.extend_from_slice(rest);
            break;
        };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        let pair = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + if pair { 2 } else { 1 }..];
    }
    out.extend_from_slice(b"\n\n");
}

/// Appends a comment, which keeps a quiet connection open.
pub fn comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}

fn push_field(field: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(field.as_bytes());
    out.extend_from_slice(b": ");
    let clean = value
        .bytes()
        .filter(|byte| !matches!(byte, b'\n' | b'\r' | 0));
    out.extend(clean);
    out.push(b'\n');
}
