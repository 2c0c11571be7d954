"""The study's saved W&B workspace: the panels of workspace.yaml as wandb-workspaces (an extra) has them."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from ablate.config import UserError
from ablate.mirror.ledger import wandb_home
from ablate.mirror.rows import STEP
from ablate.mirror.service import translated
from ablate.record import read_json, write_json

INSTALL = "pip install 'ablate-bias[workspaces]'"
AXIS = "axis_"
GROUPS = {"lr": "config:axis_lr", "arm": "Group"}
Panel = Mapping[str, Any]


def require_library() -> None:
    """Raise UserError, with what to install, if the extra is not there."""
    if find_spec("wandb_workspaces") is None:
        raise UserError("saved workspaces need the package wandb-workspaces", hint=INSTALL)


def panel_spec() -> dict[str, Any]:
    """The content of workspace.yaml."""
    found = yaml.safe_load(resources.files("ablate.mirror").joinpath("workspace.yaml").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def build(study: str, project: str, entity: str, axes: Sequence[str]) -> Any:
    """A `wandb_workspaces.workspaces.Workspace`, not saved. `axes`: the runs' `axis_*` keys."""
    import wandb_workspaces.workspaces as ws

    spec = panel_spec()
    sections = [
        ws.Section(name=part["name"], panels=[_panel(p, axes) for p in part["panels"]], is_open=True)
        for part in spec["sections"]
    ]
    return ws.Workspace(
        entity=entity,
        project=project,
        name=f"ablate: {study}",
        sections=sections,
        settings=ws.WorkspaceSettings(x_axis=STEP, max_runs=50, sort_panels_alphabetically=False),
        runset_settings=ws.RunsetSettings(
            filters=[ws.Metric("JobType") == "train"], pinned_columns=list(spec["columns"])
        ),
    )


def as_json(workspace: Any) -> str:
    """What saving it would send, indented."""
    view = workspace._to_model()
    spec = json.loads(view.spec.model_dump_json(by_alias=True, exclude_none=True))
    whole = {"project": view.project, "displayName": view.display_name, "type": "project-view", "spec": spec}
    return json.dumps(whole, indent=2) + "\n"


def save(workspace: Any, root: Path, study: str) -> str:
    """Save it, in place of the one that was saved before from this study's folder; its address.

    Raises Trouble.
    """
    import wandb

    memory = wandb_home(root, study) / ".mirror" / "workspace.json"
    with translated():
        workspace.entity = workspace.entity or wandb.Api().default_entity
        place = {"entity": workspace.entity, "project": workspace.project}
        known = _known(memory)
        if known is not None and {key: known.get(key) for key in place} == place:
            workspace._internal_id, workspace._internal_name = known["id"], known["name"]
        workspace.save()
        url = str(workspace.url)
    write_json(memory, {**place, "id": workspace._internal_id, "name": workspace._internal_name})
    return url


def _known(memory: Path) -> dict[str, Any] | None:
    try:
        found = read_json(memory)
    except (FileNotFoundError, UserError):
        return None
    return found if isinstance(found, dict) and {"id", "name"} <= found.keys() else None


def _panel(panel: Panel, axes: Sequence[str]) -> Any:
    import wandb_workspaces.reports.v2 as wr

    log = panel.get("log", ())
    match panel["kind"]:
        case "line":
            return wr.LinePlot(
                title=panel["title"], x=STEP, y=panel.get("y", []), metric_regex=panel.get("regex"),
                log_y="y" in log or None, max_runs_to_show=100, **_grouped(panel, "minmax"),
            )  # fmt: skip
        case "scatter":
            return wr.ScatterPlot(
                title=panel["title"], x=_metric(panel["x"]), y=_metric(panel["y"]),
                log_x="x" in log or None, log_y="y" in log or None,
            )  # fmt: skip
        case "bars":
            return wr.BarPlot(title=panel["title"], metrics=[panel["y"]], **_grouped(panel, "none"))
        case "parallel":
            names = [f"config:{axis}" for axis in axes]
            listed = [name for item in panel["columns"] for name in (names if item == "axes" else [item])]
            columns = [
                wr.ParallelCoordinatesPlotColumn(
                    metric=_metric(name), display_name=_short(name), log=name in log or None
                )
                for name in listed
            ]
            return wr.ParallelCoordinatesPlot(title=panel["title"], columns=columns)
        case "importance":
            return wr.ParameterImportancePlot(with_respect_to=panel["of"])
        case "compare":
            return wr.RunComparer(diff_only="split")
        case "text":
            return wr.MarkdownPanel(markdown=panel["text"])
    raise AssertionError(panel["kind"])


def _grouped(panel: Panel, area: str) -> dict[str, Any]:
    """Grouping of a panel's runs: the mean of each group, and what the band around it shows."""
    if "by" not in panel:
        return {}
    return {
        "groupby": _metric(GROUPS[panel["by"]]),
        "groupby_aggfunc": "mean",
        "groupby_rangefunc": area,
    }


def _metric(name: str) -> Any:
    """`config:axis_lr`, `summary:verdict`, or a column or attribute of runs, in the library's words."""
    import wandb_workspaces.reports.v2 as wr

    kind, _, rest = name.partition(":")
    if kind == "config":
        return wr.Config(rest)
    return wr.SummaryMetric(rest) if kind == "summary" else wr.Metric(name)


def _short(name: str) -> str:
    return name.partition(":")[2].removeprefix(AXIS)
