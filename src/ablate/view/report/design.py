"""The head of the page: what was asked, what was varied, what was held fixed, and what is missing."""

from collections import Counter
from collections.abc import Sequence

from ablate.config import FieldClass, fields, flatten, parse
from ablate.view.arms import AXES, FOLLOWERS, PRESET, SEED, short_names
from ablate.view.configs import shown
from ablate.view.facts import RunFacts
from ablate.view.report.html import details, listed, note, paragraph, section, table_html, text
from ablate.view.report.provenance import Provenance
from ablate.view.results import MODEL, Results
from ablate.view.study import model_notes, task_notes, unlearned_notes
from ablate.view.table import table
from ablate.view.text import number, one_line, plural, value

SCALE = (
    "model.stack",
    "model.layers",
    "model.width",
    "model.context",
    "data.source",
    "data.vocab_size",
    "optim.steps",
    "optim.batch",
)
LISTED = 20  # failed or left out runs named here; the table of runs has all
LEVELS = 40  # values of one factor, or seeds, that are written out


def heading(results: Results, study: str, judged: str) -> str:
    """Name, counts, and what is wrong with the study, if anything."""
    states = Counter(r.verdict or r.state for r in results.runs)
    finished = sum(r.verdict is not None for r in results.runs)
    arms = f"{plural(len(results.arms), 'arm')} × {plural(len(results.rates), 'learning rate')}"
    parts = [
        f"<h1>{text(study)}</h1>",
        f"<p>{arms} × {plural(len(results.seeds), 'seed')}: {plural(len(results.runs), 'run')} "
        f"({text(', '.join(f'{n} {word}' for word, n in states.most_common()))})</p>",
    ]
    if judged:
        parts.append(note(f"Judged again with {judged} in place of the recorded thresholds."))
    if finished < len(results.runs):
        parts.append(note(f"{finished} of {len(results.runs)} runs have finished: what follows is partial."))
    parts.append(_left_out(results))
    parts.append(_unreadable(results))
    parts += [note(words, bad=True) for words in unlearned_notes(results)]
    parts.append(_failures([r for r in results.runs if r.state in ("failed", "killed")]))
    notes = dict.fromkeys(str(r.flat.get("run.notes") or "") for r in results.runs)
    parts += [f"<p>Notes: {text(words, 2000)}</p>" for words in list(notes)[:5] if words]
    return "\n".join(part for part in parts if part)


def design_section(results: Results, provenance: Provenance) -> str:
    """Question, factors, grid, seeds, and what all runs share."""
    names = [f.key for f in results.factors if f.key not in AXES]
    short = short_names(names)
    rows = [
        (
            f.key,
            _values([value(x) for x in f.values])
            if f.key not in short
            else _values(_levels(results, short[f.key])),
        )
        for f in results.factors
        if f.key not in AXES
    ]
    rows += [("optim.lr", _values([number(lr, 6) for lr in results.rates])), (SEED, _values(results.seeds))]
    grid = results.study.rates
    extra = [lr for lr in results.rates if lr not in grid]
    design = [
        "Runs are paired: for one seed, arms share every common initial weight and every batch, so "
        "differences are taken seed by seed."
        if MODEL not in results.study.factors
        else "Runs are paired: for one seed, the arms of one preset share every common initial weight and "
        "every batch, so differences are taken seed by seed. Between presets sizes and initialisation "
        "differ, and what is shared is the seed, the text and, where the task is the same, the batches.",
    ]
    if extra:
        design.append(
            "The LR sensitivity and the share unstable are taken over the rates that every arm has "
            f"({', '.join(number(lr, 6) for lr in grid)}); the others serve the edges."
        )
    design += [*task_notes(results), *model_notes(results)]
    if not results.even_grid:
        design.append(
            "The rates are not evenly spaced on a log scale: the LR sensitivity weighs crowded ones more."
        )
    facts = table(("what", "is"), [*provenance.data, *provenance.model])
    return section(
        "question",
        "Question and design",
        paragraph(_question(results, names)),
        table_html(table(("varied", "values"), rows)),
        paragraph(" ".join(design)),
        paragraph(_settings(results.runs), soft=True),
        _facts(table_html(facts), results) if facts.rows else "",
    )


def _facts(tab: str, results: Results) -> str:
    """Data and sizes; folded where there is a line for every arm of every model."""
    return details("Data, and the size of every model", tab) if MODEL in results.study.factors else tab


def _question(results: Results, names: Sequence[str]) -> str:
    these = "each of these models survives" if MODEL in results.study.factors else "this model survives"
    if not names:
        return "Which learning rates does this model survive, and what loss does it reach?"
    listed_names = ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
    verb = "Does" if len(names) == 1 else "Do"
    return (
        f"{verb} {listed_names} change which learning rates {these}, and the loss it reaches? "
        f"{plural(len(results.arms), 'arm')} (combinations of levels) "
        f"{'is' if len(results.arms) == 1 else 'are'} trained at the same learning rates from the same "
        "seeds."
    )


def _levels(results: Results, name: str) -> list[str]:
    found = results.study.factors.get(name)
    return list(found) if found else list(dict.fromkeys(arm.levels.get(name, "?") for arm in results.arms))


def _values(items: Sequence[str]) -> str:
    more = f" and {len(items) - LEVELS} more" if len(items) > LEVELS else ""
    return ", ".join(items[:LEVELS]) + more


def _settings(runs: Sequence[RunFacts]) -> str:
    """What defines all runs alike: the scale in any case, and what is not the default."""
    whole = [r.flat for r in runs if r.flat]
    if not whole:
        return "No run has a readable configuration."
    defaults = flatten(parse({}))
    names = [f.key for f in fields() if f.klass is FieldClass.science and f.key not in (*FOLLOWERS, *AXES)]
    shared = [k for k in names if all(flat.get(k) == whole[0].get(k) for flat in whole)]
    told = [k for k in shared if k in SCALE or whole[0].get(k) != defaults.get(k)]
    words = ", ".join(f"{k}={shown(whole[0], k)}" for k in told)
    differ = len(shared) < len(names) and len({flat.get(PRESET) for flat in whole}) > 1
    rest = (
        "at its default or, where presets say otherwise, as the preset has it (ablate config --keys, docs/"
        "architectures.md)"
        if differ
        else "at its default (ablate config --keys)"
    )
    return f"Held fixed: {words}; everything else {rest}."


def _failures(failed: Sequence[RunFacts]) -> str:
    if not failed:
        return ""
    items = [
        f"{r.slug} ({r.run_id}), {r.state}: {one_line(r.reason or 'unknown')[:300]}" for r in failed[:LISTED]
    ]
    return _warning(f"{plural(len(failed), 'run')} failed or killed:", items, len(failed))


def _unreadable(results: Results) -> str:
    found = results.unreadable
    if not found:
        return ""
    items = [f"{r.slug} ({r.run_id}): {one_line(why)[:300]}" for r, why in found[:LISTED]]
    words = (
        f"The rows of {plural(len(found), 'run')} cannot be read: verdict and losses are in the tables, "
        "curves and growth are not shown."
    )
    return _warning(words, items, len(found))


def _left_out(results: Results) -> str:
    if not results.left_out:
        return ""
    groups: dict[str, list[str]] = {}
    for run, why in results.left_out:
        groups.setdefault(why, []).append(run.run_id)
    items = [
        f"{why}: {', '.join(ids[:LISTED])}{f' and {len(ids) - LISTED} more' if len(ids) > LISTED else ''}"
        for why, ids in groups.items()
    ]
    words = f"{plural(len(results.left_out), 'run')} cannot be compared with the others and are left out:"
    return _warning(words, items[:LISTED], len(items))


def _warning(words: str, items: Sequence[str], count: int) -> str:
    more = [f"and {count - len(items)} more"] if count > len(items) else []
    return f'<div class="note bad">{text(words)}{listed([*items, *more])}</div>'
