//! The public keys of a project, as it publishes them (RFC 7517).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// The most keys of a set; a project rotates between two or three.
const MOST: usize = 32;

/// A key is for one algorithm alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyType {
    Es256,
    Rs256,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// An uncompressed point on P-256.
    Es256(Vec<u8>),
    Rs256 {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
}

impl PublicKey {
    pub(super) fn kind(&self) -> KeyType {
        match self {
            PublicKey::Es256(_) => KeyType::Es256,
            PublicKey::Rs256 { .. } => KeyType::Rs256,
        }
    }

    pub(super) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        let verdict = match self {
            PublicKey::Es256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            PublicKey::Rs256 { modulus, exponent } => RsaPublicKeyComponents {
                n: modulus,
                e: exponent,
            }
            .verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature),
        };
        verdict.is_ok()
    }
}

#[derive(Debug)]
pub(super) struct PublishedKey {
    pub id: String,
    pub key: PublicKey,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: Option<String>,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

/// The usable keys of a set.
pub(super) fn read(text: &[u8]) -> Result<Vec<PublishedKey>, serde_json::Error> {
    let set: KeySet = serde_json::from_slice(text)?;
    let known = set.keys.into_iter().filter_map(usable);
    Ok(known.take(MOST).collect())
}

fn usable(jwk: Jwk) -> Option<PublishedKey> {
    if jwk.purpose.is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let number = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
    let (key, name) = match (jwk.kty.as_deref()?, jwk.crv.as_deref()) {
        ("EC", Some("P-256")) => {
            let (x, y) = (number(jwk.x)?, number(jwk.y)?);
            let fits = x.len() == 32 && y.len() == 32;
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            (fits.then_some(PublicKey::Es256(point))?, "ES256")
        }
        ("RSA", None) => {
            let without_zeros = |number: Vec<u8>| {
                let first = number.iter().position(|byte| *byte != 0);
                first.map(|first| number[first..].to_vec())
            };
            let modulus = number(jwk.n).and_then(without_zeros)?;
            let exponent = number(jwk.e).and_then(without_zeros)?;
            (PublicKey::Rs256 { modulus, exponent }, "RS256")
        }
        _ => return None,
    };
    if jwk.alg.is_some_and(|alg| alg != name) {
        return None;
    }
    Some(PublishedKey { id: jwk.kid?, key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2_only_keys_of_a_known_kind_are_kept() {
        let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
        let set = serde_json::json!({"keys": [
            {"kty": "EC", "crv": "P-256", "kid": "good", "x": zeros, "y": zeros},
            {"kty": "EC", "crv": "P-384", "kid": "curve", "x": zeros, "y": zeros},
            {"kty": "EC", "crv": "P-256", "kid": "short", "x": "AAAA", "y": zeros},
            {"kty": "EC", "crv": "P-256", "kid": "use", "use": "enc", "x": zeros, "y": zeros},
            {"kty": "EC", "crv": "P-256", "kid": "alg", "alg": "HS256", "x": zeros, "y": zeros},
            {"kty": "EC", "crv": "P-256", "x": zeros, "y": zeros},
            {"kty": "oct", "kid": "secret", "k": "AAAA"},
            {"kty": "RSA", "kid": "rsa", "n": "AAEC", "e": "AQAB", "alg": "RS256"},
            {"kty": "RSA", "kid": "zero", "n": "AAAA", "e": "AQAB"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": zeros},
        ]});
        let kept = read(set.to_string().as_bytes()).unwrap();
        let ids: Vec<&str> = kept.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["good", "rsa"]);
        assert_eq!(kept[1].key.kind(), KeyType::Rs256);
        assert!(read(b"<html>").is_err());
        assert!(read(br#"{"keys":{}}"#).is_err());
    }

    #[test]
    fn e2_a_set_is_bounded() {
        let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
        let one = |at: usize| {
            serde_json::json!(
                {"kty": "EC", "crv": "P-256", "kid": at.to_string(), "x": zeros, "y": zeros})
        };
        let set = serde_json::json!({"keys": (0..100).map(one).collect::<Vec<_>>()});
        assert_eq!(read(set.to_string().as_bytes()).unwrap().len(), MOST);
    }
}
