"""The confound guard, the paired proof, and what is asked of a worker before anything is trained."""

import json
import math
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ablate.config import UserError, flatten, to_dict
from ablate.model import build
from ablate.probe import parameter_facts
from ablate.record import Claim, RunFolder, State, find_runs, write_json, write_request
from ablate.sweep import (
    Plan,
    check_confounds,
    cost,
    decay_counts,
    describe_models,
    estimate_time,
    freeze,
    model_of,
    paired_proof,
    plan,
    plan_cells,
    request_facts,
    requested_factors,
)
from ablate.train import decay_groups


def ask(the_plan: Plan) -> list[RunFolder]:
    """Freeze a sweep and keep its request."""
    folders = freeze(the_plan)
    write_request(
        the_plan.root, the_plan.study, [], requested_factors(the_plan.axes), to_dict(the_plan.base),
        [cell.run_id for cell in the_plan.cells], request_facts(the_plan),
    )  # fmt: skip
    return folders


def refusal(the_plan: Plan) -> str:
    with pytest.raises(UserError) as caught:
        check_confounds(the_plan, {})
    return caught.value.problem


@pytest.mark.parametrize(
    "request_",
    [
        ["model.width=32,64", "seed=0,1"],  # ffn and head_dim follow
        ["optim.steps=10,21", "optim.warmup=0.25"],  # warm-up in steps follows
        ["model.norm=none,rmsnorm", "model.bias=all"],  # without a norm there is no β
        ["model.placement=pre,post", "model.bias=none,all"],  # final_norm follows
        ["model.activation=gelu,swiglu", "model.bias=linear"],  # a gate has a bias of its own
        ["model=tiny,small", "optim.lr=0.1,1"],  # a group declares its section
        ["data.vocab_size=32,48"],  # other data, by name
        ["model=gpt2", "model.scale=tiny,small", "model.context=16"],  # a scale declares what it changes
        ["model=mistral", "model.scale=tiny,small", "model.context=32"],
    ],
)
def test_what_follows_from_a_factor_is_no_confound(tiny: list[str], request_: list[str]) -> None:
    check_confounds(plan([*tiny, *request_]), {})


def test_a_scale_declares_sizes_alone(tiny: list[str]) -> None:
    """Two sizes of one preset; undeclared they would be a confound, and another norm is one all the same."""
    swept = plan([*tiny, "model=gpt2", "model.scale=tiny,small", "model.bias=none,all"])
    check_confounds(swept, {})
    other = plan([*tiny, "model=llama", "model.scale=medium"])
    mixed = plan_cells(swept.base, swept.axes, [cell.config for cell in (*swept.cells, *other.cells)])
    said = refusal(mixed)
    assert "model.norm (layernorm, rmsnorm)" in said
    assert "model.layers" not in said
    assert "model.layers (2, 4)" in refusal(plan_cells(swept.base, (), [cell.config for cell in swept.cells]))


def two_experiments(tiny: list[str], *other: str) -> Plan:
    """The cells of two plain requests as one sweep, as `experiment=a,b` makes them."""
    first, second = plan(tiny), plan([*tiny, *other])
    configs = [cell.config for cell in (*first.cells, *second.cells)]
    return plan_cells(first.base, second.axes, configs)


def test_arms_that_differ_in_no_factor_are_refused_by_name(tiny: list[str]) -> None:
    the_plan = two_experiments(tiny, "data.vocab_size=48", "model.bias=none,all")
    assert "data.vocab_size (32, 48)" in refusal(the_plan)
    assert "model.bias" not in refusal(the_plan)
    assert "model.ffn (128, 64)" in refusal(two_experiments(tiny, "model.ffn=64"))
    assert "verdict.cap" in refusal(two_experiments(tiny, "verdict.cap=0.1", "seed=3"))
    assert "data.data_seed" in refusal(two_experiments(tiny, "data.data_seed=7"))


def test_a_difference_can_be_allowed(tiny: list[str]) -> None:
    the_plan = two_experiments(tiny, "data.vocab_size=48", "optim.batch=8")
    assert "optim.batch" in refusal(replace(the_plan, allow=("data.vocab_size",)))
    check_confounds(replace(the_plan, allow=("data.vocab_size", "optim.batch")), {})
    assert "sweep.allow = data.vocab" in refusal(replace(the_plan, allow=("data.vocab",)))


def test_a_study_is_not_mixed_with_other_runs(tiny: list[str]) -> None:
    folders = ask(plan([*tiny, "model.bias=none,all"]))
    check_confounds(plan([*tiny, "model.bias=linear", "seed=0,1", "optim.lr=0.1,0.2"]), {})  # it grows
    check_confounds(plan([*tiny, "optim.steps=12,24"]), {})  # by an axis that takes in what is there
    said = refusal(plan([*tiny, "optim.steps=24", "data.vocab_size=48"]))
    assert "optim.steps (12, 24; the study holds the first, by 2" in said
    assert "data.vocab_size (32, 48" in said
    assert "data.fingerprint" not in said
    check_confounds(plan([*tiny, "optim.steps=24", "study=other"]), {})
    check_confounds(plan([*tiny, "optim.steps=24", "sweep.allow=[optim.steps]"]), {})
    for folder in folders:
        folder.path.rename(folder.path.with_name("." + folder.path.name))
    check_confounds(plan([*tiny, "optim.steps=24"]), {})  # nothing is left of the earlier request


@pytest.mark.parametrize(
    ("field", "value", "key", "said"),
    [
        ("fingerprints", ["f" * 64], "data.fingerprint", "data.fingerprint (ffffffffffff, "),
        ("science_version", 0, "science_version", "science_version (0, 1"),
    ],
)
def test_a_study_is_not_mixed_with_other_data_or_numerics(
    tiny: list[str], field: str, value: object, key: str, said: str
) -> None:
    the_plan = plan(tiny)
    ask(the_plan)
    (path,) = (the_plan.root / the_plan.study / "requests").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    assert said in refusal(plan([*tiny, "seed=0,1"]))
    check_confounds(plan([*tiny, "seed=0,1", f"sweep.allow=[{key}]"]), {})


def test_runs_that_no_sweep_asked_for_are_none_of_the_study(tiny: list[str]) -> None:
    freeze(plan([*tiny, "optim.steps=24"]))  # as `ablate train` does
    check_confounds(plan(tiny), {})


def test_requests_record_what_growing_adds(tiny: list[str]) -> None:
    ask(plan([*tiny, "seed=0,1", "model.bias=none,all"]))
    for folder in find_runs(plan(tiny).root, "t"):
        Claim.take(folder).finish(State.done)
    grown = plan([*tiny, "seed=0,1,2", "model.bias=none,all", "optim.lr=0.003,0.1"])
    assert (len(grown.skipped), len(grown.todo)) == (4, 8)
    ask(grown)
    files = sorted((grown.root / "t" / "requests").iterdir(), key=lambda p: len(p.read_bytes()))
    first, second = (json.loads(path.read_text()) for path in files)
    assert set(first["run_ids"]) < set(second["run_ids"])
    assert second["factors"]["optim.lr"] == [0.003, 0.1]
    assert len(find_runs(grown.root, "t")) == 12


def test_built_models_are_described_once_and_checked(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    the_plan = plan([*tiny, "model.bias=none,all", "model.placement=pre,post", f"data.cache={tmp_path}/c"])
    configs = [cell.config for cell in the_plan.cells]
    told: list[str] = []
    known = describe_models(configs, told.append)
    assert told == ["counting the parameters of 4 models"]
    monkeypatch.setattr(subprocess, "run", None)
    assert describe_models(configs, told.append) == known
    for config in configs:
        facts = parameter_facts(build(config.model, config.data.vocab_size, 0, config.probe))
        sizes = {fact.name: math.prod(fact.shape) for fact in facts}
        description = known[model_of(config)]
        assert description["parameters"] == sum(sizes.values())
        names = decay_groups(facts, config.optim)
        groups = decay_counts(description, config.optim)
        assert groups.decayed == sum(sizes[name] for name in names.decayed)
        assert groups.exempt == sum(sizes[name] for name in names.exempt)
    check_confounds(the_plan, known)
    model = model_of(configs[-1])
    doctored = {**known[model], "by_site": {**known[model]["by_site"], "q": 1}}
    with pytest.raises(UserError, match=r"realised \(model.bias changes the weights"):
        check_confounds(the_plan, {**known, model: doctored})


def test_cost_is_counted_by_hand(tiny: list[str]) -> None:
    (cell,) = plan([*tiny, "model.bias=none"]).cells
    d, f, v, t, layers, tokens = 32, 128, 32, 16, 2, 4 * 16 * 12
    linears = layers * (4 * d * d + 2 * d * f)
    by_site = {"q": layers * d * d, "k": layers * d * d, "v": layers * d * d, "o": layers * d * d,
               "up": layers * d * f, "down": layers * d * f, "embed": v * d, "norm": 160}  # fmt: skip
    known = cost(cell.config, {"by_site": by_site, "parameters": 1000, "norms": []})
    assert known.flops == (6 * (linears + v * d) + 12 * layers * d * t) * tokens
    assert (known.memory.weights, known.memory.gradients, known.memory.optimiser) == (4000, 4000, 8000)
    kept = layers * (2 * d + 4 * d + 2 * f) + d + 3 * v  # floats of a token
    assert known.memory.activations == 4 * 4 * 16 * kept


def test_time_comes_from_runs_like_these_on_this_machine(tiny: list[str]) -> None:
    the_plan = plan([*tiny, "seed=0,1"])
    configs = [cell.config for cell in the_plan.cells]
    assert estimate_time(the_plan.root, configs).measured == 0
    folder = freeze(the_plan)[0]
    header = {"schema": 1, "columns": ["step", "seconds"], "attempt": 1, "from_step": 0}
    folder.metrics("timing").write_text(f"{json.dumps(header)}\n[12,6.0]\n")
    meta = {"config": flatten(configs[0]), "environment": {"host": socket.gethostname()}, "from_step": 0}
    write_json(folder.meta, meta)
    wider = [cell.config for cell in plan([*tiny, "model.width=64", "optim.steps=24"]).cells]
    longer = [cell.config for cell in plan([*tiny, "optim.steps=24"]).cells]
    known = estimate_time(the_plan.root, [*configs, *longer, *wider])
    assert (known.seconds, known.measured, known.unknown, known.sources) == (24.0, 3, 1, 1)
    write_json(folder.meta, {**meta, "environment": {"host": "elsewhere"}})
    assert estimate_time(the_plan.root, configs).measured == 0


def test_the_paired_proof_looks_at_step_0_losses(tiny: list[str]) -> None:
    the_plan = plan([*tiny, "model.bias=none,linear,all", "seed=0,1"])
    losses = [4.0, 4.5, 4.0, 4.5, 4.0, 4.50002]
    for folder, loss in zip(freeze(the_plan), losses, strict=True):
        write_json(folder.meta, {"initial_loss": loss})
    proof = paired_proof(the_plan)
    assert proof.groups == 2
    assert proof.largest == pytest.approx(2e-5)
    assert proof.broken == (tuple(the_plan.cells[i].run_id for i in (1, 3, 5)),)
    random = plan([*tiny, "model.bias=none,all", "model.bias_init=torch"])
    freeze(random)
    assert paired_proof(random).groups == 0
