//! Servers that ask their client something during calls: noticed once, told, and
//! remembered as long as the definition is the same.

use std::sync::Arc;

use super::slots;
use super::supervisor::Supervisor;
use config::Isolation;
use upstream::{LogStream, QuestionHistory};

/// A server that was seen to ask its client something during a call.
#[derive(Clone, Debug)]
pub struct AskingServer {
    pub name: Arc<str>,
    /// Of its definition.
    pub fingerprint: String,
}

/// What a supervisor knows of its server's questions.
#[derive(Default)]
pub(super) struct QuestionState {
    pub asking: Arc<QuestionHistory>,
    /// The definition that it is about.
    fingerprint: String,
    /// Whether it has been told that the server asks.
    told: bool,
}

impl QuestionState {
    /// Resolves when the server is first seen to ask.
    pub(crate) fn noticed(&self) -> impl Future<Output = ()> + use<> {
        let (asking, told) = (self.asking.clone(), self.told);
        async move {
            match told {
                true => std::future::pending().await,
                false => asking.noticed().await,
            }
        }
    }
}

impl Supervisor {
    /// Takes over what an earlier run, or another replica, has seen of the
    /// definition in force.
    pub(super) fn recall_asking(&mut self) {
        let Ok(spec) = &self.wanted.spec else { return };
        let fingerprint = spec.fingerprint();
        if self.asking.fingerprint != fingerprint {
            self.asking = QuestionState {
                fingerprint,
                ..QuestionState::default()
            };
        }
        if self.wanted.asks {
            self.asking.told = true;
            self.asking.asking.see();
        }
    }

    /// The server was seen to ask: with `auto`, each principal gets a process
    /// of its own from now on, and after the next start.
    pub(super) fn asks(&mut self) {
        self.asking.told = true;
        let _ = self.surroundings.asked.try_send(AskingServer {
            name: self.name.clone(),
            fingerprint: self.asking.fingerprint.clone(),
        });
        if self.isolation() == Some(Isolation::Principal) {
            let text = "asked its client during a call: each principal gets its own connection";
            self.note(LogStream::Portway, text);
        }
        self.repeat();
    }

    /// Who shares a process or connection, if there is one.
    pub(super) fn isolation(&self) -> Option<Isolation> {
        let spec = self.wanted.spec.as_ref().ok()?;
        let peer = self.told.state.connection()?.peer();
        Some(slots::in_force(spec, peer, &self.asking.asking))
    }
}
