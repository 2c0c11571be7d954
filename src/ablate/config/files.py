"""A run's config.yaml, and the folders that configurations come from and point to."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ablate.config.errors import ConfigError, UserError, shown
from ablate.config.parse import parse, to_dict
from ablate.config.schema import SCHEMA_VERSION, Config, DataConfig

Migration = Callable[[dict[str, Any]], dict[str, Any]]

# The i-th turns a tree of schema version i + 1 into one of version i + 2.
MIGRATIONS: tuple[Migration, ...] = ()


# libyaml where PyYAML was built with it: the same texts, five times as fast.
class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    pass


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    pass


_Dumper.add_representer(
    list, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
)
# YAML 1.1 wants a dot in 1e-3; people do not write it.
for _side in (_Dumper, _Loader):
    _side.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def dump(config: Config) -> str:
    """The configuration as YAML with its schema version; `load` takes it back to an equal one."""
    tree = {"schema_version": SCHEMA_VERSION, **to_dict(config)}
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000))


def load(path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> Config:
    """A run's config.yaml, brought to the present schema by `migrations`.

    Raises UserError naming the file: not there, no YAML, a newer schema, or a setting that is refused.
    """
    tree = _read(path)
    newest = len(migrations) + 1
    version = tree.pop("schema_version", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(f"{path}: schema_version = {shown(version)}", allowed=f"1 to {newest}")
    if version > newest:
        raise ConfigError(
            f"{path}: schema_version = {version}, written by a newer ablate",
            allowed=f"1 to {newest}",
            hint="pip install --upgrade ablate-bias",
        )
    for migrate in migrations[version - 1 :]:
        tree = migrate(tree)
    try:
        return parse(tree)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.problem}", allowed=error.allowed, hint=error.hint) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no readable YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, Mapping):
        raise UserError(f"{path}: no configuration in it")
    return {str(key): value for key, value in tree.items()}


def conf_dir() -> Path:
    """The folder with config.yaml and its groups: inside an installed package, or beside pyproject.toml.

    Raises UserError where there is neither.
    """
    package = Path(__file__).resolve().parents[1]
    repository = package.parents[1]
    if (package / "conf").is_dir():
        return package / "conf"
    if (repository / "pyproject.toml").is_file() and (repository / "conf").is_dir():
        return repository / "conf"
    raise UserError(
        f"no conf/ folder in {package} and none beside a pyproject.toml in {repository}",
        hint="pip install --force-reinstall ablate-bias",
    )


def cache_dir(data: DataConfig) -> Path:
    """Where token caches go.

    data.cache, else $ABLATE_CACHE, else $XDG_CACHE_HOME/ablate, else ~/.cache/ablate.
    """
    if data.cache:
        return Path(data.cache).expanduser()
    if os.environ.get("ABLATE_CACHE"):
        return Path(os.environ["ABLATE_CACHE"]).expanduser()
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]).expanduser() / "ablate"
    return Path.home() / ".cache" / "ablate"
