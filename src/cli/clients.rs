//! The paths of each client's files. Nothing is read here.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Environment;
use config::import::ClientApp;

/// The scope of a client's file: one user, or one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FileScope {
    User,
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperatingSystem {
    Linux,
    Mac,
    Windows,
}

/// The paths and variables that determine where a client's files are.
pub(super) struct ClientPaths<'e> {
    environment: &'e Environment,
    project: PathBuf,
    system: OperatingSystem,
}

pub(super) fn parser() -> impl TypedValueParser<Value = ClientApp> {
    PossibleValuesParser::new(ClientApp::ALL.map(ClientApp::name)).map(|name| {
        let named = ClientApp::ALL
            .into_iter()
            .find(|client| client.name() == name);
        named.unwrap_or(ClientApp::ClaudeCode)
    })
}

impl<'e> ClientPaths<'e> {
    /// `project` is absolute.
    pub(super) fn new(environment: &'e Environment, project: &Path) -> ClientPaths<'e> {
        let system = match std::env::consts::OS {
            "macos" => OperatingSystem::Mac,
            "windows" => OperatingSystem::Windows,
            _ => OperatingSystem::Linux,
        };
        ClientPaths {
            environment,
            project: project.to_owned(),
            system,
        }
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        let name = match self.system {
            OperatingSystem::Windows => "USERPROFILE",
            _ => "HOME",
        };
        self.variable(name).or_else(|| self.variable("HOME"))
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        let text = self.environment.get(name).filter(|text| !text.is_empty());
        text.map(PathBuf::from)
    }

    /// The directory where desktop applications keep their settings.
    fn applications(&self) -> Option<PathBuf> {
        let home = self.home();
        match self.system {
            OperatingSystem::Mac => Some(home?.join("Library/Application Support")),
            OperatingSystem::Windows => self
                .variable("APPDATA")
                .or_else(|| Some(home?.join("AppData").join("Roaming"))),
            OperatingSystem::Linux => self.dot_config(),
        }
    }

    fn dot_config(&self) -> Option<PathBuf> {
        let moved = self.variable("XDG_CONFIG_HOME");
        moved.or_else(|| Some(self.home()?.join(".config")))
    }

    /// All files that a client may have; later ones take precedence.
    pub(super) fn of(&self, client: ClientApp) -> Vec<PathBuf> {
        let mut files = self.of_all_users(client);
        files.extend(self.of_user(client));
        files.extend(self.of_project(client));
        files
    }

    fn of_all_users(&self, client: ClientApp) -> Vec<PathBuf> {
        let file = match (client, self.system) {
            (ClientApp::Codex, OperatingSystem::Linux | OperatingSystem::Mac) => {
                "/etc/codex/config.toml"
            }
            (ClientApp::Gemini, OperatingSystem::Linux) => "/etc/gemini-cli/system-defaults.json",
            (ClientApp::Gemini, OperatingSystem::Mac) => {
                "/Library/Application Support/GeminiCli/system-defaults.json"
            }
            _ => return Vec::new(),
        };
        vec![file.into()]
    }

    fn of_user(&self, client: ClientApp) -> Vec<PathBuf> {
        let of_home = |name: &str| Some(self.home()?.join(name));
        let (directory, name) = match client {
            ClientApp::ClaudeDesktop => (self.applications(), "Claude/claude_desktop_config.json"),
            ClientApp::ClaudeCode => {
                let moved = self.variable("CLAUDE_CONFIG_DIR");
                (moved.or_else(|| self.home()), ".claude.json")
            }
            ClientApp::VsCode => (self.applications(), "Code/User/mcp.json"),
            ClientApp::Cursor => (of_home(".cursor"), "mcp.json"),
            ClientApp::Codex => {
                let moved = self.variable("CODEX_HOME");
                (moved.or_else(|| of_home(".codex")), "config.toml")
            }
            ClientApp::Gemini => (of_home(".gemini"), "settings.json"),
            ClientApp::OpenCode => {
                let directory = self.dot_config().map(|dir| dir.join("opencode"));
                let names = ["config.json", "opencode.json", "opencode.jsonc"];
                let files = names.map(|name| Some(directory.as_ref()?.join(name)));
                let named = self.variable("OPENCODE_CONFIG");
                return files.into_iter().flatten().chain(named).collect();
            }
        };
        directory.into_iter().map(|dir| dir.join(name)).collect()
    }

    fn of_project(&self, client: ClientApp) -> Vec<PathBuf> {
        let file = match client {
            // Claude Code's project file is .mcp.json, which Portway reads.
            ClientApp::ClaudeDesktop | ClientApp::ClaudeCode => return Vec::new(),
            ClientApp::VsCode => ".vscode/mcp.json",
            ClientApp::Cursor => ".cursor/mcp.json",
            ClientApp::Codex => ".codex/config.toml",
            ClientApp::Gemini => ".gemini/settings.json",
            ClientApp::OpenCode => {
                let names = [
                    "opencode.json",
                    "opencode.jsonc",
                    ".opencode/opencode.json",
                    ".opencode/opencode.jsonc",
                ];
                let directories = self.up_to_the_repository();
                let files = directories
                    .iter()
                    .flat_map(|dir| names.map(|name| dir.join(name)));
                return files.collect();
            }
        };
        vec![self.project.join(file)]
    }

    /// The directories from the top of the repository down to the project.
    fn up_to_the_repository(&self) -> Vec<&Path> {
        let above: Vec<&Path> = self.project.ancestors().collect();
        let top = above.iter().position(|dir| dir.join(".git").exists());
        above[..=top.unwrap_or(0)].iter().rev().copied().collect()
    }

    /// The file that Portway is written into; `None` if the client has none of
    /// that scope.
    pub(super) fn to_write(&self, client: ClientApp, scope: FileScope) -> Option<PathBuf> {
        let files = match (client, scope) {
            // Claude Code's "local" scope is in the user's file too.
            (ClientApp::ClaudeCode, _) | (_, FileScope::User) => self.of_user(client),
            (_, FileScope::Project) => self.of_project(client),
        };
        if client != ClientApp::OpenCode {
            return files.into_iter().next();
        }
        let directory = match scope {
            FileScope::User => self.dot_config()?.join("opencode"),
            FileScope::Project => self.project.clone(),
        };
        let there = ["opencode.jsonc", "opencode.json"].map(|name| directory.join(name));
        let found = there.iter().find(|file| file.exists()).cloned();
        found.or(Some(directory.join("opencode.json")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b8_every_system_has_its_places() {
        let environment: Environment = [
            ("HOME", "/h"),
            ("USERPROFILE", "/u"),
            ("APPDATA", "/u/roaming"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let user = |system, client| {
            let places = ClientPaths {
                environment: &environment,
                project: "/p".into(),
                system,
            };
            let file = places.to_write(client, FileScope::User).unwrap();
            file.display().to_string()
        };
        for (system, client, file) in [
            (
                OperatingSystem::Linux,
                ClientApp::VsCode,
                "/h/.config/Code/User/mcp.json",
            ),
            (
                OperatingSystem::Mac,
                ClientApp::ClaudeDesktop,
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (
                OperatingSystem::Windows,
                ClientApp::ClaudeDesktop,
                "/u/roaming/Claude/claude_desktop_config.json",
            ),
            (
                OperatingSystem::Windows,
                ClientApp::Cursor,
                "/u/.cursor/mcp.json",
            ),
            (
                OperatingSystem::Mac,
                ClientApp::Codex,
                "/h/.codex/config.toml",
            ),
            (
                OperatingSystem::Linux,
                ClientApp::Gemini,
                "/h/.gemini/settings.json",
            ),
            (
                OperatingSystem::Mac,
                ClientApp::OpenCode,
                "/h/.config/opencode/opencode.json",
            ),
            (
                OperatingSystem::Linux,
                ClientApp::ClaudeCode,
                "/h/.claude.json",
            ),
        ] {
            assert_eq!(user(system, client), file);
        }
    }

    #[test]
    fn b8_variables_move_files() {
        let environment: Environment = [
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", "/cc"),
            ("OPENCODE_CONFIG", "/o.json"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let places = ClientPaths {
            environment: &environment,
            project: "/p".into(),
            system: OperatingSystem::Linux,
        };
        let of = |client| {
            places
                .of(client)
                .into_iter()
                .map(|p| p.display().to_string())
        };
        let codex: Vec<_> = of(ClientApp::Codex).collect();
        assert_eq!(
            codex,
            [
                "/etc/codex/config.toml",
                "/c/config.toml",
                "/p/.codex/config.toml"
            ]
        );
        assert_eq!(
            of(ClientApp::ClaudeCode).collect::<Vec<_>>(),
            ["/cc/.claude.json"]
        );
        let opencode: Vec<_> = of(ClientApp::OpenCode).collect();
        assert_eq!(opencode[0], "/x/opencode/config.json");
        assert_eq!(opencode[3], "/o.json");
        assert_eq!(opencode[4], "/p/opencode.json");
    }
}
