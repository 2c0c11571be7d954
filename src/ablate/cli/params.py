"""`ablate params`: what models have and cost, from their built form."""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.planning import say
from ablate.config import ARCHITECTURES, Config, UserError, expand, preset_changes, replace
from ablate.config.errors import shown
from ablate.config.parts import written
from ablate.sweep import WorkerError, describe_models, model_of
from ablate.view import (
    COLUMN_NOTES,
    NOTES,
    Account,
    accounts_table,
    architectures_table,
    batch_words,
    emit,
    facts_of,
    halves,
    model_words,
    plain,
    published_notes,
    published_words,
    sites_table,
    token_words,
)
from ablate.view.table import console

CONFIGURED = "as configured"
BIASES = {"bias=none": ("none",), CONFIGURED: None, "bias=all": ("all",)}


def run(args: argparse.Namespace) -> int:
    """One model by site and with fewer and more biases, or every published architecture."""
    try:
        (_every if args.all else _one)(args.overrides, args.json)
    except WorkerError as error:
        say(f"error: {error}")
        return SOME_FAILED
    return ALL_DONE


def _one(overrides: Sequence[str], as_json: bool) -> None:
    config = _single(overrides)
    configs = {
        name: config if bias is None else replace(config, {"model.bias": bias})
        for name, bias in BIASES.items()
    }
    accounts = _accounts(configs)
    account = next(a for a in accounts if a.name == CONFIGURED)
    fact = account.published
    if as_json:
        told = {
            "preset": config.model.preset,
            "scale": config.model.scale,
            "changed": preset_changes(config),
            "published": fact and fact.published.count,
        }
        _print_json({**told, "models": {a.name: facts_of(a) for a in accounts}})
        return
    print(f"{model_words(config)}, vocabulary {config.data.vocab_size:,}")
    emit(sites_table(account))
    print()
    emit(accounts_table(accounts))
    print()
    if fact is not None:
        _print_text(published_words(fact, account.parameters))
    _print_text(*NOTES, token_words(config), batch_words(config))


def _single(overrides: Sequence[str]) -> Config:
    """The one model asked for. Raises UserError for several, with how to see them."""
    grid = expand(overrides)
    if len(grid.cells) == 1:
        return grid.base
    pins = " ".join(f"{axis.key}={shown(written(axis.values[0]))}" for axis in grid.axes)
    every = "ablate params --all (every preset); or " if "model" in {axis.key for axis in grid.axes} else ""
    raise UserError(
        f"this asks for {len(grid.cells)} runs: params looks into one model at a time",
        hint=f"{every}ablate params {pins}",
    )


def _every(overrides: Sequence[str], as_json: bool) -> None:
    if any(text.lstrip("+").startswith("model=") for text in overrides):
        raise UserError("--all is every preset: it goes with no model=", hint="ablate params model=PRESET")
    cells = expand([f"model={','.join(ARCHITECTURES)}", *overrides]).cells
    if len(cells) != len(ARCHITECTURES):
        raise UserError("--all takes one value for each setting", hint="ablate params --all")
    accounts = _accounts(dict(zip(ARCHITECTURES, cells, strict=True)))
    if as_json:
        _print_json({a.name: {**_published(a), **facts_of(a)} for a in accounts})
        return
    whole = architectures_table(accounts)
    wide = not sys.stdout.isatty() or console().width >= max(map(len, plain(whole).splitlines()))
    for part in [whole] if wide else halves(whole):
        emit(part)
        print()
    _print_text(*published_notes(accounts), *COLUMN_NOTES, *NOTES)


def _published(account: Account) -> dict[str, Any]:
    fact = account.published
    if fact is None:
        return {"published": None, "changed": preset_changes(account.config)}
    return {
        "published": fact.published.count,
        "equal": fact.published.agrees(account.parameters),
        "more_parts": dict(fact.published.beyond),
    }


def _accounts(configs: dict[str, Config]) -> list[Account]:
    known = describe_models(configs.values(), say)
    return [Account(name, config, known[model_of(config)]) for name, config in configs.items()]


def _print_text(*lines: str) -> None:
    """Lines folded for a terminal, in full elsewhere; empty ones left out."""
    width = console().width if sys.stdout.isatty() else None
    for line in lines:
        if line:
            print(line if width is None else textwrap.fill(line, width))


def _print_json(tree: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode() + "\n")
