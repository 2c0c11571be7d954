"""The whole model: embedding, positions, stacks of blocks, head.

Legend: B batch, T tokens, S tokens of a source, M predicted tokens, D width, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from ablate.config import ModelConfig, Position, ProbeConfig, Site, Stack
from ablate.model.block import Block
from ablate.model.init import initialise
from ablate.model.mlp import ACTIVATIONS
from ablate.model.parts import Build, Embedding, Linear
from ablate.model.position import Mask, Rope, sinusoids
from ablate.probe import Board, Tokens

GRAPHS = 4  # of one kind of block: for training, cadence steps, evaluation and its last, smaller batch


class Transformer(nn.Module):
    """Token ids to logits in the type of the parameters; T and S are at most the context.

    A decoder's tokens see those before them, an encoder's see all. An encoder_decoder has an encoder for the
    source (`encoder`, `encoder_norm`, labels e00 …), whose output every block of its decoder attends to; both
    sides share the embedding, positions and `embed_norm`.

    Sinusoidal positions are added to embeddings scaled by √width (Vaswani et al. 2017, section 3.4); learned
    ones to embeddings as they are. `embed_norm` follows the sum. The head may follow a linear, the MLP's
    activation and a norm (google-research/bert, get_masked_lm_output).
    """

    sinusoids: Tensor | None

    def __init__(self, config: ModelConfig, vocab_size: int, board: Board) -> None:
        super().__init__()
        self.config = config
        self.board = board
        self.meters = nn.ModuleList(board.meters)
        build = Build(config, frozenset(Site(name) for name in config.bias), board)
        self.embed = Embedding("embed", vocab_size, config.width)
        learned = config.position is Position.learned
        self.position = Embedding("position", config.context, config.width) if learned else None
        self.segment = Embedding("segment", config.segments, config.width) if config.segments else None
        sinusoidal = config.position is Position.sinusoidal
        table = sinusoids(config.context, config.width) if sinusoidal else None
        self.register_buffer("sinusoids", table, persistent=False)
        self.embed_norm = build.norm("embed_norm") if config.embed_norm else nn.Identity()
        rope = rope_of(config)
        both = config.stack is Stack.encoder_decoder
        self.encoder = stack(build.over(Tokens.source), "e", rope, causal=False) if both else None
        self.encoder_norm = build.norm("encoder_norm") if both and config.final_norm else nn.Identity()
        self.blocks = stack(build, "b", rope, causal=config.stack is not Stack.encoder, cross=both)
        head = build.over(Tokens.targets)
        self.final_norm = head.norm("final_norm") if config.final_norm else nn.Identity()
        transformed = config.head_transform
        self.transform = (
            head.linear(Site.transform, "transform", config.width, config.width) if transformed else None
        )
        self.transform_norm = head.norm("transform_norm") if transformed else nn.Identity()
        self.activation = ACTIVATIONS[config.activation]
        self.head = head.linear(Site.head, "head", config.width, vocab_size)
        if config.tie_embeddings:
            self.head.weight = self.embed.weight

    def forward(
        self,
        inputs_BT: Tensor,
        source_BS: Tensor | None = None,
        positions_BM: Tensor | None = None,
        segments_BT: Tensor | None = None,
    ) -> Tensor:
        """Logits [B, T, V], or [B, M, V] at the positions given, each in 0 … T − 1.

        `source_BS`: what the encoder of an encoder_decoder reads. `segments_BT`: the segment of each token;
        by default the window is cut into equal parts in order.
        """
        assert (source_BS is None) == (self.encoder is None), "a source is what an encoder_decoder needs"
        self.count(inputs_BT, source_BS, positions_BM)
        memory_BSD = None if source_BS is None else self.encoded(source_BS)
        x_BTD = self.embedded(inputs_BT, segments_BT)
        for block in self.blocks:
            x_BTD = block(x_BTD) if memory_BSD is None else block(x_BTD, memory_BSD)
        if positions_BM is not None:
            x_BTD = x_BTD.gather(1, positions_BM[..., None].expand(-1, -1, x_BTD.shape[-1]))
        logits_BMV = self.predicted(x_BTD)
        if self.board.sampling:
            self.board.logits.record(logits_BMV)
        return logits_BMV

    def count(self, inputs_BT: Tensor, source_BS: Tensor | None, positions_BM: Tensor | None) -> None:
        """Tell the board how many tokens pass."""
        if self.board.recording:
            tokens = self.board.tokens
            tokens[Tokens.inputs].add(inputs_BT.numel())
            tokens[Tokens.targets].add((inputs_BT if positions_BM is None else positions_BM).numel())
            if source_BS is not None:
                tokens[Tokens.source].add(source_BS.numel())

    def encoded(self, source_BS: Tensor) -> Tensor:
        """What the decoder attends to, [B, S, D]."""
        assert self.encoder is not None
        x_BSD = self.embedded(source_BS)
        for block in self.encoder:
            x_BSD = block(x_BSD)
        memory_BSD: Tensor = self.encoder_norm(x_BSD)
        return memory_BSD

    def embedded(self, x_BT: Tensor, segments_BT: Tensor | None = None) -> Tensor:
        """The residual stream before the first block."""
        x_BTD: Tensor = self.embed(x_BT)
        tokens = x_BT.shape[1]
        if self.position is not None:
            x_BTD = x_BTD + self.position.weight[:tokens]
        if self.sinusoids is not None:
            x_BTD = x_BTD * math.sqrt(self.config.width) + self.sinusoids[:tokens]
        if self.segment is not None:
            if segments_BT is None:
                segments_BT = torch.arange(tokens, device=x_BT.device) * self.config.segments // tokens
            x_BTD = x_BTD + self.segment(segments_BT)
        else:
            assert segments_BT is None, "segments are for a model with segment embeddings"
        normed_BTD: Tensor = self.embed_norm(x_BTD)
        return normed_BTD

    def predicted(self, x_BMD: Tensor) -> Tensor:
        """Logits from the residual stream behind the last block."""
        x_BMD = self.final_norm(x_BMD)
        if self.transform is not None:
            x_BMD = self.transform_norm(self.activation(self.transform(x_BMD)))
        logits_BMV: Tensor = self.head(x_BMD).to(self.embed.weight.dtype)
        return logits_BMV / math.sqrt(self.config.width) if self.config.scale_logits else logits_BMV

    def set_compute_dtype(self, dtype: torch.dtype | None) -> None:
        """The type of matrix products and attention (None: that of the parameters, which never change)."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.compute_dtype = dtype


def rope_of(config: ModelConfig) -> Rope | None:
    """The rotation that all self-attentions of a model share."""
    if config.position is not Position.rope:
        return None
    return Rope(config.context, round(config.rope_share * config.head_dim), config.rope_theta)


def stack(build: Build, prefix: str, rope: Rope | None, causal: bool, cross: bool = False) -> nn.ModuleList:
    """The blocks of one side; the window holds in every `window_every`-th."""
    config = build.config
    windows = (
        config.window if (index + 1) % config.window_every == 0 else None for index in range(config.layers)
    )
    return nn.ModuleList(
        Block(build, f"{prefix}{index:02d}", Mask(causal, window), rope, cross)
        for index, window in enumerate(windows)
    )


def build(model: ModelConfig, vocab_size: int, seed: int, probe: ProbeConfig) -> Transformer:
    """An initialised model on the CPU in fp32. `model` has its derived fields filled, and sites as `bias`."""
    transformer = Transformer(model, vocab_size, Board(probe.outputs, probe.queries))
    initialise(transformer, model, seed)
    return transformer


def compile_blocks(model: Transformer) -> None:
    """Compile each block in place (parameter names stay); equal blocks share their graphs."""
    from torch._dynamo import config as dynamo  # half a second, for those who compile

    blocks = [module for module in model.modules() if isinstance(module, Block)]
    kinds = {(block.attention.mask, block.cross is None) for block in blocks}
    dynamo.recompile_limit = max(dynamo.recompile_limit, GRAPHS * len(kinds))
    for block in blocks:
        block.compile(fullgraph=True, dynamic=False)
