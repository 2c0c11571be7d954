"""Write docs/architectures.md: the published architectures as conf/model/ builds them.

    python scripts/architectures.py [--out PATH]

The prose stands in architectures_template.md. Everything that it says of a model is read from the preset and
from what the built model has; sources, years and published counts come from ablate.config.ARCHITECTURES.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.config import ARCHITECTURES, Config, ModelConfig, Norm, Position, Scale, compose
from ablate.config.scale import SIZES
from ablate.sweep import describe_models, model_of
from ablate.view.accounting import agreement, beyond_words

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "architectures.md"
TEMPLATE = HERE / "architectures_template.md"
NORMS = {Norm.layernorm: "LayerNorm", Norm.rmsnorm: "RMSNorm"}
CHANGED = {
    "llama_attention": ("llama", "model.bias=[q,k,v,o]"),
    "llama_linear": ("llama", "model.bias=linear"),
}
SHOWN = (Scale.tiny, Scale.medium)


@dataclass(frozen=True)
class Model:
    """A preset as it is built."""

    name: str
    config: Config
    description: Mapping[str, Any]

    @property
    def parameters(self) -> int:
        return int(self.description["parameters"])

    @property
    def head(self) -> int:
        return int(self.description["biases"].get("head", 0))

    @property
    def linear(self) -> int:
        """Biases of linears, the head's left out."""
        return int(self.description["linear_biases"]) - self.head

    @property
    def norm(self) -> int:
        return int(self.description["norm_biases"])


def built(requests: Mapping[str, Sequence[str]]) -> dict[str, Model]:
    """The models that these overrides ask for."""
    configs = {name: compose(overrides) for name, overrides in requests.items()}
    known = describe_models(configs.values(), lambda _: None)
    return {name: Model(name, config, known[model_of(config)]) for name, config in configs.items()}


def page() -> str:
    """The whole text."""
    models = built({name: [f"model={name}"] for name in ARCHITECTURES})
    changed = built({name: [f"model={preset}", bias] for name, (preset, bias) in CHANGED.items()})
    tables = {
        "character": character_table(models.values()),
        "size": size_table(models.values()),
        "remarks": remarks(models),
        "scales": scales_table(),
        "shrunk": shrunk_table(models.values()),
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**tables, **numbers(models, changed))


def numbers(models: Mapping[str, Model], changed: Mapping[str, Model]) -> dict[str, float]:
    """What the prose says in numbers."""
    bert, gpt2, transformer, neox = (models[name] for name in ("bert", "gpt2", "transformer", "gpt_neox"))
    pooler, next_sentence = ARCHITECTURES["bert"].published.beyond.values()
    width = bert.config.model.width
    transform = bert.description["by_site"]["transform"] + bert.description["biases"]["transform"] + 2 * width
    attention, linear = (changed[name].linear for name in CHANGED)
    return {
        "transformer_linear": transformer.linear,
        "transformer_norm": transformer.norm,
        "qwen": models["qwen"].linear,
        "llama_attention": attention,
        "llama_attention_share": attention / models["llama"].parameters,
        "llama_linear": linear,
        "llama_linear_share": linear / models["llama"].parameters,
        "gpt2": gpt2.parameters,
        "gpt2_linear": gpt2.linear,
        "gpt2_norm": gpt2.norm,
        "bert": bert.parameters,
        "bert_encoder": bert.parameters - transform - bert.head + pooler,
        "bert_pretraining": bert.parameters + pooler + next_sentence,
        "bert_pooler": pooler,
        "bert_next": next_sentence,
        "bert_head": bert.head,
        "neox": neox.parameters,
        "neox_card": ARCHITECTURES["gpt_neox"].published.value,
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: int = 0) -> str:
    """A Markdown table; the `right` columns after the first are set flush right."""
    rule = ["---", *("---:" if place < right else "---" for place in range(len(columns) - 1))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (columns, rule, *rows))


def character_table(models: Iterable[Model]) -> str:
    columns = (
        "preset",
        "model",
        "year",
        "stack",
        "biases",
        "norm",
        "placement",
        "positions",
        "activation",
        "tied",
    )
    return table(columns, map(character, models))


def character(model: Model) -> tuple[str, ...]:
    m, fact = model.config.model, ARCHITECTURES[model.name]
    parallel = "" if not m.parallel else ", parallel" if m.shared_norm else ", parallel with a norm each"
    return (
        f"`{model.name}`",
        fact.title,
        str(fact.year),
        str(m.stack).replace("_", "-"),
        " ".join(model.description["bias_sites"]) or "none",
        f"{NORMS[m.norm]} {epsilon(m)}{'; q, k' if m.qk_norm else ''}",
        f"{m.placement}{parallel}",
        positions(m),
        str(m.activation),
        "yes" if m.tie_embeddings else "no",
    )


def epsilon(m: ModelConfig) -> str:
    """`1e-6`."""
    return f"{m.eps:.0e}".replace("e-0", "e-")


def positions(m: ModelConfig) -> str:
    if m.position is Position.rope:
        share = "" if m.rope_share == 1 else f" on {m.rope_share:g} of a head"
        return f"rope, θ {m.rope_theta:,.0f}{share}"
    return f"{m.position}{', segments' if m.segments else ''}"


def size_table(models: Iterable[Model]) -> str:
    counts = ("parameters", "biases of linears", "of the head", "of norms", "published")
    return table(("preset", *counts, "match", "source"), map(size, models), right=len(counts))


def size(model: Model) -> tuple[str, ...]:
    fact = ARCHITECTURES[model.name]
    counts = (f"{count:,}" for count in (model.parameters, model.linear, model.head, model.norm))
    match = agreement(fact, model.parameters)
    return (f"`{model.name}`", *counts, fact.published.count, match, fact.source)


def remarks(names: Iterable[str]) -> str:
    lines = []
    for name in names:
        fact = ARCHITECTURES[name]
        beyond = beyond_words(fact)
        more = f" Counted besides: {beyond}." if beyond else ""
        lines.append(
            f"- `{name}`, {fact.published.count}: {fact.published.of}.{more} {fact.note}".rstrip() + "\n"
        )
    return "".join(lines)


def scales_table() -> str:
    rows = [
        (f"`{scale}`", *map(str, (size.layers, size.width, size.head_dim, size.context)))
        for scale, size in SIZES.items()
    ]
    return table(("scale", "blocks", "width", "width of a head", "context"), rows, right=4)


def shrunk_table(models: Iterable[Model]) -> str:
    columns = ("preset", "full size", *(f"`model.scale={scale}`" for scale in SHOWN))
    return table(columns, map(shrunk, models))


def shrunk(model: Model) -> tuple[str, ...]:
    small = [compose([f"model={model.name}", f"model.scale={scale}"]) for scale in SHOWN]
    return (f"`{model.name}`", *(shape(config.model) for config in (model.config, *small)))


def shape(m: ModelConfig) -> str:
    """`32 × 4,096; 32 heads of 128, 8 kv; MLP 14,336; window 4,096 of 8,192`."""
    heads = f"{m.heads} head{'' if m.heads == 1 else 's'} of {m.head_dim}"
    keys = "" if m.kv_heads == m.heads else f", {m.kv_heads} kv"
    every = "" if m.window_every == 1 else " in every second block" if m.window_every == 2 else ""
    window = "" if m.window is None else f"; window {m.window:,} of {m.context:,}{every}"
    return f"{m.layers} × {m.width:,}; {heads}{keys}; MLP {m.ffn:,}{window}"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write docs/architectures.md from the presets.")
    parser.add_argument("--out", type=Path, default=PAGE, metavar="PATH", help="default: %(default)s")
    out = parser.parse_args().out
    out.write_text(page(), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
