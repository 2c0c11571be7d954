"""Artifacts, which W&B makes of logged tables: every step of an upload is answered, the files are kept."""

from collections.abc import Mapping
from typing import Any

from tests.mirror.backend.store import Store

Variables = Mapping[str, Any]


def known_type(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    return {"project": {"artifact": {"artifactType": {"name": "run_table"}}}}


def create(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    asked = dict(variables["input"])
    name = f"artifact{len(store.artifacts) + 1}"
    store.artifacts[name] = {**asked, "state": "PENDING", "files": {}}
    sequence = {"id": f"sequence-{name}", "name": asked.get("artifactCollectionName"), "latestArtifact": None}
    return {"createArtifact": {"artifact": {"id": name, "state": "PENDING", "artifactSequence": sequence}}}


def manifest(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    owner = variables["artifactID"]
    made = {"id": f"manifest-{owner}", "file": _file(base, owner, variables["name"])}
    return {"createArtifactManifest": {"artifactManifest": made}}


def update_manifest(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    owner = variables["artifactManifestID"].removeprefix("manifest-")
    made = {"id": variables["artifactManifestID"], "file": _file(base, owner, "wandb_manifest.json")}
    return {"updateArtifactManifest": {"artifactManifest": made}}


def files(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    nodes = []
    for asked in variables["input"]["artifactFiles"]:
        owner = asked["artifactID"]
        place = {"storagePath": f"{owner}/{asked['name']}", "uploadMultipartUrls": None}
        nodes.append({"node": {**_file(base, owner, asked["name"]), **place, "artifact": {"id": owner}}})
    return {"createArtifactFiles": {"files": {"edges": nodes}}}


def commit(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    artifact = store.artifacts[variables["artifactID"]]
    artifact["state"] = "COMMITTED"
    return {"commitArtifact": {"artifact": {"id": variables["artifactID"], "digest": artifact.get("digest")}}}


def use(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    return {"useArtifact": {"artifact": {"id": variables["input"]["artifactID"]}}}


def _file(base: str, owner: str, name: str) -> dict[str, Any]:
    address = f"{base}/artifact/{owner}/{name}"
    shown = {"id": f"{owner}/{name}", "name": name, "displayName": name}
    return {**shown, "uploadUrl": address, "uploadHeaders": []}
