"""Commands that ask for recorded runs anew, made of their own settings."""

import itertools
import math
import shlex
from collections.abc import Mapping, Sequence

from ablate.config import Config, FieldClass, UserError, fields, flatten, parse
from ablate.config.resolve import unresolve
from ablate.record import Run
from ablate.view.arms import AXES, BIAS, LR, SEED
from ablate.view.configs import shown
from ablate.view.facts import RunFacts
from ablate.view.text import value

MOST = 100  # runs whose configuration files are read for a command; no one typed more commands than that


def differing(config: Config) -> list[str]:
    """The overrides that make this experiment out of the defaults: `key=value`, derived settings left out."""
    asked, default = _asked(config), _asked(parse({}))
    return [f"{key}={item}" for key, item in asked.items() if item != default[key]]


def sweep_of(runs: Sequence[RunFacts], study: str, seeds: str) -> str | None:
    """The sweep over these runs' settings with other seeds; None where no product of settings makes them.

    `seeds`: the last word, `seed=range(0,8)`. None, too, for runs whose configuration cannot be read, and for
    more than 100 runs.
    """
    if len(runs) > MOST:
        return None
    try:
        asked = [_asked(Run(run.folder).config) for run in runs]
    except (OSError, UserError):
        return None
    if not asked:
        return None
    default = _asked(parse({}))
    keys = [key for key in default if key != SEED and any(one[key] != default[key] for one in asked)]
    keys.sort(key=lambda key: key == LR)  # rates last, as sweeps take them
    cells = {tuple(one[key] for key in keys) for one in asked}
    values = [list(dict.fromkeys(one[key] for one in asked)) for key in keys]
    if len(cells) != math.prod(map(len, values)) or cells != set(itertools.product(*values)):
        return None
    words = [f"{key}={','.join(_sorted(key, known))}" for key, known in zip(keys, values, strict=True)]
    return shlex.join(["ablate", "sweep", f"study={study}", *words, seeds])


def _asked(config: Config) -> Mapping[str, str]:
    """What defines an experiment as one would type it, by key; sizes as `model.scale` made them."""
    asked = {**flatten(unresolve(config)), BIAS: shown(flatten(config), BIAS)}
    keys = [f.key for f in fields() if f.klass is FieldClass.science or f.rules.get("content")]
    return {key: value(asked[key]) for key in keys}


def _sorted(key: str, known: Sequence[str]) -> Sequence[str]:
    return sorted(known, key=float) if key in AXES else known
