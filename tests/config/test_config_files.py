"""conf/, a run's config.yaml, folders, and what importing costs."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

import ablate.config.files
from ablate.config import (
    MIGRATIONS,
    SCHEMA_VERSION,
    UserError,
    cache_dir,
    compose,
    conf_dir,
    dump,
    expand,
    fields,
    load,
    parse,
)

OPTIONS = sorted(path.relative_to(conf_dir()).with_suffix("") for path in conf_dir().glob("*/*.yaml"))
NEEDS = {"data/text": ["data.paths=[x.txt]"], "data/hub": ["data.name=x"]}


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_every_file_of_conf_composes_and_says_something_of_its_own(option: Path) -> None:
    """Of each group only the option that conf/config.yaml names may equal the defaults."""
    grid = expand([f"{option.parent}={option.name}", *NEEDS.get(str(option), [])])
    assert len(grid.cells) >= 1
    assert (grid.base == parse({})) == (str(option) in ("model/small", "data/stdlib", "optim/default"))


def test_conf_holds_no_interpolation() -> None:
    assert not [path for path in conf_dir().rglob("*.yaml") if "${" in path.read_text(encoding="utf-8")]


def test_the_defaults_of_conf_are_those_of_the_schema() -> None:
    assert compose([]) == parse({})


def test_every_setting_is_documented() -> None:
    for info in fields():
        assert len(info.doc) >= 8, info.key
        assert info.allowed, info.key
        assert info.klass in ("science", "observe", "control")


def test_conf_dir_needs_a_package_or_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "src" / "ablate"
    monkeypatch.setattr(ablate.config.files, "__file__", str(package / "config" / "files.py"))
    with pytest.raises(UserError, match="no conf/ folder"):
        conf_dir()
    (tmp_path / "conf").mkdir()
    with pytest.raises(UserError, match="no conf/ folder"):
        conf_dir()
    (tmp_path / "pyproject.toml").touch()
    assert conf_dir() == tmp_path / "conf"
    (package / "conf").mkdir(parents=True)
    assert conf_dir() == package / "conf"


@pytest.fixture
def own_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of conf/ that a test may edit."""
    copy = tmp_path / "conf"
    for path in conf_dir().rglob("*.yaml"):
        target = copy / path.relative_to(conf_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(
        ablate.config.files, "__file__", str(tmp_path / "src" / "ablate" / "config" / "files.py")
    )
    return copy


def test_mistakes_in_conf_are_refused(own_conf: Path) -> None:
    (own_conf / "model" / "tiny.yaml").write_text("layrs: 2\n")
    with pytest.raises(UserError, match=r"model\.layrs(.|\n)*model\.layers"):
        compose(["model=tiny"])
    (own_conf / "model" / "tiny.yaml").write_text("layers: [\n")
    with pytest.raises(UserError, match="does not compose"):
        compose(["model=tiny"])
    (own_conf / "optim" / "wsd.yaml").write_text("lr: 1e-3\nsteps: 1e3\n")
    with pytest.raises(UserError, match=r"optim\.steps=1000"):
        compose(["optim=wsd"])


def test_hydra_is_left_as_found(tmp_path: Path) -> None:
    compose(["model=tiny"])
    assert not GlobalHydra.instance().is_initialized()
    with initialize_config_dir(config_dir=str(tmp_path), version_base="1.3"):
        outer = GlobalHydra.instance().hydra
        compose(["model=tiny"])
        assert GlobalHydra.instance().hydra is outer
    assert not GlobalHydra.instance().is_initialized()


def test_a_saved_configuration_is_plain_yaml() -> None:
    config = compose(["optim.lr=1e-5", "run.notes='1e5'", "model.bias=none"])
    tree = yaml.safe_load(dump(config))
    assert tree["schema_version"] == SCHEMA_VERSION == len(MIGRATIONS) + 1
    assert (tree["optim"]["lr"], tree["run"]["notes"], tree["model"]["bias"]) == (1e-5, "1e5", [])


def test_a_configuration_edited_by_hand_may_say_1e_3(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("schema_version: 1\noptim: {lr: 1e-3}\n")
    assert load(path).optim.lr == 1e-3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "schema_version: 1\noptim: {lrr: 1}\n",
            r"config\.yaml: unknown setting optim\.lrr\n  try: optim\.lr",
        ),
        ("schema_version: 1\noptim: {lr: -1}\n", r"config\.yaml: optim\.lr = -1"),
        ("schema_version: 2\n", "written by a newer ablate"),
        ("optim: {lr: 1}\n", "schema_version = null"),
        ("schema_version: true\n", "schema_version = true"),
        ("schema_version: 0\n", "allowed: 1 to 1"),
        ("a: [\n", "no readable YAML"),
        ("", "no configuration"),
        ("- 1\n", "no configuration"),
        ("!!python/object/apply:os.getcwd []\n", "no readable YAML"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.yaml: No such file"):
        load(tmp_path / "gone.yaml")


def test_older_schemas_are_migrated_step_by_step(tmp_path: Path) -> None:
    def rename(tree: dict[str, object]) -> dict[str, object]:
        return {"optim": {"learning_rate": tree["rate"]}}

    def move(tree: dict[str, object]) -> dict[str, object]:
        old = tree["optim"]
        assert isinstance(old, dict)
        return {"optim": {"lr": old["learning_rate"]}}

    path = tmp_path / "config.yaml"
    for text in (
        "schema_version: 1\nrate: 0.5\n",
        "schema_version: 2\noptim: {learning_rate: 0.5}\n",
        "schema_version: 3\noptim: {lr: 0.5}\n",
    ):
        path.write_text(text)
        assert load(path, migrations=(rename, move)).optim.lr == 0.5
    path.write_text("schema_version: 4\n")
    with pytest.raises(UserError, match="newer"):
        load(path, migrations=(rename, move))


def test_where_caches_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = parse({}).data
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ABLATE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir(data) == tmp_path / ".cache" / "ablate"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir(data) == Path("/xdg/ablate")
    monkeypatch.setenv("ABLATE_CACHE", "/own")
    assert cache_dir(data) == Path("/own")
    assert cache_dir(parse({"data": {"cache": "~/c"}}).data) == tmp_path / "c"


def test_importing_and_loading_need_neither_hydra_nor_torch(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(dump(parse({})))
    code = (
        "import sys, pathlib, ablate.config as c\n"
        "c.run_id(c.load(pathlib.Path(sys.argv[1])), 'x')\n"
        "heavy = {'hydra', 'omegaconf', 'torch', 'numpy', 'rich', 'datasets'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
