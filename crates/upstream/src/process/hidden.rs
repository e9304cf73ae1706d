//! A check that a server's command uses no file in a directory that is hidden
//! from the server.

use std::path::{Component, Path, PathBuf};

use super::{ProcessCommand, SpawnError};

/// An error if the working directory, the program or a given file is in a
/// hidden directory. Blocks on the disk.
pub(super) fn check(command: &ProcessCommand, program: &Path) -> Result<(), SpawnError> {
    if command.hidden.is_empty() {
        return Ok(());
    }
    let cwd = real(&command.cwd, Path::new("/"));
    let refuse = |field: String, path: PathBuf| match inside(&command.hidden, &path) {
        Some(directory) => Err(SpawnError::Hidden {
            field,
            path,
            directory: directory.to_owned(),
        }),
        None => Ok(()),
    };
    refuse("cwd".into(), cwd.clone())?;
    refuse("command".into(), real(program, &cwd))?;
    for (i, arg) in command.args.iter().enumerate() {
        for text in paths(arg).filter(|text| text.contains('/')) {
            refuse(format!("args[{i}]"), real(Path::new(text), &cwd))?;
        }
    }
    for (name, value) in &command.env {
        for text in paths(value).filter(|text| text.starts_with('/')) {
            refuse(format!("env.{name}"), real(Path::new(text), &cwd))?;
        }
    }
    Ok(())
}

/// The whole text, and the parts after a `=` or between `:`s.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let value = text.split_once('=').map(|(_, value)| value);
    std::iter::once(text).chain(value).chain(text.split(':'))
}

fn inside<'d>(hidden: &'d [PathBuf], path: &Path) -> Option<&'d Path> {
    let mut hidden = hidden.iter().map(PathBuf::as_path);
    hidden.find(|directory| path.starts_with(directory))
}

/// The resolved path; a path that does not exist yet stays as written.
fn real(path: &Path, cwd: &Path) -> PathBuf {
    let path = cwd.join(path);
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Containment, Privileges};

    #[test]
    fn t_a_server_is_not_told_to_use_what_is_hidden_from_it() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        std::fs::create_dir(project.join("data")).unwrap();
        let command = |cwd: &str, args: &[&str], env: &[(&str, String)]| ProcessCommand {
            program: "c".into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            cwd: project.join(cwd),
            containment: Containment::Auto,
            privileges: Privileges::Drop,
            hidden: vec![project.join("data")],
            instance: "x".into(),
            shim: PathBuf::new(),
        };
        let data = project.join("data").display().to_string();
        for (field, refused) in [
            ("cwd", command("data", &[], &[])),
            ("args[0]", command("", &["./data/app.db"], &[])),
            ("args[1]", command("", &["x", "--db=data/app.db"], &[])),
            ("args[0]", command("", &["a/../data/app.db"], &[])),
            ("args[0]", command("", &[&data], &[])),
            (
                "env.DB",
                command("", &[], &[("DB", data.clone() + "/app.db")]),
            ),
        ] {
            let error = check(&refused, Path::new("/bin/c")).unwrap_err();
            assert!(error.permanent());
            assert!(error.to_string().starts_with(field), "{error}");
        }
        let program = project.join("data/server");
        assert!(check(&command("", &[], &[]), &program).is_err());
        let home = project.display().to_string();
        let fine = command(
            "",
            &["data", ".", "./database/x", &home],
            &[("HOME", home.clone())],
        );
        check(&fine, Path::new("/bin/c")).unwrap();
    }
}
