"""The learning rate of every step, as a factor of the peak: a pure function of the step."""

import math

from ablate.config import OptimConfig, Schedule


def factor(optim: OptimConfig, step: int) -> float:
    """The factor on the peak learning rate in update `step` (0 … steps − 1).

    Warm-up of W steps is (step + 1) / W, so that the first update moves and update W − 1 is the first at
    the peak. After it, the share of the way behind is (step − W) / (steps − W), as in nanoGPT: `final_lr`
    is the value at `steps`, which the last update only just does not reach, and which therefore may be 0
    without wasting an update. `wsd` (MiniCPM, arXiv 2404.06395, section 4) stays at the peak and goes
    linearly to `final_lr` over its last `cooldown` steps; `constant` stays.
    """
    warmup = int(optim.warmup)
    if step < warmup:
        return (step + 1) / warmup
    start = warmup
    if optim.schedule is Schedule.wsd:
        start = max(warmup, optim.steps - int(optim.cooldown))
    if optim.schedule is Schedule.constant or step < start:
        return 1.0
    behind = min(1.0, (step - start) / max(1, optim.steps - start))
    cosine = optim.schedule is Schedule.cosine
    left = 0.5 * (1.0 + math.cos(math.pi * behind)) if cosine else 1.0 - behind
    return optim.final_lr + (1.0 - optim.final_lr) * left
