"""Where to mirror: command line, environment, configuration, key; at what pace; and the launcher's side."""

from pathlib import Path

import pytest
from tests.mirror.mirror_studies import Made

from ablate.cli import main
from ablate.config import ConfigError, TrackerConfig, TrackerMode, UserError, parse, run_id
from ablate.mirror import (
    Condition,
    Ledger,
    Sent,
    read_ledger,
    require_key,
    resolve_mode,
    start_mirror,
    write_ledger,
)
from ablate.mirror.launch import take_agent
from ablate.mirror.pace import Pace
from ablate.record import RunFolder, read_json, write_json

KEY = "k" * 40
AUTO, ONLINE, OFFLINE, OFF = TrackerMode.auto, TrackerMode.online, TrackerMode.offline, TrackerMode.off


@pytest.mark.parametrize(
    ("configured", "asked", "environ", "mode"),
    [
        (AUTO, False, {}, OFFLINE),
        (AUTO, False, {"WANDB_API_KEY": KEY}, ONLINE),
        (AUTO, False, {"WANDB_API_KEY": "  "}, OFFLINE),
        (OFF, False, {"WANDB_API_KEY": KEY}, OFF),
        (OFF, False, {"WANDB_MODE": "offline"}, OFFLINE),
        (OFFLINE, False, {"WANDB_MODE": "disabled"}, OFF),
        (OFFLINE, False, {"WANDB_MODE": "dryrun"}, OFFLINE),
        (OFFLINE, False, {"WANDB_MODE": "online", "WANDB_API_KEY": KEY}, ONLINE),
        (OFFLINE, True, {"WANDB_MODE": "disabled"}, OFFLINE),
        (AUTO, True, {"WANDB_MODE": "disabled", "WANDB_API_KEY": KEY}, ONLINE),
    ],
)
def test_the_command_line_then_the_environment_then_the_configuration(
    configured: TrackerMode, asked: bool, environ: dict[str, str], mode: TrackerMode, tmp_path: Path
) -> None:
    found = resolve_mode(configured, asked, {"HOME": str(tmp_path), **environ})
    assert found.mode is mode
    assert found.why


@pytest.mark.parametrize("environ", [{}, {"WANDB_MODE": "online"}, {"WANDB_MODE": "sideways"}])
def test_what_cannot_be_had_is_an_error(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"key|sideways"):
        resolve_mode(ONLINE, False, {"HOME": str(tmp_path), **environ})


def test_a_login_for_the_service_is_a_key_and_one_for_another_host_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    environ = {"HOME": str(tmp_path), "WANDB_BASE_URL": "https://wandb.example.org"}
    (tmp_path / ".netrc").write_text(f"machine wandb.example.org login user password {KEY}\n")
    (tmp_path / ".netrc").chmod(0o600)
    assert resolve_mode(AUTO, False, environ).mode is ONLINE
    assert resolve_mode(AUTO, False, {**environ, "WANDB_BASE_URL": "https://x.org"}).mode is OFFLINE


def test_tracker_settings_are_no_part_of_a_run() -> None:
    plain, tracked = parse({}), parse({"tracker": {"mode": "online", "project": "p", "rows": 50}})
    assert run_id(plain, "f") == run_id(tracked, "f")


@pytest.mark.parametrize(
    "tracker", [{"project": "a/b"}, {"project": ""}, {"tags": ["x" * 65]}, {"entity": "a#b"}]
)
def test_names_that_the_service_would_refuse_are_refused_at_once(tracker: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="tracker"):
        parse({"tracker": tracker})


def test_rows_wait_when_a_minute_is_used_up() -> None:
    now = [0.0]
    pace = Pace(rows=10, values=100, clock=lambda: now[0])
    assert [pace.take(5) for _ in range(11)] == [True] * 10 + [False]
    now[0] = 30.0
    assert [pace.take(5) for _ in range(6)] == [True] * 5 + [False]
    now[0] = 90.0
    assert [pace.take(60) for _ in range(2)] == [True, False]
    now[0] = 200.0
    assert pace.take(5000), "one row larger than a minute's worth still goes"
    assert not pace.take(1)


def test_an_agents_run_is_noted_and_a_stray_id_is_not(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    take_agent(folder, {"WANDB_RUN_ID": "stray"})
    assert read_ledger(tmp_path) is None
    environ = {"WANDB_SWEEP_ID": "sw", "WANDB_RUN_ID": "agents", "WANDB_PROJECT": "p", "WANDB_ENTITY": "e"}
    take_agent(folder, environ)
    ledger = read_ledger(tmp_path)
    assert ledger is not None
    assert (ledger.wandb_id, ledger.sweep, ledger.project, ledger.entity) == ("agents", "sw", "p", "e")


@pytest.mark.wandb
def test_a_launch_starts_its_mirror_and_waits_for_it(no_account: Path, tmp_path: Path) -> None:
    made, said = Made.queued(tmp_path, 1).begin(), list[str]()
    launched = start_mirror(
        [made.folder], TrackerConfig(mode=OFFLINE, finish_timeout=300.0), True, said.append
    )
    assert launched is not None
    made.write(40).end()
    launched.ended()
    launched.wait(said.append)
    assert launched.process.returncode == 0
    assert [line[:12] for line in said] == ["W&B: offline", "W&B: 1 mirro"]
    assert len(list((tmp_path / "s" / "wandb").glob("offline-run-*"))) == 1


@pytest.mark.parametrize("tracker", [TrackerConfig(mode=OFF)])
def test_off_starts_nothing(tmp_path: Path, tracker: TrackerConfig) -> None:
    made = Made.queued(tmp_path, 1)
    assert start_mirror([made.folder], tracker, True, print) is None
    assert not (tmp_path / "s" / "wandb").exists()


@pytest.mark.parametrize(
    ("mode", "where", "known"),
    [
        (ONLINE, "https://wandb.ai/me/p/runs/abc", True),
        (ONLINE, "http://127.0.0.1:8080/me/a%20b/runs/abc", True),
        (ONLINE, "file:///etc", False),
        (ONLINE, "https://wandb.ai/me/p", False),
        (ONLINE, "https://[wandb.ai/me/p/runs/abc", False),
        (ONLINE, 5, False),
        (OFFLINE, "wandb/offline-run-20260101_000000-abc", True),
        (OFFLINE, "/etc", False),
        (OFFLINE, ["wandb"], False),
    ],
)
def test_an_address_that_is_no_runs_is_unknown_and_the_run_not_up(
    mode: TrackerMode, where: object, known: bool, tmp_path: Path
) -> None:
    sent = Sent(Condition.clean, None, 1, 3, 2, "d", "f", "", {}, 1.0, generation=1)
    write_ledger(tmp_path, Ledger("abc").having(mode, sent))
    raw = read_json(tmp_path / "mirror.json")
    raw[str(mode)]["where"] = where
    write_json(tmp_path / "mirror.json", raw)
    ledger = read_ledger(tmp_path)
    assert ledger is not None
    found = ledger.of(mode)
    assert found is not None
    assert (found.where, found.state) == ((where, Condition.clean) if known else (None, Condition.partial))
    assert found.generation == 1  # the ids before are used up


@pytest.mark.parametrize(
    "odd", [{"rows": "3"}, {"digest": 5}, {"generation": -1}, {"sources": []}, {"state": "x"}, {"more": 1}]
)
def test_what_was_sent_counts_as_absent_where_a_part_is_odd(odd: dict[str, object], tmp_path: Path) -> None:
    sent = Sent(Condition.clean, None, 1, 3, 2, "d", "f", "https://wandb.ai/e/p/runs/i", {}, 1.0)
    write_ledger(tmp_path, Ledger("abc", online=sent))
    raw = read_json(tmp_path / "mirror.json")
    write_json(tmp_path / "mirror.json", {**raw, "project": 5, "online": {**raw["online"], **odd}})
    assert read_ledger(tmp_path) == Ledger("abc")


@pytest.mark.parametrize(
    "address", ["nonsense", "wandb.example.org:443", "file:///etc", "https://", "http://a:b"]
)
@pytest.mark.parametrize("mode", [ONLINE, OFFLINE, AUTO])
def test_a_service_without_an_address_is_refused_before_anything_starts(
    mode: TrackerMode, address: str, tmp_path: Path
) -> None:
    environ = {"HOME": str(tmp_path), "WANDB_API_KEY": KEY, "WANDB_BASE_URL": address}
    with pytest.raises(UserError, match="WANDB_BASE_URL=") as caught:
        resolve_mode(mode, False, environ)
    assert caught.value.hint == "WANDB_BASE_URL=https://api.wandb.ai"
    with pytest.raises(UserError, match="WANDB_BASE_URL="):
        require_key(environ)
    assert resolve_mode(OFF, False, environ).mode is OFF


@pytest.mark.parametrize("words", [("sync", "s", "--timeout"), ("mirror", "s", "--finish-timeout")])
@pytest.mark.parametrize("seconds", ["nan", "-1", "inf", "soon"])
def test_times_that_cannot_be_waited_are_2(
    words: tuple[str, ...], seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wandb", *words[:-1], f"{words[-1]}={seconds}"]) == 2
    said = capsys.readouterr().err
    assert f"argument {words[-1]}: {seconds!r}" in said
    assert "allowed: a number" in said


def test_no_time_to_sync_is_2_and_the_mirror_takes_it_as_its_setting_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["wandb", "sync", "s", "--timeout", "0"]) == 2
    assert "argument --timeout: '0'" in capsys.readouterr().err
    assert main(["wandb", "mirror", "nope", "--finish-timeout", "0"]) == 2  # for want of the study
    assert "argument --finish-timeout" not in capsys.readouterr().err
