"""LR50: the penalised fit against closed forms and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ablate.stats import Dose, fit_lr50
from ablate.stats.lr50 import separation


def doses(*counts: tuple[int, int], step: float = 10**0.5) -> list[Dose]:
    """(runs, unstable) at rates upwards."""
    return [Dose(1e-3 * step**i, runs, bad) for i, (runs, bad) in enumerate(counts)]


def penalised(found: list[Dose], intercept: float, slope: float) -> float:
    """Log likelihood + ½ log det of the information, written out on ln lr."""
    x = np.log([d.lr for d in found])
    n, y = np.array([d.runs for d in found]), np.array([d.unstable for d in found])
    logit = np.clip(intercept + slope * x, -700, 700)
    p = 1 / (1 + np.exp(-logit))
    design = np.stack([np.ones_like(x), x], axis=1)
    sign, log_det = np.linalg.slogdet(design.T @ np.diag(n * p * (1 - p)) @ design)
    fit = -np.sum(y * np.logaddexp(0, -logit) + (n - y) * np.logaddexp(0, logit))
    return float(fit + 0.5 * log_det) if sign > 0 else -math.inf


def test_two_rates_have_a_closed_form() -> None:
    """With as many parameters as rates, Firth's estimate adds a half to each cell of the table."""
    for (n0, y0), (n1, y1) in [((8, 1), (8, 6)), ((5, 0), (7, 7)), ((3, 0), (9, 7)), ((4, 1), (4, 3))]:
        found = doses((n0, y0), (n1, y1))
        logit = [math.log((y + 0.5) / (n - y + 0.5)) for n, y in ((n0, y0), (n1, y1))]
        low, high = math.log(found[0].lr), math.log(found[1].lr)
        expected = low - logit[0] * (high - low) / (logit[1] - logit[0])
        assert math.log(fit_lr50(found).lr) == pytest.approx(expected, abs=1e-7)


TABLES = [
    [(1, 0), (1, 0), (1, 1)],
    [(6, 0), (6, 1), (6, 4), (6, 6)],
    [(8, 1), (8, 0), (8, 3), (8, 3), (8, 8)],
    [(2, 0), (3, 2), (2, 1), (3, 3)],
    [(20, 0), (20, 6), (20, 15), (20, 20)],
    [(4, 0), (4, 0), (4, 4), (4, 4)],
    [(3, 1), (3, 1), (3, 2)],
    [(5, 0), (5, 0), (5, 0), (5, 1)],
    [(20, 9), (20, 10), (20, 12)],  # hardly a slope: open on both sides
]


@pytest.mark.parametrize("counts", TABLES)
def test_the_fit_and_its_interval_by_brute_force(counts: list[tuple[int, int]]) -> None:
    found = doses(*counts)
    fit = fit_lr50(found)
    assert fit.interval is not None
    x = np.log([d.lr for d in found])

    def profile(middle: float) -> float:
        """The best over a dense set of slopes."""
        slopes = np.concatenate([[0.0], np.geomspace(1e-4, 50, 160)])
        values = [penalised(found, -s * middle, s) for s in slopes]
        best = int(np.argmax(values))
        fine = np.linspace(slopes[max(best - 1, 0)], slopes[min(best + 1, 160)], 40)
        return max(penalised(found, -s * middle, s) for s in fine)

    start = np.array([-float(x.mean()), 1.0])
    best = minimize(
        lambda b: -penalised(found, b[0], b[1]),
        start,
        method="Nelder-Mead",
        options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12},
    )
    if fit.bound == "exact":
        assert -best.fun <= profile(math.log(fit.lr)) + 1e-4
    else:  # the best place is beyond the rates tried
        place = -best.x[0] / best.x[1]
        assert place > x[-1] if fit.bound == "above" else place < x[0]
    ends = [fit.interval.low, fit.interval.high]
    bracket = fit.bracket or (math.inf, -math.inf)
    for end, own in zip(ends, bracket, strict=True):
        if 0 < end < math.inf and end != own:
            assert 2 * (-best.fun - profile(math.log(end))) == pytest.approx(3.8415, abs=5e-3)
        elif not 0 < end < math.inf:
            span = x[-1] - x[0]
            far = x[0] - span if end == 0 else x[-1] + span
            assert 2 * (-best.fun - profile(far)) < 3.8416


def test_it_finds_the_edge_it_was_drawn_from() -> None:
    random = np.random.default_rng(1)
    rates = np.geomspace(1e-3, 1.0, 7)
    chance = 1 / (1 + np.exp(-3.0 * (np.log(rates) - math.log(0.05))))
    inside, logs = 0, []
    for _ in range(60):
        drawn = [
            Dose(float(lr), 12, int(random.binomial(12, p))) for lr, p in zip(rates, chance, strict=True)
        ]
        fit = fit_lr50(drawn)
        assert fit.interval is not None
        inside += fit.interval.low <= 0.05 <= fit.interval.high
        logs.append(math.log(fit.lr))
    assert inside >= 52
    assert float(np.mean(logs)) == pytest.approx(math.log(0.05), abs=0.08)


def test_under_separation_the_bracket_is_what_is_known() -> None:
    fit = fit_lr50(doses((6, 0), (6, 0), (6, 6), (6, 6)))
    bracket = fit.bracket
    assert bracket == (pytest.approx(1e-3 * 10**0.5), pytest.approx(1e-2))
    assert fit.interval is not None
    assert fit.interval.low <= bracket[0] < fit.lr < bracket[1] <= fit.interval.high
    many = fit_lr50(doses((500, 0), (500, 0), (500, 500), (500, 500)))
    assert many.interval is not None
    assert (many.interval.low, many.interval.high) == bracket  # more runs do not know more than the grid


def test_one_mixed_rate_is_still_a_separation_and_an_overlap_is_none() -> None:
    assert separation(doses((4, 0), (4, 2), (4, 4))) == (pytest.approx(1e-3), pytest.approx(1e-2))
    assert separation(doses((4, 0), (4, 2), (4, 3), (4, 4))) is None
    assert separation(doses((4, 0), (4, 1))) == (pytest.approx(1e-3), math.inf)
    assert separation(doses((4, 1), (4, 4))) == (0.0, pytest.approx(1e-3 * 10**0.5))


def test_where_the_share_hardly_rises_the_interval_is_open() -> None:
    fit = fit_lr50(doses((20, 9), (20, 10), (20, 12)))
    assert fit.interval is not None
    assert (fit.interval.low, fit.interval.high) == (0.0, math.inf)


def test_half_is_not_looked_for_beyond_the_rates_tried() -> None:
    fit = fit_lr50(doses((4, 0), (4, 0), (4, 1)))
    assert (fit.bound, fit.lr) == ("above", pytest.approx(1e-2))
    assert fit.interval is not None
    assert fit.interval.high == math.inf


def test_where_nothing_or_everything_is_unstable_the_edge_lies_beyond() -> None:
    above, below = fit_lr50(doses((3, 0), (3, 0))), fit_lr50(doses((3, 3), (3, 3)))
    assert (above.bound, above.lr, above.interval) == ("above", pytest.approx(1e-3 * 10**0.5), None)
    assert (below.bound, below.lr, below.interval) == ("below", 1e-3, None)


def test_no_edge_without_rates_runs_or_a_rise() -> None:
    assert fit_lr50([]).bound == "missing"
    assert fit_lr50(doses((4, 2))).bound == "missing"
    falling = fit_lr50(doses((4, 3), (4, 1), (4, 0)))
    assert falling.bound == "missing"
    assert "not more often unstable" in falling.note


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 40), st.floats(1.5, 20))
def test_the_unit_of_the_rate_does_not_matter(per_rate: int, unit: float) -> None:
    counts = [(per_rate, round(per_rate * share)) for share in (0.0, 0.2, 0.7, 1.0)]
    base, moved = doses(*counts), [Dose(unit * d.lr, d.runs, d.unstable) for d in doses(*counts)]
    one, other = fit_lr50(base), fit_lr50(moved)
    if one.bound == "exact":
        assert other.lr == pytest.approx(unit * one.lr, rel=1e-6)
    assert other.bound == one.bound
