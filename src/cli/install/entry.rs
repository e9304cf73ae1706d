//! Portway as a server in each client's format, and the check whether an entry
//! in a client's file is that.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use url::Url;

use config::Secret;
use config::edit::EditError;
use config::edit::graft::{Graft, value_at};
use config::import::{ClientApp, is_endpoint};

use super::super::clients::FileScope;

/// The table of Codex's file.
const CODEX_SECTION: &str = "mcp_servers";

/// The client's file, and the name of the server in it.
pub(super) struct InstallTarget {
    pub client: ClientApp,
    pub scope: FileScope,
    pub name: String,
    /// Absolute.
    pub project: PathBuf,
}

/// The content of the entry.
pub(super) struct PortwayDefinition {
    /// The endpoint.
    pub url: String,
    pub key: KeyReference,
    /// The command for clients that can only start commands.
    pub command: String,
    pub args: Vec<String>,
}

/// The way in which a client gets the key.
pub(super) enum KeyReference {
    /// The file names a variable.
    Variable(String),
    Written {
        variable: String,
        value: Secret,
    },
    /// A command that starts on this machine needs no key.
    Unneeded,
}

/// The server under Portway's name in a client's file.
pub(super) struct InstalledServer {
    pub fields: Map<String, Value>,
    pub grafts: Vec<Graft>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// As `install` writes it.
    Ours,
    /// It refers to a Portway, but the user has changed it.
    Edited,
    Foreign,
}

impl InstallTarget {
    /// Whether the file is shared with other members of the project.
    pub(super) fn is_shared(&self) -> bool {
        self.scope == FileScope::Project && self.client != ClientApp::ClaudeCode
    }

    /// The path of keys to the server.
    fn path(&self, text: &str) -> Result<Vec<String>, EditError> {
        let name = self.name.as_str();
        let directory = self.project.display().to_string();
        let path = match (self.client, self.scope) {
            (ClientApp::ClaudeCode, FileScope::Project) => {
                vec!["projects", directory.as_str(), "mcpServers", name]
            }
            (ClientApp::VsCode, _) => vec!["servers", name],
            (ClientApp::OpenCode, _) => {
                let nested = value_at(text, &["mcp".to_owned(), "servers".to_owned()])?;
                match nested {
                    Some(Value::Object(servers)) if !servers.contains_key("type") => {
                        vec!["mcp", "servers", name]
                    }
                    _ => vec!["mcp", name],
                }
            }
            _ => vec!["mcpServers", name],
        };
        Ok(path.into_iter().map(str::to_owned).collect())
    }

    /// The changes that add Portway to a text.
    pub(super) fn grafts(
        &self,
        text: &str,
        entry: &PortwayDefinition,
    ) -> Result<Vec<Graft>, EditError> {
        let mut fields = self.fields(entry);
        // The newer format of opencode's file has other names for these.
        if self.client == ClientApp::OpenCode && self.path(text)?.len() > 2 {
            fields.shift_remove("oauth");
            fields.shift_remove("enabled");
        }
        self.with_input(text, fields)
    }

    fn with_input(&self, text: &str, fields: Map<String, Value>) -> Result<Vec<Graft>, EditError> {
        if self.client == ClientApp::Codex {
            return Ok(vec![Graft::Table {
                section: CODEX_SECTION.to_owned(),
                name: self.name.clone(),
                fields,
            }]);
        }
        let asks = Value::Object(fields.clone())
            .to_string()
            .contains(&format!("${{input:{}}}", self.input_id()));
        let member = Graft::Member {
            path: self.path(text)?,
            value: fields.into(),
        };
        if self.client != ClientApp::VsCode || !asks {
            return Ok(vec![member]);
        }
        let element = Graft::Element {
            path: vec!["inputs".to_owned()],
            value: self.input(),
        };
        Ok(vec![member, element])
    }

    /// The server under Portway's name, in the form in which it is added.
    pub(super) fn found(&self, text: &str) -> Result<Option<InstalledServer>, EditError> {
        let value = match self.client {
            ClientApp::Codex => config::edit::table_at(text, CODEX_SECTION, &self.name)?,
            _ => value_at(text, &self.path(text)?)?,
        };
        let fields = match value {
            None => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(other) => Map::from_iter([(String::new(), other)]),
        };
        let mut grafts = self.with_input(text, fields.clone())?;
        if let [_, Graft::Element { path, value }] = &grafts[..] {
            let inputs = value_at(text, path)?;
            if !matches!(inputs, Some(Value::Array(list)) if list.contains(value)) {
                grafts.pop();
            }
        }
        Ok(Some(InstalledServer { fields, grafts }))
    }

    fn input_id(&self) -> String {
        format!("{}-key", self.name)
    }

    fn input(&self) -> Value {
        json!({
            "type": "promptString",
            "id": self.input_id(),
            "description": "Key for Portway",
            "password": true,
        })
    }

    fn fields(&self, entry: &PortwayDefinition) -> Map<String, Value> {
        let header = |text: String| json!({"Authorization": format!("Bearer {text}")});
        let headers = match (&entry.key, self.client) {
            (KeyReference::Unneeded, _) => Value::Null,
            (KeyReference::Written { value, .. }, _) => header(value.expose().to_owned()),
            (KeyReference::Variable(_), ClientApp::VsCode) => {
                header(format!("${{input:{}}}", self.input_id()))
            }
            (KeyReference::Variable(name), ClientApp::Cursor) => header(format!("${{env:{name}}}")),
            (KeyReference::Variable(name), ClientApp::OpenCode) => {
                header(format!("{{env:{name}}}"))
            }
            (KeyReference::Variable(name), _) => header(format!("${{{name}}}")),
        };
        let url = &entry.url;
        let fields = match self.client {
            ClientApp::ClaudeDesktop => return self.command(entry),
            ClientApp::Codex => match &entry.key {
                KeyReference::Variable(name) => json!({"url": url, "bearer_token_env_var": name}),
                _ => json!({"url": url, "http_headers": headers}),
            },
            ClientApp::Cursor => json!({"url": url, "headers": headers}),
            ClientApp::OpenCode => json!({
                "type": "remote", "url": url, "headers": headers, "oauth": false, "enabled": true,
            }),
            ClientApp::Gemini => json!({"url": url, "type": "http", "headers": headers}),
            ClientApp::ClaudeCode | ClientApp::VsCode => {
                json!({"type": "http", "url": url, "headers": headers})
            }
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    fn command(&self, entry: &PortwayDefinition) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("command".into(), entry.command.as_str().into());
        fields.insert("args".into(), entry.args.clone().into());
        if let KeyReference::Written { variable, value } = &entry.key {
            fields.insert("env".into(), json!({ variable.as_str(): value.expose() }));
        }
        fields
    }

    /// Whether `install` wrote the server that has Portway's name.
    pub(super) fn whose(&self, fields: &Map<String, Value>) -> Ownership {
        let word = |name: &str| fields.get(name).and_then(Value::as_str);
        let leads_to_us = match (word("command"), word("url")) {
            (Some(command), None) => {
                let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
                let first = fields.get("args").map(|args| &args[0]);
                program.starts_with("portway") && first == Some(&Value::from("connect"))
            }
            (None, Some(url)) => Url::parse(url).is_ok_and(|url| is_endpoint(url.path())),
            _ => false,
        };
        if !leads_to_us {
            return Ownership::Foreign;
        }
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        let expected: &[&[&str]] = match self.client {
            ClientApp::ClaudeDesktop => &[&["args", "command"], &["args", "command", "env"]],
            ClientApp::Codex => &[&["bearer_token_env_var", "url"], &["http_headers", "url"]],
            ClientApp::Cursor => &[&["headers", "url"]],
            ClientApp::OpenCode => &[
                &["enabled", "headers", "oauth", "type", "url"],
                &["headers", "type", "url"],
            ],
            ClientApp::Gemini | ClientApp::ClaudeCode | ClientApp::VsCode => {
                &[&["headers", "type", "url"]]
            }
        };
        let one_of = |name: &str, key: &dyn Fn(&str) -> bool| match fields.get(name) {
            Some(Value::Object(map)) => map.len() == 1 && map.keys().all(|name| key(name)),
            Some(_) => false,
            None => true,
        };
        let plain = expected.contains(&&names[..])
            && one_of("headers", &|name| name == "Authorization")
            && one_of("http_headers", &|name| name == "Authorization")
            && one_of("env", &|name| name.starts_with("PORTWAY_"))
            && fields
                .get("enabled")
                .is_none_or(|on| *on == Value::Bool(true));
        if plain {
            Ownership::Ours
        } else {
            Ownership::Edited
        }
    }
}
