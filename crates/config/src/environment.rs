//! The environment of a server's process: a short list of variables that
//! programs need, and those of its definition. No other variable is inherited.

use indexmap::IndexMap;

const INHERITED: &[&str] = &[
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Written in lower case, upper case, or both: programs differ.
const PROXIES: &[&str] = &[
    "all_proxy", "ftp_proxy", "http_proxy", "https_proxy", "no_proxy",
];

const CERTIFICATES: &[&str] = &[
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "npm_config_cafile",
];

/// The whole environment of a child: the allowed part of `parent`, then what
/// is declared, which wins.
pub fn child_env(
    parent: impl IntoIterator<Item = (String, String)>,
    declared: &IndexMap<String, String>,
) -> Vec<(String, String)> {
    let mut env: IndexMap<String, String> = parent
        .into_iter()
        .filter(|(name, _)| is_inherited(name))
        .collect();
    for (name, value) in declared {
        env.insert(name.clone(), value.clone());
    }
    env.into_iter().collect()
}

fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
        || CERTIFICATES.contains(&name)
        || INHERITED_PREFIXES.iter().any(|p| name.starts_with(p))
        || PROXIES.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_the_allowed_names_and_its_own() {
        let parent = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_CACHE_HOME", "/c"),
            ("HTTPS_PROXY", "http://p"),
            ("no_proxy", "localhost"),
            ("SSL_CERT_FILE", "/ca"),
            ("PORTWAY_ADMIN_TOKEN", "secret"),
            ("DATABASE_URL", "secret"),
            ("LD_PRELOAD", "/x.so"),
            ("TZ", "UTC"),
        ];
        let parent = parent.map(|(k, v)| (k.to_owned(), v.to_owned()));
        let declared = IndexMap::from([
            ("TZ".to_owned(), "Asia/Taipei".to_owned()),
            ("TOKEN".to_owned(), "t".to_owned()),
        ]);
        let names_and_values = child_env(parent, &declared);
        let got: Vec<(&str, &str)> = names_and_values
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            got,
            [
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("XDG_CACHE_HOME", "/c"),
                ("HTTPS_PROXY", "http://p"),
                ("no_proxy", "localhost"),
                ("SSL_CERT_FILE", "/ca"),
                ("TZ", "Asia/Taipei"),
                ("TOKEN", "t"),
            ]
        );
    }
}
