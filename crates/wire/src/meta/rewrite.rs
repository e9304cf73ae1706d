use serde_json::value::RawValue;

use super::{
    CLIENT_CAPABILITIES, CLIENT_INFO, Envelope, LOG_LEVEL, PREFIX, PROGRESS_TOKEN,
    PROTOCOL_VERSION, ROUND_TRIP,
};
use crate::message::{Fault, Malformed};
use crate::object::{MemberName, Members, Object, push_text, unquote};

/// Members of an object that are compared with each other as they come; those
/// of a wider object are collected first.
const FEW: usize = 16;

/// A client's params as a server gets them: written member by member, as they
/// are read.
pub struct ServerParams<'a> {
    pub params: Option<&'a RawValue>,
    /// For a modern server. Its keys and the progress token are Portway's:
    /// replaced where they stood, added at the end, or removed if not set. A
    /// legacy server gets neither a modern envelope nor the answers of a multi
    /// round-trip request.
    pub envelope: Option<&'a Envelope<'a>>,
    pub progress_token: Option<u64>,
    /// A member and its text; a member that already has this text stays,
    /// however it is spelled.
    pub subject: Option<(&'a str, &'a str)>,
}

/// A value that Portway sets.
enum OwnValue<'a> {
    Text(&'a str),
    Json(&'a str),
    Number(u64),
}

impl ServerParams<'_> {
    /// A legacy server can do without params.
    pub(crate) fn are_absent(&self) -> bool {
        self.params.is_none() && self.envelope.is_none() && self.progress_token.is_none()
    }

    /// About the size of what is written.
    pub(crate) fn size(&self) -> usize {
        let own = self.envelope.map_or(0, |envelope| {
            let info = envelope.client_info.map_or(0, |info| info.get().len());
            info + envelope.capabilities.get().len() + 200
        });
        let subject = self
            .subject
            .map_or(0, |(name, text)| name.len() + text.len());
        self.params.map_or(0, |params| params.get().len()) + own + subject + 64
    }

    /// Appends the params. Members written twice are refused: the server might
    /// read the other one.
    pub fn write(&self, out: &mut String) -> Result<(), Malformed> {
        let (mut meta_written, mut subject_written) = (false, false);
        out.push('{');
        let mut members = members_of(self.params.map_or("{}", RawValue::get))?;
        each_unique(&mut members, |name, members| {
            if name.is("_meta") {
                meta_written = true;
                return self.write_meta(Some(members), out);
            }
            let value = members.value();
            if let Some((subject, text)) = self.subject
                && name.is(subject)
            {
                subject_written = true;
                push_name(name.written(), out);
                if unquote(value).is_some_and(|said| said == text) {
                    out.push_str(value);
                } else {
                    push_text(text, out);
                }
                return Ok(());
            }
            let is_answer = || ROUND_TRIP.iter().any(|answer| name.is(answer));
            if self.envelope.is_some() || !is_answer() {
                push_name(name.written(), out);
                out.push_str(value);
            }
            Ok(())
        })?;
        if !meta_written {
            self.write_meta(None, out)?;
        }
        if let Some((subject, text)) = self.subject.filter(|_| !subject_written) {
            OwnValue::Text(text).write(subject, out);
        }
        out.push('}');
        Ok(())
    }

    /// `holder` is at the value of the client's `_meta`, if there is one.
    fn write_meta(
        &self,
        holder: Option<&mut Members<'_>>,
        out: &mut String,
    ) -> Result<(), Malformed> {
        let before = out.len();
        push_name(r#""_meta""#, out);
        out.push('{');
        let empty = out.len();
        let mut write = |meta: &mut Members<'_>| match self.envelope {
            Some(envelope) => self.write_modern(envelope, meta, out).map(|()| true),
            None => self.write_legacy(meta, out),
        };
        let (written, changed) = match holder {
            Some(holder) => match holder.object(&mut write) {
                (written, Some(changed)) => (Some(written), changed?),
                ("null", None) => (Some("null"), write(&mut members_of("{}")?)?),
                (_, None) => return Err(Fault::Wide.into()),
            },
            None => (None, write(&mut members_of("{}")?)?),
        };
        out.push('}');
        if !changed {
            out.truncate(before);
            if let Some(written) = written {
                push_name(r#""_meta""#, out);
                out.push_str(written);
            }
        } else if self.envelope.is_none() && out.len() == empty + 1 {
            out.truncate(before);
        }
        Ok(())
    }

    fn write_modern(
        &self,
        envelope: &Envelope<'_>,
        meta: &mut Members<'_>,
        out: &mut String,
    ) -> Result<(), Malformed> {
        let info = envelope.client_info.map(RawValue::get);
        let keys = [
            (PROTOCOL_VERSION, Some(OwnValue::Text(envelope.version))),
            (CLIENT_INFO, info.map(OwnValue::Json)),
            (
                CLIENT_CAPABILITIES,
                Some(OwnValue::Json(envelope.capabilities.get())),
            ),
            (LOG_LEVEL, envelope.log_level.map(OwnValue::Text)),
            (PROGRESS_TOKEN, self.progress_token.map(OwnValue::Number)),
        ];
        let mut written = [false; 5];
        each_unique(meta, |name, members| {
            let value = members.value();
            match keys.iter().position(|(key, _)| name.is(key)) {
                Some(at) => {
                    written[at] = true;
                    if let (key, Some(own)) = &keys[at] {
                        own.write(key, out);
                    }
                }
                None => {
                    push_name(name.written(), out);
                    out.push_str(value);
                }
            }
            Ok(())
        })?;
        for ((key, own), written) in keys.iter().zip(written) {
            if let Some(own) = own.as_ref().filter(|_| !written) {
                own.write(key, out);
            }
        }
        Ok(())
    }

    /// Returns true if it differs from `meta`.
    fn write_legacy(&self, meta: &mut Members<'_>, out: &mut String) -> Result<bool, Malformed> {
        let mut token = self.progress_token.map(OwnValue::Number);
        let mut changed = token.is_some();
        each_unique(meta, |name, members| {
            let value = members.value();
            if name.is(PROGRESS_TOKEN) {
                changed = true;
                if let Some(token) = token.take() {
                    token.write(PROGRESS_TOKEN, out);
                }
            } else if name.decoded().starts_with(PREFIX) {
                changed = true;
            } else {
                push_name(name.written(), out);
                out.push_str(value);
            }
            Ok(())
        })?;
        if let Some(token) = token {
            token.write(PROGRESS_TOKEN, out);
        }
        Ok(changed)
    }
}

impl OwnValue<'_> {
    /// `name` needs no escape.
    fn write(&self, name: &str, out: &mut String) {
        if !out.ends_with('{') {
            out.push(',');
        }
        for part in ["\"", name, "\":"] {
            out.push_str(part);
        }
        match self {
            OwnValue::Text(text) => push_text(text, out),
            OwnValue::Json(json) => out.push_str(json),
            OwnValue::Number(number) => out.push_str(itoa::Buffer::new().format(*number)),
        }
    }
}

/// A member's name with its quotes; no value ends with a brace that opens.
fn push_name(written: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push_str(written);
    out.push(':');
}

fn members_of(json: &str) -> Result<Members<'_>, Malformed> {
    Members::of(json).ok_or(Fault::Wide.into())
}

/// Calls `visit` for each member of an object without duplicates; it reads the
/// member's value.
fn each_unique<'a>(
    members: &mut Members<'a>,
    mut visit: impl FnMut(MemberName<'a>, &mut Members<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut seen: [Option<MemberName<'a>>; FEW] = [None; FEW];
    let mut count = 0;
    let all = members.clone();
    while let Some(name) = members.name() {
        let same = |known: &Option<MemberName<'_>>| known.is_some_and(|known| known.equals(name));
        if count < FEW {
            if seen[..count].iter().any(same) {
                return unique(all);
            }
            seen[count] = Some(name);
        }
        count += 1;
        visit(name, members)?;
    }
    if count > FEW { unique(all) } else { Ok(()) }
}

fn unique(members: Members<'_>) -> Result<(), Malformed> {
    let object = Object::of(members).ok_or(Fault::Wide)?;
    match object.duplicate() {
        // A name has no length limit of its own; the message about it has.
        Some(name) => Err(Fault::DuplicateParam(name.chars().take(64).collect()).into()),
        None => Ok(()),
    }
}
