//! What we give clients to keep for us: they cannot read it, change it, or
//! use it as somebody else.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use crate::config::Secret;

/// What a sealed text is for; one never opens as the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Session,
    RequestState,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Purpose::Session => b"portway session",
            Purpose::RequestState => b"portway request state",
        }
    }
}

pub struct Seal {
    session: LessSafeKey,
    request_state: LessSafeKey,
}

impl Seal {
    /// The same secret, in another process, opens what this one sealed.
    pub fn new(secret: &Secret) -> Seal {
        Seal {
            session: derive(secret, Purpose::Session),
            request_state: derive(secret, Purpose::RequestState),
        }
    }

    /// Seals `bytes` for one principal, as text that fits a header.
    pub fn seal(&self, purpose: Purpose, principal: &str, bytes: &[u8]) -> String {
        // Random nonces hold for 2^32 texts under one key.
        let nonce: [u8; NONCE_LEN] = random();
        let mut sealed = Vec::with_capacity(NONCE_LEN + bytes.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(bytes);
        let tag = self
            .key(purpose)
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(principal.as_bytes()),
                &mut sealed[NONCE_LEN..],
            )
            .expect("a text far below the cipher's limit");
        sealed.extend_from_slice(tag.as_ref());
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// What was sealed, for this purpose and principal; None for all else.
    pub fn open(&self, purpose: Purpose, principal: &str, text: &str) -> Option<Vec<u8>> {
        let mut sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, _) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(principal.as_bytes());
        let length = self
            .key(purpose)
            .open_within(nonce, aad, &mut sealed, NONCE_LEN..)
            .ok()?
            .len();
        sealed.truncate(length);
        Some(sealed)
    }

    fn key(&self, purpose: Purpose) -> &LessSafeKey {
        match purpose {
            Purpose::Session => &self.session,
            Purpose::RequestState => &self.request_state,
        }
    }
}

fn derive(secret: &Secret, purpose: Purpose) -> LessSafeKey {
    let label = [purpose.label()];
    let key = Salt::new(HKDF_SHA256, b"portway seal 1").extract(secret.expose().as_bytes());
    let key = key
        .expand(&label, &CHACHA20_POLY1305)
        .expect("a key is shorter than HKDF's limit");
    LessSafeKey::new(UnboundKey::from(key))
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
        let text = seal().seal(Purpose::Session, "admin", b"hello");
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        let opened = seal().open(Purpose::Session, "admin", &text);
        assert_eq!(opened.as_deref(), Some(&b"hello"[..]));
        let other = Seal::new(&Secret::new("another secret of 32 characters!"));
        assert_eq!(other.open(Purpose::Session, "admin", &text), None);
    }

    #[test]
    fn threat_d4_purpose_and_principal_are_part_of_the_seal() {
        let text = seal().seal(Purpose::Session, "admin", b"x");
        assert_eq!(seal().open(Purpose::RequestState, "admin", &text), None);
        assert_eq!(seal().open(Purpose::Session, "entry:1", &text), None);
        assert_eq!(seal().open(Purpose::Session, "", &text), None);
    }

    #[test]
    fn threat_d4_no_bit_can_be_changed() {
        let seal = seal();
        let text = seal.seal(Purpose::RequestState, "admin", b"state");
        for at in 0..text.len() {
            for with in ["A", "_", "=", "\u{e9}"] {
                let mut changed = text.clone();
                changed.replace_range(at..=at, with);
                if changed != text {
                    let opened = seal.open(Purpose::RequestState, "admin", &changed);
                    assert_eq!(opened, None, "{at} {with}");
                }
            }
            let short = &text[..at];
            assert_eq!(seal.open(Purpose::RequestState, "admin", short), None);
        }
    }

    #[test]
    fn the_same_text_is_never_sealed_alike() {
        let one = seal().seal(Purpose::Session, "admin", b"");
        assert_ne!(one, seal().seal(Purpose::Session, "admin", b""));
        assert_eq!(
            seal().open(Purpose::Session, "admin", &one).as_deref(),
            Some(&[][..])
        );
    }
}
