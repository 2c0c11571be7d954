"""Is a W&B transaction log (`run-<id>.wandb`) whole? W&B itself says nothing when a disk was full.

The file: 7 bytes of header, then blocks of 32 KiB of framed records: CRC-32 (of type byte and data), length,
type (1 whole, 2 first, 3 middle, 4 last); each record is a protobuf message `Record`, of which only the
number of the field that it carries is looked at (wandb.proto.wandb_internal.proto).
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

HEADER, BLOCK, FRAME = 7, 32 * 1024, struct.Struct("<IHB")
MAGIC = b":W&B"
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
HISTORY, EXIT = 2, 18  # fields of Record
BESIDE = (16, 19, 200)  # fields that stand beside the one: control, uuid, _info


class Torn(ValueError):
    """The file ends, or goes wrong, within a record."""


def fault(path: Path, rows: int) -> str | None:
    """Why a log is not whole: unreadable, another number of rows of history, no end; None if it is."""
    found = ended = 0
    try:
        for record in records(path.read_bytes()):
            kind = field_of(record)
            found += kind == HISTORY
            ended += kind == EXIT
    except (OSError, Torn) as error:
        return f"{path.name}: {error}"
    if found != rows:
        return f"{path.name} holds {found} of {rows} rows"
    return None if ended else f"{path.name} lacks its end"


def records(data: bytes) -> Iterator[bytes]:
    """The messages of a log. Raises Torn."""
    if data[: len(MAGIC)] != MAGIC:
        raise Torn("no W&B log")
    parts: list[bytes] = []
    place = HEADER
    while place < len(data):
        room = BLOCK - place % BLOCK
        if room < FRAME.size:  # too little for a frame: padding
            place += room
            continue
        kind, chunk = _chunk(data, place)
        place += FRAME.size + len(chunk)
        parts = [chunk] if kind in (WHOLE, FIRST) else [*parts, chunk]
        if kind in (WHOLE, LAST):
            yield b"".join(parts)
            parts = []
    if parts:
        raise Torn("its last record is cut off")


def _chunk(data: bytes, place: int) -> tuple[int, bytes]:
    if place + FRAME.size > len(data):
        raise Torn("its last record is cut off")
    checksum, length, kind = FRAME.unpack_from(data, place)
    start = place + FRAME.size
    chunk = data[start : start + length]
    if len(chunk) < length or kind not in (WHOLE, FIRST, MIDDLE, LAST):
        raise Torn("its last record is cut off")
    if zlib.crc32(data[start - 1 : start + length]) != checksum:
        raise Torn(f"a wrong checksum at byte {place}")
    return kind, chunk


def field_of(record: bytes) -> int:
    """The number of the message field that a Record carries (its own number and the control part aside)."""
    place = 0
    while place < len(record):
        tag, place = _varint(record, place)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            _, place = _varint(record, place)
        elif wire == 2:
            length, place = _varint(record, place)
            if field not in BESIDE:
                return field
            place += length
        else:
            raise Torn("a record of an unknown kind")
    return 0


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data):
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
    raise Torn("its last record is cut off")
