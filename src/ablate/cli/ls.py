"""`ablate ls`: the runs, filtered and sorted."""

import argparse
import sys
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.record import collector_paused
from ablate.view import emit, parse_filters, plural, read_all_facts, records, runs_table, select


def run(args: argparse.Namespace) -> int:
    """Print the table, or JSON."""
    with collector_paused():
        return _list(args)


def _list(args: argparse.Namespace) -> int:
    filters = parse_filters(args.filter)
    columns = _words(args.columns)
    runs = read_all_facts(Path(args.root), args.study)
    if not runs and not args.json:
        print(f"no runs under {Path(args.root) / (args.study or '')}")
        return ALL_DONE
    chosen = select(runs, filters, _words(args.sort))
    if args.json:
        _print_json(records(chosen, runs, columns))
        return ALL_DONE
    emit(runs_table(chosen, runs, columns))
    if len(chosen) < len(runs):
        print(f"{len(chosen)} of {plural(len(runs), 'run')}")
    return ALL_DONE


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _print_json(rows: list[dict[str, object]]) -> None:
    import orjson

    from ablate.record import finite

    sys.stdout.write(orjson.dumps(finite(rows), option=orjson.OPT_INDENT_2).decode() + "\n")
