"""What an output folder says of itself: ``manifest.json``.

It is small and replaced in one step with every run: the number of the last run, what was asked for when the
folder was begun (later runs must ask for the same, or its tables would mean two things), the number of the last
batch of each stream, and how many rows each table has. Which segments were read is a table of its own
(`specwire.runtime.spark.pipeline.ledger`), because there may be a million of them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from specwire.runtime.spark.decoding.tables import JsonAs
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.payloads import PayloadColumn

NAME = "manifest.json"
FORMAT = 1

LAYERS = ("frames", "typed", "answers")
PARTITIONS = ("day", "hour")
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")


class Asked(msgspec.Struct, frozen=True):
    """What a folder's tables depend on beside the capture.

    Attributes:
        protocol: what every message is read as, or None for what its tap stated.
        mode: ``PERMISSIVE`` keeps rows that do not decode in `_errors`, ``DROPMALFORMED`` only counts them,
            ``FAILFAST`` fails the run at the first.
        layers: those of `LAYERS` that are written.
        partition: partition columns of frames and typed tables: ``day`` is ``date=…``, ``hour`` is
            ``date=…/hour=…``.
        json_as: type of the columns that hold the JSON of payloads; None in a request stands for what the
            folder has, and for ``string`` in a new folder.
        payloads: columns of the typed tables for payloads that have schemas of their own.
    """

    protocol: str | None = None
    mode: str = "PERMISSIVE"
    layers: tuple[str, ...] = LAYERS
    partition: str = "day"
    json_as: JsonAs | None = None
    payloads: tuple[PayloadColumn, ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """The state of an output folder after its last run.

    Attributes:
        format: of this file and of the folder; a reader refuses one that it does not know.
        run: number of the last run, from 1; 0 before the first.
        asked: what the folder was begun with.
        answered: the last run whose typed rows the answers hold.
        batches: the greatest number of a batch that was worked in, by the id of its stream.
        rows: rows of each table, by its path in the folder.
    """

    format: int = FORMAT
    run: int = 0
    asked: Asked = Asked()
    answered: int = 0
    batches: dict[str, int] = {}
    rows: dict[str, int] = {}

    def to_json(self) -> bytes:
        """Return the manifest as an indented JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_manifest(out: Path) -> Manifest:
    """Return a folder's manifest, a blank one where there is none; InputError where it is not ours."""
    path = out / NAME
    try:
        octets = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Manifest()
    except OSError as error:
        raise InputError(f"{path}: the manifest cannot be read: {error.strerror}") from error
    try:
        found = msgspec.json.decode(octets, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not the manifest of a pipeline's output: {error}") from error
    if found.format != FORMAT:
        raise InputError(
            f"{path}: the output has format {found.format} and this version writes format {FORMAT}; "
            "name another folder"
        )
    return found
