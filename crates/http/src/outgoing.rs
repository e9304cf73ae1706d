//! The bytes of a response on their way to the socket: heads and small pieces
//! are copied together, large ones are sent from where they are.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// A piece up to this size is copied: sending it by itself costs more.
const COPIED: usize = 4 * 1024;
/// A buffer larger than this is freed when it has been sent.
const KEPT: usize = 8 * 1024;

#[derive(Default)]
pub(super) struct Outgoing {
    /// Sent before the pieces, from `sent` on.
    text: Vec<u8>,
    sent: usize,
    pieces: VecDeque<Bytes>,
    size: usize,
}

impl Outgoing {
    /// The most slices that one write takes.
    pub(super) const AT_ONCE: usize = 16;

    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The number of bytes that wait.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Appends a copy of `bytes`.
    pub(super) fn push_text(&mut self, bytes: &[u8]) {
        self.size += bytes.len();
        if self.pieces.is_empty() {
            self.text.extend_from_slice(bytes);
        } else {
            self.pieces.push_back(Bytes::copy_from_slice(bytes));
        }
    }

    /// Appends `piece`, which is kept until it is sent.
    pub(super) fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        if piece.len() <= COPIED && self.pieces.is_empty() {
            return self.push_text(&piece);
        }
        self.size += piece.len();
        self.pieces.push_back(piece);
    }

    /// The first bytes that wait.
    pub(super) fn slices<'a, 'b>(
        &'a self,
        slices: &'b mut [IoSlice<'a>; Outgoing::AT_ONCE],
    ) -> &'b [IoSlice<'a>] {
        let text = Some(&self.text[self.sent..]).filter(|text| !text.is_empty());
        let all = text
            .into_iter()
            .chain(self.pieces.iter().map(|piece| &piece[..]));
        let mut count = 0;
        for (slice, bytes) in slices.iter_mut().zip(all) {
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        &slices[..count]
    }

    /// The first `written` bytes have been sent.
    pub(super) fn advance(&mut self, written: usize) {
        self.size -= written;
        let text = written.min(self.text.len() - self.sent);
        self.sent += text;
        let mut left = written - text;
        while let Some(piece) = self.pieces.front_mut()
            && left > 0
        {
            let taken = left.min(piece.len());
            piece.advance(taken);
            left -= taken;
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        if self.sent == self.text.len() {
            self.sent = 0;
            self.text.clear();
            if self.text.capacity() > KEPT {
                self.text = Vec::new();
            }
        }
    }

    /// Frees the memory that it keeps for the next response.
    pub(super) fn release(&mut self) {
        if self.is_empty() {
            *self = Outgoing::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(out: &Outgoing) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); Outgoing::AT_ONCE];
        let slices = out.slices(&mut slices);
        slices.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    impl Outgoing {
        pub(crate) fn written(&self) -> String {
            String::from_utf8(waiting(self)).unwrap()
        }
    }

    #[test]
    fn t_bytes_leave_in_their_order_however_they_are_written() {
        let large = Bytes::from(vec![b'x'; COPIED + 1]);
        let mut expected = b"head:".to_vec();
        expected.extend_from_slice(b"small");
        expected.extend_from_slice(&large);
        expected.extend_from_slice(b"\r\n");
        expected.extend_from_slice(&large);
        for step in [1, 3, 5, 7, 4096, 1 << 20] {
            let mut out = Outgoing::default();
            out.push_text(b"head:");
            out.push(Bytes::from_static(b"small"));
            out.push(large.clone());
            out.push_text(b"\r\n");
            out.push(large.clone());
            assert_eq!(out.size(), expected.len());
            let mut sent = Vec::new();
            while !out.is_empty() {
                let bytes = waiting(&out);
                let written = step.min(bytes.len());
                sent.extend_from_slice(&bytes[..written]);
                out.advance(written);
            }
            assert!(sent == expected, "in steps of {step}");
        }
    }
}
