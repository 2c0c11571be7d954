"""What a browser is shown: plain text about what the backend keeps."""

import json

from tests.mirror.backend.store import Store, StoredRun


def page(store: Store, path: str) -> str:
    """`/` lists all runs; the address that W&B prints for a run shows it."""
    parts = [part for part in path.split("/") if part]
    with store.lock:
        if len(parts) >= 4 and parts[2] == "runs":
            run = store.run(parts[1], parts[3])
            return "no such run\n" if run is None else _run(run)
        runs = [run for run in store.runs.values() if len(parts) < 2 or run.project == parts[1]]
        lines = [f"/{run.entity}/{run.project}/runs/{run.name}   {_line(run)}" for run in runs]
        lines += [f"/{sweep.project}   sweep {sweep.name}" for sweep in store.sweeps.values()]
        lines += [f"/{view.get('projectName')}   workspace {view.get('displayName')}" for view in store.views]
    return "\n".join([f"{len(runs)} runs", *lines]) + "\n"


def _line(run: StoredRun) -> str:
    return f"{run.state}, {len(run.rows)} rows, group {run.fields.get('groupName')}"


def _run(run: StoredRun) -> str:
    facts = {"state": run.state, "exit code": run.exit_code, **run.fields, "files": sorted(run.files)}
    shown = [json.dumps(part, indent=2) for part in (facts, run.config, run.summary)]
    return "\n".join([f"{run.name}: {len(run.rows)} rows", *shown, *map(json.dumps, run.rows)]) + "\n"
