"""Errors that are a user's to mend: one message, exit code 2."""

from collections.abc import Mapping


class UserError(ValueError):
    """A request that cannot be carried out as asked; the message says what would work.

    `problem` is one line; `allowed` says what is accepted; `hint` is something to type or do.
    """

    def __init__(self, problem: str, *, allowed: str | None = None, hint: str | None = None) -> None:
        self.problem, self.allowed, self.hint = problem, allowed, hint
        lines = [problem]
        if allowed is not None:
            lines.append(f"  allowed: {allowed}")
        if hint is not None:
            lines.append(f"  try: {hint}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.allowed, self.hint)


class ConfigError(UserError):
    """A configuration key or value that is refused before anything starts."""

    @classmethod
    def setting(cls, key: str, value: object, allowed: str, hint: str | None = None) -> "ConfigError":
        """The usual form: `key = value`, what is allowed, what to try."""
        return cls(f"{key} = {shown(value)}", allowed=allowed, hint=hint)


def shown(value: object) -> str:
    """A value as one writes it on the command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ",".join(shown(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{shown(item)}" for key, item in value.items()) + "}"
    return "''" if value == "" else str(value)


def _rebuild(kind: type[UserError], problem: str, allowed: str | None, hint: str | None) -> UserError:
    return kind(problem, allowed=allowed, hint=hint)
