//! The source of the keys of new entries.

use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;

use super::idempotency::CreateRequest;
use config::Secret;
use store::{ApiKey, KeyDigest, StoreError, Timestamp};

const DAY: u64 = 24 * 60 * 60 * 1000;

/// Makes keys: random ones, and for a create with an `Idempotency-Key` one that
/// is derived from the request.
///
/// A client that repeats such a create, because the response got lost, must get
/// the same key; but only its digest is stored, so that a stolen store opens
/// nothing. So the key is not stored but computed again: 256 bits of HMAC over
/// the request, under a secret that is not in the store. Without that secret
/// they are as good as random.
///
/// The day is part of it. A create is remembered for a day; the same request
/// afterwards creates a new record, which must not have the key of the earlier
/// record, since that may have been revoked.
pub struct KeyIssuer {
    derive: hmac::Key,
}

impl KeyIssuer {
    /// The same secret, in another process, makes the same keys.
    pub fn new(secret: &Secret) -> KeyIssuer {
        let salt = Salt::new(HKDF_SHA256, b"portway api keys 1");
        let root = salt.extract(secret.expose().as_bytes());
        let derive = root
            .expand(&[b"idempotent create"], hmac::HMAC_SHA256)
            .expect("a key is shorter than HKDF's limit");
        KeyIssuer {
            derive: derive.into(),
        }
    }

    /// The key of a record that is created now.
    pub(super) fn make(&self, request: &CreateRequest<'_>) -> Result<ApiKey, StoreError> {
        match request.key {
            None => ApiKey::random(),
            Some(key) => Ok(self.derived(request, key, Timestamp::now().as_millis() / DAY)),
        }
    }

    /// The key in the earlier response to the same request, if it is still
    /// valid.
    pub(super) fn again(
        &self,
        request: &CreateRequest<'_>,
        made_at: Timestamp,
        in_force: &KeyDigest,
    ) -> Option<ApiKey> {
        let key = request.key?;
        // The store's clock may have been on the other side of midnight.
        let day = made_at.as_millis() / DAY;
        [day, day.saturating_sub(1), day + 1]
            .into_iter()
            .map(|day| self.derived(request, key, day))
            .find(|derived| derived.digest().matches(in_force))
    }

    fn derived(&self, request: &CreateRequest<'_>, key: &str, day: u64) -> ApiKey {
        let mut mac = hmac::Context::with_key(&self.derive);
        let day = day.to_be_bytes();
        let parts = [
            request.owner.as_bytes(),
            request.route.as_bytes(),
            key.as_bytes(),
            &request.body,
            &day,
        ];
        for part in parts {
            // With its length, so that no two lists encode alike.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let mut bits = [0; 32];
        bits.copy_from_slice(mac.sign().as_ref());
        ApiKey::from_bits(&bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> KeyIssuer {
        KeyIssuer::new(&Secret::new("a secret of thirty-two characters"))
    }

    fn request<'a>(owner: &'a str, key: Option<&'a str>, body: &[u8]) -> CreateRequest<'a> {
        CreateRequest::new("route", owner, key, body)
    }

    #[test]
    fn e10_a_repeated_create_computes_the_same_key_and_others_do_not() {
        let first = request("u", Some("k"), b"{}");
        let key = keys().make(&first).unwrap();
        let now = Timestamp::now();
        let again = keys().again(&first, now, &key.digest()).unwrap();
        assert_eq!(again.expose(), key.expose());
        assert_eq!(key.expose().len(), "pwk_".len() + 43);

        let other = KeyIssuer::new(&Secret::new("another secret of 32 characters!"));
        assert!(other.again(&first, now, &key.digest()).is_none());
        for request in [
            request("v", Some("k"), b"{}"),
            request("u", Some("l"), b"{}"),
            request("u", Some("k"), b"{ }"),
            request("uk", Some(""), b"{}"),
            CreateRequest::new("elsewhere", "u", Some("k"), b"{}"),
        ] {
            assert!(keys().again(&request, now, &key.digest()).is_none());
            assert_ne!(keys().make(&request).unwrap().expose(), key.expose());
        }
        let rotated = ApiKey::random().unwrap();
        assert!(keys().again(&first, now, &rotated.digest()).is_none());
    }

    #[test]
    fn e10_another_day_makes_another_key() {
        let request = request("u", Some("k"), b"{}");
        let key = |day| keys().derived(&request, "k", day);
        assert_ne!(key(20_000).expose(), key(20_001).expose());
        let at = |millis| Timestamp::from_millis(millis);
        let digest = key(20_000).digest();
        for near in [20_000 * DAY - 1, 20_000 * DAY, 20_001 * DAY] {
            assert!(
                keys().again(&request, at(near), &digest).is_some(),
                "{near}"
            );
        }
        assert!(keys().again(&request, at(20_002 * DAY), &digest).is_none());
    }

    #[test]
    fn e10_without_an_idempotency_key_they_are_random() {
        let request = request("u", None, b"{}");
        let (one, other) = (
            keys().make(&request).unwrap(),
            keys().make(&request).unwrap(),
        );
        assert_ne!(one.expose(), other.expose());
        assert!(
            keys()
                .again(&request, Timestamp::now(), &one.digest())
                .is_none()
        );
    }
}
