//! A real PostgreSQL for the tests. A shell that holds the other end of a pipe
//! stops it and removes its files, however this process ends.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs as `nobody` where we are root, since PostgreSQL refuses to run as root.
/// `cat` ends when the pipe closes; SIGCONT first, since a test may have
/// stopped it.
const KEEPER: &str = r#"
trap '' INT TERM
if [ "$(id -u)" = 0 ]; then
    chown nobody "$DIR"
    as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
fi
$as "$BIN/initdb" -D "$DIR/data" -U postgres --auth=scram-sha-256 --pwfile="$DIR/password" \
    --no-sync -E UTF8 --locale=C.UTF-8 >"$DIR/log" 2>&1 || exit 1
start() {
    $as "$BIN/postgres" -D "$DIR/data" -p "$PORT" -k "$DIR" -c listen_addresses=127.0.0.1 \
        -c fsync=off -c max_connections=300 -c shared_buffers=64MB >>"$DIR/log" 2>&1 &
    pid=$!
    echo "$pid"
}
start
while read -r order; do
    kill -INT "$pid"; wait "$pid"
    [ "$order" = restart ] && start
done
kill -CONT $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null
kill -INT "$pid" 2>/dev/null
wait "$pid"
rm -rf "$DIR"
"#;

const PASSWORD: &str = "s3cret-pass";

pub(crate) struct Cluster {
    pub port: u16,
    bin: PathBuf,
    directory: PathBuf,
    orders: ChildStdin,
    said: std::io::BufReader<std::process::ChildStdout>,
    postmaster: u32,
    _keeper: Child,
}

fn binaries() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let versions = installed.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    let mut found: Vec<PathBuf> = versions.filter(|bin| bin.join("initdb").exists()).collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path).filter(|bin| bin.join("initdb").exists()));
    found.into_iter().next().unwrap_or_else(|| {
        panic!(
            "these tests need PostgreSQL: run tests/tools/install.sh (apt-get install postgresql)"
        )
    })
}

/// A port that no process listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Cluster {
    /// Starts a separate cluster, for a test that stops it.
    pub(crate) fn start() -> Cluster {
        let bin = binaries();
        let directory = tempfile::Builder::new().prefix("portway-pg-").tempdir();
        // The keeper removes it.
        let directory = directory.unwrap().keep();
        std::fs::write(directory.join("password"), PASSWORD).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&directory, open).unwrap();
        let port = free_port();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .env("BIN", &bin)
            .env("DIR", &directory)
            .env("PORT", port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = std::io::BufReader::new(keeper.stdout.take().unwrap());
        let mut cluster = Cluster {
            port,
            bin,
            directory,
            orders: keeper.stdin.take().unwrap(),
            said,
            postmaster: 0,
            _keeper: keeper,
        };
        cluster.started();
        cluster
    }

    /// Waits until the postmaster has printed its process id and works.
    fn started(&mut self) {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.said, &mut line).unwrap();
        self.postmaster = line.trim().parse().unwrap_or_else(|_| {
            let log = std::fs::read_to_string(self.directory.join("log"));
            panic!("PostgreSQL did not start: {}", log.unwrap_or_default())
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.run("select 1", "postgres").status.success() {
            assert!(Instant::now() < deadline, "PostgreSQL does not take work");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!(
            "postgres://postgres:{PASSWORD}@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// Runs SQL through `psql` and returns its output.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.run(sql, database);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{sql}: {told}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn run(&self, sql: &str, database: &str) -> Output {
        self.psql(database).args(["-c", sql]).output().unwrap()
    }

    pub(crate) fn file(&self, database: &str, path: &Path) {
        let output = self.psql(database).arg("-f").arg(path).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {told}", path.display());
    }

    pub(crate) fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .arg(self.url(database))
            .env("PGCONNECT_TIMEOUT", "10");
        psql
    }

    /// Creates an empty database with a unique name.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("create database {name}"));
        name
    }

    /// Returns at once; [`Cluster::restarted`] waits.
    pub(crate) fn restart(&mut self) {
        std::io::Write::write_all(&mut self.orders, b"restart\n").unwrap();
    }

    pub(crate) fn restarted(&mut self) {
        self.started();
    }

    /// Suspends every process of the cluster, or resumes it.
    pub(crate) fn freeze(&self, frozen: bool) {
        let signal = if frozen { "-STOP" } else { "-CONT" };
        let parent = self.postmaster.to_string();
        let children = Command::new("ps")
            .args(["-o", "pid=", "--ppid", &parent])
            .output()
            .unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        let all = std::iter::once(parent.as_str()).chain(children.split_whitespace());
        // A process may have ended meanwhile.
        let _ = Command::new("kill").arg(signal).args(all).status().unwrap();
    }
}

/// `pgbouncer` in front of a cluster, stopped when dropped.
pub(crate) struct Pooler {
    pub port: u16,
    child: Child,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cluster {
    pub(crate) fn pooler(&self, mode: &str) -> Pooler {
        let port = free_port();
        let users = self.directory.join("users");
        std::fs::write(&users, format!("\"postgres\" \"{PASSWORD}\"\n")).unwrap();
        let file = self.directory.join(format!("{mode}.ini"));
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = plain\nauth_file = {}\npool_mode = {mode}\n",
            self.port,
            users.display()
        );
        std::fs::write(&file, settings).unwrap();
        // Like PostgreSQL, it refuses to run as root.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=KILL"]);
        if nix::unistd::geteuid().is_root() {
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
        }
        let log = std::fs::File::create(self.directory.join("pooler.log")).unwrap();
        let child = command
            .arg("/usr/sbin/pgbouncer")
            .arg(&file)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let pooler = Pooler { port, child };
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "pgbouncer does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        pooler
    }
}

/// The cluster for all tests that do not stop it.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(Cluster::start)
}
