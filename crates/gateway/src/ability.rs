//! The capabilities of clients that servers may call upon.

use std::sync::{Arc, LazyLock};

use serde_json::value::RawValue;

use wire::capability;
use wire::object::{empty, is_null, member, parse_part, pick};

/// The kinds of requests that a client accepts from servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    pub roots: bool,
    pub sampling: bool,
    pub sampling_tools: bool,
    pub sampling_context: bool,
    pub form: bool,
    pub url: bool,
}

impl Abilities {
    /// From ClientCapabilities of either era.
    pub(crate) fn read(capabilities: &RawValue) -> Abilities {
        let has = |holder: &RawValue, name: &str| {
            member(holder, name).is_some_and(|value| !is_null(value))
        };
        let [roots, sampling, elicitation] =
            pick(capabilities, ["roots", "sampling", "elicitation"])
                .map(|value| value.filter(|value| !is_null(value)));
        let url = elicitation.is_some_and(|modes| has(modes, "url"));
        Abilities {
            roots: roots.is_some(),
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|sampling| has(sampling, "tools")),
            sampling_context: sampling.is_some_and(|sampling| has(sampling, "context")),
            // `{}` means form; naming a mode means that mode.
            form: elicitation.is_some_and(|modes| has(modes, "form") || !url),
            url,
        }
    }

    /// The same as ClientCapabilities for a legacy server; equal abilities give
    /// equal bytes.
    pub(crate) fn legacy(self) -> Arc<RawValue> {
        if self == Abilities::default() {
            return no_capabilities();
        }
        let flags = |flags: [(bool, &'static str); 2]| {
            let on = flags
                .into_iter()
                .filter_map(|(on, text)| on.then_some(text));
            on.collect::<Vec<_>>().join(",")
        };
        let mut parts = Vec::new();
        let modes = flags([(self.form, r#""form":{}"#), (self.url, r#""url":{}"#)]);
        if !modes.is_empty() {
            parts.push(format!(r#""elicitation":{{{modes}}}"#));
        }
        if self.roots {
            parts.push(r#""roots":{"listChanged":true}"#.to_owned());
        }
        if self.sampling {
            let (context, tools) = (self.sampling_context, self.sampling_tools);
            let more = flags([(context, r#""context":{}"#), (tools, r#""tools":{}"#)]);
            parts.push(format!(r#""sampling":{{{more}}}"#));
        }
        let text = format!("{{{}}}", parts.join(","));
        let raw = RawValue::from_string(text).expect("built from literal parts");
        Arc::from(raw)
    }

    /// The capability that the client lacks for this request, as a
    /// ClientCapabilities object.
    pub(crate) fn lacks(self, method: &str, params: Option<&RawValue>) -> Option<&'static str> {
        match method {
            "elicitation/create" if is_url(params) => {
                (!self.url).then_some(r#"{"elicitation":{"url":{}}}"#)
            }
            "elicitation/create" => (!self.form).then_some(r#"{"elicitation":{"form":{}}}"#),
            "sampling/createMessage" if !self.sampling => Some(r#"{"sampling":{}}"#),
            "sampling/createMessage" => {
                let tools = params.and_then(|params| member(params, "tools")).is_some();
                (tools && !self.sampling_tools).then_some(r#"{"sampling":{"tools":{}}}"#)
            }
            "roots/list" => (!self.roots).then_some(r#"{"roots":{}}"#),
            _ => Some("{}"),
        }
    }
}

/// Whether a client with all capabilities accepts this request.
pub(super) fn is_question(method: &str) -> bool {
    matches!(
        method,
        "elicitation/create" | "sampling/createMessage" | "roots/list"
    )
}

pub(super) fn is_url(params: Option<&RawValue>) -> bool {
    let mode = params.and_then(|params| member(params, "mode"));
    mode.is_some_and(|mode| mode.get() == "\"url\"")
}

/// All capabilities that Portway can pass on: those for a shared process.
pub fn all_capabilities() -> Arc<RawValue> {
    static EVERYTHING: LazyLock<Arc<RawValue>> = LazyLock::new(|| {
        let all = Abilities {
            roots: true,
            sampling: true,
            sampling_tools: true,
            sampling_context: true,
            form: true,
            url: true,
        };
        all.legacy()
    });
    EVERYTHING.clone()
}

/// The capabilities of a client that accepts no requests.
pub fn no_capabilities() -> Arc<RawValue> {
    static NOTHING: LazyLock<Arc<RawValue>> = LazyLock::new(|| Arc::from(empty().to_owned()));
    NOTHING.clone()
}

/// The capabilities of a client that Portway can pass on; most clients have
/// none.
pub fn forwardable_capabilities(capabilities: &str) -> Arc<RawValue> {
    match parse_part(capabilities) {
        Some(some) if some.get() != "{}" => Arc::from(capability::forwardable(some).into_owned()),
        _ => no_capabilities(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Abilities {
        Abilities::read(&RawValue::from_string(text.into()).unwrap())
    }

    #[test]
    fn c7_clients_that_can_be_asked_the_same_are_spelled_alike() {
        for (one, other) in [
            (
                r#"{"elicitation":{}}"#,
                r#"{"elicitation":{"form":{}},"x":1}"#,
            ),
            (r#"{"roots":{}}"#, r#"{"roots":{"listChanged":true}}"#),
            ("{}", r#"{"sampling":null,"experimental":{}}"#),
        ] {
            assert_eq!(read(one).legacy().get(), read(other).legacy().get());
        }
        assert_eq!(read("{}").legacy().get(), "{}");
        let both = read(r#"{"sampling":{"tools":{}},"elicitation":{"url":{}}}"#);
        assert!(both.url && !both.form && both.sampling_tools);
    }

    #[test]
    fn trap15_what_a_client_lacks_is_named() {
        let form = read(r#"{"elicitation":{}}"#);
        let url = RawValue::from_string(r#"{"mode":"url"}"#.into()).unwrap();
        assert_eq!(form.lacks("elicitation/create", None), None);
        assert_eq!(
            form.lacks("elicitation/create", Some(&url)),
            Some(r#"{"elicitation":{"url":{}}}"#)
        );
        assert_eq!(
            form.lacks("sampling/createMessage", None),
            Some(r#"{"sampling":{}}"#)
        );
        assert_eq!(form.lacks("roots/list", None), Some(r#"{"roots":{}}"#));
    }
}
