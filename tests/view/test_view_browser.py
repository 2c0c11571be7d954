"""The page in a real browser: it draws, says nothing on the console, and asks for nothing."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from view_studies import product, record

from ablate.cli import main
from ablate.view import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=30000", "--enable-logging=stderr", "--v=0",
)  # fmt: skip
HOSTILE = "<script>document.title='taken'</script><img src=http://evil.example/x.png>"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome here"),
]


def opened(target: Path, profile: Path, width: int) -> tuple[str, str]:
    """The document after its scripts have run, and what the browser logged."""
    assert BROWSER is not None
    size = f"--window-size={width},1500"
    command = [BROWSER, *FLAGS, size, f"--user-data-dir={profile}", "--dump-dom", target.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True, env=os.environ)
    return done.stdout, done.stderr


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_draws_without_errors_or_requests(tmp_path: Path, width: int) -> None:
    root = tmp_path / "runs"
    product(root, ["none", "all"], [0.001, 0.01, 0.1], [0, 1])
    record(root, 99, notes=HOSTILE, data={"source": "hub", "name": HOSTILE})
    document, log = opened(write_report(root, "s"), tmp_path / "profile", width)
    assert 'data-drawn="yes"' in document
    drawn = re.findall(r'class="plot js-plotly-plot" id="([a-z0-9-]+)"', document)
    assert {"rate-2", "out-o", "grown-o", "edges", "effect-edge", "map-twin"} <= set(drawn)
    assert document.count('viewBox="0 0 ') >= len(drawn)  # print scales the pictures by it
    assert "<title>s · ablate</title>" in document
    assert "CONSOLE" not in log, log


def test_the_browser_would_have_said_so(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    record(root, 0)
    page = write_report(root, "s")
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", '<img src="http://evil.example/x.png"></body>'), encoding="utf-8")
    _, log = opened(page, tmp_path / "profile", 1280)
    assert "CONSOLE" in log
    assert "evil.example" in log
    assert "Content Security Policy" in log


@pytest.mark.skipif(
    importlib.util.find_spec("kaleido") is None, reason="the extra [figures] is not installed"
)
def test_figures_are_drawn_as_pictures(tmp_path: Path) -> None:
    product(tmp_path / "runs", ["none", "all"], [0.001, 0.01, 0.1], [0, 1])
    out = tmp_path / "figures"
    command = ["report", "s", "--root", str(tmp_path / "runs"), "--format", "csv", "--figures", str(out)]
    assert main(command) == 0
    names = {p.stem for p in out.glob("*.svg")}
    assert names == {"loss_against_rate", "edges", "effects", "output_growth", "output_norms", "growth_map"}
    assert all("<svg" in p.read_text(encoding="utf-8")[:200] for p in out.glob("*.svg"))
    captions = (out / "captions.md").read_text(encoding="utf-8")
    assert all(f"(`{name}`)" in captions for name in names)
