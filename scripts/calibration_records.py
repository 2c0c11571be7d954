"""Packing the ends of recorded runs of two arms that are equal by construction."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ablate

ARMS = ("none", "[k]")
COLUMNS = ("arm", "lr", "seed", "verdict", "final", "start", "unigram")


def pack(studies: Sequence[Path], target: Path) -> None:
    """Write the pools of these studies, one for each setting in which both arms have been trained.

    Seeds that lack a run, or one with an end, are left out and named.
    """
    pools: dict[str, Any] = {}
    for path in studies:
        study = ablate.load_study(path)
        keys = ("model.bias", "model.norm", "model.placement", "model.position", "model.qk_norm")
        frame = study.runs[["run", "lr", "seed", "verdict", "final_val", "loss_at_start", "unigram"]]
        frame = frame.merge(study.facts(*keys, "data"), on="run")
        frame = frame[frame["model.bias"].isin(ARMS)]
        assert not frame["model.qk_norm"].any(), "a key bias is null without QK norm only"
        assert set(frame["model.position"]) <= {"learned"}, "a key bias is null with learned positions only"
        for (norm, placement), own in frame.groupby(["model.norm", "model.placement"], sort=True):
            config = study.run(own.run.iloc[0]).config
            name = f"{placement}-{norm}-{config['model.layers']}x{config['model.width']}"
            assert name not in pools, f"{name}: in two studies"
            if (rows := _whole(own, name)) and len({row[2] for row in rows}) >= LEAST_SEEDS:
                pools[name] = {"about": _about(study, own), "fingerprint": own["data"].iloc[0], "runs": rows}
    text = json.dumps({"schema": 1, "columns": COLUMNS, "pools": pools}, separators=(",", ":"))
    target.write_text(text.replace("[[", "[\n[").replace("],[", "],\n[") + "\n")
    for name, pool in pools.items():
        print(f"{name}: {len(pool['runs'])} runs, {len({row[2] for row in pool['runs']})} seeds")


LEAST_SEEDS = 6


def _whole(frame: Any, name: str) -> list[list[object]]:
    """The rows of the seeds that have both whole ladders."""
    rates = sorted(set(frame.lr))
    rows: list[list[object]] = []
    for seed, own in frame.sort_values(["seed", "model.bias", "lr"]).groupby("seed"):
        ended = own[own.verdict.notna() & (own.verdict != "censored")]
        if any(sorted(ended[ended["model.bias"] == arm].lr) != rates for arm in ARMS):
            print(f"{name}: seed {seed} is left out: a run of its two ladders is missing")
            continue
        rows += [
            [
                r["model.bias"],
                r.lr,
                int(seed),
                r.verdict,
                _word(r.final_val),
                _word(r.loss_at_start),
                r.unigram,
            ]
            for _, r in ended.iterrows()
        ]
    return rows


def _about(study: ablate.Study, frame: Any) -> str:
    run = study.run(frame.run.iloc[0])
    config, meta = run.config, run.meta
    versions = meta["environment"]["versions"]
    return (
        f"{config['model.placement']}-norm, {config['model.norm']}, {config['model.layers']} layers of width "
        f"{config['model.width']}, context {config['model.context']}, batch {config['optim.batch']}, "
        f"{config['optim.steps']} steps, {config['optim.schedule']} rate, {config['data.source']} with "
        f"{config['data.vocab_size']} tokens; torch {versions['torch']} on {meta['device_name']}"
    )


def _word(x: float) -> float | str:
    """JSON has no number for what is not finite."""
    return x if math.isfinite(x) else str(x)
