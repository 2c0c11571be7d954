"""The whole decoder: embedding, positions, blocks, head.

Legend: B batch, T tokens, D width, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from ablate.config import ModelConfig, Position, ProbeConfig, Site
from ablate.model.block import BLOCKS, Block
from ablate.model.init import initialise
from ablate.model.parts import Build, Embedding, Linear
from ablate.model.position import CausalMask, Rope, sinusoids
from ablate.probe import Board


class Transformer(nn.Module):
    """Token ids [B, T], T ≤ context, to logits [B, T, V] in the type of the parameters.

    Sinusoidal positions are added to embeddings scaled by √width (Vaswani et al. 2017, section 3.4); learned
    ones to embeddings as they are. `embed_norm` follows the sum.
    """

    sinusoids: Tensor | None

    def __init__(self, config: ModelConfig, vocab_size: int, board: Board) -> None:
        super().__init__()
        self.config = config
        self.board = board
        self.meters = nn.ModuleList([board.tokens, board.logits])
        build = Build(config, frozenset(Site(name) for name in config.bias), board)
        self.embed = Embedding("embed", vocab_size, config.width)
        learned = config.position is Position.learned
        self.position = Embedding("position", config.context, config.width) if learned else None
        sinusoidal = config.position is Position.sinusoidal
        table = sinusoids(config.context, config.width) if sinusoidal else None
        self.register_buffer("sinusoids", table, persistent=False)
        self.embed_norm = build.norm("embed_norm") if config.embed_norm else nn.Identity()
        mask = CausalMask(config.window)
        rotary = config.position is Position.rope
        rope = Rope(config.context, config.head_dim, config.rope_theta) if rotary else None
        block = BLOCKS[config.placement, config.parallel]
        self.blocks = nn.ModuleList(block(build, index, mask, rope) for index in range(config.layers))
        self.final_norm = build.norm("final_norm") if config.final_norm else nn.Identity()
        self.head = build.linear(Site.head, "head", config.width, vocab_size)
        if config.tie_embeddings:
            self.head.weight = self.embed.weight

    def forward(self, x_BT: Tensor) -> Tensor:
        if self.board.recording:
            self.board.tokens.add(x_BT.numel())
        x_BTD = self.embed_norm(self.embedded(x_BT))
        for block in self.blocks:
            x_BTD = block(x_BTD)
        logits_BTV: Tensor = self.head(self.final_norm(x_BTD)).to(self.embed.weight.dtype)
        if self.board.sampling:
            self.board.logits.record(logits_BTV)
        return logits_BTV

    def embedded(self, x_BT: Tensor) -> Tensor:
        x_BTD: Tensor = self.embed(x_BT)
        tokens = x_BT.shape[1]
        if self.position is not None:
            return x_BTD + self.position.weight[:tokens]
        if self.sinusoids is not None:
            return x_BTD * math.sqrt(self.config.width) + self.sinusoids[:tokens]
        return x_BTD

    def set_compute_dtype(self, dtype: torch.dtype | None) -> None:
        """The type of matrix products and attention (None: that of the parameters, which never change)."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.compute_dtype = dtype


def build(model: ModelConfig, vocab_size: int, seed: int, probe: ProbeConfig) -> Transformer:
    """An initialised model on the CPU in fp32. `model` has its derived fields filled, and sites as `bias`."""
    transformer = Transformer(model, vocab_size, Board(probe.outputs, probe.queries))
    initialise(transformer, model, seed)
    return transformer


def compile_blocks(model: Transformer) -> None:
    """Compile each block in place (parameter names stay); equal blocks share their graphs."""
    for block in model.blocks:
        assert isinstance(block, Block)
        block.compile(fullgraph=True, dynamic=False)
