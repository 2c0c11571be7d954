"""The command line: one argparse parser per command; the commands' own modules load when they run."""

import argparse
import difflib
import re
import textwrap
from collections.abc import Sequence
from typing import NoReturn

from ablate import __version__
from ablate.cli.commands import COMMANDS


class _Parser(argparse.ArgumentParser):
    """One that guesses what a mistyped option stands for: another option, or a setting (`--jobs 4`)."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: --?([\w.-]+)(?:[= ]([^-]\S*))?", message)
        if unknown is not None:
            message += _option_meant(unknown[1], unknown[2], self.format_usage())
        super().error(message)


def _option_meant(name: str, value: str | None, usage: str) -> str:
    options = re.findall(r"--([a-z-]+)", usage)
    allowed = "\n  allowed: " + ", ".join(f"--{option}" for option in options)
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.7)
    if near:
        return f"\n  try: --{near[0]}"
    if "key=value" not in usage:
        return allowed if options else ""
    from ablate.config.fields import nearest_keys

    keys = nearest_keys(name.replace("-", "_"))
    if keys:
        return f"\n  try: {keys[0]}={value or '…'}"
    return f"{allowed if options else ''}\n  try: settings as key=value, without dashes"


def parse(words: Sequence[str]) -> tuple[str, argparse.Namespace]:
    """The command and its arguments. Options may stand between overrides. Exits as argparse does."""
    name, rest = _split(words)
    if name not in COMMANDS:
        top = _top(name)
        if not rest:
            start = f"{name} " if name else ""
            known = ", ".join(c.removeprefix(start) for c in COMMANDS if c.startswith(start))
            top.error(f"which command?\n  allowed: {known}")
        top.parse_args(rest)  # --help, --version, an unknown command
        top.error("which command?")
    command = COMMANDS[name]
    parser = _Parser(
        prog=f"ablate {name}",
        description=textwrap.fill(command.description, 80),
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    return name, parser.parse_intermixed_args(_downward_sort(rest))


def _split(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The command's name (`ls`, `wandb sync`) and what follows. Else a family's name (`wandb`), or ""."""
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in COMMANDS or (count == 1 and any(known.startswith(f"{name} ") for known in COMMANDS)):
            return name, words[count:]
    return "", words


def _downward_sort(words: Sequence[str]) -> list[str]:
    """`--sort -loss` as `--sort=-loss`: argparse takes a value that begins with a dash for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--sort" and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _top(family: str) -> argparse.ArgumentParser:
    """The parser of `ablate`, or of a family of commands: `ablate wandb`."""
    start = f"{family} " if family else ""
    found = {name.removeprefix(start): c for name, c in COMMANDS.items() if name.startswith(start)}
    width = max(map(len, found))
    lines = "\n".join(f"  {name:{width}} {command.summary}" for name, command in found.items())
    top = argparse.ArgumentParser(
        prog=f"ablate {family}".strip(),
        description="Which transformer design choices train stably? Paired runs, each with a verdict.",
        epilog=f"commands:\n{lines}\n\n`ablate {start}COMMAND --help` says more. example:\n"
        f"  {next(iter(found.values())).example if family else 'ablate sweep experiment=smoke'}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if not family:
        top.add_argument("--version", action="version", version=f"ablate {__version__}")
    top.add_argument("command", choices=tuple(found), metavar="COMMAND", help="see below")
    return top
