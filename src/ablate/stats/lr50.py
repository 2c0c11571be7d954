"""LR50: the learning rate at which half of an arm's runs are unstable, by a penalised logistic fit.

Legend: G rates, P parameters (intercept, slope), S slopes tried.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablate.stats.edge import Bound
from ablate.stats.exact import Floats
from ablate.stats.intervals import Interval, IntervalKind
from ablate.stats.outcomes import Study
from ablate.verdict import Kind

CHI2 = 3.841458820694124  # 95 % point of chi-squared with one degree of freedom
STEEPEST = 1e4  # slopes on the scale on which the rates span one
SLOPES_S = np.concatenate([[0.0], np.geomspace(1e-2, STEEPEST, 71)])
REACH = 1.0  # an end further than so many spans of the rates beyond them is open: it would say nothing


@dataclass(frozen=True)
class Dose:
    """Runs of one arm at one rate: how many, and how many of them unstable."""

    lr: float
    runs: int
    unstable: int


@dataclass(frozen=True)
class Lr50:
    """LR50 of one arm.

    `lr`: the fit; the highest rate where LR50 lies `above` the rates with runs, the lowest where it lies
    `below`; NaN where `missing`. `interval`: profile penalised likelihood, in rates (open ends are 0 and
    infinity), never narrower than `bracket`; None without a fit. `bracket`: under separation, the rates
    between which the runs turn. `n`: runs that entered; `left_out`: those whose verdict is not known
    (censored, not finished).
    """

    lr: float
    bound: Bound
    interval: Interval | None
    bracket: tuple[float, float] | None
    n: int
    left_out: int
    doses: tuple[Dose, ...]
    note: str = ""


def lr50(study: Study, arm: str) -> Lr50:
    """Firth's logistic fit of unstable (diverged or collapsed) on ln lr, from the arm's best rate upwards.

    Seeds are taken as independent trials at each rate; runs of one seed at several rates are not, so the
    interval is a description and no arm is tested against another by it. Where the arm trains at no rate, all
    rates enter.
    """
    start = study.best_rates[arm] or 0.0
    runs = [o for o in study.outcomes if o.arm == arm and o.lr >= start]
    known = [o for o in runs if o.kind not in (None, Kind.censored)]
    doses = tuple(
        Dose(lr, len(at), sum(o.unstable for o in at))
        for lr in sorted({o.lr for o in known})
        if (at := [o for o in known if o.lr == lr])
    )
    return fit_lr50(doses, left_out=len(runs) - len(known))


def fit_lr50(doses: Sequence[Dose], left_out: int = 0) -> Lr50:
    """LR50 of these counts; doses upwards in rate.

    Maximises the log likelihood + ½·log |information| (Firth 1993; Heinze & Schemper 2002), finite even under
    separation. The interval holds the rates m at which twice the fall of the penalised log likelihood,
    maximised over the slope ≥ 0, is below 3.84. A fit beyond the rates says only on which side it lies.
    """
    n = sum(d.runs for d in doses)

    def result(lr: float, bound: Bound, note: str) -> Lr50:
        return Lr50(lr, bound, None, None, n, left_out, tuple(doses), note)

    if not n:
        return result(math.nan, Bound.missing, "no run with a verdict")
    if not any(d.unstable for d in doses):
        return result(doses[-1].lr, Bound.above, f"no unstable run up to lr {doses[-1].lr:g}")
    if all(d.unstable == d.runs for d in doses):
        return result(doses[0].lr, Bound.below, f"every run from lr {doses[0].lr:g} on is unstable")
    if len(doses) < 2:
        return result(math.nan, Bound.missing, "runs at one rate only")
    fit = _Fit.of(doses)
    middle, slope = fit.best()
    if slope <= 0:
        return result(math.nan, Bound.missing, "runs at higher rates are not more often unstable")
    bracket = separation(doses)
    ends = [fit.rate(fit.limit(middle, slope, side)) for side in (-1, 1)]
    if bracket is not None:
        ends = [min(ends[0], bracket[0]), max(ends[1], bracket[1])]
    note = "" if bracket is None else "separated: the bracket is what is known"
    interval = Interval(ends[0], ends[1], IntervalKind.profile)
    bound = Bound.above if middle > 1 else Bound.below if middle < 0 else Bound.exact
    lr = {Bound.above: doses[-1].lr, Bound.below: doses[0].lr}.get(bound, fit.rate(middle))
    return Lr50(lr, bound, interval, bracket, n, left_out, tuple(doses), note)


def separation(doses: Sequence[Dose]) -> tuple[float, float] | None:
    """The rates between which the runs turn, where all runs below are stable and all above unstable.

    At most one rate in between may have both (quasi-complete separation; an end is 0 or infinity if that is
    the lowest or highest rate); None where they overlap.
    """
    stable = max((i for i, d in enumerate(doses) if d.unstable < d.runs), default=-1)
    unstable = min((i for i, d in enumerate(doses) if d.unstable), default=len(doses))
    if unstable < stable:
        return None
    low, high = (stable, unstable) if stable < unstable else (stable - 1, stable + 1)
    return doses[low].lr if low >= 0 else 0.0, doses[high].lr if high < len(doses) else math.inf


@dataclass(frozen=True, eq=False)
class _Fit:
    """Counts on a scale on which ln lr runs from 0 to 1."""

    x_G: Floats
    runs_G: Floats
    unstable_G: Floats
    origin: float
    span: float

    @classmethod
    def of(cls, doses: Sequence[Dose]) -> "_Fit":
        log_G = np.log([d.lr for d in doses])
        span = float(log_G[-1] - log_G[0])
        return cls(
            x_G=(log_G - log_G[0]) / span,
            runs_G=np.array([d.runs for d in doses], dtype=np.float64),
            unstable_G=np.array([d.unstable for d in doses], dtype=np.float64),
            origin=float(log_G[0]),
            span=span,
        )

    def rate(self, middle: float) -> float:
        """The learning rate at a place on the scale."""
        return math.exp(self.origin + self.span * middle) if math.isfinite(middle) else max(middle, 0.0)

    def penalised(self, middle: float, slope_S: Floats) -> Floats:
        """[S] penalised log likelihood where P(unstable) = logistic(slope · (x − middle))."""
        return self.likelihood(-slope_S * middle, slope_S)

    def likelihood(self, intercept_S: Floats, slope_S: Floats) -> Floats:
        """[S] log likelihood + ½ log |information| of intercept and slope."""
        logit_SG = intercept_S[:, None] + slope_S[:, None] * self.x_G
        log_q_SG = -np.logaddexp(0, logit_SG)
        log_p_SG = logit_SG + log_q_SG
        fit_S = log_p_SG @ self.unstable_G + log_q_SG @ (self.runs_G - self.unstable_G)
        # |information| = Σw · Σw(x − mean)², the largest weight taken out: far from the runs all are tiny
        log_w_SG = np.log(self.runs_G) + log_p_SG + log_q_SG
        top_S = log_w_SG.max(axis=1)
        w_SG = np.exp(log_w_SG - top_S[:, None])
        total_S = w_SG.sum(axis=1)
        from_mean_SG = self.x_G - (w_SG @ self.x_G / total_S)[:, None]
        with np.errstate(divide="ignore"):
            log_det_S = 2 * top_S + np.log(total_S) + np.log((w_SG * from_mean_SG**2).sum(axis=1))
        return np.asarray(fit_S + 0.5 * log_det_S)

    def best(self) -> tuple[float, float]:
        """(middle, slope) of the maximum, by Newton's steps on Firth's modified score."""
        beta_P = np.zeros(2)
        design_GP = np.stack([np.ones_like(self.x_G), self.x_G], axis=1)
        for _ in range(200):
            p_G = 1 / (1 + np.exp(-(design_GP @ beta_P)))
            w_G = self.runs_G * p_G * (1 - p_G)
            inverse_PP = np.linalg.inv(design_GP.T @ (design_GP * w_G[:, None]))
            leverage_G = w_G * np.einsum("gp,pq,gq->g", design_GP, inverse_PP, design_GP)
            score_P = design_GP.T @ (self.unstable_G - self.runs_G * p_G + leverage_G * (0.5 - p_G))
            step_P = inverse_PP @ score_P
            step_P *= min(1.0, 5.0 / float(np.abs(step_P).max(initial=1e-300)))
            beta_P = beta_P + self._shortened(beta_P, step_P)
            if np.abs(step_P).max() < 1e-10:
                break
        intercept, slope = float(beta_P[0]), float(beta_P[1])
        return (-intercept / slope if slope else math.nan), slope

    def _shortened(self, beta_P: Floats, step_P: Floats) -> Floats:
        """The step, halved until it does not lower the penalised likelihood."""
        here = float(self.likelihood(beta_P[:1], beta_P[1:])[0])
        for _ in range(30):
            there_P = beta_P + step_P
            if float(self.likelihood(there_P[:1], there_P[1:])[0]) >= here - 1e-12:
                return step_P
            step_P = step_P / 2
        return step_P

    def profile(self, middle: float) -> float:
        """The penalised log likelihood at a place, maximised over slopes ≥ 0."""
        tried_S = SLOPES_S
        for _ in range(4):
            at_S = self.penalised(middle, tried_S)
            k = int(np.argmax(at_S))
            tried_S = np.linspace(tried_S[max(k - 1, 0)], tried_S[min(k + 1, tried_S.size - 1)], 17)
        return float(at_S.max())

    def limit(self, middle: float, slope: float, side: int) -> float:
        """Where, on one side of the fit, the profile has fallen by half of 3.84; infinite if nowhere."""
        from scipy.optimize import brentq

        floor = float(self.penalised(middle, np.array([slope]))[0]) - CHI2 / 2

        def height(distance: float) -> float:
            return self.profile(middle + side * distance) - floor

        farthest = (1 + REACH) - middle if side > 0 else middle + REACH
        near, far = 0.0, min(1 / 64, farthest)
        while far > 0 and height(far) > 0:
            if far == farthest:
                return side * math.inf
            near, far = far, min(2 * far, farthest)
        if far <= 0:  # the fit itself lies that far out
            return side * math.inf
        return middle + side * float(brentq(height, near, far, xtol=1e-9, rtol=1e-9))
