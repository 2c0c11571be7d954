"""`ablate ls`: the runs, filtered and sorted."""

import argparse
import sys
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.studies import existing_study
from ablate.record import collector_paused
from ablate.view import (
    Arms,
    emit,
    mirror_notes,
    parse_filters,
    plural,
    read_all_facts,
    records,
    runs_table,
    select,
)


def run(args: argparse.Namespace) -> int:
    """Print the table, or JSON."""
    with collector_paused():
        return _list(args)


def _list(args: argparse.Namespace) -> int:
    filters = parse_filters(args.filter)
    columns = _words(args.columns)
    root, study = Path(args.root), args.study
    if study is not None:
        root, study = existing_study(root, study)
    runs = read_all_facts(root, study)
    if not runs and not args.json:
        print(f"no runs under {root / (study or '')}", file=sys.stderr)
        return ALL_DONE
    arms = Arms.by_study(runs)
    chosen = select(runs, filters, _words(args.sort), arms)
    if args.json:
        _print_json(records(chosen, runs, columns))
        return ALL_DONE
    shown = runs_table(chosen, runs, columns, arms)
    if not chosen:
        print(f"no run matches (of {plural(len(runs), 'run')})", file=sys.stderr)
        return ALL_DONE
    emit(shown)
    if len(chosen) < len(runs):  # not among the lines that a pipe reads
        footer = sys.stdout if sys.stdout.isatty() else sys.stderr
        print(f"{len(chosen)} of {plural(len(runs), 'run')}", file=footer)
    for note in mirror_notes(root, sorted({run.study for run in chosen})):
        print(note, file=sys.stderr)
    return ALL_DONE


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _print_json(rows: list[dict[str, object]]) -> None:
    import orjson

    from ablate.record import finite

    sys.stdout.write(orjson.dumps(finite(rows), option=orjson.OPT_INDENT_2).decode() + "\n")
