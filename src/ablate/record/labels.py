"""Labels of layers and linears in columns: `e00_q` (encoder side), `b03_cross_q`, `b03_down`, `head`.

`b` counts the blocks of an encoder, of a decoder, or of an encoder_decoder's decoder; `e` those of the
encoder beside it. What belongs to no block stands without a number: `transform`, `head`.
"""

import re

_BLOCK = re.compile(r"([be])([0-9]+)_")


def site_of(label: str) -> str:
    """The label without its block: `cross_q` of `b03_cross_q`, `down` of `e03_down`, `head` of `head`."""
    return _BLOCK.sub("", label, count=1) if _BLOCK.match(label) else label


def depth_of(label: str) -> tuple[int, int]:
    """Sorts labels along the way through a model: the encoder's blocks, the (decoder's) blocks, the rest."""
    block = _BLOCK.match(label)
    if block is None:
        return 2, 0
    return ("e", "b").index(block[1]), int(block[2])


def over_layers(column: str) -> str:
    """What a column is called once the largest over the blocks is taken: `attn/max_logit`."""
    group, slash, label = column.partition("/")
    return f"{group}{slash}{site_of(label)}"
