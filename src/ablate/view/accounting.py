"""What models have and cost: parameters by site, biases side by side, and the published architectures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ablate.config import ARCHITECTURES, Architecture, Config, Objective, Site, Stack, preset_changes
from ablate.sweep import Cost, cost, gigabytes
from ablate.view.table import Table, table

EMBEDDINGS = {"embed": "token embedding", "position": "learned positions", "segment": "segments"}
# Bytes of a parameter, of its gradient, and of what the optimiser keeps of it.
BYTES = {"fp32": (4, 4, 8), "bf16_mixed": (2, 2, 12)}
RECIPES = {"fp32": "fp32, as trained here", "bf16_mixed": "bf16 mixed"}
COLUMNS = (
    "preset", "parameters", "linear", "head", "norm", "share", "GB", "GFLOPs", "published", "match",
)  # fmt: skip
COLUMN_NOTES = (
    "linear, head, norm: their biases; share: of all of them, in per cent; GB: weights, gradients and Adam's "
    "moments, fp32; GFLOPs: forward, for one token; match: what the published count is to the built model's.",
)
MORE = "more parts"
PARTS = ("weights", "gradients", "optimiser")
NOTES = (
    "Bytes: 4 a weight, 4 its gradient, 8 Adam's moments (fp32, as trained here); bf16 mixed: 2, 2 and 12.",
    "FLOPs: forward 2 a weight of a linear and 4·heads·head_dim a token attended to; training 3 times that. "
    "In full: docs/sweeps.md, Cost of a model.",
)


@dataclass(frozen=True)
class Account:
    """One model with what its built form has and what it costs to train; `name` heads its column."""

    name: str
    config: Config
    description: Mapping[str, Any]

    @property
    def parameters(self) -> int:
        return int(self.description["parameters"])

    @property
    def published(self) -> Architecture | None:
        """The published architecture that this is: at full size, and unchanged but for its biases."""
        model = self.config.model
        if model.scale is not None or preset_changes(self.config):
            return None
        return ARCHITECTURES.get(model.preset or "")

    @property
    def biases(self) -> int:
        return sum(self.description["biases"].values())

    @property
    def head(self) -> int:
        return int(self.description["biases"].get(Site.head, 0))

    @property
    def linear(self) -> int:
        """Biases of linears, without the head's."""
        return int(self.description["linear_biases"]) - self.head

    @property
    def norm(self) -> int:
        return int(self.description["norm_biases"])

    @property
    def share(self) -> float:
        return self.biases / self.parameters

    @cached_property
    def cost(self) -> Cost:
        return cost(self.config, self.description)

    @property
    def forward(self) -> float:
        """FLOPs of the forward pass for one token of a window."""
        return self.cost.forward / self.config.model.context


def model_words(config: Config) -> str:
    """`GPT-2 small (changed: norm)`, `bert at model.scale=tiny`; `the model` for one without a preset.

    Raises UserError where conf/ does not compose.
    """
    preset, scale = config.model.preset, config.model.scale
    if preset is None:
        return "the model"
    changed = preset_changes(config)
    name = ARCHITECTURES[preset].title if scale is None and preset in ARCHITECTURES else preset
    words = name if scale is None else f"{name} at model.scale={scale}"
    return f"{words} (changed: {', '.join(changed)})" if changed else words


def site_rows(description: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Site or embedding, weights (gains of norms) and biases of each that the model has."""
    by_site, biases = description["by_site"], description["biases"]
    names = [site for site in Site if site in by_site or site in biases]
    rows = [(str(site), by_site.get(site, 0), biases.get(site, 0)) for site in names]
    return rows + [(word, by_site[key], 0) for key, word in EMBEDDINGS.items() if key in by_site]


def sites_table(account: Account) -> Table:
    """Weights and biases by site and in all, with the share that biases have of each."""
    found = site_rows(account.description)
    total = ("total", account.parameters - account.biases, account.biases)
    rows = [(name, f"{w:,}", f"{b:,}", percent(b, w + b), f"{w + b:,}") for name, w, b in [*found, total]]
    columns = ("site", "weights", "biases", "bias share", "parameters")
    return table(columns, rows, right=columns[1:])


def accounts_table(accounts: Sequence[Account]) -> Table:
    """Models side by side, one a column: parameters, biases, bytes by precision, FLOPs, activations."""
    rows = [
        ("parameters", *(f"{a.parameters:,}" for a in accounts)),
        ("biases", *(f"{a.biases:,}" for a in accounts)),
        ("  of linears", *(f"{a.linear:,}" for a in accounts)),
        ("  of the head", *(f"{a.head:,}" for a in accounts)),
        ("  of norms", *(f"{a.norm:,}" for a in accounts)),
        ("share of biases", *(percent(a.biases, a.parameters) for a in accounts)),
    ]
    for recipe, sizes in BYTES.items():
        rows.append((f"{RECIPES[recipe]}:", *("" for _ in accounts)))
        for word, size in zip((*PARTS, "together"), (*sizes, sum(sizes)), strict=True):
            rows.append((f"  {word}", *(gigabytes(size * a.parameters) for a in accounts)))
        rows.append(("  of it for biases", *(gigabytes(sum(sizes) * a.biases) for a in accounts)))
    rows += [
        ("FLOPs a token:", *("" for _ in accounts)),
        ("  forward", *(operations(a.forward) for a in accounts)),
        ("  training", *(operations(3 * a.forward) for a in accounts)),
        ("activations, roughly", *(gigabytes(a.cost.memory.activations) for a in accounts)),
    ]
    columns = ("", *(a.name for a in accounts))
    return table(columns, rows, right=columns[1:])


def batch_words(config: Config) -> str:
    """What the activations are of."""
    o, m = config.optim, config.model
    split = f" in {o.accumulation} micro-batches" if o.accumulation > 1 else ""
    return f"Activations: of a batch of {o.batch} windows of {m.context:,} tokens{split}, {o.precision}."


def token_words(config: Config) -> str:
    """What a token of the FLOPs is, where that is not every token that is read and predicted."""
    if config.data.objective is Objective.masked:
        share = f"{100 * config.data.mask_rate:g} %"
        return f"A token: any of a window; the head works on the hidden ones alone, {share}."
    if config.model.stack is Stack.encoder_decoder:
        return "A token: any of a window; the encoder reads a part of it, the decoder the rest."
    return ""


def architectures_table(accounts: Iterable[Account]) -> Table:
    """One row a model by its name: what is built, what it costs, and what was published of it."""
    rows = []
    for account in accounts:
        fact, states = account.published, sum(BYTES["fp32"])
        rows.append(
            (
                account.name,
                f"{account.parameters:,}",
                f"{account.linear:,}",
                f"{account.head:,}",
                f"{account.norm:,}",
                percent(account.biases, account.parameters).removesuffix(" %"),
                f"{states * account.parameters / 1e9:,.1f}",
                f"{account.forward / 1e9:,.4g}",
                "-" if fact is None else fact.published.count,
                "-" if fact is None else agreement(fact, account.parameters),
            )
        )
    return table(COLUMNS, rows, right=COLUMNS[1:-1])


def halves(tab: Table) -> tuple[Table, Table]:
    """The table of architectures as two for a narrow screen: what is built, and what it costs."""
    cut = COLUMNS.index("GB")
    return (
        table(COLUMNS[:cut], [row[:cut] for row in tab.rows], right=tab.right),
        table((COLUMNS[0], *COLUMNS[cut:]), [(row[0], *row[cut:]) for row in tab.rows], right=tab.right),
    )


def agreement(fact: Architecture, parameters: int) -> str:
    """What the published count is to that of the built model: `equal`, `rounded`, `more parts`, `3.1% more`.

    `more parts`: equal, once the parts that it counts besides are added.
    """
    published = fact.published
    whole = parameters + sum(published.beyond.values())
    if not published.agrees(parameters):
        off = published.value / whole - 1
        return f"{100 * abs(off):.2g}% {'more' if off > 0 else 'less'}"
    if published.beyond:
        return MORE
    return "equal" if published.exact else "rounded"


def published_notes(accounts: Iterable[Account]) -> list[str]:
    """What the column `match` cannot say: which parts are more; which models are changed, not compared."""
    notes: list[str] = []
    changed: dict[str, list[str]] = {}
    for account in accounts:
        fact = account.published
        if fact is not None and fact.published.beyond and agreement(fact, account.parameters) == MORE:
            notes.append(f"{account.name}: the published count has more parts: {beyond_words(fact)}.")
        if settings := preset_changes(account.config):
            changed.setdefault(", ".join(settings), []).append(account.name)
    notes += [f"changed: {settings} ({', '.join(names)})." for settings, names in changed.items()]
    return notes


def beyond_words(fact: Architecture) -> str:
    """The parts that a published count has and the model here does not; empty where there are none."""
    return ", ".join(f"{part} ({size:,})" for part, size in fact.published.beyond.items())


def published_words(fact: Architecture, parameters: int) -> str:
    """`Published: 6,738,415,616 (the released weights): equal.`"""
    words = {
        "equal": "equal",
        "rounded": "equal as it is rounded",
        MORE: f"equal with {beyond_words(fact)}, which the model here does not have",
    }
    known = agreement(fact, parameters)
    return f"Published: {fact.published.count} ({fact.published.of}): {words.get(known, known)}."


def facts_of(account: Account) -> dict[str, Any]:
    """Everything about one model as plain values, bytes and FLOPs as numbers."""
    memory = account.cost.memory
    return {
        "parameters": account.parameters,
        "non_embedding": account.description["non_embedding"],
        "biases": {
            "all": account.biases,
            "linear": account.linear,
            "head": account.head,
            "norm": account.norm,
            "share": account.share,
        },
        "sites": {name: {"weights": w, "biases": b} for name, w, b in site_rows(account.description)},
        "bytes": {
            recipe: {part: size * account.parameters for part, size in zip(PARTS, sizes, strict=True)}
            for recipe, sizes in BYTES.items()
        },
        "flops_per_token": {"forward": account.forward, "training": 3 * account.forward},
        "activation_bytes": memory.activations,
    }


def percent(part: int, whole: int) -> str:
    """`0.0202 %`; `0` for nothing."""
    return f"{100 * part / whole:.3g} %" if part else "0 %"


def operations(flops: float) -> str:
    """`13.5 G`, `3.24 T`: floating-point operations."""
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if flops >= scale:
            return f"{flops / scale:.3g} {unit}"
    return f"{flops:.3g}"
