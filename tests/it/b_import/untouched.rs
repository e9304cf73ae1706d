//! An install followed by an uninstall leaves a file as it was.

use super::ImportHome;
use super::installed::CLIENTS;

const KEY: &str = "pwk_sample0123456789sample0123456789";

const JSON: &[&str] = &[
    "",
    "{}",
    "{}\n",
    "{ }",
    "{\r\n}\r\n",
    "{\"mcpServers\":{}}",
    "{\"servers\":{},\"inputs\":[]}",
    "{\"mcp\": {}, \"projects\": {}}",
    "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"} // last\r\n\t}\r\n}",
    "// mine\n{\n    \"theme\": \"dark\",\n    \"servers\": {\n        \"b\": {},\n    },\n}",
    "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
];

const TOML: &[&str] = &[
    "",
    "model = \"x\"",
    "# mine\r\n[mcp_servers.a]\r\ncommand = \"x\"\r\n\r\n\r\n",
    "[tui]\nx = 1 # y\n\n[mcp_servers]\n",
];

#[test]
fn b8_every_client_file_is_itself_again() {
    for (client, user, project) in CLIENTS {
        let scopes = [("user", Some(*user)), ("project", *project)];
        for (scope, file) in scopes {
            let Some(file) = file else { continue };
            let texts = if *client == "codex" { TOML } else { JSON };
            // The other file is edited by the same code.
            let most = if scope == "user" { texts.len() } else { 3 };
            let place = ImportHome::new();
            for before in &texts[..most] {
                place.write(file, before);
                let args = ["install", client, "--entry", KEY, "--scope", scope];
                place.run(&args).ok();
                assert_ne!(place.read(file), *before);
                place.run(&["uninstall", client, "--scope", scope]).ok();
                assert_eq!(place.read(file), *before, "{client} {scope}");
            }
            // Also one that was not there, whatever was there once.
            std::fs::remove_file(place.path(file)).unwrap();
            let args = ["install", client, "--entry", KEY, "--scope", scope];
            place.run(&args).ok();
            place.run(&["uninstall", client, "--scope", scope]).ok();
            assert!(!place.path(file).exists(), "{client} {scope}");
        }
    }
}

#[test]
fn b8_two_of_us_come_and_go_in_any_order() {
    let file = "home/.config/Code/User/mcp.json";
    let before = "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t}\n}";
    for order in [["one", "two"], ["two", "one"]] {
        let place = ImportHome::new();
        place.write(file, before);
        for name in ["one", "two"] {
            place
                .run(&["install", "vscode", "--entry", KEY, "--name", name])
                .ok();
        }
        assert!(place.read(file).contains("two-key"));
        for name in order {
            place.run(&["uninstall", "vscode", "--name", name]).ok();
        }
        assert_eq!(place.read(file), before, "{order:?}");
    }
}

#[test]
fn b8_five_backups_are_kept_and_a_link_stays_a_link() {
    use std::os::unix::fs::PermissionsExt;
    let place = ImportHome::new();
    let target = place.write("dotfiles/cursor.json", "{\n}\n");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(place.path("home/.cursor")).unwrap();
    let link = place.path("home/.cursor/mcp.json");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for _ in 0..4 {
        let ran = place.run(&["install", "cursor", "--entry", KEY]).ok();
        ran.says("As it was: ");
        place.run(&["uninstall", "cursor"]).ok().says("As it was: ");
    }
    assert!(link.is_symlink());
    assert_eq!(place.read("dotfiles/cursor.json"), "{\n}\n");
    let mode = std::fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let backups = place.backups("home/.cursor");
    assert_eq!(backups.len(), 5, "{backups:?}");
    // The newest has what was there before the last word.
    assert!(place.read(&backups[4]).contains("portway"));
}

#[test]
fn b8_git_sees_no_backup() {
    let place = ImportHome::new();
    let project = place.path("project");
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let ran = git.arg("-C").arg(&project).args(args).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    place.write("project/opencode.json", "{\n}\n");
    git(&["init", "--quiet"]);
    let install = ["install", "opencode", "--scope", "project", "--with-key"];
    let ran = place.run(&[&install[..], &["--entry", KEY]].concat()).ok();
    ran.says("git");
    place
        .run(&["uninstall", "opencode", "--scope", "project"])
        .ok();
    // The second one holds the key.
    let backups = place.backups("project");
    assert_eq!(backups.len(), 2, "{backups:?}");
    assert!(place.read(&backups[1]).contains(KEY));
    let seen = git(&["status", "--porcelain", "--untracked-files=all"]);
    assert_eq!(seen, "?? opencode.json\n");
}

#[test]
fn b8_what_the_client_wrote_meanwhile_stays() {
    let place = ImportHome::new();
    let file = "home/.claude.json";
    place.write(file, "{\"numStartups\":1}");
    place.run(&["install", "claude-code", "--entry", KEY]).ok();
    // It writes its file anew, in its own manner.
    let mut value: serde_json::Value = serde_json::from_str(&place.read(file)).unwrap();
    value["numStartups"] = 2.into();
    place.write(file, serde_json::to_string_pretty(&value).unwrap());
    place.run(&["uninstall", "claude-code"]).ok();
    assert_eq!(place.read(file), "{\n  \"numStartups\": 2\n}");
}
