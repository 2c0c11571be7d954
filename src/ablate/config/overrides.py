"""What a command line asks for, read with Hydra's override grammar and checked before Hydra composes."""

import difflib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ablate.config.errors import ConfigError, UserError, shown
from ablate.config.fields import nearest, sections, table, unknown_key
from ablate.config.files import conf_dir
from ablate.config.parse import typed

LARGEST_SWEEP = 100_000
DIGITS = 12  # significant digits of a range's values: 0.1 + 0.1 + 0.1 is 0.3
LOG_DIGITS = 6  # significant digits of a logspace's values


@dataclass(frozen=True)
class Choices:
    """The typed values asked for one key. More than one makes an axis."""

    key: str
    values: tuple[Any, ...]

    @property
    def swept(self) -> bool:
        return len(self.values) > 1


def group_options() -> dict[str, list[str]]:
    """The groups of conf/ and their options."""
    folders = sorted(folder for folder in conf_dir().iterdir() if folder.is_dir())
    return {folder.name: sorted(file.stem for file in folder.glob("*.yaml")) for folder in folders}


def read_overrides(overrides: Sequence[str]) -> dict[str, Choices]:
    """What overrides ask for groups and settings: the last word on each key.

    Raises UserError for the first that does not parse or is refused.
    """
    options = group_options()
    request: dict[str, Choices] = {}
    for text in overrides:
        parsed = _grammar(text)
        _check_form(parsed, text)
        choices = _choices(parsed, options)
        request[choices.key] = choices
    return request


def read_axis(key: str, values: object) -> Choices:
    """One entry of `sweep.axes`: a list of values, one value, or a sweep as on the command line.

    Raises ConfigError.
    """
    options = group_options()
    if isinstance(values, str):
        parsed = _grammar(f"{key}={values}")
        _check_form(parsed, f"{key}={values}")
        return _choices(parsed, options)
    listed = list(values) if isinstance(values, list | tuple) else [values]
    if not listed:
        raise ConfigError.setting(f"sweep.axes: {key}", [], "at least one value")
    return _typed(key, listed, options, of_sweep=True)


def _grammar(text: str) -> Any:
    from hydra.errors import HydraException

    try:
        return _parser().parse_override(text)
    except (HydraException, ValueError, TypeError) as error:
        if isinstance(error.__cause__, UserError):  # from a function of ours
            raise error.__cause__ from None
        jargon = " ".join(str(error).partition(" expecting ")[0].split())
        reason = jargon if "=" in text else "expected key=value"
        raise UserError(
            f"cannot read the override {text!r} ({reason})", allowed="key=value", hint=_meant(text)
        ) from None


def _meant(text: str) -> str | None:
    """What somebody may have meant by a text that is no override."""
    key, equals, _ = text.partition("=")
    if equals:
        if "logspace(" in text:
            return f"{key}=logspace(1e-4,1e-1,7)"
        if text.rstrip().endswith(","):
            return f"no space after a comma: {key}=a,b"
        return "quotes around special characters, as in data.paths='[\"~/a b.txt\"]' or run.notes='\"a, b\"'"
    if text.startswith("-"):
        return None
    for group in ("experiment", "model"):
        if close := difflib.get_close_matches(text, group_options().get(group, []), n=1, cutoff=0.75):
            return f"{group}={close[0]}"
    return f"{text}=…"


@cache
def _parser() -> Any:
    """Hydra's parser, which learns one more function."""
    from hydra.core.override_parser.overrides_parser import OverridesParser, create_functions
    from hydra.core.override_parser.types import ChoiceSweep

    def function(a: Any, b: Any, n: Any) -> Any:
        return ChoiceSweep(list=logspace(a, b, n))

    functions = create_functions()
    functions.register("logspace", function)
    return OverridesParser(functions)


def logspace(a: Any, b: Any, n: Any) -> list[Any]:
    """n values from a to b whose logarithms are evenly spaced, to 6 significant digits: what is printed is
    what is hashed. Whole ones are whole numbers where both ends are.

    Raises UserError.
    """
    written = f"logspace({shown(a)},{shown(b)},{shown(n)})"
    ends = [x for x in (a, b) if isinstance(x, int | float) and not isinstance(x, bool) and 0 < x < math.inf]
    if len(ends) < 2:
        raise UserError(f"{written}: no ends", allowed="logspace(a,b,n) with numbers a and b above 0")
    if not isinstance(n, int) or isinstance(n, bool) or not 2 <= n <= LARGEST_SWEEP:
        raise UserError(f"{written}: n = {shown(n)}", allowed=f"a whole number from 2 to {LARGEST_SWEEP:,}")
    low, high = (math.log10(end) for end in ends)
    exponents = [low + (high - low) * index / (n - 1) for index in range(n)]
    values = [float(f"{10**x:.{LOG_DIGITS}g}") for x in exponents]
    whole = all(isinstance(end, int) for end in ends)
    return [int(value) if whole and value.is_integer() else value for value in values]


def _check_form(parsed: Any, text: str) -> None:
    """Refuse what Hydra's grammar can say and this program does not do."""
    key = parsed.key_or_group
    if parsed.is_hydra_override() or key == "hydra":
        raise UserError(f"{text}: Hydra's own settings are not used here", allowed="settings and groups",
                        hint=_instead(str(key)))  # fmt: skip
    if parsed.is_delete():
        raise UserError(
            f"{text}: nothing can be removed from a configuration",
            hint="ablate config --keys (lists every default)",
        )
    if parsed.package is not None:
        raise UserError(f"{text}: a group cannot be placed elsewhere", hint=text.partition("@")[0] + "=…")


def _instead(key: str) -> str | None:
    """Where to say what people tell Hydra's sweepers and launchers."""
    if "launcher" in key:
        return "leave it out: `ablate sweep` starts the runs itself (docs/sweeps.md)"
    if "sweep" in key:
        return "axes as key=a,b here, or under sweep.axes in conf/experiment/NAME.yaml"
    return None


def _choices(parsed: Any, options: Mapping[str, list[str]]) -> Choices:
    key = parsed.key_or_group
    if key not in table() and key not in options:
        if key in sections():
            raise UserError(f"{key} is a section", hint=f"{_in_section(key)}=…")
        value = None if parsed.is_sweep_override() else parsed.value()
        raise unknown_key(key, value, options)
    if not parsed.is_sweep_override():
        return _typed(key, [parsed.value()], options, of_sweep=False)
    return _typed(key, list(_swept(parsed, options)), options, of_sweep=True)


def _in_section(section: str) -> str:
    return next(key for key in table() if key.startswith(f"{section}."))


def _swept(parsed: Any, options: Mapping[str, list[str]]) -> Iterator[Any]:
    """The values of a sweep, in the order written."""
    from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, RangeSweep

    key, sweep = parsed.key_or_group, parsed._value
    if parsed.is_interval_sweep():
        hint = f"{key}=range({sweep.start:g},{sweep.end:g},…) or {key}={sweep.start:g},{sweep.end:g}"
        raise UserError(f"{parsed.input_line}: an interval has no list of values", hint=hint)
    if getattr(sweep, "shuffle", False):
        raise UserError(f"{parsed.input_line}: the order of runs is fixed", hint="leave shuffle out")
    if isinstance(sweep, RangeSweep):
        yield from _range(key, sweep.start, sweep.stop, sweep.step)
    elif isinstance(sweep, Glob):
        names = sweep.filter(options.get(key, []))
        if not names:
            allowed = ", ".join(options.get(key, [])) or table()[key].allowed
            raise ConfigError.setting(key, parsed.get_value_string(), allowed)
        yield from names
    else:
        for item in sweep.list:  # a logspace may stand among other values
            inner = item.list if isinstance(item, ChoiceSweep) else [item]
            yield from (Override._convert_value(value) for value in inner)


def _range(key: str, start: Any, stop: Any, step: Any) -> Iterator[int | float]:
    """start, start + step, … below stop (as Python's range), floats to 12 significant digits."""
    written = f"range({start},{stop},{step})"
    if not all(math.isfinite(number) for number in (start, stop, step)) or step == 0:
        raise ConfigError.setting(key, written, "range(start,stop,step) with finite numbers, step not 0")
    if abs((stop - start) / step) > LARGEST_SWEEP:
        raise ConfigError.setting(key, written, f"at most {LARGEST_SWEEP:,} values")
    if all(isinstance(number, int) for number in (start, stop, step)):
        yield from range(int(start), int(stop), int(step))
        return
    for index in itertools.count():
        value = float(f"{start + index * step:.{DIGITS}g}")
        if (value >= stop) if step > 0 else (value <= stop):
            return
        yield value


def _typed(key: str, values: list[Any], options: Mapping[str, list[str]], *, of_sweep: bool) -> Choices:
    if of_sweep and not values:
        raise ConfigError.setting(key, values, "a sweep with at least one value")
    if key == "model.preset" and "model" in options:
        names = ",".join(map(shown, values))
        raise UserError(
            f"{key}={names}: it is a name that the files of conf/model give", hint=f"model={names}"
        )
    if key in options:
        choices = Choices(key, tuple(_option(key, value, options[key]) for value in values))
    else:
        choices = Choices(key, tuple(typed(key, value) for value in values))
    if choices.swept:
        _check_sweepable(key, options)
    return choices


def _check_sweepable(key: str, options: Mapping[str, list[str]]) -> None:
    if key not in options and not table()[key].sweepable:
        raise UserError(
            f"{key} cannot be swept: runs that differ only in it are the same run",
            allowed="settings that define the experiment (class science in ablate config --keys)",
        )


def _option(group: str, value: object, options: Sequence[str]) -> str | None:
    if value is None and group == "experiment":
        return None
    name = shown(value)
    if name in options and not isinstance(value, list):
        return name
    allowed = ", ".join(options)
    if isinstance(value, dict):
        raise UserError(f"{group} takes the name of an option", hint=f"{_in_section(group)}=…")
    close = ",".join(map(shown, value)) if isinstance(value, list) else nearest(name, options)
    raise ConfigError.setting(group, value, allowed, f"{group}={close}" if close else None)
