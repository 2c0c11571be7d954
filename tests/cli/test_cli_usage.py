"""What the command line says without training anything."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ablate import __version__
from ablate.cli import main
from ablate.cli.commands import COMMANDS
from ablate.cli.parser import parse

HEAVY = ("torch", "hydra", "omegaconf", "datasets", "tokenizers", "pyarrow", "rich", "plotly")


def test_version(ablate) -> None:
    assert ablate("--version").out == f"ablate {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_and_gives_an_example_that_parses(name: str, ablate) -> None:
    shown = ablate(name, "--help")
    assert shown.code == 0
    example = shown.out.partition("example:\n")[2].strip()
    assert example.startswith(f"ablate {name}")
    for inner in re.findall(r"\$\(ablate (.*?) \|.*?\)", example):
        parse(shlex.split(inner))
    assert parse(shlex.split(re.sub(r"\$\(.*?\)", "RUN", example))[1:])[0] == name


@pytest.mark.parametrize("words", [(), ("trane",), ("train", "--fast"), ("rerun",), ("ls", "--json=3")])
def test_bad_usage_is_2(words: tuple[str, ...], ablate) -> None:
    shown = ablate(*words)
    assert shown.code == 2
    assert "usage: ablate" in shown.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sweep", "--jobs", "4"), ["unrecognized arguments: --jobs", "try: sweep.jobs=…"]),
        (("sweep", "--lr=3", "seed=0,1"), ["try: optim.lr=3"]),
        (("sweep", "--dry-run"), ["allowed: --plan", "try: settings as key=value"]),
        (("train", "--qqqq"), ["try: settings as key=value"]),
        (("retry", "t", "--filed"), ["try: --failed"]),
        (("ls", "--fitler", "x"), ["try: --filter"]),
        (("wandb",), ["usage: ablate wandb", "allowed: mirror, sync, workspace"]),
        (("status",), ["which study?", "no studies below runs"]),
        (("status", "t", "--forever"), ["allowed: --watch, --every, --root"]),
        (("status", "t", "--every", "-1"), ["--every: -1", "seconds above 0"]),
        (("status", "t", "--every", "nan"), ["--every: nan", "seconds above 0"]),
        (("status", "t", "--every", "soon"), ["--every: soon", "seconds above 0"]),
    ],
)
def test_a_mistyped_option_gets_a_suggestion(
    words: tuple[str, ...], says: list[str], ablate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the checkout may have studies of its own
    shown = ablate(*words)
    assert shown.code == 2
    assert all(word in shown.err for word in says), shown.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train", "optim.lrr=1"), ["optim.lrr", "optim.lr"]),
        (("train", "+optim.lrr=1"), ["optim.lr"]),
        (("train", "model.norm=rms"), ["model.norm", "rmsnorm"]),
        (("train", "optim.lr=nan"), ["optim.lr"]),
        (("train", "optim.lr=0.1,0.2"), ["ablate sweep"]),
        (("train", "steps"), ["'steps'", "expected key=value"]),
        (("train", "optim.clip=null"), ["optim.clip=0\n"]),
        (("train", "probe.every=null"), ["probe.every=0\n"]),
        (("ls", "nope"), ["no study 'nope'", "no studies below runs"]),
        (("sweep", "optim.lr=0.1,-1"), ["optim.lr", "-1"]),
        (("sweep", "-m", "model.heads=4,5"), ["model.heads", "5"]),
        (("sweep", "run.threads=1,2"), ["run.threads"]),
        (("train", "data=text", "data.paths=[nowhere.txt]"), ["nowhere.txt"]),
        (("config", "--keys", "qqq"), ["qqq"]),
        (("rerun", "nothing"), ["nothing"]),
        (("show", "nothing"), ["nothing"]),
        (("ls", "--filter", "verdict"), ["key=value"]),
    ],
)
def test_bad_requests_are_2_one_message_and_no_folder(
    words: tuple[str, ...],
    says: list[str],
    ablate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = ablate(*words)
    assert shown.code == 2
    assert shown.err.startswith("error: ")
    assert "Traceback" not in shown.err
    assert all(word in shown.err for word in says), shown.err
    assert not list(tmp_path.iterdir())


def test_options_may_stand_between_overrides() -> None:
    _, args = parse(["sweep", "optim.lr=1,2", "--plan", "seed=0,1", "-m"])
    assert args.overrides == ["optim.lr=1,2", "seed=0,1"]
    assert args.plan
    _, args = parse(["rerun", "--from-step", "3", "RUN", "run.threads=2"])
    assert (args.target, args.overrides, args.from_step) == ("RUN", ["run.threads=2"], 3)
    _, args = parse(["rerun", "RUN", "--from-step", "3", "run.threads=2"])
    assert (args.target, args.overrides, args.from_step) == ("RUN", ["run.threads=2"], 3)


def test_an_unexpected_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ablate.cli.ls.read_all_facts", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["ls"])


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["ls"], ["show", "nothing"]])
def test_light_commands_load_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    program = (
        "import sys; from ablate.cli import main; main(sys.argv[1:]);"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("loaded: []\n")


def test_planning_never_loads_torch(tmp_path: Path) -> None:
    program = (
        "import sys; from ablate.cli import main; main(sys.argv[1:]);"
        "print('torch' in sys.modules, 'datasets' in sys.modules)"
    )
    words = ["sweep", "experiment=smoke", "data=synthetic", "--plan"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("False False\n")


def test_python_m_is_the_same_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ablate", "ls"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no runs under runs\n")


def test_config_is_yaml_with_identity_and_marks(ablate) -> None:
    shown = ablate("config", "data=synthetic", "model.bias=[v,o]", "optim.lr=0.0003")
    tree = yaml.safe_load(shown.out)
    assert tree["model"]["bias"] == ["v", "o"]
    marked = [line.partition(":")[0].strip() for line in shown.out.splitlines() if "# default" in line]
    assert marked == ["bias", "source", "lr"]
    assert "lr: 0.0003  # default: 0.003" in shown.out
    assert "bias: [v, o]  # default: all" in shown.out
    identity = re.search(r"^# run id: ([0-9a-f]{12})$", shown.out, re.MULTILINE)
    same = ablate(
        "config", "data=synthetic", "model.bias=[o,v]", "optim.lr=3e-4", "run.notes=x", "probe.every=3"
    )
    assert identity is not None
    assert identity[0] in same.out


def test_config_keys(ablate) -> None:
    shown = ablate("config", "--keys", "placement")
    steps = ablate("config", "--keys", "steps").out
    assert re.search(r"optim\.steps +science +200 +int ≥ 1 and ≤ 1e\+09 +optimiser steps", steps)
    assert re.search(r"model\.placement +science +pre +pre, post, peri, sublayer", shown.out)
    assert len(ablate("config", "--keys").out.splitlines()) > 60


@pytest.mark.parametrize("words", [["--sort", "-max/grad/norm"], ["--sort=-max/grad/norm"]])
def test_sorting_downwards_is_no_option(words: list[str]) -> None:
    assert parse(["ls", *words, "t", "--json"])[1].sort == "-max/grad/norm"
    assert parse(["ls", "--json", "--sort", "lr"])[1].sort == "lr"


def test_plan_prints_every_run_and_starts_none(
    ablate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = ablate("sweep", "experiment=smoke", "data=synthetic", "seed=0,1,0", "--plan")
    assert shown.code == 0
    assert "24 runs asked for, 8 merged as duplicates, 16 to train" in shown.out
    assert "4 arms × 2 learning rates × 2 seeds" in shown.out
    assert len(re.findall(r"^[0-9a-f]{12} .* missing +yes$", shown.out, re.MULTILINE)) == 16
    assert not list(tmp_path.iterdir())


def test_a_study_judged_again_is_sent_to_its_report(
    ablate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "s" / "requests").mkdir(parents=True)
    shown = ablate("show", "s", "verdict.cap=0.1")
    assert shown.code == 2
    assert "try: ablate report s verdict.cap=0.1" in shown.err
    assert "allowed: s" in ablate("status").err
