"""Presets without a reference class against their papers, and the model of 2017 against torch's."""

import math
from collections.abc import Callable

import pytest
import torch
from tests.parity.conftest import Close
from tests.parity.papers import Parameters, gpt3, palm
from tests.parity.parity_models import backward, check_gradients, randomised, tiny, tokens
from torch import Tensor, nn

from ablate.config import ModelConfig

pytestmark = pytest.mark.parity

Paper = Callable[[Tensor, Parameters, ModelConfig], Tensor]


@pytest.mark.parametrize(
    ("preset", "paper", "more"),
    [
        ("palm", palm, ()),
        ("palm_540b", palm, ("model.heads=6",)),  # heads together narrower, then wider than the stream
        ("palm_540b", palm, ()),
        ("gpt3", gpt3, ("model.layers=4",)),
    ],
)
def test_presets_are_what_their_papers_say(
    preset: str, paper: Paper, more: tuple[str, ...], close: Close
) -> None:
    config = tiny(f"model={preset}", *more)
    model = config.model
    length = 16
    assert model.window is None or 1 < model.window < length
    module = randomised(config)
    slow = {name: p.detach().double().requires_grad_() for name, p in module.named_parameters()}
    inputs_BT, targets_BT = tokens(2, length, seed=2), tokens(2, length, seed=3)
    ours = module(inputs_BT)
    theirs = torch.stack([paper(window_T, slow, model) for window_T in inputs_BT])
    close("logits", ours, theirs.float())
    for logits in (ours, theirs):
        backward(logits, targets_BT)
    check_gradients(module, {n: p.grad for n, p in slow.items() if p.grad is not None}, config, close)


class Reference2017(nn.Module):
    """torch.nn.Transformer between embeddings · √d + sinusoids and the transposed embeddings, without the
    norms that torch puts behind each stack (Vaswani et al. 2017 have none).
    """

    def __init__(self, c: ModelConfig, embeddings_VD: Tensor) -> None:
        super().__init__()
        self.embeddings_VD = nn.Parameter(embeddings_VD.clone())
        self.register_buffer("places_TD", sinusoids(c.context, c.width))
        sizes = {"d_model": c.width, "nhead": c.heads, "dim_feedforward": c.ffn, "dropout": 0.0}
        rest = {"activation": "relu", "layer_norm_eps": c.eps, "batch_first": True, "norm_first": False}
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**sizes, **rest), c.layers, norm=None, enable_nested_tensor=False
        )
        decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes, **rest), c.layers, norm=None)
        self.stacks = nn.Transformer(
            c.width, c.heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
        )

    def embedded(self, x_BT: Tensor) -> Tensor:
        width = self.embeddings_VD.shape[1]
        return self.embeddings_VD[x_BT] * math.sqrt(width) + self.places_TD[: x_BT.shape[1]]

    def forward(self, source_BS: Tensor, inputs_BT: Tensor) -> Tensor:
        mask_TT = nn.Transformer.generate_square_subsequent_mask(inputs_BT.shape[1])
        x_BTD = self.stacks(self.embedded(source_BS), self.embedded(inputs_BT), tgt_mask=mask_TT)
        return x_BTD @ self.embeddings_VD.T


def sinusoids(context: int, width: int) -> Tensor:
    """Vaswani et al. 2017, section 3.5."""
    table_TD = torch.empty(context, width)
    for position in range(context):
        for i in range(width // 2):
            angle = position / 10000 ** (2 * i / width)
            table_TD[position, 2 * i], table_TD[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table_TD


def pairs(reference: Reference2017, layers: int) -> list[tuple[Tensor, list[str]]]:
    """Each of torch's parameters with ours in it, by name; its attention biases are none of ours."""
    theirs = dict(reference.stacks.named_parameters())
    found: list[tuple[Tensor, list[str]]] = [(reference.embeddings_VD, ["embed.weight"])]
    for side, ours in (("encoder", "encoder"), ("decoder", "blocks")):
        names = {"linear1": "mlp.up", "linear2": "mlp.down", "norm1": "norm1"}
        attentions = {"self_attn": "attention"}
        if side == "decoder":
            names |= {"norm2": "cross_norm", "norm3": "norm2"}
            attentions["multihead_attn"] = "cross"
        else:
            names["norm2"] = "norm2"
        for i in range(layers):
            there, here = f"{side}.layers.{i}", f"{ours}.{i}"
            for name, own in names.items():
                found += [
                    (theirs[f"{there}.{name}.{kind}"], [f"{here}.{own}.{kind}"])
                    for kind in ("weight", "bias")
                ]
            for name, own in attentions.items():
                qkv = [f"{here}.{own}.{letter}.weight" for letter in "qkv"]
                found += [
                    (theirs[f"{there}.{name}.in_proj_weight"], qkv),
                    (theirs[f"{there}.{name}.out_proj.weight"], [f"{here}.{own}.o.weight"]),
                ]
    return found


@pytest.mark.parametrize("more", [(), ("model.layers=3", "model.eps=1e-3")])
def test_the_transformer_of_2017_is_torchs(more: tuple[str, ...], close: Close) -> None:
    config = tiny("model=transformer", *more)
    module = randomised(config)
    own = dict(module.named_parameters())
    reference = Reference2017(config.model, module.embed.weight.detach())
    linked = pairs(reference, config.model.layers)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            if name.endswith(("in_proj_bias", "out_proj.bias")):
                parameter.zero_()
        for parameter, names in linked:
            parameter.copy_(torch.cat([own[name] for name in names]))
    source_BS, inputs_BT, targets_BT = (tokens(3, n, seed=n) for n in (11, 15, 16))
    ours, theirs = module(inputs_BT, source_BS), reference(source_BS, inputs_BT)
    close("logits", ours, theirs)
    for logits in (ours, theirs):
        backward(logits, targets_BT[:, :15])
    gradients: dict[str, Tensor] = {}
    for parameter, names in linked:
        assert parameter.grad is not None
        gradients |= dict(zip(names, parameter.grad.chunk(len(names)), strict=True))
    check_gradients(module, gradients, config, close)
