//! A program with Portway inside: `examples/copilot.rs`.

use std::process::Stdio;

use tokio::process::Command;

use crate::app::{PATIENCE, eventually, example, fixtures, setup};
use crate::model::Model;
use crate::runtime;

#[tokio::test(flavor = "multi_thread")]
async fn d8_a_program_has_the_tools_of_the_portway_inside_it() {
    let setup = setup().mcp(fixtures(&[("fs", &[])]));
    let model = Model::start().await;
    let mut command = Command::new(example("copilot"));
    command
        .arg(runtime::binary())
        .args([&model.url, "call mcp_fs_echo {\"text\":\"drinnen 里面\"}"])
        .current_dir(setup.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", setup.path())
        .env("COPILOT_HOME", setup.path().join("copilot"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim_end(), "it says: drinnen 里面", "{complaints}");
    assert!(model.offered().iter().any(|name| name == "mcp_fs_add"));
    // Neither servers nor the runtime are left.
    eventually("all have ended", || setup.processes().is_empty()).await;
}
