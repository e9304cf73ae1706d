//! A whole message for a client. Nearly all are one piece; a list stands in
//! bytes that were prepared once and that all its readers share, and a large
//! result in the bytes in which it was received.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use store::memory::Charge;
use wire::Payload;

#[derive(Clone, Debug)]
pub struct MessageBody {
    start: Bytes,
    result: Option<Bytes>,
    end: &'static str,
    /// The part of its client's share of memory that it takes.
    charge: Option<Arc<Charge>>,
}

/// A result that was prepared once, with the end of the message after it. A
/// third piece would go out in a write of its own, and wake the client twice.
#[derive(Clone, Debug)]
pub struct PreparedResult(Bytes);

const CLOSE: &str = "}";

impl PreparedResult {
    pub(super) fn new(value: &RawValue) -> PreparedResult {
        PreparedResult([value.get(), CLOSE].concat().into())
    }

    /// The value alone.
    pub fn value(&self) -> &[u8] {
        &self.0[..self.0.len() - CLOSE.len()]
    }
}

impl MessageBody {
    /// `start` opens the object that `end` ends.
    pub(super) fn around(start: Vec<u8>, end: PreparedResult) -> MessageBody {
        MessageBody {
            start: start.into(),
            result: Some(end.0),
            end: "",
            charge: None,
        }
    }

    /// `start` opens the object that `result` is the last member of.
    pub(super) fn around_payload(start: Vec<u8>, result: Payload) -> MessageBody {
        MessageBody {
            start: start.into(),
            result: Some(result.into_bytes()),
            end: CLOSE,
            charge: None,
        }
    }

    pub fn size(&self) -> usize {
        self.start.len() + self.result.as_ref().map_or(0, Bytes::len) + self.end.len()
    }

    /// In order.
    pub fn pieces(self) -> impl ExactSizeIterator<Item = Bytes> {
        let count = match (&self.result, self.end) {
            (None, _) => 1,
            (Some(_), "") => 2,
            (Some(_), _) => 3,
        };
        let end = Bytes::from_static(self.end.as_bytes());
        let mut pieces = [self.start, self.result.unwrap_or_default(), end];
        if let Some(charge) = self.charge {
            // The charge goes with the last large piece.
            let last = &mut pieces[count.min(2) - 1];
            *last = charge.bind(std::mem::take(last));
        }
        pieces.into_iter().take(count)
    }

    /// Counts against a share of memory until the last of its bytes is gone.
    pub(crate) fn charged(mut self, charge: Charge) -> MessageBody {
        self.charge = Some(Arc::new(charge));
        self
    }

    pub fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// Gives the share of memory back.
    pub(super) fn uncharge(&mut self) {
        self.charge = None;
    }

    /// Charges `made`, bytes made of this message, in its place.
    pub fn bind(&self, made: Bytes) -> Bytes {
        match &self.charge {
            Some(charge) => charge.clone().bind(made),
            None => made,
        }
    }

    /// In one piece; copied where it is not.
    pub fn whole(&self) -> Cow<'_, [u8]> {
        match &self.result {
            None => Cow::Borrowed(&self.start),
            Some(result) => Cow::Owned([&self.start[..], result, self.end.as_bytes()].concat()),
        }
    }

    pub fn into_bytes(self) -> Bytes {
        let whole = match self.result {
            None => self.start.clone(),
            Some(_) => self.whole().into_owned().into(),
        };
        self.bind(whole)
    }
}

impl<T: Into<Bytes>> From<T> for MessageBody {
    fn from(whole: T) -> MessageBody {
        MessageBody {
            start: whole.into(),
            result: None,
            end: "",
            charge: None,
        }
    }
}

impl PartialEq<Bytes> for MessageBody {
    fn eq(&self, other: &Bytes) -> bool {
        self.size() == other.len() && *self.whole() == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_a_list_goes_out_in_pieces_that_make_one_message() {
        let list = RawValue::from_string(r#"{"tools":[]}"#.into()).unwrap();
        let list = PreparedResult::new(&list);
        assert_eq!(list.value(), br#"{"tools":[]}"#);
        let text = MessageBody::around(br#"{"id":1,"result":"#.to_vec(), list.clone());
        let expected: &[u8] = br#"{"id":1,"result":{"tools":[]}}"#;
        assert_eq!(text.whole(), expected);
        assert_eq!(text.size(), expected.len());
        let pieces: Vec<Bytes> = text.clone().pieces().collect();
        assert_eq!(pieces.concat(), expected);
        assert_eq!(pieces[1].as_ptr(), list.0.as_ptr(), "not a copy");
        assert_eq!(text.into_bytes(), expected);
        let plain = MessageBody::from(b"{}".to_vec());
        assert_eq!(plain.clone().pieces().len(), 1);
        assert_eq!(plain.into_bytes(), "{}");
    }
}
