//! A whole message for a client. Nearly all are one piece; a list stands in
//! bytes that were prepared once and that all who ask for it share.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub struct Text {
    start: Bytes,
    /// What follows the start, and closes what the start opened.
    shared: Option<Bytes>,
}

const CLOSE: &[u8] = b"}";

impl Text {
    /// `start` opens an object whose last value is `shared`.
    pub(super) fn around(start: Vec<u8>, shared: Arc<RawValue>) -> Text {
        Text {
            start: start.into(),
            shared: Some(Bytes::from_owner(Shared(shared))),
        }
    }

    pub fn size(&self) -> usize {
        let shared = self.shared.as_ref();
        self.start.len() + shared.map_or(0, |shared| shared.len() + CLOSE.len())
    }

    /// In order.
    pub fn pieces(self) -> impl ExactSizeIterator<Item = Bytes> {
        let count = if self.shared.is_some() { 3 } else { 1 };
        let shared = self.shared.unwrap_or_default();
        let all = [self.start, shared, Bytes::from_static(CLOSE)];
        all.into_iter().take(count)
    }

    /// In one piece; copied where it is not.
    pub fn whole(&self) -> Cow<'_, [u8]> {
        match &self.shared {
            None => Cow::Borrowed(&self.start),
            Some(shared) => Cow::Owned([&self.start, &shared[..], CLOSE].concat()),
        }
    }

    pub fn into_bytes(self) -> Bytes {
        match self.shared {
            None => self.start,
            Some(_) => self.whole().into_owned().into(),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Text {
    fn from(whole: T) -> Text {
        Text {
            start: whole.into(),
            shared: None,
        }
    }
}

impl PartialEq<Bytes> for Text {
    fn eq(&self, other: &Bytes) -> bool {
        self.size() == other.len() && *self.whole() == **other
    }
}

struct Shared(Arc<RawValue>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_a_list_goes_out_in_pieces_that_make_one_message() {
        let list = Arc::from(RawValue::from_string(r#"{"tools":[]}"#.into()).unwrap());
        let text = Text::around(br#"{"id":1,"result":"#.to_vec(), Arc::clone(&list));
        let expected: &[u8] = br#"{"id":1,"result":{"tools":[]}}"#;
        assert_eq!(text.whole(), expected);
        assert_eq!(text.size(), expected.len());
        let pieces: Vec<Bytes> = text.clone().pieces().collect();
        assert_eq!(pieces.concat(), expected);
        assert_eq!(pieces[1].as_ptr(), list.get().as_ptr(), "not a copy");
        assert_eq!(text.into_bytes(), expected);
        let plain = Text::from(b"{}".to_vec());
        assert_eq!(plain.clone().pieces().len(), 1);
        assert_eq!(plain.into_bytes(), "{}");
    }
}
