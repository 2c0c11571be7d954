"""Mappings that share what many runs have in common, and read a column only when somebody asks for it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson


class Layered(Mapping[str, object]):
    """`base`, with the values of `over` in place of its own or beside them. Neither is ever changed."""

    __slots__ = ("base", "over")

    def __init__(self, base: Mapping[str, object], over: Mapping[str, object]) -> None:
        self.base, self.over = base, over

    @classmethod
    def of(cls, flat: Mapping[str, object], base: Mapping[str, object]) -> "Layered":
        """`flat` as its differences from `base`, which has the same keys."""
        return cls(base, {key: item for key, item in flat.items() if not _same(item, base[key])})

    def __getitem__(self, key: str) -> object:
        return self.over[key] if key in self.over else self.base[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.over[key] if key in self.over else self.base.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self.over or key in self.base

    def __iter__(self) -> Iterator[str]:
        yield from self.base
        yield from (key for key in self.over if key not in self.base)

    def __len__(self) -> int:
        return len(self.base) + sum(key not in self.base for key in self.over)

    def __repr__(self) -> str:
        return repr(dict(self))


def changed(flat: Mapping[str, object], changes: Mapping[str, object]) -> Mapping[str, object]:
    """The mapping with other values for some keys; a layered one stays layered on the same base."""
    if isinstance(flat, Layered):
        return Layered(flat.base, {**flat.over, **changes})
    return {**flat, **changes}


def common_base(flats: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """The base that all of them are layered on; None if there is no such base."""
    first = flats[0] if flats else None
    if not isinstance(first, Layered):
        return None
    base = first.base
    return base if all(isinstance(flat, Layered) and flat.base is base for flat in flats) else None


class Block:
    """Rows with the same keys, kept by column: one line of JSON for each key, and one for the rows' orders.

    An order holds the positions of a row's keys, in the row's own order; None: that of `keys`.
    """

    def __init__(self, keys: Sequence[str], lines: Sequence[bytes | memoryview]) -> None:
        assert len(lines) == len(keys) + 1
        self.keys = tuple(keys)
        self._lines = dict(zip(keys, lines, strict=False))
        self._last = lines[-1]
        self._columns: dict[str, list[object]] = {}
        self._orders: list[list[int] | None] | None = None

    @classmethod
    def lines_of(cls, rows: Sequence[Mapping[str, object]]) -> tuple[tuple[str, ...], list[bytes]]:
        """Keys and lines of a block of these rows, which have the same keys, each in any order."""
        keys = tuple(rows[0])
        place = {key: i for i, key in enumerate(keys)}
        plain = [dict(row) for row in rows]
        orders = [None if tuple(row) == keys else [place[key] for key in row] for row in plain]
        return keys, [*(orjson.dumps([row[key] for row in plain]) for key in keys), orjson.dumps(orders)]

    def __contains__(self, key: object) -> bool:
        return key in self._lines

    def column(self, key: str) -> list[object]:
        """The values of a key, by row. Raises KeyError for a key that the rows don't have."""
        if key not in self._columns:
            self._columns[key] = orjson.loads(self._lines[key])
        return self._columns[key]

    def order(self, row: int) -> Sequence[str]:
        """The keys of a row, in its own order."""
        if self._orders is None:
            self._orders = orjson.loads(self._last)
        places = self._orders[row]
        return self.keys if places is None else [self.keys[i] for i in places]


class Row(Mapping[str, object]):
    """One row of a block."""

    __slots__ = ("_block", "_row")

    def __init__(self, block: Block, row: int) -> None:
        self._block, self._row = block, row

    def __getitem__(self, key: str) -> object:
        return self._block.column(key)[self._row]

    def get(self, key: str, default: Any = None) -> Any:
        return self._block.column(key)[self._row] if key in self._block else default

    def __contains__(self, key: object) -> bool:
        return key in self._block

    def __iter__(self) -> Iterator[str]:
        return iter(self._block.order(self._row))

    def __len__(self) -> int:
        return len(self._block.keys)

    def __repr__(self) -> str:
        return repr(dict(self))


def _same(a: object, b: object) -> bool:
    """Do they read alike? 1, 1.0 and true are different settings."""
    return a is b or repr(a) == repr(b)
