"""One run: train, again, show, list, repeat."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ablate.cli.commands import COMMANDS
from ablate.record import Claim, RunFolder, State, find_runs, read_json, read_series, read_status
from ablate.sweep import Plan, freeze, plan


def only_run() -> RunFolder:
    (folder,) = find_runs(Path("runs"))
    return folder


def test_the_life_of_a_run(ablate, tiny: tuple[str, ...]) -> None:
    shown = ablate("train", *tiny, "seed=3", "optim.lr=0.1")
    assert shown.code == 0, shown.err
    folder = only_run()
    summary = read_json(folder.summary)
    assert f"verdict: {summary['verdict']}\n  {summary['reasons'][0]}" in shown.out
    assert f"final val: {summary['final/val/loss']:.3f}" in shown.out
    assert str(folder.path) in shown.out
    written = {path.name for path in folder.path.iterdir() if not path.name.startswith(".")}
    assert written == {
        "config.yaml", "meta.json", "status.json", "summary.json", "claim.1", "heartbeat", "stdout.log",
        "metrics.jsonl", "metrics.val.jsonl", "metrics.probe.jsonl", "timing.jsonl", "checkpoint",
    }  # fmt: skip
    assert len(read_series(folder.metrics())) == 12
    assert re.search(rf"^\[1/1\] {folder.id[:8]}: started$", shown.out, re.MULTILINE)
    check_again(ablate, tiny, folder)
    check_lists(ablate, folder)
    check_show(ablate, folder)
    check_from_step_without_checkpoint(ablate, folder)
    check_rerun(ablate, folder)
    check_redo(ablate, tiny, folder)


def check_again(ablate, tiny: tuple[str, ...], folder: RunFolder) -> None:
    before = folder.status.read_bytes()
    shown = ablate("train", *tiny, "seed=3", "optim.lr=1e-1")
    assert (shown.code, folder.status.read_bytes()) == (0, before)
    assert "already done" in shown.out
    assert "verdict:" in shown.out


def check_lists(ablate, folder: RunFolder) -> None:
    assert folder.id in ablate("ls").out
    assert folder.id in ablate("ls", "t", "--filter", "seed=3", "--filter", "state=done").out
    nothing = ablate("ls", "--filter", "seed=4")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no run matches (of 1 run)\n")
    refused = ablate("ls", "tt")
    assert (refused.code, "try: t\n" in refused.err) == (2, True)
    (record,) = json.loads(ablate("ls", "--json").out)
    assert record["config"]["optim.lr"] == 0.1
    columns = ablate("ls", "--columns", "path,optim.steps,max/grad/norm").out.splitlines()
    assert columns[0].split() == ["path", "optim.steps", "max/grad/norm"]
    assert columns[1].split()[:2] == [str(folder.path), "12"]


def check_show(ablate, folder: RunFolder) -> None:
    summary = read_json(folder.summary)
    shown = ablate("show", folder.id[:6])
    assert re.search(rf"verdict +{summary['verdict']}", shown.out)
    assert summary["reasons"][0] in shown.out
    assert re.search(r"optim\.lr +0\.1 +0\.003", shown.out)
    assert re.search(r"b0[01]_\w+ +×[\d.e+-]+/10 steps", shown.out)
    assert f"ablate rerun {folder.path}" in shown.out
    assert "replayed" not in shown.out
    places = [
        shown.out.index(text)
        for text in ("verdict ", "output growth", "\ncourse\n", "optim.lr", "parameters")
    ]
    assert places == sorted(places)
    assert re.search(r"^train loss +\S+ ", shown.out, re.MULTILINE)
    assert "boot_id" not in shown.out
    assert "boot_id" in ablate("show", folder.id[:6], "--all").out
    for name in ("t", "t/", "runs/t", str(Path("runs/t").resolve())):
        assert re.search(r"study t\narm +lr .*\n- +0\.1 ", ablate("show", name).out)
    refused = ablate("show", "t", "verdict.cap=0.1")
    assert (refused.code, "try: ablate report t verdict.cap=0.1" in refused.err) == (2, True)
    replayed = ablate("show", f"t/{folder.name}", "verdict.cap=0.9", "verdict.early=0.5")
    assert re.search(rf"recorded thresholds +{summary['verdict']}", replayed.out)
    assert re.search(
        r"verdict\.cap=0\.9, verdict\.early=0\.5 +(diverged|collapsed|undertrained)", replayed.out
    )
    refused = ablate("show", folder.id, "optim.lr=1")
    assert (refused.code, "verdict.key=value" in refused.err) == (2, True)


def check_from_step_without_checkpoint(ablate, folder: RunFolder) -> None:
    shown = ablate("rerun", folder.id, "--from-step", "9")
    assert shown.code == 0, shown.err + shown.out
    assert "no checkpoint remains at or before step 9" in shown.out
    check_probes(ablate, folder, shown.out)
    assert re.search(r"exact: 12 rows", shown.out)
    assert list(read_series(RunFolder(folder.reruns / "001").metrics("probe")).steps) == list(range(12))


def check_probes(ablate, folder: RunFolder, said: str) -> None:
    repetition = RunFolder(folder.reruns / "001")
    line = next(text for text in said.splitlines() if text.startswith("the probes around step 9: "))
    words = shlex.split(line.partition(": ")[2])
    assert words == ["ablate", "show", str(repetition.path), "--step", "9"]
    shown = ablate(*words[1:])
    table = shown.out.partition("around step 9")[2].splitlines()[1:]
    assert [row.split()[0] for row in table[:12]] == ["step", *map(str, range(1, 12))]
    series, probe = read_series(repetition.metrics()), read_series(repetition.metrics("probe"))
    logits = max(probe.column(name)[9] for name in probe.columns if name.endswith("max_logit"))
    assert table[9].split()[:4] == [
        "9", f"{series.column('train/loss')[9]:.4g}", f"{series.column('grad/norm')[9]:.4g}", f"{logits:.4g}"
    ]  # fmt: skip
    assert "over the 5 steps up to step 9" in shown.out
    assert re.search(r"rows, compared +exact \(12 rows\)", shown.out)
    assert "around step 11" in ablate("show", f"t/{folder.id}/reruns/001").out
    assert re.search(r"001 +done +\w+ +probe\.every=1 +exact \(12 rows\)", ablate("show", folder.id).out)
    for refused in (ablate("show", f"{folder.id}/reruns/7"), ablate("show", folder.id, "--step", "12")):
        assert (refused.code, "001" in refused.err or "0 … 11" in refused.err) == (2, True)


def check_rerun(ablate, folder: RunFolder) -> None:
    shown = ablate("rerun", str(folder.path))
    assert shown.code == 0, shown.err + shown.out
    assert re.search(r"exact: 12 rows × \d+ columns .* identical", shown.out)
    repetition = folder.reruns / "002"
    assert (repetition / "config.yaml").read_text() == folder.config.read_text()
    shown = ablate("rerun", str(repetition))
    assert (shown.code, f"ablate rerun {folder.path}" in shown.err) == (2, True)
    assert re.search(r"verdict +\w+", ablate("show", str(repetition)).out)
    tampered = folder.metrics().read_text().splitlines()
    row = json.loads(tampered[6])
    assert row[0] == 5
    row[2] += 1e-9
    folder.metrics().write_text("\n".join([*tampered[:6], json.dumps(row), *tampered[7:]]) + "\n")
    shown = ablate("rerun", folder.id)
    assert shown.code == 1
    assert "first at step 5, column train/unigram" in shown.out
    assert repr(row[2]) in shown.out
    assert "nothing recorded of the settings differs" in shown.out
    assert [path.name for path in sorted(folder.reruns.iterdir())] == ["001", "002", "003"]


def check_redo(ablate, tiny: tuple[str, ...], folder: RunFolder) -> None:
    shown = ablate("train", *tiny, "seed=3", "optim.lr=0.1", "sweep.redo=true")
    assert shown.code == 0, shown.err
    assert read_status(folder).state is State.done
    assert read_status(folder).attempt == 3
    assert folder.metrics().read_text().count('"from_step":0') == 2
    again = read_series(folder.metrics())
    repeated = read_series(RunFolder(folder.reruns / "002").metrics())
    assert (again.values_RC == repeated.values_RC).all()


def test_reruns_with_overrides_and_from_a_checkpoint(ablate, tiny: tuple[str, ...]) -> None:
    ablate("train", *tiny, "run.keep=ring", "run.checkpoint_every=4", "eval.every=6", "probe.every=6")
    folder = only_run()
    late = ablate("rerun", str(folder.path), "--from-step", "9")
    assert late.code == 0, late.err + late.out
    assert "beginning at the checkpoint of step 8" in late.out
    assert re.search(r"exact: 4 rows × \d+ columns .* identical from step 8 on", late.out)
    repetition = RunFolder(folder.reruns / "001")
    assert list(read_series(repetition.metrics("probe")).steps) == [0, 6, 8, 9, 10, 11]
    assert list(read_series(repetition.metrics("val")).steps) == [0, 6, 12]
    assert len(read_series(repetition.metrics())) == 12
    other = ablate("rerun", folder.id, "optim.lr=0.1", "optim.warmup=0")
    assert other.code == 0
    assert "another experiment" in other.out
    assert re.search(r"different: first at step 0, column (train/lr|update/)", other.out)
    assert "optim.lr: 0.003 and 0.1" in other.out
    refused = ablate("rerun", folder.id, "optim.lr=0.1", "--from-step", "9")
    assert (refused.code, "another experiment" in refused.err) == (2, True)
    refused = ablate("rerun", folder.id, "--from-step", "12")
    assert (refused.code, "0 … 11" in refused.err) == (2, True)


def test_an_id_in_two_studies_is_listed_as_one_types_it(ablate, tiny: tuple[str, ...]) -> None:
    (folder,) = freeze(plan(tiny))
    freeze(plan([*tiny, "study=u"]))
    shown = ablate("show", folder.id)
    assert (shown.code, f"allowed: t/{folder.id}\n           u/{folder.id}\n" in shown.err) == (2, True)
    for name in (f"u/{folder.id}", f"u/{folder.id[:5]}"):
        assert ablate("show", name).out.startswith(f"u/{folder.name}\n")
    freeze(plan([*tiny, "study=norms"]))
    assert "try: ablate show norms (a study)\n" in ablate("show", "norm").err
    listed = ablate("ls", "t", "--columns", "study,id").out.splitlines()
    assert [line.split() for line in listed[1:]] == [["t", folder.id]]


@pytest.mark.parametrize("name", ["show", "rerun"])
def test_the_example_of_the_help_works(name: str, ablate, tiny: tuple[str, ...]) -> None:
    ablate("train", *tiny)
    freeze(plan([*tiny, "seed=1"]))  # queued: the list is shorter than all runs, and says so
    example = f'ablate() {{ "{sys.executable}" -m ablate "$@"; }}; {COMMANDS[name].example}'
    done = subprocess.run(["bash", "-c", example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "1 of 2 runs\n"
    assert ("exact: 12 rows" if name == "rerun" else "verdict.cap=0.1") in done.stdout


def test_a_claim_that_names_nobody_is_refused_too(ablate, tiny: tuple[str, ...]) -> None:
    (folder,) = freeze(plan(tiny))
    Claim.take(folder).finish(State.preempted)
    for torn in ("", '{"host": "a", "pi'):
        folder.claim(2).write_text(torn)
        shown = ablate("train", *tiny)
        assert (shown.code, shown.err) == (
            2,
            f"error: {folder.path} is being trained by another process\n  try: ablate show {folder.id}\n",
        )


def test_a_run_that_another_process_takes_meanwhile_is_refused_alike(
    ablate,
    tiny: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder,) = freeze(plan(tiny))
    claims: list[Claim] = []

    def late(the_plan: Plan, announce: Callable[[str], None]) -> list[RunFolder]:
        claims.append(Claim.take(folder))
        return [folder]

    monkeypatch.setattr("ablate.cli.train.freeze", late)
    shown = ablate("train", *tiny)
    monkeypatch.undo()
    assert shown.code == 2
    owner = claims[0].owner
    said = f"error: {folder.path} is being trained by process {owner.pid} on {owner.host}\n"
    assert shown.err.startswith(said)


def test_a_damaged_status_is_no_end(ablate, tiny: tuple[str, ...]) -> None:
    (folder,) = freeze(plan(tiny))
    for text in (None, "[]", '{"state":"don'):
        folder.status.unlink() if text is None else folder.status.write_text(text)
        assert ablate("train", *tiny).code == 0
        assert read_status(folder).state is State.done
        for part in (*folder.path.glob("claim.*"), folder.summary):
            part.unlink()


def test_a_run_is_known_by_its_folder_from_inside(
    ablate,
    tiny: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ablate("train", *tiny).code == 0
    folder = RunFolder(only_run().path.absolute())
    monkeypatch.chdir(folder.path)
    assert ablate("show", ".").out.startswith(f"t/{folder.name}\n")
    shown = ablate("rerun", ".")
    assert shown.code == 0, shown.err
    assert [path.name for path in folder.reruns.iterdir()] == ["001"]


def test_a_run_in_other_hands_is_refused(ablate, tiny: tuple[str, ...]) -> None:
    (folder,) = freeze(plan(tiny))
    claim = Claim.take(folder)
    shown = ablate("train", *tiny)
    assert shown.code == 2
    assert f"process {claim.owner.pid} on {claim.owner.host}" in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    "damage", ["meta.json", "summary.json", "status.json", "metrics.jsonl", "config.yaml"]
)
def test_listing_survives_damaged_folders(damage: str, ablate, tiny: tuple[str, ...]) -> None:
    good, bad = freeze(plan([*tiny, "seed=0,1"]))
    (bad.path / damage).write_text('{"half')
    shown = ablate("ls")
    assert shown.code == 0, shown.err
    assert good.id in shown.out
    assert bad.id in shown.out
