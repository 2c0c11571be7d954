"""Is a model still the architecture whose name it bears? What it changes of the preset's file."""

from functools import cache
from pathlib import Path

from ablate.config.enums import FieldClass, Scale
from ablate.config.fields import fields
from ablate.config.files import conf_dir
from ablate.config.grid import compose
from ablate.config.overrides import group_options
from ablate.config.resolve import NOTHING_DRAWN, at
from ablate.config.schema import Config

VOCAB_SIZE = "data.vocab_size"
# A factor and a start, not the architecture.
ASIDE = ("model.bias", "model.weights_sha256")


def of_preset(config: Config) -> Config | None:
    """What the preset's file in conf/model and the scale say by themselves; None for a model without a
    preset, and for a preset that is no such file.

    Raises UserError where conf/ does not compose.
    """
    name, scale = config.model.preset, config.model.scale
    return None if name is None else _composed(conf_dir(), name, scale)


def preset_changes(config: Config) -> tuple[str, ...]:
    """The settings by name in which a model is not what its preset says at its scale: `norm`, `layers`.

    Biases and the weights it starts from are aside; the vocabulary counts at full size only. Empty where
    there is no preset to compare with (see `of_preset`). Raises UserError where conf/ does not compose.
    """
    said = of_preset(config)
    if said is None:
        return ()
    aside = {*ASIDE, *(NOTHING_DRAWN if config.model.weights else ())}
    keys = [key for key in _architecture() if key not in aside]
    if config.model.scale is None and config.model.vocab is not None:
        keys.append(VOCAB_SIZE)
    return tuple(key.rpartition(".")[2] for key in keys if at(config, key) != at(said, key))


@cache
def _composed(_: Path, preset: str, scale: Scale | None) -> Config | None:
    if preset not in group_options().get("model", ()):
        return None
    return compose([f"model={preset}", *([] if scale is None else [f"model.scale={scale}"])])


@cache
def _architecture() -> tuple[str, ...]:
    return tuple(f.key for f in fields() if f.section == "model" and f.klass is FieldClass.science)
