"""The GraphQL operations that W&B's clients make, by name, with as much of an answer as the clients read."""

import itertools
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from tests.mirror.backend import artifacts
from tests.mirror.backend.store import ENTITY, HISTORY, Store, StoredRun, Sweep

Variables = Mapping[str, Any]
Operation = Callable[[Store, Variables, str], dict[str, Any]]
NOW = "2026-01-01T00:00:00Z"


class Conflict(Exception):
    """HTTP 409."""


def answer(store: Store, operation: str, variables: Variables, base: str) -> dict[str, Any]:
    """The body of the answer; an unknown operation is an error, and remembered. Raises Conflict."""
    if operation not in OPERATIONS:
        store.unknown.append(operation)
        return {"errors": [{"message": f"unknown operation {operation}"}]}
    with store.lock:
        return {"data": OPERATIONS[operation](store, variables, base)}


def _viewer(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    teams = {"edges": [{"node": {"name": ENTITY}}]}
    user = {"id": "VXNlcjox", "entity": ENTITY, "username": ENTITY, "email": "", "flags": "{}"}
    return {"viewer": {**user, "admin": False, "teams": teams}, "serverInfo": {"features": []}}


def _features(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    return {"serverInfo": {"features": []}}


def _default_entity(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    return {"viewer": {"id": "VXNlcjox", "entity": ENTITY}}


def _organization(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    return {"entity": {"organization": None}}


def _upsert_run(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    known = store.by_storage_id(variables.get("id") or "")
    if known is not None:
        run, new = known, False
    else:
        entity, project, name = variables.get("entity") or ENTITY, variables["project"], variables["name"]
        if (project, name) in store.deleted:
            raise Conflict(f"run {name} was previously created and deleted; try a new run name")
        run, new = store.open_run(entity, project, name)
        run.begun += 1
        run.state = "running"
    for key in ("displayName", "groupName", "jobType", "notes", "tags", "sweep"):
        if variables.get(key) is not None:
            run.fields[key] = variables[key]
    if variables.get("config"):
        run.config = {key: item["value"] for key, item in json.loads(variables["config"]).items()}
    if variables.get("summaryMetrics"):
        run.summary = json.loads(variables["summaryMetrics"])
    return {"upsertBucket": {"bucket": _bucket(run), "inserted": new}}


def _delete_run(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    run = store.by_storage_id(variables["id"])
    if run is not None:
        del store.runs[run.project, run.name]
        store.deleted.add((run.project, run.name))
    return {"deleteRun": {"clientMutationId": None}}


def _resume(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    project = variables["project"]
    run = store.run(project, variables["name"])
    return {"model": {**_project(project), "bucket": None if run is None else _bucket(run)}}


def _run(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    project = variables["project"]
    run = store.run(project, variables.get("name") or variables.get("run") or variables.get("runName") or "")
    return {"project": {**_project(project), "run": None if run is None else _bucket(run)}}


def _runs(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    """All runs of a project on one page; filters on names only, as `{"name": {"$in": […]}}`."""
    wanted = (json.loads(variables.get("filters") or "{}").get("name") or {}).get("$in")
    runs = [run for run in store.of_project(variables["project"]) if wanted is None or run.name in wanted]
    edges = [{"node": _bucket(run), "cursor": run.name} for run in runs]
    listed = {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}
    return {
        "project": {
            **_project(variables["project"]),
            "runCount": len(runs),
            "readOnly": False,
            "runs": listed,
        }
    }


def _create_files(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    entity, project, name = variables["entity"], variables["project"], variables["run"]
    run, _ = store.open_run(entity, project, name)
    files = [
        {"name": file, "uploadUrl": f"{base}/storage/{entity}/{project}/{name}/{file}"}
        for file in variables["files"]
    ]
    return {"createRunFiles": {"runID": run.storage_id, "uploadHeaders": [], "files": files}}


def _project(name: str) -> dict[str, Any]:
    owner = {"id": "RW50aXR5OjE=", "name": ENTITY}
    return {"id": f"project:{name}", "internalId": _number(name), "name": name, "entity": owner}


def _number(name: str) -> str:
    return str(zlib.crc32(name.encode()))


def _bucket(run: StoredRun) -> dict[str, Any]:
    lines = {name: len(run.lines.get(name, [])) for name in (HISTORY, "wandb-events.jsonl", "output.log")}
    tail = run.lines.get(HISTORY, [])[-1:]
    steps = run.column("_step")
    return {
        "id": run.storage_id,
        "name": run.name,
        "displayName": run.fields.get("displayName") or run.name,
        "description": "",
        "notes": run.fields.get("notes"),
        "group": run.fields.get("groupName"),
        "jobType": run.fields.get("jobType"),
        "tags": run.fields.get("tags") or [],
        "sweepName": run.fields.get("sweep"),
        "state": run.state,
        "createdAt": NOW,
        "heartbeatAt": NOW,
        "project": _project(run.project),
        "projectId": _number(run.project),
        "user": {"username": ENTITY, "name": ENTITY},
        "config": json.dumps({key: {"value": item} for key, item in run.config.items()}),
        "summaryMetrics": json.dumps(run.summary),
        "systemMetrics": None,
        "historyLineCount": lines[HISTORY],
        "eventsLineCount": lines["wandb-events.jsonl"],
        "logLineCount": lines["output.log"],
        "historyTail": json.dumps(tail),
        "eventsTail": "[]",
        "historyKeys": {"lastStep": steps[-1] if steps else -1, "sets": [], "keys": {}},
        "wandbConfig": json.dumps(run.config.get("_wandb") or {}),  # with `t` in it, the run has been begun
    }


def _history_page(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    """Rows with minStep ≤ _step < maxStep, as JSON texts."""
    run = store.run(variables["project"], variables["run"])
    rows = [] if run is None else _between(run, variables["minStep"], variables["maxStep"])
    history = [json.dumps(row) for row in rows[: int(variables["pageSize"])]]
    return {"project": {"run": None if run is None else {"history": history}}}


def _sampled_history(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    """The rows minStep ≤ _step ≤ maxStep that have all the keys asked for, and only those keys."""
    run = store.run(variables["project"], variables["run"])
    spec = json.loads(variables["spec"])
    keys = spec["keys"]
    rows = [] if run is None else _between(run, spec["minStep"], spec["maxStep"] + 1)
    found = [{key: row[key] for key in keys} for row in rows if all(key in row for key in keys)]
    return {"project": {"run": None if run is None else {"sampledHistory": [found]}}}


def _between(run: StoredRun, low: int, high: int) -> list[dict[str, Any]]:
    return [row for row in run.rows if int(low) <= row.get("_step", -1) < int(high)]


def _parquet_history(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    """Everything is live data: nothing was written to Parquet yet."""
    run = store.run(variables["project"], variables["runName"])
    live = None if run is None else {"parquetHistory": {"parquetUrls": [], "liveData": run.rows}}
    return {"project": {"run": live}}


def _upsert_sweep(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    config = yaml.safe_load(variables["config"])
    name = f"sweep{len(store.sweeps) + 1}"
    project = variables.get("projectName") or variables.get("project") or "uncategorized"
    store.sweeps[name] = Sweep(name, project, config, _combinations(config))
    found = {"id": name, "name": name, "project": _project(project)}
    return {"upsertSweep": {"sweep": found, "configValidationWarnings": []}}


def _combinations(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The grid, in the order of its parameters."""
    parameters = config.get("parameters") or {}
    values = [item["values"] if "values" in item else [item["value"]] for item in parameters.values()]
    return [dict(zip(parameters, chosen, strict=True)) for chosen in itertools.product(*values)]


def _sweep(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    sweep = store.sweeps.get(variables.get("sweep") or variables.get("name") or "")
    if sweep is None:
        return {"project": {"sweep": None}}
    runs = [run for run in store.of_project(sweep.project) if run.fields.get("sweep") == sweep.name]
    found = {
        "id": sweep.name, "name": sweep.name, "displayName": sweep.name, "state": "RUNNING", "method": "grid",
        "description": "", "config": yaml.safe_dump(sweep.config), "createdAt": NOW, "heartbeatAt": NOW,
        "updatedAt": NOW, "earlyStopJobRunning": False, "bestLoss": None, "controller": None,
        "scheduler": None, "runCount": len(runs), "runs": {"edges": [{"node": _bucket(run)} for run in runs]},
    }  # fmt: skip
    return {"project": {"sweep": found}}


def _create_agent(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    name = f"agent{len(store.agents) + 1}"
    store.agents[name] = variables["sweep"]
    return {"createAgent": {"agent": {"id": name}}}


def _heartbeat(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    """The next combination for an agent that runs nothing; the order to leave when there is none."""
    agent = variables["id"]
    sweep = store.sweeps[store.agents[agent]]
    busy = any(json.loads(variables.get("runState") or "{}").values())
    commands: list[dict[str, Any]] = []
    if not busy and sweep.waiting:
        chosen = sweep.waiting.pop(0)
        sweep.given += 1
        args = {key: {"value": value} for key, value in chosen.items()}
        what = {"type": "run", "run_id": f"grid{sweep.given:04d}", "program": sweep.config.get("program")}
        commands = [{**what, "args": args, "logs": []}]
    elif not busy:
        commands = [{"type": "exit"}]
    return {"agentHeartbeat": {"agent": {"id": agent}, "commands": json.dumps(commands)}}


def _upsert_view(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    held = dict(variables.get("input") or variables)
    name = held.get("id") or f"view{len(store.views) + 1}"
    store.views.append(held)
    shown = {key: held.get(key) for key in ("type", "name", "displayName", "spec", "description")}
    view = {"id": name, **shown, "project": _project(held.get("projectName") or "")}
    return {"upsertView": {"view": view, "inserted": True}}


def _project_id(store: Store, variables: Variables, base: str) -> dict[str, Any]:
    name = variables.get("name") or variables.get("project") or variables.get("projectName") or ""
    return {"project": _project(name)}


OPERATIONS: dict[str, Operation] = {
    "Viewer": _viewer,
    "ServerFeaturesQuery": _features,
    "GetDefaultEntity": _default_entity,
    "OrganizationCoreWeaveOrganizationID": _organization,
    "UpsertBucket": _upsert_run,
    "DeleteRun": _delete_run,
    "RunResumeStatus": _resume,
    "Run": _run,
    "Runs": _runs,
    "RunHistoryKeys": _run,
    "CreateRunFiles": _create_files,
    "HistoryPage": _history_page,
    "SampledHistoryPage": _sampled_history,
    "RunParquetHistory": _parquet_history,
    "ArtifactType": artifacts.known_type,
    "CreateArtifact": artifacts.create,
    "CreateArtifactManifest": artifacts.manifest,
    "UpdateArtifactManifest": artifacts.update_manifest,
    "CreateArtifactFiles": artifacts.files,
    "CommitArtifact": artifacts.commit,
    "UseArtifact": artifacts.use,
    "UpsertSweep": _upsert_sweep,
    "SweepWithRuns": _sweep,
    "CreateAgent": _create_agent,
    "Heartbeat": _heartbeat,
    "UpsertView2": _upsert_view,
    "ProjectInternalId": _project_id,
}
