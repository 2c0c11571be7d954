"""What is known of published architectures beyond their configuration: counts, sources, remarks.

A preset of conf/model/ says how a model is built; this says what was published about it. Nothing here enters
a run: `ablate params` and docs/architectures.md print it beside what the built models have.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

EXACT = re.compile(r"\d{1,3}(,\d{3})*")
ROUNDED = re.compile(r"(\d+)(?:\.(\d+))?([MB])")
SCALES = {"M": 10**6, "B": 10**9}


@dataclass(frozen=True)
class Published:
    """A published parameter count as printed: `124,439,808`, or `8.63B`.

    `of`: where, and what it counts. `beyond`: parts with their sizes that it counts and the model trained
    here does not have.
    """

    count: str
    of: str
    beyond: Mapping[str, int] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Is it printed to the unit?"""
        return EXACT.fullmatch(self.count) is not None

    def agrees(self, parameters: int) -> bool:
        """Is it the count of a model with so many parameters, `beyond` added: to the unit where it is printed
        so, else rounded or cut to the printed digits?
        """
        whole = parameters + sum(self.beyond.values())
        if self.exact:
            return whole == int(self.count.replace(",", ""))
        return abs(whole - self.value) < self._unit()

    @property
    def value(self) -> int:
        """The printed number."""
        if self.exact:
            return int(self.count.replace(",", ""))
        digits = re.sub("[.MB]", "", self.count)
        return int(digits) * self._unit()

    def _unit(self) -> int:
        match = ROUNDED.fullmatch(self.count)
        assert match is not None, self.count
        return SCALES[match[3]] // int("1" + "0" * len(match[2] or ""))


@dataclass(frozen=True)
class Architecture:
    """One published model: its name, year and source, what was published of its size, and a remark."""

    title: str
    year: int
    source: str
    published: Published
    note: str = ""


_BERT_EXTRA = "google-research/bert's pre-training model: with the pooler and the next-sentence head"
_GPT3 = "Brown et al. 2020, arXiv 2005.14165, table 2.1"
_PALM = "Chowdhery et al. 2022, arXiv 2204.02311, table 1"
_GPT2 = "Radford et al. 2019; openai/gpt-2"
_WEIGHTS = "the released weights"


def _bert(width: int) -> dict[str, int]:
    """Pooler (a square linear) and next-sentence head (two classes), with their biases."""
    return {"pooler": width * width + width, "next-sentence head": 2 * width + 2}


ARCHITECTURES: Mapping[str, Architecture] = {
    "transformer": Architecture(
        "Transformer base",
        2017,
        "Vaswani et al. 2017, arXiv 1706.03762; biases and eps from tensor2tensor",
        Published("65M", "table 3; 63,045,632 with a vocabulary of exactly 37,000"),
        "The paper's vocabulary is about 37,000 (English–German), its count rounded.",
    ),
    "transformer_big": Architecture(
        "Transformer big",
        2017,
        "Vaswani et al. 2017, arXiv 1706.03762; biases and eps from tensor2tensor",
        Published("213M", "table 3, English–German"),
        "As for base.",
    ),
    "bert": Architecture(
        "BERT base, uncased",
        2018,
        "Devlin et al. 2018, arXiv 1810.04805; google-research/bert",
        Published("110,106,428", _BERT_EXTRA, _bert(768)),
        "The encoder with its pooler alone has 109,482,240; the paper prints 110M.",
    ),
    "bert_large": Architecture(
        "BERT large, uncased",
        2018,
        "Devlin et al. 2018, arXiv 1810.04805; google-research/bert",
        Published("336,226,108", _BERT_EXTRA, _bert(1024)),
        "The encoder with its pooler alone has 335,141,888; the paper prints 340M.",
    ),
    "gpt2": Architecture(
        "GPT-2 small",
        2019,
        _GPT2,
        Published("124,439,808", _WEIGHTS),
        "The paper prints 117M; the repository calls that an error.",
    ),
    "gpt2_medium": Architecture(
        "GPT-2 medium",
        2019,
        _GPT2,
        Published("354,823,168", _WEIGHTS),
        "The paper prints 345M.",
    ),
    "gpt2_large": Architecture(
        "GPT-2 large",
        2019,
        _GPT2,
        Published("774,030,080", _WEIGHTS),
        "The paper prints 762M.",
    ),
    "gpt2_xl": Architecture(
        "GPT-2 XL",
        2019,
        _GPT2,
        Published("1,557,611,200", _WEIGHTS),
        "The paper prints 1542M.",
    ),
    "gpt3": Architecture(
        "GPT-3 small",
        2020,
        _GPT3,
        Published("125M", "table 2.1"),
        "Dense and locally banded attention alternate; the band's width is not published.",
    ),
    "gpt3_175b": Architecture(
        "GPT-3 175B",
        2020,
        _GPT3,
        Published("174.6B", "table D.1 (174,600 million); table 2.1 rounds to 175.0B"),
        "As for small.",
    ),
    "palm": Architecture(
        "PaLM 8B",
        2022,
        _PALM,
        Published("8.63B", "table 1"),
        "No bias anywhere, not in the norms either. Its eps is not published.",
    ),
    "palm_62b": Architecture("PaLM 62B", 2022, _PALM, Published("62.50B", "table 1"), "As for 8B."),
    "palm_540b": Architecture(
        "PaLM 540B",
        2022,
        _PALM,
        Published("540.35B", "table 1"),
        "All heads together (48 × 256) are narrower than the stream (18,432).",
    ),
    "llama": Architecture(
        "LLaMA 7B",
        2023,
        "Touvron et al. 2023, arXiv 2302.13971; meta-llama/llama",
        Published("6,738,415,616", f"{_WEIGHTS}; the paper prints 6.7B"),
        "The paper says nothing on biases; the code has none.",
    ),
    "llama2": Architecture(
        "LLaMA 2 7B",
        2023,
        "Touvron et al. 2023, arXiv 2307.09288; meta-llama/llama",
        Published("6,738,415,616", _WEIGHTS),
        "LLaMA with another eps and context.",
    ),
    "llama3": Architecture(
        "LLaMA 3 8B",
        2024,
        "Grattafiori et al. 2024, arXiv 2407.21783; meta-llama/llama3",
        Published("8,030,261,248", _WEIGHTS),
    ),
    "mistral": Architecture(
        "Mistral 7B v0.1",
        2023,
        "Jiang et al. 2023, arXiv 2310.06825; mistralai/mistral-inference",
        Published("7,241,732,096", _WEIGHTS),
        "Attention in a window of 4,096 tokens in every block.",
    ),
    "qwen": Architecture(
        "Qwen 7B",
        2023,
        "Bai et al. 2023, arXiv 2309.16609; QwenLM/Qwen",
        Published("7,721,324,544", _WEIGHTS),
        "Bias on q, k and v alone, kept for extrapolation to longer texts. The released configuration's "
        "intermediate_size of 22,016 is twice the width of the MLP.",
    ),
    "qwen2": Architecture(
        "Qwen2 7B",
        2024,
        "Yang et al. 2024, arXiv 2407.10671",
        Published("7,615,616,512", _WEIGHTS),
        "Bias on q, k and v, as in Qwen, Qwen1.5 and Qwen2.5.",
    ),
    "qwen3": Architecture(
        "Qwen3 8B",
        2025,
        "Yang et al. 2025, arXiv 2505.09388",
        Published("8,190,735,360", _WEIGHTS),
        "The biases of q, k and v are gone; queries and keys are normed instead.",
    ),
    "olmo2": Architecture(
        "OLMo 2 7B",
        2024,
        "OLMo team 2024, arXiv 2501.00656",
        Published("7,298,617,344", _WEIGHTS),
        "The norm of queries or keys spans all heads of a token.",
    ),
    "gpt_neox": Architecture(
        "GPT-NeoX 20B",
        2022,
        "Black et al. 2022, arXiv 2204.06745; EleutherAI/gpt-neox",
        Published(
            "20,556,201,984",
            "the model card; trained on two tensor-parallel ranks, it counts what both hold twice",
            {"norms and biases of o and down once more": (44 * 6 + 2) * 6144},
        ),
        "The weights themselves are 20,554,567,680.",
    ),
}
