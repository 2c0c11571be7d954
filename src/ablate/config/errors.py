"""Errors that are a user's to mend: one message, exit code 2."""


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


class ConfigError(UserError):
    """A configuration key or value that is refused before anything starts."""

    @classmethod
    def setting(cls, key: str, value: object, allowed: str, hint: str | None = None) -> "ConfigError":
        """The usual form: `key = value`, what is allowed, what to try."""
        shown = "null" if value is None else value
        return cls(f"{key} = {shown}", allowed=allowed, hint=hint)
