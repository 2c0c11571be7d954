"""What a run is: the schema, its checks, composition of conf/, and the identity of a run."""

from ablate.config.bias import sites_of, words_for
from ablate.config.enums import (
    Activation,
    BiasInit,
    ClipOver,
    Decay,
    Decayed,
    Device,
    FieldClass,
    Init,
    Keep,
    Norm,
    Placement,
    Position,
    Precision,
    Schedule,
    Site,
    Source,
    Stack,
)
from ablate.config.errors import ConfigError, UserError
from ablate.config.fields import FieldInfo, fields, nearest
from ablate.config.files import MIGRATIONS, cache_dir, conf_dir, dump, load
from ablate.config.grid import Grid, compose, expand
from ablate.config.identity import SCIENCE_VERSION, run_id, science, slug
from ablate.config.overrides import read_overrides
from ablate.config.parse import flatten, parse, replace, to_dict
from ablate.config.parts import Axis
from ablate.config.resolve import derived
from ablate.config.schema import (
    SCHEMA_VERSION,
    Config,
    DataConfig,
    EvalConfig,
    ModelConfig,
    OptimConfig,
    ProbeConfig,
    RunConfig,
    SweepConfig,
    VerdictConfig,
)

__all__ = [
    "MIGRATIONS",
    "SCHEMA_VERSION",
    "SCIENCE_VERSION",
    "Activation",
    "Axis",
    "BiasInit",
    "ClipOver",
    "Config",
    "ConfigError",
    "DataConfig",
    "Decay",
    "Decayed",
    "Device",
    "EvalConfig",
    "FieldClass",
    "FieldInfo",
    "Grid",
    "Init",
    "Keep",
    "ModelConfig",
    "Norm",
    "OptimConfig",
    "Placement",
    "Position",
    "Precision",
    "ProbeConfig",
    "RunConfig",
    "Schedule",
    "Site",
    "Source",
    "Stack",
    "SweepConfig",
    "UserError",
    "VerdictConfig",
    "cache_dir",
    "compose",
    "conf_dir",
    "derived",
    "dump",
    "expand",
    "fields",
    "flatten",
    "load",
    "nearest",
    "parse",
    "read_overrides",
    "replace",
    "run_id",
    "science",
    "sites_of",
    "slug",
    "to_dict",
    "words_for",
]
