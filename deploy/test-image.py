#!/usr/bin/env python3
"""Tries the container images that `make image` built.

    deploy/test-image.py IMAGE        IMAGE:slim and IMAGE:full, with podman

Every container has a read-only root, no capabilities and no new privileges, as in Kubernetes. The names
of the checks start with the requirement that they prove. Prints a table; exits with 1 if a check fails.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGE = sys.argv[1] if len(sys.argv) > 1 else "portway"
TOOL = "podman"
# What comes at all comes by then, on a busy machine too; packages are downloaded within it.
PATIENCE = 300
# Docker's default, after which it kills.
STOP = 10
NPX = "@modelcontextprotocol/server-everything@2026.8.31"
UVX = "mcp-server-time==2026.8.18"

RUN = f"portway-test-{uuid.uuid4().hex[:8]}"
results, containers, volumes = [], [], []
runtime, limits = [], []


class Failed(Exception):
    pass


def podman(*args, check=True, limit=PATIENCE):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=limit)
    if check and done.returncode:
        raise Failed(f"{TOOL} {' '.join(map(str, args))}: exit code {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return done


def until(what, probe, limit=PATIENCE):
    end = time.monotonic() + limit
    while True:
        if found := probe():
            return found
        if time.monotonic() > end:
            raise Failed(f"never: {what() if callable(what) else what}")
        time.sleep(0.1)


class Container:
    """One container of an image, with Portway as its first process unless `command` says otherwise."""

    def __init__(self, target, volume=None, network="none", options=(), args=(), command=None):
        self.name = f"{RUN}-{len(containers)}"
        entry = ["--entrypoint", json.dumps(command)] if command else []
        mount = ["--volume", f"{volume}:/data"] if volume else []
        containers.append(self.name)
        podman(*runtime, "run", "--detach", "--name", self.name, "--network", network, "--no-healthcheck", "--read-only", "--cap-drop", "ALL",
               "--security-opt", "no-new-privileges", *limits, *mount, *options, *entry, f"{IMAGE}:{target}", *args)

    def run(self, *command, check=True, options=()):
        return podman("exec", *options, self.name, *command, check=check)

    def log(self):
        done = podman("logs", self.name, check=False)
        return (done.stdout + done.stderr)[-3000:]

    def is_healthy(self):
        # The image's own check; podman runs it only where systemd has timers for it.
        facts = json.loads(podman("image", "inspect", f"{IMAGE}:slim").stdout)[0]
        kind, *command = facts["Healthcheck"]["Test"]
        assert kind == "CMD"
        return self.run(*command, check=False).returncode == 0

    def healthy(self):
        until(lambda: f"{self.name} healthy:\n{self.log()}", self.is_healthy, 60)
        return self

    def connected(self, *servers):
        states = {}

        def probe():
            done = self.run("portway", "ls", "--json", check=False)
            states.update({s["name"]: s for s in json.loads(done.stdout)} if done.returncode == 0 else {})
            # A download can take longer than one attempt; Portway makes further ones.
            return all(states.get(s, {}).get("status") == "connected" for s in servers)

        errors = lambda: [f"{s['name']}: {s.get('error')}" for s in states.values() if s["status"] != "connected"]
        until(lambda: f"{servers} connected: {errors()}\n{self.log()}", probe)
        return states

    def call(self, tool, *arguments):
        return self.run("portway", "call", tool, *arguments).stdout

    def processes(self):
        """Of the whole container: {pid: (name, state, uid, parent)}."""
        script = "exec cat /proc/[0-9]*/status 2>/dev/null"
        found, fields = {}, {}
        for line in self.run("sh", "-c", script, check=False).stdout.splitlines():
            name, _, value = line.partition(":")
            fields[name] = value.strip()
            if name == "Uid":
                about = fields["Name"], fields["State"][0], int(value.split()[0]), int(fields["PPid"])
                found[int(fields["Pid"])] = about
        # The command that asks is none of the container's own.
        return {pid: p for pid, p in found.items() if (p[0], p[3]) != ("cat", 0)}

    def kill(self, pid, signal):
        self.run("sh", "-c", f"kill -{signal} {pid}")

    def stop(self):
        """Seconds until the end, and the exit code, as `docker stop` does it."""
        start = time.monotonic()
        podman("stop", "--time", STOP, self.name)
        took = time.monotonic() - start
        return took, int(podman("inspect", "--format", "{{.State.ExitCode}}", self.name).stdout)

    def remove(self):
        podman("rm", "--force", "--time", "1", self.name, check=False)


def find_limits():
    """A machine that is itself a sandbox may refuse control groups, or the limits that podman sets."""
    low = ["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]
    tried = []
    for runtime, options in product(([], ["--runtime", "runc"]), ([], low, ["--cgroups=disabled", *low])):
        done = podman(*runtime, "run", "--rm", "--network", "none", "--no-healthcheck", *options, "--entrypoint", "true", f"{IMAGE}:slim", check=False)
        if done.returncode == 0:
            return runtime, options
        tried.append(f"{runtime} {options}: {done.stderr.strip()}")
    sys.exit("test-image.py: no container starts here:\n" + "\n".join(tried))


def volume(definition=None):
    """A new volume, with a .mcp.json."""
    name = f"{RUN}-{len(volumes)}"
    volumes.append(name)
    podman("volume", "create", name)
    if definition is not None:
        fill = Container("slim", name, command=["sleep", "infinity"])
        text = json.dumps({"mcpServers": definition})
        fill.run("sh", "-c", f"cat >/data/.mcp.json <<'END'\n{text}\nEND")
        fill.remove()
    return name


def fixture():
    for profile in ("release", "debug"):
        path = ROOT / "target" / profile / "examples" / "fixture"
        if path.exists():
            return ["--volume", f"{path}:/usr/local/bin/fixture:ro"]
    raise Failed("no fixture; run: cargo build --example fixture")


STUBBORN = {"command": "fixture", "args": ["--ignore-eof", "--ignore-term", "--fork", "tree", "--fork", "daemon"]}


def no_root(container):
    rooted = {pid: p for pid, p in container.processes().items() if p[2] == 0}
    if rooted:
        raise Failed(f"processes of root: {rooted}")


def check_starts():
    container = Container("slim", volume({"fixture": {"command": "fixture"}}), options=fixture()).healthy()
    server = container.connected("fixture")["fixture"]
    if "hello" not in container.call("fixture:echo", "text=hello"):
        raise Failed("the tool does not answer")
    no_root(container)
    took, code = container.stop()
    if code:
        raise Failed(f"exit code {code}: {container.log()}")
    container.remove()
    return f"containment {server.get('containment')}; stopped in {took:.1f} s with exit code 0"


def check_unhealthy():
    container = Container("slim", volume(), command=["sleep", "infinity"])
    if container.is_healthy():
        raise Failed("healthy without Portway")
    container.remove()
    return "the health check fails without Portway"


def check_stop():
    container = Container("slim", volume({"stubborn": STUBBORN}), options=fixture()).healthy()
    container.connected("stubborn")
    took, code = container.stop()
    if code or took > STOP:
        raise Failed(f"{took:.1f} s, exit code {code}: {container.log()}")
    container.remove()
    return f"a server that ignores SIGTERM: ended in {took:.1f} of {STOP} s with exit code 0"


def check_reaping():
    container = Container("slim", volume({"fixture": {"command": "fixture"}}), options=fixture()).healthy()
    container.connected("fixture")
    for _ in range(20):
        container.run("sh", "-c", "(sleep 0.05 &) & exit 0")
    helper = next(pid for pid, p in container.processes().items() if p[0] == "portway-shim")
    container.kill(helper, "KILL")
    zombies = lambda: {pid: p for pid, p in container.processes().items() if p[1] == "Z"}
    until(lambda: f"process 1 reaps its orphans: {zombies()}", lambda: not zombies(), 15)
    container.connected("fixture")
    container.remove()
    return "20 orphans of `exec` and a killed helper: no zombie"


def check_sigkill():
    rounds, left = 5, {}
    container = Container("slim", volume({"stubborn": STUBBORN}), options=fixture(), command=["sh", "-c", "while :; do sleep 0.1; done"])
    idle = lambda: {pid: p for pid, p in container.processes().items() if p[0] not in ("sh", "sleep")}
    for _ in range(rounds):
        container.run("portway", options=["--detach"])
        container.connected("stubborn")
        portway = int(container.run("cat", "/data/state/lock").stdout.split()[0])
        if sum(p[0] == "fixture" for p in idle().values()) < 4:
            raise Failed(f"the server has too few processes: {idle()}")
        container.kill(portway, "KILL")
        until(lambda: f"an empty container: {idle()}", lambda: not idle(), 30)
    container.remove()
    return f"{rounds} times SIGKILL: no process of the server is left"


def check_kubernetes():
    """Its variables, its ids, and a project that is a link to a directory that is replaced."""
    with tempfile.TemporaryDirectory() as folder:
        def publish(version, servers):
            place = Path(folder, version)
            place.mkdir()
            (place / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
            link = Path(folder, "new")
            link.symlink_to(version)
            link.rename(Path(folder, "..data"))
        os.chmod(folder, 0o755)
        one = {"command": "fixture"}
        publish("1", {"one": one})
        Path(folder, ".mcp.json").symlink_to("..data/.mcp.json")
        options = [*fixture(), "--volume", f"{folder}:/project:ro", "--user", "12345:0",
                   "--env", "PORTWAY_PORT=tcp://10.0.0.1:7420", "--env", "PORTWAY_SERVICE_HOST=10.0.0.1",
                   "--env", "PORTWAY_SERVICE_PORT=7420", "--env", "PORTWAY_PORT_7420_TCP_ADDR=10.0.0.1"]
        container = Container("slim", volume(), options=options, args=["--project", "/project"]).healthy()
        before = container.connected("one")["one"]
        publish("2", {"one": one, "two": one})
        after = container.connected("one", "two")["one"]
        if before["since"] != after["since"]:
            raise Failed("the unchanged server was restarted")
        no_root(container)
        container.remove()
    return "service variables, another user id, a replaced ConfigMap"


def check_offline():
    servers = {"node": {"command": "npx", "args": ["-y", NPX]}, "python": {"command": "uvx", "args": [UVX]}}
    store = volume(servers)
    times = []
    # With network: an address of its own, because the machine's port may be taken.
    for network, options in (("host", ["--env", "PORTWAY_LISTEN=127.0.0.1:0"]), ("none", [])):
        start = time.monotonic()
        container = Container("full", store, network, options).healthy()
        container.connected("node", "python")
        times.append(time.monotonic() - start)
        if "42" not in container.call("node:get-sum", "a=2", "b=40"):
            raise Failed("npx: wrong answer")
        if "timezone" not in container.call("python:get_current_time", "timezone=Etc/UTC"):
            raise Failed("uvx: wrong answer")
        no_root(container)
        _, code = container.stop()
        if code:
            raise Failed(f"exit code {code}")
        container.remove()
    return "npx and uvx installed in {:.0f} s, started without network in {:.1f} s".format(*times)


def check_tools():
    container = Container("full", volume(), command=["sleep", "infinity"])
    lines = [container.run(tool, "--version").stdout.split("\n")[0] for tool in ("portway", "node", "npm", "uv", "python3", "git")]
    container.remove()
    sizes = [podman("image", "inspect", "--format", "{{.Size}}", f"{IMAGE}:{t}").stdout for t in ("slim", "full")]
    return "slim {:.0f} MB, full {:.0f} MB; ".format(*(int(s) / 1e6 for s in sizes)) + ", ".join(lines)


CHECKS = [
    ("slim", "k3_starts_and_turns_healthy_and_calls_a_tool", check_starts),
    ("slim", "k3_is_unhealthy_without_portway", check_unhealthy),
    ("slim", "a11_sigterm_ends_within_the_grace_period", check_stop),
    ("slim", "a11_process_1_reaps_orphans", check_reaping),
    ("slim", "u4_sigkill_leaves_no_process", check_sigkill),
    ("slim", "k1_runs_as_kubernetes_runs_it", check_kubernetes),
    ("full", "u3_starts_npx_and_uvx_servers_offline", check_offline),
    ("full", "u3_has_the_tools_of_servers", check_tools),
]


def main():
    if not shutil.which(TOOL):
        sys.exit(f"test-image.py: {TOOL} is missing; apt-get install {TOOL}")
    wanted = sys.argv[2:]
    runtime[:], limits[:] = find_limits()
    try:
        for target, name, check in CHECKS:
            if wanted and not any(part in name for part in wanted):
                continue
            start = time.monotonic()
            try:
                verdict, detail = "ok", check()
            except (Failed, subprocess.TimeoutExpired, KeyError) as error:
                verdict, detail = "FAILED", str(error)
            results.append((target, name, verdict, f"{time.monotonic() - start:.0f} s", detail))
            print(*results[-1], sep="  ", flush=True)
    finally:
        for name in containers:
            podman("rm", "--force", "--time", "1", name, check=False)
        for name in volumes:
            podman("volume", "rm", "--force", name, check=False)
    print("\n| Image | Check | Result | Time | Detail |\n|---|---|---|---|---|")
    for row in results:
        print("| " + " | ".join(cell.replace("\n", " ")[:300] for cell in row) + " |")
    sys.exit(any(row[2] != "ok" for row in results) or not results)


main()
