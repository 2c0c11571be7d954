"""conf/ composed by Hydra into plain trees."""

from collections.abc import Mapping, Sequence
from typing import Any

from ablate.config.errors import UserError, shown
from ablate.config.fields import table
from ablate.config.files import conf_dir
from ablate.config.parse import jsonable

Groups = Mapping[str, str | None]


class Compositions:
    """Composes conf/ once per choice of group options and remembers the result.

    The schema's defaults enter as the node that conf/config.yaml names first. Only groups are Hydra's to
    choose: values of the command line are set afterwards, on the typed tree, where they are checked. They
    come last either way.
    """

    def __init__(self) -> None:
        self._known: dict[frozenset[tuple[str, str | None]], dict[str, Any]] = {}

    def of(self, choices: Sequence[Groups]) -> list[dict[str, Any]]:
        """The plain tree of each choice. Raises UserError where conf/ itself does not compose."""
        missing = [groups for groups in choices if frozenset(groups.items()) not in self._known]
        if missing:
            self._compose(missing)
        return [self._known[frozenset(groups.items())] for groups in choices]

    def _compose(self, choices: Sequence[Groups]) -> None:
        from hydra import compose, initialize_config_dir
        from hydra.core.config_store import ConfigStore
        from hydra.core.global_hydra import GlobalHydra
        from hydra.errors import HydraException
        from omegaconf import OmegaConf, flag_override
        from omegaconf.errors import OmegaConfBaseException
        from yaml import YAMLError

        outer = GlobalHydra.instance().hydra  # a caller may run inside a Hydra program of its own
        GlobalHydra.instance().clear()
        ConfigStore.instance().store(name="ablate_schema", node=_defaults())
        try:
            with initialize_config_dir(config_dir=str(conf_dir()), job_name="ablate", version_base="1.3"):
                for groups in choices:
                    overrides = [f"{group}={shown(option)}" for group, option in groups.items() if option]
                    whole = compose("config", overrides=overrides, return_hydra_config=True)
                    _check_plugins(whole, groups)
                    with flag_override(whole, ["struct", "readonly"], False):
                        whole.pop("hydra")
                    tree = OmegaConf.to_container(whole, resolve=False)
                    assert isinstance(tree, dict)
                    self._known[frozenset(groups.items())] = {str(key): part for key, part in tree.items()}
        except (HydraException, OmegaConfBaseException, YAMLError) as error:
            raise UserError(f"{conf_dir()} does not compose: {' '.join(str(error).split())}") from None
        finally:
            GlobalHydra.instance().hydra = outer


def _check_plugins(whole: Any, groups: Groups) -> None:
    """Refuse a launcher, a sweeper or axes that a file gives to Hydra: nothing here would obey them."""
    chosen = " ".join(f"{group}={option}" for group, option in groups.items() if option) or "conf/"
    hydra = whole.hydra
    if hydra.sweeper.get("params"):
        axes = ", ".join(map(str, hydra.sweeper.params))
        raise UserError(
            f"{chosen}: the axes in hydra.sweeper.params would be lost ({axes})",
            hint="sweep.axes in conf/experiment/NAME.yaml",
        )
    for plugin in ("launcher", "sweeper"):
        option = hydra.runtime.choices.get(f"hydra/{plugin}")
        if option != "basic":
            raise UserError(
                f"{chosen}: hydra/{plugin}={option} would be lost: `ablate sweep` starts the runs itself",
                hint="leave it out; docs/sweeps.md says how runs are started",
            )


def _defaults() -> dict[str, Any]:
    """The schema's defaults as YAML would say them."""
    tree: dict[str, Any] = {}
    for info in table().values():
        home = tree.setdefault(info.section, {}) if info.section else tree
        home[info.name] = jsonable(info.default)
    return tree
