use std::borrow::Cow;
use std::io::Write as _;

use serde_json::value::RawValue;

use super::{Malformed, RpcError};
use crate::meta::ServerParams;
use crate::object::{push_quoted, push_text, raw};
use crate::scan;

// Envelopes are written compactly, on one line, without a line end: they fit
// a stdio line, an SSE `data:` field and an HTTP body alike.

const START: &str = r#"{"jsonrpc":"2.0","#;
const OPEN_ID: &str = r#""id":"#;
const OPEN_RESULT: &str = r#","result":"#;

pub fn request(id: u64, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    let mut out = start(method.len() + size(params));
    for part in [OPEN_ID, itoa::Buffer::new().format(id), ","] {
        out.extend_from_slice(part.as_bytes());
    }
    finish_call(out, method, params)
}

/// A request to a server: its params are written once, straight from the
/// client's.
pub fn request_with(
    id: u64,
    method: &str,
    params: &ServerParams<'_>,
) -> Result<Vec<u8>, Malformed> {
    if params.are_absent() {
        return Ok(request(id, method, None));
    }
    let mut out = String::with_capacity(method.len() + params.size() + 80);
    for part in [
        START,
        OPEN_ID,
        itoa::Buffer::new().format(id),
        r#","method":"#,
    ] {
        out.push_str(part);
    }
    push_text(method, &mut out);
    out.push_str(r#","params":"#);
    let at = out.len();
    params.write(&mut out)?;
    let mut out = out.into_bytes();
    if !scan::is_one_line(&out[at..]) {
        let laid_out = out.split_off(at);
        scan::push_one_line(&laid_out, &mut out);
    }
    out.push(b'}');
    debug_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok());
    Ok(out)
}

pub fn notification(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    finish_call(start(method.len() + size(params)), method, params)
}

/// `result` must be valid JSON.
pub fn response(id: &RawValue, result: &str) -> Vec<u8> {
    // Of exactly this size, so that it becomes `Bytes` without an allocation.
    let size = [START, OPEN_ID, id.get(), OPEN_RESULT, result, "}"].map(str::len);
    let mut out = Vec::with_capacity(size.iter().sum());
    open_response(id, &mut out);
    scan::push_one_line(result.as_bytes(), &mut out);
    out.push(b'}');
    out
}

/// A response up to its result; the result and a brace complete it.
pub fn response_start(id: &RawValue) -> Vec<u8> {
    let mut out = Vec::with_capacity(START.len() + OPEN_ID.len() + 32);
    open_response(id, &mut out);
    out
}

fn open_response(id: &RawValue, out: &mut Vec<u8>) {
    out.extend_from_slice(START.as_bytes());
    out.extend_from_slice(OPEN_ID.as_bytes());
    scan::push_one_line(id.get().as_bytes(), out);
    out.extend_from_slice(OPEN_RESULT.as_bytes());
}

/// Without an id the request could not be read; the member is then left out.
pub fn error(id: Option<&RawValue>, error: &RpcError) -> Vec<u8> {
    let mut out = start(size(id) + error.message.len() + size(error.data.as_deref()));
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        scan::push_one_line(id.get().as_bytes(), &mut out);
        out.push(b',');
    }
    write!(out, r#""error":{{"code":{},"message":"#, error.code).expect("writing into memory");
    push_quoted(&error.message, &mut out);
    if let Some(data) = &error.data {
        out.extend_from_slice(br#","data":"#);
        scan::push_one_line(data.get().as_bytes(), &mut out);
    }
    out.extend_from_slice(b"}}");
    out
}

/// The value on one line; borrowed when it already is. Only layout goes:
/// numbers, escapes and order stay as they were written.
pub fn compact(value: &RawValue) -> Cow<'_, RawValue> {
    let json = value.get().as_bytes();
    if scan::is_one_line(json) {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(json.len());
    scan::push_one_line(json, &mut out);
    Cow::Owned(raw(
        String::from_utf8(out).expect("whole characters of a str")
    ))
}

/// Whether valid JSON can stand in a message as it is.
pub fn is_one_line(json: &str) -> bool {
    scan::is_one_line(json.as_bytes())
}

fn size(raw: Option<&RawValue>) -> usize {
    raw.map_or(0, |raw| raw.get().len())
}

fn start(payload: usize) -> Vec<u8> {
    // 80 covers every fixed part, a u64 id and a code.
    let mut out = Vec::with_capacity(payload + 80);
    out.extend_from_slice(START.as_bytes());
    out
}

fn finish_call(mut out: Vec<u8>, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    out.extend_from_slice(br#""method":"#);
    push_quoted(method, &mut out);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        scan::push_one_line(params.get().as_bytes(), &mut out);
    }
    out.push(b'}');
    out
}
