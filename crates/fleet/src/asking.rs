//! Servers that send requests to their client during calls: the supervisor
//! reports each once and remembers it while the definition is unchanged.

use std::sync::Arc;

use super::slots;
use super::supervisor::Supervisor;
use config::Isolation;
use upstream::{LogStream, QuestionHistory};

/// A server that sent a request to its client during a call.
#[derive(Clone, Debug)]
pub struct AskingServer {
    pub name: Arc<str>,
    /// The fingerprint of the server's definition.
    pub fingerprint: String,
}

/// A supervisor's knowledge of its server's questions.
#[derive(Default)]
pub(super) struct QuestionState {
    pub asking: Arc<QuestionHistory>,
    /// The definition that this state belongs to.
    fingerprint: String,
    /// Whether the supervisor has reported that the server asks.
    told: bool,
}

impl QuestionState {
    /// Resolves when the server asks for the first time.
    pub(crate) fn noticed(&self) -> impl Future<Output = ()> + use<> {
        let (asking, told) = (self.asking.clone(), self.told);
        async move {
            if told {
                return std::future::pending().await;
            }
            asking.noticed().await
        }
    }
}

impl Supervisor {
    /// Takes over the observation of an earlier run or of another replica for
    /// the definition in force.
    pub(super) fn recall_asking(&mut self) {
        let Ok(spec) = &self.view.wanted.spec else {
            return;
        };
        let fingerprint = spec.fingerprint();
        if self.asking.fingerprint != fingerprint {
            self.asking = QuestionState {
                fingerprint,
                ..QuestionState::default()
            };
        }
        if self.view.wanted.asks {
            self.asking.told = true;
            self.asking.asking.see();
        }
    }

    /// Handles the server's first question: with `auto`, each principal gets
    /// its own process from now on, also after the next start.
    pub(super) fn asks(&mut self) {
        self.asking.told = true;
        let _ = self.shared.surroundings.asked.try_send(AskingServer {
            name: self.name.clone(),
            fingerprint: self.asking.fingerprint.clone(),
        });
        if self.isolation() == Some(Isolation::Principal) {
            let text = "asked its client during a call: each principal gets its own connection";
            self.note(LogStream::Portway, text);
        }
        self.repeat();
    }

    /// The isolation in force; `None` without a connection.
    pub(super) fn isolation(&self) -> Option<Isolation> {
        let spec = self.view.wanted.spec.as_ref().ok()?;
        let peer = self.view.state.connection()?.peer();
        Some(slots::in_force(spec, peer, &self.asking.asking))
    }
}
