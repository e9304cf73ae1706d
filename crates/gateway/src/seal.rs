//! Texts that clients keep for Portway: session ids, request states and marks.
//! A client cannot read or change them, nor use those of another principal.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;
use subtle::ConstantTimeEq;

use config::Secret;

/// The use of a sealed text; it never opens for another use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealPurpose {
    Session,
    RequestState,
}

pub struct Seal {
    /// One for each [`SealPurpose`].
    keys: [LessSafeKey; 2],
    marks: hmac::Key,
}

/// The bytes of a mark.
const MARK: usize = 16;

const KEY_LENGTH: &str = "a key is shorter than HKDF's limit";

impl Seal {
    /// Every process with the same secret opens what another one sealed.
    pub fn new(secret: &Secret) -> Seal {
        let salt = Salt::new(HKDF_SHA256, b"portway seal 1");
        let master = salt.extract(secret.expose().as_bytes());
        let marks = master.expand(&[b"portway mark"], hmac::HMAC_SHA256);
        Seal {
            keys: [&b"portway session"[..], b"portway request state"]
                .map(|label| cipher(&master, label)),
            marks: marks.expect(KEY_LENGTH).into(),
        }
    }

    /// A mark that only Portway can make, and always the same for the same
    /// principal and parts.
    pub(crate) fn mark(&self, principal: &str, parts: &[&str]) -> String {
        let mut context = hmac::Context::with_key(&self.marks);
        for part in std::iter::once(&principal).chain(parts) {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        let mark = context.sign();
        let bytes = mark.as_ref().iter().take(MARK);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether `mark` is the one that [`Seal::mark`] makes; in constant time.
    pub(crate) fn is_mark(&self, mark: &str, principal: &str, parts: &[&str]) -> bool {
        let ours = self.mark(principal, parts);
        ours.as_bytes().ct_eq(mark.as_bytes()).into()
    }

    /// Seals `bytes` for one principal, as text that fits a header.
    pub(crate) fn seal(&self, purpose: SealPurpose, principal: &str, bytes: &[u8]) -> String {
        // Random nonces hold for 2^32 texts under one key.
        let nonce: [u8; NONCE_LEN] = random();
        let mut sealed = Vec::with_capacity(NONCE_LEN + bytes.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(bytes);
        let tag = self.keys[purpose as usize]
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(principal.as_bytes()),
                &mut sealed[NONCE_LEN..],
            )
            .expect("a text far below the cipher's limit");
        sealed.extend_from_slice(tag.as_ref());
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The sealed bytes, if they are of this purpose and principal.
    pub(crate) fn open(
        &self,
        purpose: SealPurpose,
        principal: &str,
        text: &str,
    ) -> Option<Vec<u8>> {
        let mut sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, _) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(principal.as_bytes());
        let length = self.keys[purpose as usize]
            .open_within(nonce, aad, &mut sealed, NONCE_LEN..)
            .ok()?
            .len();
        sealed.truncate(length);
        Some(sealed)
    }
}

fn cipher(master: &Prk, label: &[u8]) -> LessSafeKey {
    let label = [label];
    let key = master.expand(&label, &CHACHA20_POLY1305);
    LessSafeKey::new(UnboundKey::from(key.expect(KEY_LENGTH)))
}

/// Sealed texts expire: the seconds since the epoch, now.
pub(super) fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Random bytes of the system.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives randomness, as it did at start");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        Seal::new(&Secret::new("a secret of thirty-two characters"))
    }

    #[test]
    fn what_was_sealed_opens_with_the_same_secret_only() {
        let text = seal().seal(SealPurpose::Session, "admin", b"hello");
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        let opened = seal().open(SealPurpose::Session, "admin", &text);
        assert_eq!(opened.as_deref(), Some(&b"hello"[..]));
        let other = Seal::new(&Secret::new("another secret of 32 characters!"));
        assert_eq!(other.open(SealPurpose::Session, "admin", &text), None);
    }

    #[test]
    fn t_d4_purpose_and_principal_are_part_of_the_seal() {
        let text = seal().seal(SealPurpose::Session, "admin", b"x");
        assert_eq!(seal().open(SealPurpose::RequestState, "admin", &text), None);
        assert_eq!(seal().open(SealPurpose::Session, "entry:1", &text), None);
        assert_eq!(seal().open(SealPurpose::Session, "", &text), None);
    }

    #[test]
    fn t_d4_no_bit_can_be_changed() {
        let seal = seal();
        let text = seal.seal(SealPurpose::RequestState, "admin", b"state");
        for at in 0..text.len() {
            for with in ["A", "_", "=", "\u{e9}"] {
                let mut changed = text.clone();
                changed.replace_range(at..=at, with);
                if changed != text {
                    let opened = seal.open(SealPurpose::RequestState, "admin", &changed);
                    assert_eq!(opened, None, "{at} {with}");
                }
            }
            let short = &text[..at];
            assert_eq!(seal.open(SealPurpose::RequestState, "admin", short), None);
        }
    }

    #[test]
    fn e12_a_mark_is_of_one_principal_and_one_thing() {
        let mark = seal().mark("entry:1", &["a", "bc"]);
        assert_eq!(mark.len(), 2 * MARK);
        assert_eq!(mark, seal().mark("entry:1", &["a", "bc"]));
        assert!(seal().is_mark(&mark, "entry:1", &["a", "bc"]));
        let other = Seal::new(&Secret::new("another secret of 32 characters!"));
        assert!(!other.is_mark(&mark, "entry:1", &["a", "bc"]));
        for (principal, parts) in [
            ("entry:2", ["a", "bc"]),
            ("entry:1", ["ab", "c"]),
            ("entry:1", ["a", "b"]),
        ] {
            assert!(!seal().is_mark(&mark, principal, &parts));
        }
        assert!(!seal().is_mark(&mark[..8], "entry:1", &["a", "bc"]));
    }

    #[test]
    fn the_same_text_is_never_sealed_alike() {
        let one = seal().seal(SealPurpose::Session, "admin", b"");
        assert_ne!(one, seal().seal(SealPurpose::Session, "admin", b""));
        assert_eq!(
            seal().open(SealPurpose::Session, "admin", &one).as_deref(),
            Some(&[][..])
        );
    }
}
