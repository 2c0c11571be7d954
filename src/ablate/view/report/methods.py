"""How the numbers of the page are made: definitions with their sources, versions, data and hardware."""

from ablate import __version__
from ablate.config import SCIENCE_VERSION
from ablate.view.report.html import section, table_html, text
from ablate.view.report.provenance import Provenance
from ablate.view.table import table

DEFINITIONS = (
    (
        "Pairing",
        "Every parameter is initialised from a generator keyed by seed and name, every batch is a function "
        "of seed and step: arms of one seed differ in the factors alone. The seed is the unit of every "
        "interval and test.",
    ),
    (
        "Verdict",
        "A function of the recorded curve (docs/verdicts.md). Diverged: not finite, or it ends where it "
        "began (the cap of Wortsman et al. 2023, arXiv 2309.14322), or it gave back most of its gain. "
        "Collapsed: it ends near the unigram: learned early and got no further, or blew up and came back "
        "towards it, up to half the gap l0 − u above. Unstable: diverged or collapsed. Impaired: stable or "
        "spiked, but final val above ℓ* + ½(u − ℓ*).",
    ),
    (
        "ℓ*, u, l0",
        "ℓ*: the lowest seed-mean final held-out loss of the study, among arms of the same task (objective, "
        "vocabulary, data) and, where whole models are compared, of the same model. u: cross-entropy of the "
        "held-out tokens under the unigram of the training tokens. l0: the run's own held-out loss at step "
        "0. Losses in nats per token.",
    ),
    (
        "LR sensitivity",
        "Mean over the grid of min(final val, l0) − the arm's lowest, for each seed (Wortsman et al. 2023, "
        "section 2.2); what is not finite counts as l0. Below best: the part from rates below the best "
        "(undertraining), above best: the rest (instability). Blind to the level of the loss: read the "
        "curve beside it.",
    ),
    (
        "LR½",
        "For each arm and seed: the first rate above the arm's best at which the loss crosses ℓ* + ½(u − "
        "ℓ*), linear in ln lr between two rates of the grid. Not crossed: beyond the highest rate (≥); "
        "beyond half way already at the lowest rate: below it (≤). *: a higher rate trains again. In a "
        "difference, edges beyond the rates tried enter at their limit (a restricted mean: Royston & "
        "Parmar 2013).",
    ),
    (
        "LR50",
        "The rate at which half of an arm's runs are unstable: Firth's penalised logistic fit (Firth 1993; "
        "Heinze & Schemper 2002) on ln lr from the arm's best rate upwards, with a profile interval. Where "
        "stable and unstable rates are separated, the bracket is what is known.",
    ),
    (
        "Contrasts",
        "A main effect is the difference between a level and the factor's first level, averaged over the "
        "levels of the other factors within each seed; an interaction is the difference of two such "
        "differences (Box, Hunter & Hunter 2005, chapter 5). Where arms have different tasks, each task has "
        "contrasts of its own. Effects within a model (simple effects) are averaged over no other model and "
        "belong to the same family of tests. Differences of LR½ are those of ln LR½, "
        "printed as ratios.",
    ),
    (
        "Intervals",
        "95 %, over seeds. Fewer than 5 seeds: none. 5 to 15: Student's t of the paired differences, with "
        "the exact sign-flip interval beside it. From 16: Student's t and the studentised "
        "bootstrap over seeds together (Efron & Tibshirani 1993, 12.5).",
    ),
    (
        "Tests",
        "Paired t; exact sign-flip test of the mean; exact sign test; each with the least p that so many "
        "pairs can reach. Holm 1979 over all contrasts of the page (the t test's p for 5 to 15 pairs, the "
        "sign-flip test's from 16). Detectable: adjusted p < 0.05 and the mean beyond the noise floor.",
    ),
    (
        "MDE",
        "Least difference that so many pairs find with power 0.8 at 5 %: (t.975 + t.8)·s/√n (Bloom 1995), "
        "before Holm's correction.",
    ),
    (
        "Noise floor",
        "Placebo: two arms that compute the same function (they differ in the key bias alone, which "
        "softmax removes without rotary positions and QK norm) and yet run through the whole pipeline. "
        "Band: t.975·rms/√n of its paired differences. Unpaired: disjoint halves of one arm's seeds.",
    ),
    (
        "Stable twin",
        "The run of the same arm and seed at the arm's best rate, if it is stable. Growth is a value over "
        "the twin's at the same step. Departs first: above twice the twin's for good (the factor of "
        "Rybakov et al. 2024, arXiv 2410.16682).",
    ),
)


def methods_section(provenance: Provenance) -> str:
    """Definitions, then versions and hardware."""
    items = "".join(f"<dt>{text(name)}</dt><dd>{text(words)}</dd>" for name, words in DEFINITIONS)
    versions = [
        ("report", f"ablate {__version__}, science version {SCIENCE_VERSION}"),
        *provenance.setting,
        *provenance.data,
    ]
    return section(
        "methods",
        "Methods",
        f"<dl>{items}</dl>",
        "<h3>Versions, data, hardware</h3>",
        table_html(table(("what", "is"), versions)),
    )
