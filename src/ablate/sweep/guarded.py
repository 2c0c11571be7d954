"""The confound guard applied to a plan, and what a request keeps for the guards to come."""

from collections.abc import Mapping
from typing import Any

from ablate.config import SCIENCE_VERSION, UserError
from ablate.record import RunFolder, find_runs, read_json
from ablate.sweep.describe import Descriptions, Model, model_of
from ablate.sweep.guard import (
    confounds,
    confounds_with_study,
    declared_keys,
    earlier_requests,
    realised_confounds,
    refuse,
    this_request,
)
from ablate.sweep.plan import Plan


def check_confounds(plan: Plan, descriptions: Descriptions) -> None:
    """Refuse a plan whose arms would differ in more than their factors, among themselves or from what the
    study holds. Raises UserError that names every difference.
    """
    declared = declared_keys(plan.axes, plan.allow)
    configs = [cell.config for cell in plan.cells]
    fingerprints = {cell.fingerprint for cell in plan.cells}
    present = {folder.id: folder for folder in find_runs(plan.root, plan.study)}
    found = confounds(configs, fingerprints, declared)
    earlier = earlier_requests(plan.root / plan.study, present)
    now = this_request(configs, fingerprints, declared)
    known = {confound.key for confound in found}
    found += [c for c in confounds_with_study(now, earlier) if c.key not in known]
    found += realised_confounds(descriptions, _recorded(plan, descriptions), declared)
    refuse(plan.study, found)


def request_facts(plan: Plan) -> dict[str, Any]:
    """What a request records beside its factors, so that later sweeps of the study can be compared."""
    return {
        "zip": [list(group) for group in plan.zipped],
        "excluded": plan.excluded,
        "allow": list(plan.allow),
        "fingerprints": sorted({cell.fingerprint for cell in plan.cells}),
        "science_version": SCIENCE_VERSION,
    }


def _recorded(plan: Plan, descriptions: Descriptions) -> dict[Model, Mapping[str, Any]]:
    """One done run's record of each model, where there is one."""
    found: dict[Model, Mapping[str, Any]] = {}
    for cell in plan.skipped:
        model = model_of(cell.config)
        if model not in found and model in descriptions and cell.folder is not None:
            description = _model_in(cell.folder)
            if description:
                found[model] = description
    return found


def _model_in(folder: RunFolder) -> Mapping[str, Any] | None:
    try:
        meta: Mapping[str, Any] = read_json(folder.meta)
    except (FileNotFoundError, UserError):
        return None
    model = meta.get("model")
    return model if isinstance(model, Mapping) else None
