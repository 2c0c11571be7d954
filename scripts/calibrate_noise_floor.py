"""How often the report's intervals and tests err where the truth is known: simulated studies, real runs.

    python scripts/calibrate_noise_floor.py                     simulate, print the tables (< 2 minutes)
    python scripts/calibrate_noise_floor.py --out FOLDER        and write every share as JSON and CSV
    python scripts/calibrate_noise_floor.py --docs              and renew the section "Calibration" of
                                                                docs/statistics.md (needs matplotlib)
    python scripts/calibrate_noise_floor.py --pack STUDY…       renew the records from these studies' folders

The records (scripts/noise_floor_runs.json) hold where real runs ended, of two arms that are equal by
construction: no biases, and key biases, which softmax cancels (`experiment=placebo`). scripts/calibration.py
says how studies are drawn from them.
"""

import argparse
import csv
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from calibration import Null, Pool, load_pools
from calibration_measures import Share, calibrate

RECORDS = Path(__file__).with_name("noise_floor_runs.json")
SIZES = (5, 6, 10, 20)
STUDIES = 1000
SHORT_SIZES = (5, 6, 10)  # of further pools, and of planted effects: 20 seeds take longest


def run(pools: Sequence[Pool], studies: int) -> list[Share]:
    """Every share: of the first pool both kinds of null and planted effects, of others the placebo."""
    wanted = [(pool, Null.placebo, n) for pool in pools for n in (SIZES if pool is pools[0] else SHORT_SIZES)]
    wanted += [(pools[0], Null.reseeded, n) for n in SIZES]
    wanted += [(pools[0], Null.planted, n) for n in SHORT_SIZES]
    rows = []
    for place, (pool, null, n) in enumerate(wanted):
        print(f"\r{place + 1}/{len(wanted)}: {pool.name}, {null}, {n} seeds ", end="", file=sys.stderr)
        rows += calibrate(pool, null, n, studies)
    print(file=sys.stderr)
    return rows


def write(rows: Sequence[Share], folder: Path) -> None:
    """calibration.json and calibration.csv: one entry a share, with its interval."""
    folder.mkdir(parents=True, exist_ok=True)
    flat = [
        {**dataclasses.asdict(r), "null": str(r.null), "share": r.share, "low": r.low, "high": r.high}
        for r in rows
    ]
    (folder / "calibration.json").write_text(json.dumps({"schema": 1, "shares": flat}, indent=1) + "\n")
    with (folder / "calibration.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)


def main() -> None:
    """Simulate, or pack."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=STUDIES, help="simulated studies of each kind")
    parser.add_argument("--records", type=Path, default=RECORDS, help="default: %(default)s")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write calibration.json and .csv there")
    parser.add_argument("--docs", action="store_true", help="renew docs/statistics.md and its figures")
    parser.add_argument("--pack", nargs="+", type=Path, metavar="STUDY", help="renew the records")
    arguments = parser.parse_args()
    if arguments.pack:
        from calibration_records import pack

        pack(arguments.pack, arguments.records)
        return
    from calibration_tables import terminal_tables

    pools = load_pools(arguments.records)
    began = time.process_time()
    rows = run(pools, arguments.studies)
    print(terminal_tables(pools, rows))
    print(f"{time.process_time() - began:.0f} CPU seconds")
    if arguments.out:
        write(rows, arguments.out)
    if arguments.docs:
        from calibration_docs import renew

        renew(pools, rows, arguments.studies)


if __name__ == "__main__":
    main()
