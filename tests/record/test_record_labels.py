"""Labels of layers: both sides of a model, sites with an underscore, what belongs to no block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.config import Site
from ablate.record import depth_of, site_of
from ablate.record.labels import over_layers


@pytest.mark.parametrize(
    ("label", "site"),
    [("b03_cross_q", "cross_q"), ("e03_down", "down"), ("b100_o", "o"), ("transform", "transform"),
     ("head", "head"), ("b00_qk_norm", "qk_norm"), ("embed_norm", "embed_norm"), ("bare_q", "bare_q")],
)  # fmt: skip
def test_the_site_is_what_follows_the_block(label: str, site: str) -> None:
    assert site_of(label) == site


@given(st.sampled_from(sorted(Site)), st.sampled_from("be"), st.integers(0, 9999))
def test_every_site_is_found_again_in_every_block(site: str, side: str, block: int) -> None:
    assert site_of(f"{side}{block:02d}_{site}") == site_of(site) == site


def test_labels_sort_along_the_way_through_the_model() -> None:
    way = ["e00_q", "e01_q", "e10_q", "b00_q", "b02_q", "b100_q", "head"]
    assert sorted(["head", "b100_q", *way[:5]], key=depth_of) == way


def test_columns_lose_their_block_and_nothing_else() -> None:
    assert over_layers("attn/e03_max_logit") == over_layers("attn/b03_max_logit") == "attn/max_logit"
    assert over_layers("attn/b00_cross_max_logit") == "attn/cross_max_logit"
    assert over_layers("logit/max") == "logit/max"
