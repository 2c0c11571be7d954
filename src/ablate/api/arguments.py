"""What callers of the Python interface may give, and how they are told otherwise."""

from collections.abc import Iterable, Sequence

from ablate.api.frames import shown
from ablate.config import UserError, nearest
from ablate.view import value


def check_word(what: str, word: object, allowed: Sequence[str]) -> None:
    """Raise UserError for anything but one of the allowed words."""
    if not isinstance(word, str) or word not in allowed:
        hint = nearest(word, allowed) if isinstance(word, str) else None
        raise UserError(f"no {what} {shown(word)}", allowed=", ".join(allowed), hint=hint)


def alternatives(item: object) -> str:
    """What a keyword compares with, as `--filter` writes it: a list, a frame's column: alternatives."""
    if isinstance(item, Iterable) and not isinstance(item, str):
        return ",".join(value(part) for part in item)
    return value(item)


def without_option(error: UserError) -> UserError:
    """The error of a filter, for someone who typed no `--filter`."""
    problem, hint = (text and text.replace("--filter ", "") for text in (error.problem, error.hint))
    return UserError(problem or "", allowed=error.allowed, hint=hint)
