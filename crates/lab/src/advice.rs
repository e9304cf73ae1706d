//! Suggested settings for the observed behavior, each with its reason.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};

use config::{
    Containment, DEFAULT_TIMEOUT, EraChoice, Isolation, Launch, MASK, RemoteKind, ServerSpec,
    Target, view,
};

/// The factor by which a suggested timeout exceeds a long call.
const SPARE: u32 = 3;

pub(crate) struct Advice {
    name: String,
    spec: ServerSpec,
    reasons: Vec<(String, String)>,
    /// Whether the settings make a server work that does not work without them.
    pub remedy: bool,
}

impl Advice {
    /// Starts from the current definition. A reference to a variable replaces
    /// each secret.
    pub(crate) fn new(name: &str, spec: &ServerSpec, launch: &Launch) -> Advice {
        let mut advice = Advice {
            name: name.to_owned(),
            spec: spec.clone(),
            reasons: Vec::new(),
            remedy: false,
        };
        advice.cover(launch);
        advice
    }

    fn cover(&mut self, launch: &Launch) {
        let secrets: Vec<String> = launch.secrets().into_iter().map(str::to_owned).collect();
        let hidden = |text: &str| secrets.iter().any(|secret| text.contains(secret.as_str()));
        let mut moved = Vec::new();
        let mut replace = |map: &mut IndexMap<String, String>, field: &str| {
            for (name, value) in map.iter_mut().filter(|(_, value)| hidden(value)) {
                let variable = name.to_ascii_uppercase().replace('-', "_");
                // `Bearer abc`: the first word is not a secret.
                let (scheme, variable) = match value.split_once(' ') {
                    Some((scheme, _)) if field == "headers" => {
                        (format!("{scheme} "), format!("{variable}_TOKEN"))
                    }
                    _ => (String::new(), variable),
                };
                *value = format!("{scheme}${{{variable}}}");
                moved.push((format!("{field}.{name}"), variable));
            }
        };
        match &mut self.spec.target {
            Target::Stdio { args, env, .. } => {
                replace(env, "env");
                for arg in args.iter_mut().filter(|arg| hidden(arg)) {
                    *arg = MASK.to_owned();
                }
            }
            Target::Remote { url, headers, .. } => {
                replace(headers, "headers");
                if hidden(url) {
                    *url = view::mask_url(url);
                }
            }
        }
        for (field, variable) in moved {
            let reason = format!("a secret; set {variable} in Portway's environment");
            self.because(&field, reason);
        }
    }

    fn because(&mut self, field: &str, reason: impl Into<String>) {
        self.reasons.retain(|(known, _)| known != field);
        self.reasons.push((field.to_owned(), reason.into()));
    }

    pub(crate) fn era(&mut self, era: EraChoice, reason: &str) {
        self.spec.era = era;
        self.because("era", reason);
    }

    /// The server speaks the old HTTP+SSE.
    pub(crate) fn sse(&mut self) {
        if let Target::Remote { kind, .. } = &mut self.spec.target
            && *kind == RemoteKind::Http
        {
            *kind = RemoteKind::Sse;
            let reason = "it speaks the old HTTP+SSE: spares each connection the first try";
            self.because("type", reason);
        }
    }

    /// Each principal gets a copy of its own.
    pub(crate) fn isolate(&mut self, reason: &str) {
        self.spec.isolation = Isolation::Principal;
        self.because("isolation", reason);
    }

    pub(crate) fn containment(&mut self, containment: Containment, reason: String) {
        self.spec.containment = containment;
        self.because("containment", reason);
    }

    /// Raises the timeout after a call that took this long.
    pub(crate) fn took(&mut self, took: Duration) {
        let wanted = took * SPARE;
        if wanted > self.spec.timeout.max(DEFAULT_TIMEOUT) {
            self.spec.timeout = Duration::from_secs(wanted.as_secs() + 1);
            let reason = format!("a call took {:.1} s", took.as_secs_f64());
            self.because("timeout", reason);
        }
    }

    /// Adds a variable that the server reports as missing.
    pub(crate) fn needs(&mut self, variable: &str) {
        if let Target::Stdio { env, .. } = &mut self.spec.target
            && !env.contains_key(variable)
        {
            env.insert(variable.to_owned(), format!("${{{variable}}}"));
            self.remedy = true;
            let reason = "the server asks for it; servers get none of your shell's variables";
            self.because(&format!("env.{variable}"), reason);
        }
    }

    /// Adds a header that the server requires. Keeps one that is already set.
    pub(crate) fn login(&mut self) {
        const NAME: &str = "Authorization";
        if let Target::Remote { headers, .. } = &mut self.spec.target
            && !headers.keys().any(|name| name.eq_ignore_ascii_case(NAME))
        {
            headers.insert(NAME.to_owned(), "Bearer ${TOKEN}".to_owned());
            self.remedy = true;
            let reason = "the server wants a login; set TOKEN in Portway's environment";
            self.because("headers.Authorization", reason);
        }
    }

    pub(crate) fn reasons(&self) -> IndexMap<String, String> {
        self.reasons.iter().cloned().collect()
    }

    pub(crate) fn fragment(&self) -> Value {
        let mut definition = view::definition_fields(&self.spec);
        // All programs that read these files understand `type` alone.
        definition.shift_remove("transport");
        json!({"mcpServers": {&self.name: definition}})
    }
}

/// Names of variables in the complaints of a server.
pub(crate) fn missing_variables<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    const COMPLAINTS: &[&str] = &[
        "required",
        "missing",
        "not set",
        "must be set",
        "undefined",
        "not defined",
        "environment variable",
        "please set",
    ];
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        let lower = line.to_lowercase();
        if !COMPLAINTS.iter().any(|words| lower.contains(words)) {
            continue;
        }
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| is_variable(word)) {
            if !found.iter().any(|known| known == word) {
                found.push(word.to_owned());
            }
        }
    }
    found
}

/// `API_KEY`, but not `ERROR`.
fn is_variable(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.len() > 4
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains('_')
        && word.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_lab_advice_shows_no_secret_and_says_why() {
        let spec = ServerSpec::new(Target::Stdio {
            command: "x".into(),
            args: vec!["--token".into(), "sesame-open-now".into()],
            env: [
                ("API_KEY".to_owned(), "sesame-open-too".to_owned()),
                ("MODE".to_owned(), "debug".to_owned()),
            ]
            .into(),
            cwd: None,
        });
        let launch = config::expand(&spec, &|_| None).unwrap();
        let mut advice = Advice::new("x", &spec, &launch);
        advice.era(EraChoice::Legacy, "it is old");
        advice.took(Duration::from_secs(20));
        advice.needs("OTHER_KEY");
        let fragment = advice.fragment();
        let text = fragment.to_string();
        assert!(!text.contains("sesame"), "{text}");
        let server = &fragment["mcpServers"]["x"];
        assert_eq!(server["env"]["API_KEY"], "${API_KEY}");
        assert_eq!(server["env"]["MODE"], "debug");
        assert_eq!(server["env"]["OTHER_KEY"], "${OTHER_KEY}");
        assert_eq!(
            (&server["era"], &server["timeout"]),
            (&json!("legacy"), &json!(61_000))
        );
        let reasons = advice.reasons();
        for field in ["env.API_KEY", "env.OTHER_KEY", "era", "timeout"] {
            assert!(reasons.contains_key(field), "{field}: {reasons:?}");
        }
        // The printed settings can be parsed again.
        let parsed = config::parse_file(&text, config::Dialect::Mcp).unwrap();
        assert!(parsed.servers["x"].is_ok(), "{text}");
    }

    #[test]
    fn k7_lab_finds_variables_in_complaints() {
        let lines = [
            "Error: BRAVE_API_KEY environment variable is required",
            "GITHUB_TOKEN started fine",
            "ERROR: the HOME is missing",
        ];
        assert_eq!(missing_variables(lines.into_iter()), ["BRAVE_API_KEY"]);
    }
}
