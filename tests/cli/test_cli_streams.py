"""Output that nobody reads or that has no room, odd streams, and files that the system refuses."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ablate.record import State, find_runs, read_status
from ablate.sweep import freeze, plan

ABLATE = f'"{sys.executable}" -m ablate'


def shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash, in which `ablate` is the command."""
    script = f'ablate() {{ {ABLATE} "$@"; }}; set -o pipefail; {line}'
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, env={**os.environ, **env}
    )


def test_a_run_goes_on_when_nobody_reads_its_output(tiny: tuple[str, ...]) -> None:
    done = shell(f"ablate train {' '.join(tiny)} 2>&1 | true")
    (folder,) = find_runs(Path("runs"))
    assert (done.returncode, read_status(folder).state) == (0, State.done)
    done = shell(f"ablate rerun {folder.path} optim.steps=11 | true")
    assert (done.returncode, done.stderr) == (0, "")
    assert read_status(find_runs(Path("runs"))[0]).state is State.done
    done = shell(f"ablate train {' '.join(tiny)} seed=1 >/dev/full")
    assert (done.returncode, done.stderr) == (
        0,
        "warning: output to stdout was lost: No space left on device\n",
    )


def test_a_list_ends_quietly_when_nobody_reads_it(tiny: tuple[str, ...]) -> None:
    freeze(plan([*tiny, f"seed={','.join(map(str, range(40)))}"]))
    done = shell("ablate ls --columns path,slug,id,state,path,slug,path,slug,path,slug | true")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_list_that_finds_no_room_is_an_error(tiny: tuple[str, ...]) -> None:
    freeze(plan(tiny))
    done = shell("ablate ls >/dev/full")
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_streams_that_are_closed_or_know_few_characters(tiny: tuple[str, ...]) -> None:
    freeze(plan([*tiny, "run.notes='é→'"]))
    assert shell("ablate ls >&-").returncode == 0
    assert "Traceback" not in shell("ablate ls >&- 2>&-; ablate show nothing 2>&-").stderr
    for env in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}):
        shown = shell("ablate ls --columns run.notes,id", **env)
        assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\xe9\\u2192" in shell("ablate ls --columns run.notes,id", PYTHONIOENCODING="ascii").stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run.root=/proc/x",), errno.ENOENT),
        (("run.root=" + "x" * 300,), errno.ENAMETOOLONG),
        (("data=text", "data.paths=[" + "x" * 5000 + "]"), errno.ENAMETOOLONG),
    ],
)
def test_what_the_system_refuses_is_one_line(
    words: tuple[str, ...],
    code: int,
    ablate,
    tiny: tuple[str, ...],
) -> None:
    mine = [word for word in tiny if not word.startswith("data") or words[0].startswith("run")]
    shown = ablate("train", *mine, *words)
    assert shown.code == 2
    assert shown.err.startswith("error: ")
    assert os.strerror(code) in shown.err
    assert len(shown.err) < 300


def test_a_folder_for_a_config_takes_no_list_down(ablate, tiny: tuple[str, ...]) -> None:
    good, bad = freeze(plan([*tiny, "seed=0,1"]))
    bad.config.unlink()
    bad.config.mkdir()
    shown = ablate("ls")
    assert (shown.code, good.id in shown.out, bad.id in shown.out) == (0, True, True)
    shown = ablate("train", *tiny, "seed=1")
    assert (shown.code, "Is a directory" in shown.err) == (2, True)


def test_an_interruption_while_it_starts_is_130(tmp_path: Path) -> None:
    # Where the tests run in the background, SIGINT is ignored unless it is asked for again.
    (tmp_path / "argparse.py").write_text(
        "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    done = shell("ablate ls", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_long_notes_do_not_widen_every_row(ablate, tiny: tuple[str, ...]) -> None:
    freeze(plan([*tiny, f"run.notes={'n' * 100_000}"]))
    assert max(map(len, ablate("ls", "--columns", "run.notes,id").out.splitlines())) < 120
