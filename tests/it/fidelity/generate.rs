//! Arbitrary JSON as a careless or clever peer writes it, and calls made of it.

use proptest::prelude::*;

use super::members::{member, members, squeezed};

/// One call: everything in it that Portway has no business with.
#[derive(Clone, Debug)]
pub(super) struct FidelityCase {
    pub shared: bool,
    meta_first: bool,
    /// The client's progress token, if it wants to hear.
    token: Option<&'static str>,
    /// Answered with an error that has this data.
    pub error: Option<String>,
    arguments: Vec<String>,
    unknown: Vec<String>,
    meta: Vec<String>,
    structured: String,
    extras: Vec<String>,
    result_meta: Vec<String>,
    extension: String,
}

impl FidelityCase {
    /// The object that says how the server is to answer.
    pub(super) fn answer(&self) -> String {
        let mut all = vec![format!("\"structuredContent\":{}", self.structured)];
        if !self.result_meta.is_empty() {
            all.push(format!("\"_meta\" :{{{}}}", self.result_meta.join(",")));
        }
        all.extend(self.extras.iter().cloned());
        format!("{{{}}}", all.join(" ,"))
    }

    pub(super) fn capabilities(&self) -> String {
        let json = &self.extension;
        format!(
            r#"{{"elicitation":{{}},"experimental":{{"x":{json}}},"extensions":{{"org.example/x":{json}}}}}"#
        )
    }

    /// The params of the call, for a tool of that name.
    pub(super) fn params(&self, name: &str, modern: bool) -> String {
        let mut meta = self.meta.clone();
        if modern {
            let capabilities = self.capabilities();
            let place = meta.len() / 2;
            meta.insert(
                place,
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#.into(),
            );
            meta.push(format!(
                r#""io.modelcontextprotocol/clientCapabilities": {capabilities}"#
            ));
        }
        if let Some(token) = self.token {
            meta.insert(0, format!("\"progressToken\":{token}"));
        }
        let mut arguments = self.arguments.clone();
        arguments.push(format!("\"answer\":{}", self.answer()));
        if let Some(data) = &self.error {
            arguments.push(format!(
                r#""error":{{"code":-32050,"message":"no","data":{data}}}"#
            ));
        }
        let mut all = vec![
            format!("\"name\":\"{name}\""),
            format!("\"arguments\": {{{}}}", arguments.join(",\n")),
        ];
        all.extend(self.unknown.iter().cloned());
        if !meta.is_empty() {
            let place = if self.meta_first { 0 } else { all.len() };
            all.insert(place, format!("\"_meta\":{{{}}}", meta.join(" , ")));
        }
        format!("{{ {} }}", all.join(","))
    }

    /// With a token there is one notification, and it is the server's own.
    pub(super) fn expect_progress(&self, before: &[String]) -> Result<(), String> {
        let Some(token) = self.token else {
            return match before {
                [] => Ok(()),
                more => Err(format!("nobody asked for {more:?}")),
            };
        };
        let [only] = before else {
            return Err(format!("not one notification but {before:?}"));
        };
        let params = member(only, "params").ok_or("no params")?;
        let expected = format!(
            r#"{{"progressToken":{token},"progress":1.0,"x":{}}}"#,
            self.answer()
        );
        match members(params) == members(&expected) {
            true => Ok(()),
            false => Err(format!("{} became {params}", squeezed(&expected))),
        }
    }
}

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        "(true|false)",
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        Just("1.0".to_owned()),
        Just("9007199254740993".to_owned()),
        Just("-0".to_owned()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        // Escapes of all kinds, halves of surrogate pairs included.
        "\"(\\\\u[0-9a-fA-F]{4}|\\\\[/bfnrt\"\\\\]|[a-z é字🦀{}\\[\\],:/])*\"",
        (1_usize..50).prop_map(|deep| format!("{}1e5{}", "[".repeat(deep), "]".repeat(deep))),
    ]
}

/// Names as objects deep inside have them: empty, alike, escaped.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "\"[a-c]{0,1}\"",
        "\"(\\\\u00e9|é|字|\\\\/|/|[a-z_.]){0,4}\"",
        Just("\"__proto__\"".to_owned()),
        Just("\"_meta\"".to_owned()),
        Just("\"uri\"".to_owned()),
    ]
}

fn json() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 24, 5, |inner| {
        let pair = (name(), inner.clone()).prop_map(|(key, value)| format!("{key} : {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|all| format!("[{}]", all.join(" ,"))),
            prop::collection::vec(pair, 0..5)
                .prop_map(|all| format!("{{\n{}\t}}", all.join(",\r\n"))),
        ]
    })
}

fn object() -> impl Strategy<Value = String> {
    let pair = (name(), json()).prop_map(|(key, value)| format!("{key}:{value}"));
    prop::collection::vec(pair, 0..4).prop_map(|all| format!("{{{}}}", all.join(",")))
}

/// Members under names that meet nobody's; the first may have an empty one.
fn several() -> impl Strategy<Value = Vec<String>> {
    let pair = ("(\\\\u00e9|é|字|\\\\/|/|[a-z._-]){0,4}", json());
    let number = |(at, (name, value)): (usize, (String, String))| match (at, name.is_empty()) {
        (0, true) => format!("\"\": {value}"),
        _ => format!("\"{at}{name}\": {value}"),
    };
    prop::collection::vec(pair, 0..4)
        .prop_map(move |all| all.into_iter().enumerate().map(number).collect())
}

pub(super) fn case() -> impl Strategy<Value = FidelityCase> {
    let token = prop_oneof![
        3 => Just(None),
        1 => Just(Some("\"p\\u0031 é\"")),
        1 => Just(Some("7")),
    ];
    let error = prop::option::weighted(0.2, json());
    let flags = (any::<bool>(), any::<bool>(), token, error);
    let asked = (several(), several(), several(), json());
    let answered = (object(), several(), several());
    (flags, asked, answered).prop_map(
        |(
            (shared, meta_first, token, error),
            (arguments, unknown, meta, extension),
            (structured, extras, result_meta),
        )| FidelityCase {
            shared,
            meta_first,
            token,
            error,
            arguments,
            unknown,
            meta,
            structured,
            extras,
            result_meta,
            extension,
        },
    )
}
