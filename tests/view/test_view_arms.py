"""Factors and arms, from what differs among runs."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from view_runs import made_run

from ablate.view import Arms


def labels(runs: list) -> list[str]:
    arms = Arms.of(runs)
    return [arms.label(run) for run in runs]


def factor_keys(runs: list) -> list[str]:
    return [factor.key for factor in Arms.of(runs).factors]


def test_learning_rate_and_seed_make_no_arms() -> None:
    runs = [
        made_run(i, {"optim.lr": lr, "seed": s}) for i, (lr, s) in enumerate([(0.1, 0), (0.2, 0), (0.1, 1)])
    ]
    assert labels(runs) == ["-", "-", "-"]
    assert factor_keys(runs) == ["optim.lr", "seed"]


def test_consequences_of_a_factor_are_left_out() -> None:
    runs = [made_run(i, {"model.placement": p, "model.width": w}) for i, (p, w) in
            enumerate(itertools.product(["pre", "post"], [64, 128]))]  # fmt: skip
    assert factor_keys(runs) == ["model.width", "model.placement"]
    assert labels(runs)[0] == "width=64 placement=pre"


def test_a_consequence_that_varies_on_its_own_is_a_factor() -> None:
    runs = [made_run(0, {"model.final_norm": True}), made_run(1, {"model.final_norm": False})]
    assert labels(runs) == ["final_norm=true", "final_norm=false"]


def test_batch_order_seed_that_does_not_follow_the_seed_is_a_factor() -> None:
    runs = [made_run(0, {"data.data_seed": 0}), made_run(1, {"data.data_seed": 1})]
    assert labels(runs) == ["data_seed=0", "data_seed=1"]


def test_warmup_that_follows_from_the_steps_is_left_out() -> None:
    runs = [made_run(0, {"optim.steps": 100}), made_run(1, {"optim.steps": 300})]
    assert labels(runs) == ["steps=100", "steps=300"]


def test_biases_are_named_by_their_word_across_models_with_other_sites() -> None:
    grid = itertools.product(["none", "all"], ["gelu", "swiglu"], ["layernorm", "none"])
    runs = [
        made_run(i, {"model.bias": [b], "model.activation": a, "model.norm": n})
        for i, (b, a, n) in enumerate(grid)
    ]
    found = labels(runs)
    assert found[0] == "bias=none norm=layernorm activation=gelu"
    assert {label.split()[0] for label in found} == {"bias=none", "bias=all"}
    assert len(set(found)) == len(runs)


def test_bias_sites_without_a_word_are_listed() -> None:
    runs = [made_run(0, {"model.bias": ["v", "o"]}), made_run(1, {"model.bias": ["all"]})]
    assert labels(runs) == ["bias=[v,o]", "bias=all"]


def test_keys_that_end_alike_are_written_whole() -> None:
    runs = [
        made_run(i, {"model.eps": e, "optim.eps": f}) for i, (e, f) in enumerate([(1e-5, 1e-8), (1e-6, 1e-9)])
    ]
    assert labels(runs)[0] == "model.eps=1e-05 optim.eps=1e-08"


def test_other_data_under_the_same_keys_are_another_arm() -> None:
    same = [made_run(0, fingerprint="a" * 64), made_run(1, {"seed": 1}, fingerprint="a" * 64)]
    assert labels(same) == ["-", "-"]
    other = [made_run(0, fingerprint="a" * 64), made_run(1, {"seed": 1}, fingerprint="b" * 64)]
    assert labels(other) == ["data=aaaaaaaa", "data=bbbbbbbb"]
    alike = [made_run(i, fingerprint="a" * 10 + digit * 54) for i, digit in enumerate("bc")]
    assert labels(alike) == ["data=" + "a" * 10 + "b", "data=" + "a" * 10 + "c"]
    begun = [*other, made_run(2, {"seed": 2}, fingerprint=None)]
    assert labels(begun)[2] == "data=?"


def test_data_that_a_key_tells_apart_are_not_named_again() -> None:
    runs = [
        made_run(0, {"data.source": "text", "data.paths": ["a.md"]}, fingerprint="a" * 64),
        made_run(1, {"data.source": "stdlib"}, fingerprint="b" * 64),
    ]
    assert labels(runs) == ["source=text", "source=stdlib"]


def test_paths_are_no_factor_only_what_they_hold() -> None:
    runs = [
        made_run(i, {"data.source": "text", "data.paths": [f"{name}.md"]}, fingerprint=name * 64)
        for i, name in enumerate("ab")
    ]
    assert factor_keys(runs) == ["data"]
    assert labels(runs) == ["data=aaaaaaaa", "data=bbbbbbbb"]


def test_arms_by_study_do_not_depend_on_other_studies() -> None:
    first = [made_run(i, {"model.placement": p}) for i, p in enumerate(["pre", "post"])]
    second = [
        made_run(9 + i, {"model.width": w, "data.source": "synthetic"}, study="t", fingerprint="e" * 64)
        for i, w in enumerate([32, 128])
    ]
    arms = Arms.by_study([*first, *second])
    found = [arms.label(run) for run in [*first, *second]]
    assert found == ["placement=pre", "placement=post", "width=32", "width=128"]


CHOICES = {
    "model.preset": [None, "gpt2", "llama"],
    "model.placement": ["pre", "post", "peri"],
    "model.norm": ["layernorm", "rmsnorm"],
    "model.qk_norm": [False, True],
    "model.bias": [["none"], ["all"], ["v"]],
    "model.activation": ["gelu", "swiglu"],
    "optim.steps": [100, 200],
    "optim.lr": [0.1, 0.2],
    "seed": [0, 1],
}


@settings(deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({key: st.sampled_from(v) for key, v in CHOICES.items()}), min_size=1, max_size=8
    )
)
def test_runs_of_one_arm_differ_in_learning_rate_and_seed_only(changes: list[dict[str, object]]) -> None:
    runs = [made_run(i, change) for i, change in enumerate(changes)]
    arms = Arms.of(runs)
    apart = ("optim.lr", "seed", "data.data_seed", "model.preset")
    for a, b in itertools.combinations(runs, 2):
        rest = [{k: v for k, v in run.flat.items() if k not in apart} for run in (a, b)]
        assert (arms.label(a) == arms.label(b)) == (rest[0] == rest[1])
