"""Each probe against a slow, obvious reference, under accumulation and in bf16."""

import math

import pytest
import torch
from probe_witness import Witness, expected_outputs, expected_samples
from torch.nn.functional import cross_entropy

from ablate.model.parts import Linear
from ablate.probe.meters import ResidualProbe, sampled_queries

BIASED = ("q", "v", "o", "cross_q", "cross_k", "cross_o", "up", "down", "transform", "head", "norm")
CASES = {
    "plain": {},
    "grouped": {"kv_heads": 2, "position": "rope", "qk_norm": True, "norm": "rmsnorm"},
    "window": {"window": 3, "placement": "post", "activation": "swiglu", "tie_embeddings": False},
    "parallel": {"parallel": True, "placement": "peri", "kv_heads": 1, "queries": 16},
    "encoder": {"stack": "encoder", "segments": 2, "head_transform": True, "window": 3, "scale_logits": True},
    "both": {"stack": "encoder_decoder", "position": "rope", "qk_norm": True, "kv_heads": 2},
    "both with a window": {"stack": "encoder_decoder", "window": 2, "window_every": 2, "placement": "post"},
}


def backward(model, tokens):
    """An encoder predicts at three positions; a source is shorter than the window that reads it."""
    stack = model.config.stack
    positions = torch.tensor([0, 2, 5]).expand(len(tokens), 3) if stack == "encoder" else None
    source = tokens.flip(1)[:, :-3] if stack == "encoder_decoder" else None
    targets = tokens.roll(-1, 1)
    targets = targets if positions is None else targets.gather(1, positions)
    cross_entropy(model(tokens, source, positions).flatten(0, 1), targets.flatten()).backward()


@torch.no_grad()
def scale(model, factor):
    for parameter in model.parameters():
        parameter.mul_(factor)


def compare(columns, values, expected, rtol):
    assert set(columns) == set(expected)
    assert len(columns) == len(values)
    for column, value in zip(columns, values.tolist(), strict=True):
        assert value == pytest.approx(float(expected[column]), rel=rtol, abs=rtol), column


def biases_of(model):
    linears = [m for m in model.modules() if isinstance(m, Linear) and m.bias is not None]
    return {m.label: m.bias.detach().double().clone() for m in linears}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_column_under_accumulation(scrambled, tokens, monkeypatch, case, dtype):
    """Two micro-batches of different size and length; the step before is forgotten."""
    model = scrambled(bias=BIASED, **CASES[case])
    if dtype is not torch.float64:
        model.float()
    if dtype is torch.bfloat16:
        model.set_compute_dtype(dtype)
    model.board.begin(sample=True)
    scale(model, 3)  # so that its largest values lie above those of the step that counts
    backward(model, tokens)
    scale(model, 1 / 3)
    witness = Witness(model, monkeypatch)
    model.board.begin(sample=True)
    biases = biases_of(model)
    for part in (tokens[:2], tokens[2:, :7]):
        backward(model, part)
    scale(model, 1.5)  # an update after the backward pass must not show
    rtol = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 2e-2}[dtype]
    compare(
        model.board.columns, model.board.values(), expected_outputs(witness), 1e-5 if rtol == 2e-2 else rtol
    )
    expected = expected_samples(witness, model, biases, model.board.queries)
    compare(model.board.sample_columns, model.board.sample_values(), expected, rtol)


def test_columns_are_named_by_block_and_site(make):
    board = make(layers=1, bias=("o", "norm")).board
    assert board.columns == (
        "out/b00_q",
        "out/b00_k",
        "out/b00_v",
        "out/b00_o",
        "out/b00_up",
        "out/b00_down",
        "out/head",
    )
    assert board.sample_columns == (
        "attn/b00_max_logit",
        "resid/b00_rms",
        "resid/b00_max",
        "resid/b00_kurtosis",
        "logit/max",
        "logit/logz",
        "wx/b00_o",
        "bias/b00_o_norm",
        "bias/b00_o_cos",
        "bias/b00_o_cancellable",
    )
    board = make(layers=1, bias=()).board
    assert board.sample_columns[-1] == "logit/logz"


def test_columns_of_an_encoder_decoder(make):
    board = make(stack="encoder_decoder", layers=1, bias=("cross_v",)).board
    ends = ["q", "k", "v", "o", "up", "down"]
    crossed = ["q", "k", "v", "o", "cross_q", "cross_k", "cross_v", "cross_o", "up", "down"]
    labels = [*(f"e00_{end}" for end in ends), *(f"b00_{end}" for end in crossed), "head"]
    assert board.columns == tuple(f"out/{label}" for label in labels)
    assert board.sample_columns[:5] == (
        "attn/e00_max_logit",
        "attn/b00_max_logit",
        "attn/b00_cross_max_logit",
        "resid/e00_rms",
        "resid/b00_rms",
    )
    assert board.sample_columns[-1] == "bias/b00_cross_v_cancellable"
    board = make(stack="encoder", layers=1, head_transform=True).board
    assert board.columns[-3:] == ("out/b00_down", "out/transform", "out/head")


def test_without_outputs_only_the_cadence_is_recorded(make, tokens):
    silent, full = make(outputs=False), make()
    for model in (silent, full):
        model.board.begin(sample=True)
        model(tokens)
    assert silent.board.columns == ()
    assert silent.board.values().shape == (0,)
    assert torch.equal(silent.board.sample_values(), full.board.sample_values())


def test_sampled_queries_are_even_and_end_at_the_last():
    device = torch.device("cpu")
    assert sampled_queries(8, 3, device).tolist() == [1, 4, 7]
    assert sampled_queries(128, 4, device).tolist() == [31, 63, 95, 127]
    assert sampled_queries(5, 16, device).tolist() == [0, 1, 2, 3, 4]
    assert sampled_queries(7, 1, device).tolist() == [6]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_probes_do_not_change_training(make, tokens, dtype):
    gradients = []
    for mode in ("never", "dense", "sample"):
        model = make(bias=BIASED, position="rope", qk_norm=True)
        model.set_compute_dtype(dtype)
        if mode != "never":
            model.board.begin(sample=mode == "sample")
        logits = model(tokens)
        cross_entropy(logits.flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()
        gradients.append([logits, *(p.grad for p in model.parameters())])
    for others in gradients[1:]:
        assert all(torch.equal(one, other) for one, other in zip(gradients[0], others, strict=True))


def test_evaluation_leaves_no_trace(make, tokens):
    model = make()
    model(tokens)  # before the first step: not recorded
    model.board.begin(sample=True)
    model(tokens)
    before = [model.board.values(), model.board.sample_values()]
    with model.board.paused():
        model(tokens.flip(1)[:, :5])
    with pytest.raises(ZeroDivisionError), model.board.paused():
        raise ZeroDivisionError
    after = [model.board.values(), model.board.sample_values()]
    assert all(torch.equal(x, y) for x, y in zip(before, after, strict=True))
    model(tokens.flip(1))
    assert not torch.equal(model.board.values(), before[0])


def test_a_step_without_samples_leaves_none_to_read(make, tokens):
    model = make()
    model.board.begin(sample=False)
    model(tokens)
    with pytest.raises(AssertionError):
        model.board.sample_values()


def test_a_zero_bias_has_no_direction(make, tokens):
    model = make(bias=("up", "down"))
    with torch.no_grad():
        model.blocks[0].mlp.up.bias.fill_(0.3)
    model.board.begin(sample=True)
    model(tokens)
    values = dict(zip(model.board.sample_columns, model.board.sample_values().tolist(), strict=True))
    assert (
        values["bias/b00_down_norm"]
        == values["bias/b00_down_cos"]
        == values["bias/b00_down_cancellable"]
        == 0
    )
    assert values["bias/b00_up_cancellable"] == pytest.approx(1)
    assert values["wx/b00_down"] > 0


def test_not_a_number_passes_through_from_where_it_arises(make, tokens):
    model = make()
    with torch.no_grad():
        model.blocks[1].mlp.up.weight[0, 0] = torch.nan
    model.board.begin(sample=True)
    model(tokens)
    columns = model.board.columns + model.board.sample_columns
    values = dict(
        zip(columns, [*model.board.values().tolist(), *model.board.sample_values().tolist()], strict=True)
    )
    for column in (
        "out/b01_up",
        "out/b01_down",
        "out/head",
        "resid/b01_rms",
        "resid/b01_max",
        "logit/max",
        "logit/logz",
    ):
        assert math.isnan(values[column]), column
    for column in ("out/b01_o", "resid/b00_rms", "attn/b01_max_logit"):
        assert math.isfinite(values[column]), column


def test_a_huge_but_finite_stream_is_measured():
    probe = ResidualProbe("b00", 4)
    x = torch.tensor([[[1e15, -3e15, 0.0, 2e15]]])
    probe.record(x)
    assert probe.largest.value.item() == pytest.approx(3e15)
    assert (probe.squares.value / 4).sqrt().item() == pytest.approx((14 / 4) ** 0.5 * 1e15)
    kurtosis = probe.fourths.value / 4 / (probe.squares.value / 4) ** 2
    assert kurtosis.item() == pytest.approx((98 / 4) / (14 / 4) ** 2)
    probe.record(torch.zeros(1, 1, 4))
    assert probe.squares.value.isfinite()


def test_accumulators_are_no_part_of_the_state(make):
    assert not any("probe" in name or "meter" in name for name in make().state_dict())
