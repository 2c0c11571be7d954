"""How fast a recorded norm grows, on its own and against its stable twin.

Legend: R rows.
"""

from dataclasses import dataclass

import numpy as np

from ablate.verdict.curve import Floats


@dataclass(frozen=True, eq=False)
class Growth:
    """A value against its twin's.

    `ratio_R`: value / twin's value at the same step (NaN where the twin has no positive finite value).
    `departure`: first step from which the log ratio stays above the margin up to the last common step;
    None if it does not end above it.
    """

    ratio_R: Floats
    departure: int | None


def growth_rate(values_R: Floats, window: int) -> float:
    """Slope of the log value per step, by least squares over the last `window` finite positive values.

    Steps in between that are not finite or not positive are left out but still count as time. NaN for fewer
    than two usable values. e^rate − 1 is the growth per step.
    """
    assert window >= 2, "a slope needs two values"
    rows = np.flatnonzero(np.isfinite(values_R) & (values_R > 0))[-window:]
    if rows.size < 2:
        return float("nan")
    step = rows - rows.mean()
    log_value = np.log(values_R[rows])
    return float(step @ (log_value - log_value.mean()) / (step @ step))


def growth_against(values_R: Floats, twin_values_R: Floats, margin: float = 0.1) -> Growth:
    """Growth against the stable twin, over the steps that both have.

    A value that is not finite counts as departed (that is what blowing up looks like); a step at which the
    twin has no positive finite value says nothing and is passed over.
    """
    common = min(values_R.size, twin_values_R.size)
    values, twin = values_R[:common], twin_values_R[:common]
    usable = np.isfinite(twin) & (twin > 0)
    with np.errstate(all="ignore"):
        ratio_R = np.where(usable, values / np.where(usable, twin, 1.0), np.nan)
        above = ~np.isfinite(values) | (ratio_R > np.exp(margin))
    judged = np.flatnonzero(usable)
    back = np.flatnonzero(~above[judged])
    first = int(back[-1]) + 1 if back.size else 0
    return Growth(ratio_R, int(judged[first]) if first < judged.size else None)
