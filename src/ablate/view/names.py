"""What the runs of one launch are called while they train: as the study's table calls them."""

from collections import Counter
from collections.abc import Mapping

from ablate.config import Config, FieldClass, fields, flatten
from ablate.view.arms import LR, SEED, arm_label, factors, readable
from ablate.view.facts import SHORT
from ablate.view.text import clean, value


def run_names(configs: Mapping[str, Config]) -> dict[str, str]:
    """`bias=none placement=post lr=0.01 seed=0` for each of the runs, by their folders' names.

    What does not vary among them is left out. The beginning of the id stands where that leaves nothing to
    say (a single run), and behind names that would be the same (data that differ in content alone).
    """
    flats = readable([flatten(config) for config in configs.values()])
    varied = factors(flats, [f.key for f in fields() if f.klass is FieldClass.science])
    axes = [f.key for f in varied if f.key in (LR, SEED)]
    labels = []
    for flat in flats:
        arm = arm_label(flat, varied)
        words = [] if arm == "-" else [arm]
        labels.append(" ".join([*words, *(f"{key.rpartition('.')[2]}={value(flat[key])}" for key in axes)]))
    counts = Counter(labels)
    return {
        name: clean(label if label and counts[label] == 1 else f"{label} {short_name(name)}".strip())
        for name, label in zip(configs, labels, strict=True)
    }


def short_name(name: str) -> str:
    """A run folder's name for a line of text: `2dd0bca5`, or `2dd0bca5/reruns/001` for a repetition."""
    home, slash, rest = name.partition("/")
    return home.rpartition("-")[2][:SHORT] + slash + rest
