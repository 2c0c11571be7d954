"""The calibration finds what errs and passes what does not, and its records are what was recorded."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from ablate.config import dump, flatten, parse
from ablate.record import Claim, State, create_run, write_json
from ablate.stats import Outcome, Response, Study
from ablate.verdict import Kind
from calibrate_noise_floor import RECORDS, run, write
from calibration import ARMS, Null, Pool, analysed, load_pools, proportion_interval, simulate
from calibration_measures import Share, calibrate
from calibration_records import pack
from calibration_tables import percent, tables

START, UNIGRAM = 6.2, 5.3
RATES = tuple(float(x) for x in np.geomspace(1e-3, 1e-1, 9))


def ladder(edge: float, arm: str = "none", seed: str = "0") -> tuple[Outcome, ...]:
    """A run trains to 4.5 below the edge (ln lr) and collapses above it."""
    found = []
    for lr in RATES:
        lost = 1 / (1 + math.exp(-(math.log(lr) - edge) / 0.1))
        final = 4.5 + 0.05 * (math.log(lr) + 6.5) ** 2 * (1 - lost) + 0.8 * lost
        kind = Kind.collapsed if lost > 0.5 else Kind.stable
        found.append(Outcome(f"{arm}{lr}{seed}", arm, lr, seed, kind, final, START, UNIGRAM))
    return tuple(found)


def made_pool(spread: float, noise: float, seeds: int = 40) -> Pool:
    """Edges scatter by `spread` over seeds, and by `noise` between the arms of one."""
    random = np.random.default_rng(7)
    middle = random.normal(math.log(8e-3), spread, seeds)
    other = middle + random.normal(0, noise, seeds)
    return Pool(
        "made", "made up", RATES, tuple((ladder(a), ladder(b)) for a, b in zip(middle, other, strict=True))
    )


def share(rows: list[Share], measure: str, response: str = Response.edge) -> Share:
    (found,) = (r for r in rows if (r.measure, r.response) == (measure, response))
    return found


@pytest.fixture(scope="module")
def recorded() -> Pool:
    return load_pools(RECORDS)[0]


@pytest.fixture(scope="module")
def equal(recorded: Pool) -> list[Share]:
    return calibrate(recorded, Null.reseeded, 6, 250)


@pytest.mark.parametrize("response", [Response.edge, Response.sensitivity, Response.best_loss])
def test_the_reports_interval_is_near_nominal_on_recorded_runs(
    equal: list[Share], response: Response
) -> None:
    covers = share(equal, "coverage: interval", response)
    assert covers.low <= 0.95 <= covers.high
    errs = share(equal, "false positives: p < 0.05", response)
    assert errs.low <= 0.05


def test_an_interval_that_is_too_narrow_is_seen(equal: list[Share]) -> None:
    covers = share(equal, "warning: coverage of the percentile bootstrap")
    assert covers.of == 250
    assert covers.high < 0.93


def test_a_test_that_takes_every_run_for_a_trial_is_seen_to_err(equal: list[Share]) -> None:
    assert share(equal, "warning: pooled t", Response.sensitivity).low > 0.05


def test_a_test_that_pools_cells_is_seen_to_err() -> None:
    """Where the edge scatters over several rates, the cells of a seed change together."""
    rows = calibrate(made_pool(spread=0.9, noise=0.0), Null.reseeded, 10, 150)
    pooled = share(rows, "warning: pooled McNemar", Response.unstable)
    assert pooled.low > 0.05
    assert share(rows, "false positives: sign-flip test", Response.unstable).low <= 0.05


def test_equal_arms_have_no_effect_and_no_spread_where_pairs_are_the_same() -> None:
    for study in simulate(made_pool(spread=0.4, noise=0.0), Null.placebo, 5, 5):
        for effect in study.effects.values():
            assert effect.estimate.per_seed == (0.0,) * 5
            assert effect.estimate.interval is None
            assert effect.p == 1.0
        assert study.pooled == 1.0


def test_a_planted_step_moves_every_edge_by_the_step() -> None:
    step = math.log(RATES[1] / RATES[0])
    for study in simulate(made_pool(spread=0.3, noise=0.0), Null.planted, 6, 5):
        np.testing.assert_allclose(study.effects[Response.edge].estimate.per_seed, -step, rtol=1e-6)
        assert study.effects[Response.unstable].estimate.mean > 0


def test_power_grows_with_what_is_planted_and_is_as_promised_at_the_mde() -> None:
    rows = calibrate(made_pool(spread=0.3, noise=0.2), Null.placebo, 6, 150)
    found = [share(rows, f"power at {k:g} × MDE") for k in (0.5, 1.0, 1.5, 2.0)]
    assert [r.share for r in found] == sorted(r.share for r in found)
    assert found[1].low <= 0.8 <= found[1].high
    assert found[3].share > 0.99
    assert found[1].effect == pytest.approx(2 * found[0].effect)


def test_the_same_arguments_simulate_the_same_studies(recorded: Pool) -> None:
    first, again, other = (list(simulate(recorded, Null.placebo, 5, 3, stream)) for stream in (0, 0, 1))
    assert first == again
    assert first != other


def test_the_coin_makes_arms_equal_that_are_not() -> None:
    """The second arm breaks two rates earlier; over many coins neither is worse than the other."""
    shift = 2 * math.log(RATES[1] / RATES[0])
    edges = np.linspace(math.log(5e-3), math.log(2e-2), 12)
    pool = Pool("made", "", RATES, tuple((ladder(edge), ladder(edge - shift)) for edge in edges))
    means = [s.effects[Response.edge].estimate.mean for s in simulate(pool, Null.placebo, 6, 150)]
    assert max(map(abs, means)) > shift / 2
    assert abs(np.mean(means)) < 4 * np.std(means) / math.sqrt(len(means)) < shift / 4


def test_clopper_pearson_is_scipys() -> None:
    from scipy.stats import binomtest

    for hits, of in ((0, 10), (3, 10), (10, 10), (57, 1000)):
        reference = binomtest(hits, of).proportion_ci(method="exact")
        assert proportion_interval(hits, of) == pytest.approx((reference.low, reference.high), abs=1e-10)


def test_what_is_written_is_what_is_shown(tmp_path: Path) -> None:
    pool = made_pool(spread=0.3, noise=0.1, seeds=8)
    rows = run([pool], 3)
    write(rows, tmp_path)
    with (tmp_path / "calibration.csv").open() as file:
        flat = list(csv.DictReader(file))
    raw = json.loads((tmp_path / "calibration.json").read_text())["shares"]
    assert len(flat) == len(raw) == len(rows)
    assert [int(r["hits"]) for r in flat] == [r["hits"] for r in raw] == [r.hits for r in rows]
    shown = tables([pool], rows)
    assert [len(table) for _, table in shown] == [1 + 16, 1 + 16, 1 + 12, len(shown[-1][1])]
    first = share([r for r in rows if (r.null, r.n) == (Null.placebo, 5)], "coverage: interval")
    assert percent(first) in shown[0][1][1]


def test_packed_records_are_the_recorded_ends(tmp_path: Path) -> None:
    for number, (bias, lr, seed) in enumerate(
        (b, lr, s) for b in ("none", "[k]", "all") for lr in (0.01, 0.1) for s in range(8)
    ):
        if (bias, lr, seed) == ("[k]", 0.1, 7):
            continue  # a seed without its whole ladders
        _record(tmp_path, number, bias, lr, seed)
    pack([tmp_path / "s"], tmp_path / "out.json")
    (pool,) = load_pools(tmp_path / "out.json")
    assert pool.name == "pre-layernorm-4x64"
    assert pool.rates == (0.01, 0.1)
    assert [first[0].seed for first, _ in pool.seeds] == [str(s) for s in range(7)]
    for first, second in pool.seeds:
        assert {first[0].arm, second[0].arm} == {"none", "[k]"}
        assert first[0].final == second[0].final == 4.0 + int(first[0].seed) / 8
        assert [o.kind for o in first] == [Kind.stable, Kind.diverged]
        assert math.isnan(first[1].final or 0.0)


def test_analysis_is_the_statistics_rooms_own() -> None:
    runs = [
        Outcome("", arm, lr, str(seed), Kind.stable, 4.0 + seed / 10 + (arm == "b") * lr, START, UNIGRAM)
        for arm in ARMS for lr in (0.1, 0.2) for seed in range(5)
    ]  # fmt: skip
    found = analysed(Study.of(runs, factors={})).effects[Response.best_loss].estimate
    assert found.mean == pytest.approx(0.1)


def _record(root: Path, number: int, bias: str, lr: float, seed: int) -> None:
    sites: object = ["k"] if bias == "[k]" else bias
    settings = {"model": {"bias": sites}, "optim": {"lr": lr}, "seed": seed, "study": "s"}
    config = parse(settings)
    folder = create_run(root, "s", "made", f"{number:012x}", dump(config))
    claim = Claim.take(folder)
    environment = {"versions": {"torch": "2"}}
    facts = {"config": flatten(config), "data": {"fingerprint": "f" * 64}, "environment": environment}
    write_json(folder.meta, {**facts, "device_name": "cpu"})
    claim.finish(State.done)
    lost = lr == 0.1
    write_json(folder.summary, {
        "verdict": "diverged" if lost else "stable", "final/val/loss": "NaN" if lost else 4.0 + seed / 8,
        "final/val/step": 200, "planned_steps": 200, "steps": 200,
        "measures/l0": START, "measures/u": UNIGRAM,
    })  # fmt: skip
