"""Every mistake gets one clear error before anything starts: the key, what is allowed, what to type."""

import pytest

from ablate.config import ConfigError, UserError, compose, expand, parse, to_dict

# overrides, then what the message must hold
REFUSED: list[tuple[str, list[str]]] = [
    # unknown keys
    ("optim.lrr=1", ["unknown setting optim.lrr", "try: optim.lr=1"]),
    ("model.biass=all", ["try: model.bias=all"]),
    ("biass=all", ["try: model.bias=all"]),
    ("lr=1", ["try: optim.lr=1"]),
    ("eps=1e-6", ["model.eps=1e-06 or optim.eps=1e-06"]),
    ("optim.learning_rate=1", ["try: optim.lr=1"]),
    ("d_model=32", ["try: model.width=32"]),
    ("+optim.lrr=2", ["unknown setting optim.lrr", "try: optim.lr=2"]),
    ("++optim.lrr=2", ["try: optim.lr=2"]),
    ("+zzzzzz.qqqq=2", ["unknown setting zzzzzz.qqqq", "ablate config --keys"]),
    ("optim.lrr=1,2", ["unknown setting optim.lrr"]),
    ("~optim.lr", ["nothing can be removed"]),
    ("~model", ["nothing can be removed", "try: ablate config --keys"]),
    # groups
    ("modle=tiny", ["try: model=tiny"]),
    ("model=tny", ["model = tny", "modern, olmo2,", "small, tiny", "try: model=tiny"]),
    ("model=[tiny,small]", ["try: model=tiny,small"]),
    ("model={width:3}", ["model takes the name of an option"]),
    ("model=null", ["model = null"]),
    ("model@x=tiny", ["cannot be placed elsewhere"]),
    ("experiment=smok", ["try: experiment=smoke"]),
    ("probe=all", ["probe is a section"]),
    # words
    ("model.norm=rms", ["model.norm = rms", "allowed: layernorm, rmsnorm, none", "try: model.norm=rmsnorm"]),
    ("model.norm=RMSNorm", ["try: model.norm=rmsnorm"]),
    ("model.norm=null", ["model.norm = null", "try: model.norm=none"]),
    ("model.norm=[rmsnorm]", ["model.norm = [rmsnorm]"]),
    ("model.stack=encodr", ["allowed: decoder, encoder, encoder_decoder", "try: model.stack=encoder"]),
    # numbers
    ("optim.steps=1e3", ["optim.steps = 1000.0", "try: optim.steps=1000"]),
    ("optim.steps=1000.0", ["try: optim.steps=1000"]),
    ("optim.steps='10'", ["try: optim.steps=10"]),
    ("optim.steps=0", ["a whole number ≥ 1"]),
    ("optim.steps=true", ["a whole number ≥ 1"]),
    ("model.width=99999999999999999999", ["below 2**63"]),
    ("seed=-1", ["≥ 0"]),
    ("seed=null", ["seed = null", "try: seed=0"]),
    ("optim.lr=nan", ["optim.lr = nan", "finite"]),
    ("optim.lr=inf", ["finite"]),
    ("optim.lr=1e400", ["optim.lr = inf", "finite"]),
    ("optim.lr=-1", ["a number > 0"]),
    ("optim.lr=0", ["a number > 0"]),
    ("optim.lr=abc", ["optim.lr = abc", "a number > 0"]),
    ("optim.lr=true", ["optim.lr = true"]),
    ("optim.lr=[1,2]", ["optim.lr = [1,2]"]),
    ("optim.lr={a:1}", ["optim.lr"]),
    ("optim.beta1=1", ["≥ 0 and < 1"]),
    ("model.qk_norm=yes", ["true or false", "try: model.qk_norm=true"]),
    ("model.qk_norm=0", ["try: model.qk_norm=false"]),
    ("optim.warmup=1.5", ["steps (a whole number), or a fraction"]),
    ("optim.warmup=-0.1", ["≥ 0"]),
    # texts
    ("data.name=5", ["data.name = 5", "text"]),
    ("data.paths=docs/*.md", ["try: data.paths='[docs/*.md]'"]),
    ("data.paths=[1]", ["data.paths = [1]", "try: data.paths='[\"1\"]'"]),
    ("data.paths=[a,2]", ["try: data.paths='[a,\"2\"]'"]),
    ("run.notes='a\u202eb'", ["run.notes = 'a\\u202eb'", "without control characters"]),
    # absurd sizes
    (f"optim.lr={'9' * 400}", ["optim.lr = 999", "finite"]),
    ("data=synthetic data.tokens=9223372036854775807", ["data.tokens = 9223372036854775807", "≤ 1e+09"]),
    ("data.vocab_size=9223372036854775807", ["data.vocab_size", "≤ 1e+07"]),
    ("optim.steps=9223372036854775807", ["optim.steps", "≤ 1e+09"]),
    ("model.width=9223372036854775807", ["model.width", "≤ 1e+06"]),
    ("sweep.retries=9223372036854775807", ["sweep.retries", "≤ 100"]),
    # grammar
    ("optim.lr", ["cannot read the override 'optim.lr'", "optim.lr=…"]),
    ("optim.lr=1,2,", ["cannot read the override 'optim.lr=1,2,'", "no space after a comma: optim.lr=a,b"]),
    ("", ["cannot read the override ''"]),
    ("--lr=3", ["cannot read the override '--lr=3'"]),
    ("bias_stabilty", ["try: experiment=bias_stability"]),
    ("optim.lr=[1e-3,1e-2]", ["optim.lr = [0.001,0.01]", "try: optim.lr=0.001,0.01"]),
    ("seed=[0,1]", ["seed = [0,1]", "try: seed=0,1"]),
    ("seed=0..3", ["seed = 0..3", "try: seed='range(0,4)'"]),
    ("seed=0-3", ["try: seed='range(0,4)'"]),
    ("hydra.run.dir=x", ["Hydra's own settings"]),
    ("hydra/launcher=x", ["Hydra's own settings"]),
    # between settings
    ("model.heads=3", ["model.heads = 3", "1, 2, 4, 8, 16, 32, 64", "model.head_dim"]),
    ("model.kv_heads=3", ["model.kv_heads = 3", "1, 2, 4"]),
    ("model.position=rope model.head_dim=3", ["model.head_dim = 3", "even"]),
    ("model.position=sinusoidal model.width=63 model.head_dim=8", ["model.width = 63", "even"]),
    ("model.window=65", ["model.window = 65", "model.context = 64"]),
    ("model.norm=none model.placement=post", ["model.placement = post", "try: model.placement=pre"]),
    ("model.norm=none model.placement=peri", ["model.placement = peri"]),
    ("model.norm=none model.placement=sublayer", ["model.placement = sublayer"]),
    ("model.norm=none model.embed_norm=true", ["model.embed_norm = true"]),
    ("model.norm=none model.final_norm=true", ["model.final_norm = true"]),
    ("optim.accumulation=3", ["optim.accumulation = 3", "1, 2, 4, 8, 16"]),
    ("optim.warmup=201", ["optim.warmup = 201", "optim.steps = 200"]),
    ("optim=wsd optim.warmup=0.9", ["optim.cooldown = 40", "try: optim.cooldown=20"]),
    ("data=text", ["data.paths = []", "data.source=text"]),
    ("data=hub", ["data.name = null"]),
    ("data.paths=[a]", ["data.paths = [a]", "try: data.source=text"]),
    ("data.tokens=5", ["try: data.source=synthetic"]),
    ("data=hub data.name=x data.paths=[a]", ["data.paths = [a]"]),
    ("data=synthetic data.tokenizer=t.json", ["data.tokenizer = t.json"]),
    ("data=synthetic data.branching=600", ["data.branching = 600", "512"]),
    ("study=../x", ["study = ../x", "try: study=x"]),
    ("study=a/b", ["try: study=a-b"]),
    ("study=..", ["study = .."]),
    ("study=requests", ["study = requests", "another name"]),
    ("run.root=", ["run.root = ''"]),
    # bias
    ("model.bias=[gate]", ["model.bias = [gate]", "model.activation=swiglu"]),
    ("model.bias=[linear,qk_norm]", ["model.qk_norm=true"]),
    ("model.bias=norm model.norm=none", ["norm needs a norm"]),
    ("model.bias=[q,none]", ["none alone"]),
    ("model.bias=null", ["try: model.bias=none"]),
    ("model.bias=[linaer,head]", ["try: model.bias='[linear,head]'"]),
    ("model.bias=3", ["model.bias = 3"]),
    # one run
    ("optim.lr=1,2", ["2 runs", "ablate sweep"]),
    ("experiment=smoke", ["8 runs", "model.placement", "ablate sweep"]),
]


@pytest.mark.parametrize(("line", "expected"), REFUSED, ids=[line for line, _ in REFUSED])
def test_refused(line: str, expected: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        compose(line.split(" ") if line else [""])
    for part in expected:
        assert part in str(caught.value)


ACCEPTED = [
    "optim.lr=1",
    "+optim.lr=1",
    "++optim.lr=1",
    "+model=tiny",
    "experiment=null",
    "experiment=smoke model.bias=none model.placement=pre optim.lr=1e-3",
    "model.heads=3 model.head_dim=5",
    "model.window=64",
    "model.window=null",
    "optim.warmup=200",
    "optim=wsd optim.warmup=0.8",
    "optim.warmup=0.5 optim.cooldown=0.9",  # cooldown is wsd's alone
    "model.norm=none",
    "model.parallel=true model.placement=peri",
    "model.activation=swiglu model.bias=[gate]",
    "data=text data.paths=[docs/*.md]",
    "data=hub data.name=x data.split='train[:10%]'",
    "study=a.b-c_1",
]


@pytest.mark.parametrize("line", ACCEPTED)
def test_accepted(line: str) -> None:
    config = compose(line.split(" "))
    assert parse(to_dict(config)) == config


def test_the_last_override_of_a_key_counts() -> None:
    assert compose(["optim.lr=1,2", "optim.lr=5"]).optim.lr == 5.0
    assert compose(["model=gpt2", "model=tiny"]).model.width == 32


def test_values_stand_above_groups_whatever_their_order() -> None:
    assert compose(["model.width=64", "model=tiny"]).model.width == 64


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"optim": {"lrr": 1}}, "optim.lr"),
        ({"optm": {"lr": 1}}, "unknown setting optm"),
        ({"optim": 3}, "a section"),
        ({"model": {"norm": "rms"}}, "rmsnorm"),
        ({"sweep": {"axes": [1]}}, "a mapping"),
        ({"sweep": {"axes": {"seed": None}}}, "sweep.axes: seed"),
        ({"run": {"root": "a\x00b"}}, "control characters"),
        ({"study": "x\n"}, "control characters"),
    ],
)
def test_raw_trees_are_checked_too(raw: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(raw)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("optim.lr=interval(0,1)", ["interval"]),
        ("optim.lr=shuffle(1,2)", ["order of runs is fixed"]),
        ("optim.lr=range(0,1,0)", ["step not 0"]),
        ("optim.lr=range(1,0)", ["at least one value"]),
        ("seed=range(0,1000000000)", ["at most 100,000"]),
        ("seed=range(0,400) optim.lr=range(1,401)", ["160,000 runs"]),
        ("experiment=smoke,null", ["disagree on study (smoke: smoke, none: default)", "try: study=…"]),
        ("sweep.redo=true,false", ["cannot be swept"]),
        ("run.threads=1,2", ["cannot be swept", "class science"]),
        ("study=a,b", ["cannot be swept"]),
        ("optim.lr=0.1,-1", ["optim.lr = -1", "a number > 0"]),
        ("model.heads=2,3 seed=0,1", ["model.heads = 3", "in the run with model.heads=3 seed=0"]),
        ("model.bias=none,[gate]", ["model.bias = [gate]"]),
        ("sweep.axes={optim.lrr:[1]}", ["unknown setting optim.lrr", "optim.lr"]),
        ("sweep.axes={optim.lr:[]}", ["at least one value"]),
        ("sweep.axes={sweep.redo:[true]}", ["cannot be an axis"]),
        ("sweep.axes={experiment:[smoke]}", ["cannot be an axis"]),
        ('sweep.axes={optim.lr:"interval(0,1)"}', ["interval"]),
        ("model=glob(x*)", ["modern, olmo2,", "small, tiny"]),
    ],
)
def test_refused_sweeps(line: str, expected: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        expand(line.split(" "))
    for part in expected:
        assert part in str(caught.value)
