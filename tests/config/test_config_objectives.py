"""What each objective needs of a window and of the vocabulary is checked before anything starts."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.config import ConfigError, DataConfig, Objective, compose, hidden, parse, reserved_tokens

SPAN = "model.stack=encoder_decoder data.objective=span"

# overrides, then what the message must hold
REFUSED = [
    (
        f"{SPAN} model.context=8",
        ["data.mask_span = 3.0", "less than 2", "data.mask_span=1 or model.context=10"],
    ),
    (f"{SPAN} model.context=3", ["data.mask_rate = 0.15", "of the 3 of a window", "try: model.context=10"]),
    (f"{SPAN} data.mask_span=40", ["data.mask_span = 40.0", "less than 20", "try: data.mask_span=10"]),
    (
        f"{SPAN} data.mask_rate=0.9",
        ["data.mask_rate = 0.9", "leaves 19 or more", "try: data.mask_span=58 or data.mask_rate=0.15"],
    ),
    (f"{SPAN} data.mask_rate=0.99", ["data.mask_rate = 0.99", "of the 64 of a window (model.context)"]),
    ("model.stack=encoder model.context=2 data.mask_rate=0.8", ["data.mask_rate = 0.8", "leaves 1 or more"]),
    (
        "model.stack=encoder data.vocab_size=257",
        ["data.vocab_size = 257", "1 for data.objective=masked", "=258"],
    ),
    ("model.stack=encoder_decoder data.vocab_size=200", ["at least 258", "1 for data.objective=prefix"]),
    (f"{SPAN} data.vocab_size=260", ["at least 261: 4 for data.objective=span", "try: data.vocab_size=261"]),
    (
        "model.stack=encoder data=synthetic data.branching=40 data.vocab_size=40",
        ["data.branching = 40", "data.vocab_size = 40, less 1 that data.objective=masked reserves"],
    ),
    (f"{SPAN} data.tokenizer=t.json data.vocab_size=4", ["data.vocab_size = 4", "at least 5"]),
]


@pytest.mark.parametrize(("line", "expected"), REFUSED, ids=[line for line, _ in REFUSED])
def test_refused(line: str, expected: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        compose(line.split(" "))
    for part in expected:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        f"{SPAN} model.context=17",
        f"{SPAN} model.context=8 data.mask_span=1",
        f"{SPAN} data.vocab_size=261",
        f"{SPAN} data.mask_rate=0.5 data.mask_span=1",
        "model.stack=encoder model.context=2",
        "model.stack=encoder data.vocab_size=258",
        "model.stack=encoder_decoder model.context=2",
        "data.vocab_size=4 data=synthetic",
    ],
)
def test_what_is_suggested_is_taken(line: str) -> None:
    compose(line.split(" "))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 300), st.floats(0.001, 0.999), st.floats(1, 50), st.sampled_from(Objective))
def test_what_passes_hides_something_and_leaves_something(
    context: int, rate: float, length: float, objective: Objective
) -> None:
    stack = {Objective.next: "decoder", Objective.masked: "encoder"}.get(objective, "encoder_decoder")
    shares = {"mask_rate": rate} if objective in (Objective.masked, Objective.span) else {}
    lengths = {"mask_span": length} if objective is Objective.span else {}
    data = {"objective": str(objective), "vocab_size": 4096, **shares, **lengths}
    raw = {"model": {"context": context, "stack": stack}, "data": data}
    try:
        config = parse(raw)
    except ConfigError as refusal:
        error = refusal
    else:
        error = None
    if error is not None:
        assert objective in (Objective.masked, Objective.span)
        assert error.hint is not None
        for hint in error.hint.split(" or "):  # what is suggested is taken
            tree = {name: dict(part) for name, part in raw.items()}
            for word in hint.split(" "):
                section, name, value = re.split(r"[.=]", word, maxsplit=2)
                tree[section][name] = yaml.safe_load(value)
            parse(tree)
        return
    some = hidden(config.data, context)
    assert (some.tokens == 0) == (objective is Objective.next)
    assert context - some.tokens >= max(1, some.spans)
    if objective is Objective.span:
        assert 1 <= some.spans <= some.tokens
    sentinels = some.spans if objective is Objective.span else 0
    assert len(reserved_tokens(config.data, context)) == (objective is not Objective.next) + sentinels


def test_the_published_share_of_a_published_window() -> None:
    """Raffel et al. 2020, section 3.1.4: 512 tokens, 15 %, mean length 3."""
    data = DataConfig(objective=Objective.span)
    assert (hidden(data, 512).tokens, hidden(data, 512).spans) == (77, 26)
