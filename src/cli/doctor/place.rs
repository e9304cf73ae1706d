//! Checks the data directory, its files, and the database.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::unistd::{AccessFlags, access};

use config::settings::{Settings, StorageType};
use lab::{Finding, counted};
use store::Holder;

/// How far the clock of a database may differ before tokens of users expire too
/// early or too late.
const SKEW: Duration = Duration::from_secs(30);

/// The limit for all checks of a database.
const DATABASE: Duration = Duration::from_secs(15);

pub(super) fn examine(settings: &Settings, answers: bool) -> Vec<Finding> {
    let directory = &settings.data_dir;
    let mut findings = vec![self::directory(directory)];
    let objections = store::objections(settings);
    if objections.is_empty()
        && let Err(reason) = store::is_trusted(settings)
    {
        let todo = "a start uses its records and replaces its secrets, unless it is named";
        findings.push(Finding::warn("data directory", reason, todo));
    }
    for objection in objections {
        let todo = "a start refuses it: remove it, or name it with --data-dir if you trust it";
        findings.push(Finding::bad("data directory", objection, todo));
    }
    if directory.is_dir() {
        findings.extend(lock(directory, answers));
    }
    findings.push(token(settings));
    findings
}

fn directory(directory: &Path) -> Finding {
    let id = "data directory";
    let shown = directory.display();
    let metadata = match std::fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return not_there(directory);
        }
        Err(error) => {
            let todo = "make it readable, or choose another with --data-dir or PORTWAY_DATA_DIR";
            return Finding::bad(id, format!("{shown}: {error}"), todo);
        }
    };
    if !metadata.is_dir() {
        let todo = "choose another with --data-dir or PORTWAY_DATA_DIR";
        return Finding::bad(id, format!("{shown} is no directory"), todo);
    }
    if access(directory, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
        let todo = format!("give it to the user that runs Portway: chown -R USER '{shown}'");
        return Finding::bad(id, format!("{shown} cannot be written"), todo);
    }
    match metadata.mode() & 0o777 {
        mode if mode & 0o022 != 0 => Finding::bad(
            id,
            format!("{shown} may be written by others (mode {mode:03o})"),
            format!("chmod 700 '{shown}'"),
        ),
        mode if mode & 0o077 != 0 => Finding::warn(
            id,
            format!("{shown} is open to others (mode {mode:03o}); the secrets in it are not"),
            format!("chmod 700 '{shown}'"),
        ),
        mode => Finding::ok(id, format!("{shown} (mode {mode:03o})")),
    }
}

fn not_there(directory: &Path) -> Finding {
    let id = "data directory";
    let shown = directory.display();
    let parent = directory.ancestors().skip(1).find(|parent| parent.exists());
    match parent {
        Some(parent) if access(parent, AccessFlags::W_OK).is_ok() => {
            Finding::note(id, format!("{shown} is made at the first start"))
        }
        _ => Finding::bad(
            id,
            format!("{shown} is not there and cannot be made"),
            "make it, or choose another with --data-dir or PORTWAY_DATA_DIR",
        ),
    }
}

fn lock(directory: &Path, answers: bool) -> Option<Finding> {
    let pid = match store::holder(directory) {
        Ok(Holder::Nobody) => return None,
        Ok(Holder::Process(pid)) => pid,
        Err(error) => {
            let found = format!("{}: {error}", directory.join("lock").display());
            let todo = "give it to the user that runs Portway";
            return Some(Finding::bad("lock", found, todo));
        }
    };
    let who = pid.map_or("a process".to_owned(), |pid| format!("process {pid}"));
    if answers {
        return Some(Finding::ok("lock", format!("{who} has the directory")));
    }
    Some(Finding::warn(
        "lock",
        format!("{who} has the directory, and no Portway answers where it should"),
        "it may be starting; else name its address with --url, or end that process",
    ))
}

fn token(settings: &Settings) -> Finding {
    let id = "admin token";
    if settings.no_auth {
        return Finding::warn(id, "none is asked for (--no-auth)", "leave it out");
    }
    if settings.admin_token.is_some() {
        return Finding::ok(id, "PORTWAY_ADMIN_TOKEN is set");
    }
    let path = settings.data_dir.join("admin_token");
    let shown = path.display();
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::note(id, format!("{shown} is made at the first start"));
        }
        Err(error) => {
            let todo = "run this as the user that runs Portway, or set PORTWAY_ADMIN_TOKEN";
            return Finding::bad(id, format!("{shown}: {error}"), todo);
        }
    };
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let found = format!("{shown} can be read by others (mode {mode:03o})");
        let todo = format!(
            "chmod 600 '{shown}'; if others use this machine, remove it and restart Portway for a new one"
        );
        return Finding::bad(id, found, todo);
    }
    match store::known_admin_token(&settings.data_dir) {
        Some(_) => Finding::ok(id, format!("{shown} (mode {mode:03o})")),
        None => Finding::bad(
            id,
            format!("{shown} cannot be read, or holds no token"),
            "run this as the user that runs Portway; or remove it and restart Portway for a new one",
        ),
    }
}

pub(super) async fn storage(settings: &Settings) -> Vec<Finding> {
    match settings.storage {
        StorageType::Json => files(&settings.data_dir),
        StorageType::Supabase => database(settings).await,
    }
}

fn files(directory: &Path) -> Vec<Finding> {
    if !directory.is_dir() {
        return Vec::new();
    }
    let in_use = !matches!(store::holder(directory), Ok(Holder::Nobody));
    let found = store::examine_files(directory, in_use);
    let todo = "at the next start it is put aside, and its backup used";
    let faults = found.faults.into_iter();
    let faults = faults.map(|fault| Finding::bad("storage", fault, todo));
    let mut findings: Vec<Finding> = faults.collect();
    if !found.aside.is_empty() {
        let names = found.aside.iter().map(|path| path.display().to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        let count = counted(found.aside.len(), "damaged file");
        let found = format!("{count} put aside by an earlier start: {names}");
        let todo = "look whether an entry is missing; then remove them";
        findings.push(Finding::warn("storage", found, todo));
    }
    if let Some((foreign, instead)) = found.foreign {
        let (foreign, instead) = (foreign.display(), instead.display());
        let found = format!(
            "{foreign} was made by another application and is left as it is; Portway keeps its \
             records in {instead}"
        );
        let todo = format!("portway migrate --from {foreign} brings its records along");
        findings.push(Finding::warn("storage", found, todo));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("storage", "json, in the data directory"));
    }
    findings
}

async fn database(settings: &Settings) -> Vec<Finding> {
    let id = "storage";
    let Some(url) = &settings.supabase_db_url else {
        let todo = "set it to the postgres:// URL of the session pooler";
        return vec![Finding::bad(id, "SUPABASE_DB_URL is not set", todo)];
    };
    let looking = store::examine_database(url, &settings.supabase_db_schema);
    let found = match tokio::time::timeout(DATABASE, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            let todo = "look at SUPABASE_DB_URL: host, port 5432 (session pooler), user, password";
            return vec![Finding::bad(id, error.to_string(), todo)];
        }
        Err(_) => {
            let limit = DATABASE.as_secs();
            let found = format!("the database does not answer within {limit} s");
            let todo = "look at SUPABASE_DB_URL and the network";
            return vec![Finding::bad(id, found, todo)];
        }
    };
    let connected = "supabase: connected, and it delivers notices";
    let mut findings = vec![Finding::ok(id, connected)];
    let todo = "start Portway once as a user that may make tables, or apply supabase/migrations";
    match (found.tables, found.missing) {
        (Some(wrong), _) => findings.push(Finding::bad("migrations", wrong, todo)),
        (None, Some(missing)) if !missing.is_empty() => {
            let found = format!("not applied: {}", missing.join(", "));
            findings.push(Finding::warn("migrations", found, todo));
        }
        (None, Some(_)) => findings.push(Finding::ok("migrations", "all applied")),
        (None, None) => {
            let found = "the tables are right; they were made in another way";
            findings.push(Finding::ok("migrations", found));
        }
    }
    findings.extend(skew(found.millis));
    findings
}

fn skew(millis: i64) -> Option<Finding> {
    let theirs = SystemTime::UNIX_EPOCH + Duration::from_millis(millis.try_into().ok()?);
    let now = SystemTime::now();
    let apart = now
        .duration_since(theirs)
        .unwrap_or_else(|early| early.duration());
    (apart > SKEW).then(|| {
        Finding::warn(
            "clock",
            format!("{} s away from that of the database", apart.as_secs()),
            "set the clock (timedatectl set-ntp true): users' tokens depend on it",
        )
    })
}
