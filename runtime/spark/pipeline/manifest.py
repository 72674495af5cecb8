"""State of an output folder: ``manifest.json``.

The file is small, and every run replaces it atomically. It contains:

- the number of the last run;
- the request with which the folder was created. Later runs must make the same request, so that the
  tables keep one meaning;
- the number of rows of each table;
- the tables with files that lack columns.

The processed segments are in a separate table (`specwire.runtime.spark.pipeline.ledger`), because
there may be a million of them.
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
    """Settings that determine the tables of a folder, besides the capture.

    Attributes:
        protocol: protocol of every message; None for the one that its tap stated.
        mode: ``PERMISSIVE`` stores messages that do not decode in `_errors`, ``DROPMALFORMED`` only
            counts them, ``FAILFAST`` fails the run at the first.
        layers: the `LAYERS` to write.
        partition: partition columns of frames and typed tables: ``day`` is ``date=…``, ``hour`` is
            ``date=…/hour=…``.
        json_as: type of the columns that hold the JSON of payloads. None in a request means the
            type in the folder, or ``string`` in a new folder.
        payloads: columns of the typed tables for payloads with separate schemas.
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
        format: version of this file and of the folder; a reader rejects an unknown one.
        run: number of the last run, from 1; 0 before the first.
        asked: settings with which the folder was created.
        answered: number of the last run whose typed rows are in the answers.
        rows: number of rows of each table, by its path in the folder.
        mixed: tables with files that lack columns, or have narrower types. The value is the number
            of the last run whose files may differ. Later files have all columns.
    """

    format: int = FORMAT
    run: int = 0
    asked: Asked = Asked()
    answered: int = 0
    rows: dict[str, int] = {}
    mixed: dict[str, int] = {}

    @property
    def settled(self) -> bool:
        """Whether every typed row is in the answers, or the folder has no answers."""
        return self.answered == self.run or "answers" not in self.asked.layers

    def to_json(self) -> bytes:
        """Return the manifest as an indented JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_manifest(out: Path) -> Manifest:
    """Return a folder's manifest; an empty one if there is none; InputError if it is invalid."""
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
