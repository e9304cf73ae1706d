//! The lookup of a command's file, by the child's own PATH and working directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::SpawnError;

/// The search path of `execvp` if PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Looked up before anything is started, so that the error names a wrong name.
pub(super) fn resolve(
    program: &str,
    path: Option<&str>,
    cwd: &Path,
) -> Result<PathBuf, SpawnError> {
    if program.contains('/') {
        return check(cwd.join(program)).map_err(|found| found.into_error(program, None));
    }
    let path = path.unwrap_or(DEFAULT_PATH);
    let mut worst = UnusableProgram::Missing;
    if !program.is_empty() {
        for directory in path.split(':') {
            // Relative entries, also the empty one, are relative to the cwd.
            match check(cwd.join(directory).join(program)) {
                Ok(found) => return Ok(found),
                Err(UnusableProgram::Missing) => {}
                Err(unfit) => worst = unfit,
            }
        }
    }
    Err(worst.into_error(program, Some(path)))
}

enum UnusableProgram {
    Missing,
    NotExecutable(PathBuf, &'static str),
}

impl UnusableProgram {
    fn into_error(self, program: &str, searched: Option<&str>) -> SpawnError {
        match self {
            UnusableProgram::NotExecutable(path, reason) => SpawnError::NotExecutable {
                path,
                reason: reason.into(),
            },
            UnusableProgram::Missing => SpawnError::NotFound {
                program: program.into(),
                searched: searched
                    .map_or("the file system".into(), |path| format!("PATH ({path})")),
            },
        }
    }
}

fn check(file: PathBuf) -> Result<PathBuf, UnusableProgram> {
    match fs::metadata(&file) {
        Ok(found) if found.is_dir() => {
            Err(UnusableProgram::NotExecutable(file, "it is a directory"))
        }
        Ok(_) if access(&file, AccessFlags::X_OK).is_ok() => Ok(file),
        Ok(_) => Err(UnusableProgram::NotExecutable(
            file,
            "it is not executable (chmod +x)",
        )),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(UnusableProgram::NotExecutable(file, "permission denied"))
        }
        Err(_) => Err(UnusableProgram::Missing),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(file: &Path, mode: u32) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a5_a_command_is_looked_up_as_the_child_would() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        put(&root.join("one/plain"), 0o644);
        put(&root.join("two/plain"), 0o755);
        put(&root.join("bin/tool"), 0o755);
        put(&root.join("here"), 0o755);
        fs::create_dir(root.join("one/folder")).unwrap();
        let at = |name: &str| root.join(name).display().to_string();
        let path = format!("{}:{}:bin:", at("one"), at("two"));

        let found = |program: &str| resolve(program, Some(&path), root).unwrap();
        assert_eq!(
            found("plain"),
            root.join("two/plain"),
            "the next one that can be run"
        );
        assert_eq!(
            found("tool"),
            root.join("bin/tool"),
            "a relative entry counts from the cwd"
        );
        assert_eq!(found("here"), root.join("here"), "so does an empty one");
        assert_eq!(found("./bin/tool"), root.join("./bin/tool"));
        assert_eq!(found(&at("bin/tool")), root.join("bin/tool"));
        assert_eq!(resolve("sh", None, root).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn a5_a_command_that_is_not_there_says_where_it_was_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join("data"), 0o644);
        let text = |program: &str, path: &str| {
            let error = resolve(program, Some(path), dir.path()).unwrap_err();
            assert!(error.permanent());
            error
                .to_string()
                .replace(&dir.path().display().to_string(), "CWD")
        };
        assert_eq!(
            text("nope", "/bin:/none"),
            "no program \"nope\" in PATH (/bin:/none)"
        );
        assert_eq!(
            text("./nope", "/bin"),
            "no program \"./nope\" in the file system"
        );
        assert_eq!(text("", "/bin"), "no program \"\" in PATH (/bin)");
        assert_eq!(
            text("./data", "/bin"),
            "CWD/./data cannot be run: it is not executable (chmod +x)"
        );
        assert_eq!(
            text("data", ""),
            "CWD/data cannot be run: it is not executable (chmod +x)"
        );
        assert_eq!(text("/", "/bin"), "/ cannot be run: it is a directory");
    }
}
