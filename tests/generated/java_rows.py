"""The Java decoders without a Spark session: frames in, rows out, in a Java process that knows Spark's classes.

Rows come as JSON, so rows of columns are brought into that form before they are compared: octets as base64, every
number as an integer.
"""

from __future__ import annotations

import json
import math
import subprocess
from base64 import b64encode
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark
import pytest

from specwire.generated.columns.rows import decode_rows
from specwire.runtime.spark.decoding.compile_jar import compile_classes, find_javac
from specwire.runtime.spark.session.target import find_java
from tests.conftest import BRIEF_JAVAC

HARNESS = Path(__file__).with_name("Rows.java")
SPARK = Path(pyspark.__file__).parent / "jars" / "*"
SUPPORT = Path(__file__).parents[2] / "generator" / "support" / "java"

Frames = Sequence[bytes | None] | None
Job = tuple[str, str | None, Frames]
"""A message: the Java package of its protocol, its sender, its frames."""


def compile_decoders(sources: Iterable[Path], folder: Path) -> Path:
    """Compile decoders, what they share and the program that calls them; skip the test without a javac."""
    javac = find_javac()
    if javac is None:
        pytest.skip("there is no javac")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", BRIEF_JAVAC)
        compile_classes(javac, [*sorted(SUPPORT.glob("*.java")), *sources, HARNESS], folder)
    return folder


def rows_of(classes: Path, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return the rows of messages, which stand together by package."""
    return decoded(classes, jobs)[1]


def decoded(classes: Path, jobs: Sequence[Job]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the types of the packages in the order of the messages, and the rows."""
    java = find_java()
    assert java is not None, "there is a javac, and no java"
    command = [str(java), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{SPARK}", "Rows"]
    given = "".join(f"{package} {sender or '-'} {_word(frames)}\n" for package, sender, frames in jobs)
    run = subprocess.run(command, input=given, capture_output=True, text=True, timeout=110, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.split("\n")[:-1]
    return [line for line in lines if not line.startswith("{")], [
        json.loads(line, parse_constant=str) for line in lines if line.startswith("{")
    ]


def wanted_rows(
    module: ModuleType, rows: Sequence[Frames], senders: Sequence[str | None] | None = None
) -> list[dict[str, Any]]:
    """Return what the row codec says of messages, as JSON has it; null frames have no row."""
    columns = module.columns
    layout = module.layout.LAYOUT
    batch = decode_rows(rows, columns.SCHEMA, module.codec.decode, columns.ATTRIBUTES, layout, senders)
    found = [_plain(row) for row in batch.to_pylist()]
    return [
        {} if frames is None else row | {"_octets": sum(len(frame or b"") for frame in frames)}
        for row, frames in zip(found, rows, strict=True)
    ]


def _word(frames: Frames) -> str:
    if frames is None:
        return "~"
    return ",".join("?" if frame is None else frame.hex() for frame in frames) if frames else "-"


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return b64encode(value).decode()
        case Decimal():
            return int(value)
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
    return value
