"""Request of a run, and the work that results from it; both are checked before Spark starts.

Therefore neither an invalid request nor a run without new segments starts a Java process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
from pyspark.sql.types import VariantType

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.decoding.backends import BACKENDS
from specwire.runtime.spark.decoding.tables import JsonAs
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.answering import lacks_answers
from specwire.runtime.spark.pipeline.commit import Progress, Run
from specwire.runtime.spark.pipeline.intake import Intake, take_in
from specwire.runtime.spark.pipeline.ledger import Ledger, Outcome
from specwire.runtime.spark.pipeline.manifest import LAYERS, MODES, PARTITIONS, Asked, Manifest
from specwire.runtime.spark.pipeline.packets import FOLDER, stage_packets
from specwire.runtime.spark.pipeline.payloads import name_differences
from specwire.runtime.spark.pipeline.store import LATE, TYPED, Store, stored_schema
from specwire.runtime.spark.protocols import load_schemas

AUTO = "auto"
"""Name that selects the best available backend."""


class Request(msgspec.Struct, frozen=True):
    """Request of a run.

    Attributes:
        capture: the folder of segments or packet captures, or one packet capture. It is shown; a
            run does not list it.
        asked: settings that determine the tables; the same in every run into one folder.
        backend: decoder, see `specwire.runtime.spark.decoding.backends`.
        late: how to handle messages that arrive after their answers. ``rebuild`` adds them, and
            those that wait, to the tables and computes all answers again. ``keep`` stores them in
            the table `late`.
        answers: whether the run updates the answers; if not, a later run does.
    """

    capture: Path
    asked: Asked = Asked()
    backend: str = AUTO
    late: Literal["rebuild", "keep"] = "rebuild"
    answers: bool = True

    @property
    def answering(self) -> bool:
        """Whether this run computes answers."""
        return self.answers and "answers" in self.asked.layers


class Work(msgspec.Struct, frozen=True):
    """Work of a run.

    Attributes:
        request: the request, completed with settings of the folder.
        ledger: the ledger before the run.
        unanswered: whether earlier runs did not compute all answers, or knew fewer answers than
            this version.
        waiting: whether waiting late messages are added to the tables.
    """

    request: Request
    intake: Intake
    ledger: Ledger
    unanswered: bool
    waiting: bool

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.intake.entries or self.unanswered or self.waiting)


def check_request(request: Request, out: Path) -> None:
    """Raise InputError if a request is invalid for every capture."""
    target, source = out.resolve(), request.capture.resolve()
    if target == source or target in source.parents or source in target.parents:
        raise InputError(f"{out}: the output must lie apart from the capture folder {request.capture}")
    asked = request.asked
    if asked.protocol is not None:
        load_schemas(asked.protocol)
    if asked.mode not in MODES:
        raise InputError(f"there is no mode {asked.mode!r}; the known ones are {', '.join(MODES)}")
    for layer in asked.layers:
        if layer not in LAYERS:
            raise InputError(f"there is no layer {layer!r}; the known ones are {', '.join(LAYERS)}")
    if asked.partition not in PARTITIONS:
        raise InputError(
            f"there is no partition {asked.partition!r}; the known ones are {', '.join(PARTITIONS)}"
        )
    if asked.json_as not in (None, *get_args(JsonAs)):
        known = ", ".join(get_args(JsonAs))
        raise InputError(f"JSON cannot be stored as {asked.json_as!r}; the known types are {known}")
    if request.backend != AUTO and request.backend not in BACKENDS:
        known = ", ".join((AUTO, *BACKENDS))
        raise InputError(f"there is no backend {request.backend!r}; the known ones are {known}")
    if "typed" not in asked.layers:
        raise InputError("the layer 'typed' cannot be left out: the answers are made of it")


def find_work(
    request: Request, paths: Sequence[Path], store: Store, run: Run, progress: Progress | None = None
) -> Work:
    """Return the work of a run, and stage packet captures as segments.

    Raises InputError if the folder was created with another request, and CaptureError if the folder
    is new and no segment holds a readable message.
    """
    check_same(request.asked, run.before, store.out)
    ledger = store.ledger

    def tell(done: int, total: int) -> None:
        if progress:
            progress("reading packet captures", done, total)

    staged = stage_packets(paths, ledger, run.staging / FOLDER, request.asked.protocol, tell)
    intake = take_in(paths, ledger, run.number, staged)
    if run.before.run == 0 and not intake.rows:
        raise CaptureError(_say_nothing_readable(request.capture, intake))
    asked = msgspec.structs.replace(request.asked, json_as=request.asked.json_as or _json_type(store))
    return Work(
        request=msgspec.structs.replace(request, asked=asked),
        intake=intake,
        ledger=ledger,
        unanswered=request.answering
        and (
            run.before.answered < run.before.run
            or any(lacks_answers(store, protocol) for protocol in store.protocols())
        ),
        waiting=request.answering and request.late == "rebuild" and bool(store.files(LATE)),
    )


def check_same(asked: Asked, manifest: Manifest, out: Path) -> None:
    """Raise InputError if a folder was created with another request."""
    before = manifest.asked
    if manifest.run == 0 or asked == before:
        return
    for name in ("protocol", "mode", "layers", "partition", "json_as"):
        ours, theirs = getattr(asked, name), getattr(before, name)
        if ours != theirs and not (name == "json_as" and None in (ours, theirs)):
            raise InputError(
                f"{out}: this output was begun with {name} {_show(theirs)}, not {_show(ours)}; "
                "ask for the same or name another folder"
            )
    if differences := name_differences(asked.payloads, before.payloads):
        raise InputError(
            f"{out}: this output was begun with other payload columns: {differences}; "
            "ask for the same or name another folder"
        )


def _json_type(store: Store) -> JsonAs:
    """Return the type of JSON columns in a folder.

    Versions before 0.2 wrote a Variant and did not store the type in the manifest.
    """
    if stated := store.manifest.asked.json_as:
        return stated
    newest: dict[Path, Path] = {}
    for path in store.files(TYPED):
        table = path.relative_to(store.out / TYPED).parents[-3]
        newest[table] = max(path, newest.get(table, path), key=lambda path: path.name)
    types = (field.dataType for path in newest.values() for field in stored_schema(path))
    return "variant" if any(isinstance(type, VariantType) for type in types) else "string"


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "as stated by the taps" if value is None else str(value)


def _say_nothing_readable(capture: Path, intake: Intake) -> str:
    unsound = [entry.reason for entry in intake.entries if entry.outcome == Outcome.QUARANTINED]
    if not unsound:
        return f"{capture}: the capture holds no messages"
    if len(unsound) == 1:
        return unsound[0]
    return f"{capture}: none of {len(unsound)} segments can be read; the first: {unsound[0]}"
