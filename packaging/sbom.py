#!/usr/bin/env python3
"""The bill of materials in CycloneDX 1.6: sbom.py TARGET [BINARY] prints it as JSON.

Only the binary of one target is described, so that the list names what is inside and nothing else.
"""

import datetime
import hashlib
import json
import os
import sys
import urllib.parse
import uuid

import facts
import parts


def crate(package, checksums):
    name, version = package["name"], package["version"]
    reference = f"pkg:cargo/{name}@{version}"
    component = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
    if package["description"]:
        component["description"] = " ".join(package["description"].split())
    if package["license"]:
        # The older spelling of a choice.
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if (name, version) in checksums:
        component["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    if package["repository"]:
        component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return component


def console_package(package):
    name, version = package["name"], package["version"]
    reference = f"pkg:npm/{urllib.parse.quote(name, safe='/')}@{version}"
    scope, _, plain = name.rpartition("/")
    component = {"type": "library", "bom-ref": reference}
    if scope:
        component["group"] = scope
    component |= {"name": plain, "version": version, "purl": reference}
    component["licenses"] = [{"expression": package["license"]}]
    component["hashes"] = [{"alg": "SHA-512", "content": package["sha512"]}]
    return component


def bill(target, binary):
    root, crates = parts.rust_crates(target)
    checksums = parts.crate_checksums()
    components = {id: crate(package, checksums) for id, package in crates.items()}
    console = [console_package(package) for package in parts.console_packages()]
    application = components.pop(root) | {"type": "application", "version": facts.program()["version"]}
    if binary:
        digest = hashlib.sha256(open(binary, "rb").read()).hexdigest()
        application["hashes"] = [{"alg": "SHA-256", "content": digest}]
    references = {id: component["bom-ref"] for id, component in components.items()}
    references[root] = application["bom-ref"]
    dependencies = [
        {"ref": references[id], "dependsOn": sorted({references[linked] for linked in package["linked"]})}
        for id, package in crates.items()
    ]
    for entry in dependencies:
        if entry["ref"] == application["bom-ref"]:
            entry["dependsOn"] += [package["bom-ref"] for package in console]
    moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    body = {
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": application,
            "properties": [{"name": "target", "value": target}],
        },
        "components": sorted([*components.values(), *console], key=lambda component: component["bom-ref"]),
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }
    # The same content has the same number: a second build of a commit can be compared.
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(body))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | body


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None), indent=1))
