//! A Supabase project on loopback: keys, and an address that publishes them.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use ring::{hmac, rsa};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

pub(crate) fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token signed with a shared secret.
pub(crate) fn sign_with(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = format!("{}.{}", encoded(header), encoded(claims));
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        signed.as_bytes(),
    );
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

pub(crate) struct SigningKey {
    id: &'static str,
    pair: SigningKeyPair,
}

enum SigningKeyPair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

pub(crate) fn ec(id: &'static str) -> SigningKey {
    let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
    SigningKey {
        id,
        pair: SigningKeyPair::Ec(pair),
    }
}

/// Made by openssl: ring only uses such keys.
pub(crate) fn rsa(id: &'static str) -> SigningKey {
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-outform", "DER"])
        .args(["-pkeyopt", "rsa_keygen_bits:2048"])
        .output()
        .expect("openssl makes the RSA key of this test");
    assert!(made.status.success());
    // Older ones write PKCS #1 here.
    let pair = RsaKeyPair::from_pkcs8(&made.stdout)
        .or_else(|_| RsaKeyPair::from_der(&made.stdout))
        .unwrap();
    SigningKey {
        id,
        pair: SigningKeyPair::Rsa(pair),
    }
}

impl SigningKey {
    pub(crate) fn public(&self) -> Vec<u8> {
        match &self.pair {
            SigningKeyPair::Ec(pair) => pair.public_key().as_ref().to_vec(),
            SigningKeyPair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    pub(crate) fn jwk(&self) -> Value {
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            SigningKeyPair::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": self.id, "alg": "ES256", "use": "sig",
                    "x": number(&point[1..33]), "y": number(&point[33..])})
            }
            SigningKeyPair::Rsa(pair) => {
                let parts: rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({"kty": "RSA", "kid": self.id, "alg": "RS256", "use": "sig",
                    "n": number(&parts.n), "e": number(&parts.e)})
            }
        }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let alg = match &self.pair {
            SigningKeyPair::Ec(_) => "ES256",
            SigningKeyPair::Rsa(_) => "RS256",
        };
        let header = json!({"alg": alg, "typ": "JWT", "kid": self.id});
        let signed = format!("{}.{}", encoded(&header), encoded(claims));
        let random = SystemRandom::new();
        let signature = match &self.pair {
            SigningKeyPair::Ec(pair) => pair
                .sign(&random, signed.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            SigningKeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(
                    &RSA_PKCS1_SHA256,
                    &random,
                    signed.as_bytes(),
                    &mut signature,
                )
                .unwrap();
                signature
            }
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

pub(crate) enum PublishedKeys {
    Text(String),
    /// 500.
    Nothing,
    /// The connection is taken, and that is all.
    Never,
}

pub(crate) struct SupabaseProject {
    pub url: String,
    published: Arc<Mutex<PublishedKeys>>,
    asked: Arc<AtomicUsize>,
}

impl SupabaseProject {
    pub(crate) async fn with(keys: &[&SigningKey]) -> SupabaseProject {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        SupabaseProject::new(PublishedKeys::Text(json!({"keys": keys}).to_string())).await
    }

    pub(crate) async fn new(published: PublishedKeys) -> SupabaseProject {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let project = SupabaseProject {
            url: format!("http://{}", listener.local_addr().unwrap()),
            published: Arc::new(Mutex::new(published)),
            asked: Arc::default(),
        };
        let (published, asked) = (project.published.clone(), project.asked.clone());
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = [0; 4096];
                let read = socket.read(&mut head).await.unwrap_or_default();
                let head = String::from_utf8_lossy(&head[..read]);
                assert!(head.starts_with("GET /auth/v1/.well-known/jwks.json HTTP/1.1\r\n"));
                asked.fetch_add(1, Ordering::SeqCst);
                let answer = match &*published.lock().unwrap() {
                    PublishedKeys::Text(text) => format!(
                        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                        text.len()
                    ),
                    PublishedKeys::Nothing => {
                        "HTTP/1.1 500 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".into()
                    }
                    PublishedKeys::Never => String::new(),
                };
                let _ = socket.write_all(answer.as_bytes()).await;
                if answer.is_empty() {
                    open.push(socket);
                }
            }
        });
        project
    }

    pub(crate) fn publish(&self, published: PublishedKeys) {
        *self.published.lock().unwrap() = published;
    }

    /// How often it was asked for its keys.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
