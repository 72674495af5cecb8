"""Random layouts and values of every kind: the Java decoders and the generated codec give the same rows and errors.

All protocols are drawn first and compiled together, because a compiler takes longer to start than to compile. The
decoders are called without a Spark session.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import EncodeError
from specwire.generated.messages import Message
from specwire.generator import ir
from specwire.generator.emit.java import EMITTER
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import mutated, some_truncations
from tests.generated.java_rows import Frames, Job, compile_decoders, decoded, wanted_rows
from tests.generator import layouts
from tests.generator.test_explainer import flagged
from tests.generator.test_layouts import generated
from tests.generator.test_values import Values
from tests.generator.value_cases import CASES

PROTOCOLS = max(2, examples(5))
MESSAGES = 6
MOST = 300
"""Messages of a protocol, spoilt ones included; and truncations of a message."""

FLAGGED: list[Frames] = [
    [b"topic", b"\x8e\1\2ab\3\7"],
    [b"\x8e\1\1\1\2\7"],
    [b"\x8e\1\1a\1\7"],
    [b"topic", b"\x8e\1\4abc"],
]
"""Messages whose flags are behind a text, and two that are wrong."""

ONCE = settings(
    max_examples=2,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def spoilt(messages: list[list[bytes]], chance: Random) -> Iterator[Frames]:
    """Messages, each cut and changed in many ways."""
    for frames in messages:
        yield frames
        yield from map(list, some_truncations(frames, MOST, chance))
        yield from (mutated(tuple(frames), chance) for _ in range(30))


@pytest.mark.slow
def test_java_reads_what_the_codec_reads() -> None:
    jobs: list[Job] = []
    wanted: list[object] = []
    sources: list[Path] = []

    @ONCE
    @given(several(layouts.protocols), several(st.one_of(layouts.valued(), layouts.more)), st.data())
    def draw(drawn: list[ir.Protocol], valued: list[ir.Protocol], data: st.DataObject) -> None:
        for protocol in (*drawn, *valued):
            number = len(sources)
            named = msgspec.structs.replace(protocol, name=f"demo{number}")
            sources.append(write(Path(folder), named))
            with generated(Path(folder, "packages"), named) as module:
                if protocol in valued:
                    values = Values(data.draw, named, module)
                    tries = [encoded(values.message()) for _ in range(2 * MESSAGES)]
                    made = [frames for frames in tries if frames is not None]
                else:
                    made = [data.draw(strategies.messages(module)).encode() for _ in range(MESSAGES)]
                rows = list(spoilt(made, Random(number)))[:MOST]
                wanted.extend(wanted_rows(module, rows))
                jobs.extend((named.name, None, frames) for frames in rows)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.dont_write_bytecode", True)
        draw()
        classes = compile_decoders(sources, Path(folder, "classes"))
        _, found = decoded(classes, jobs)
    assert len(sources) >= 4 * PROTOCOLS
    for (name, _, given_frames), own, other in zip(jobs, found, wanted, strict=True):
        assert own == other, (name, given_frames)


@pytest.mark.slow
def test_java_reads_the_cases() -> None:
    """Messages derived by hand, and frames that are no message."""
    jobs: list[Job] = []
    wanted: list[object] = []
    sources: list[Path] = []
    protocols: list[tuple[ir.Protocol, list[Frames]]] = [(flagged(), FLAGGED)]
    for case in CASES:
        rows: list[Frames] = [frames for _, frames in case.good]
        protocols.append((case.protocol, rows + [frames for frames, _ in (*case.also, *case.refused)]))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.dont_write_bytecode", True)
        for number, (protocol, rows) in enumerate(protocols):
            named = msgspec.structs.replace(protocol, name=f"demo{number}")
            sources.append(write(Path(folder), named))
            with generated(Path(folder, "packages"), named) as module:
                wanted.extend(wanted_rows(module, rows))
            jobs.extend((named.name, None, frames) for frames in rows)
        classes = compile_decoders(sources, Path(folder, "classes"))
        _, found = decoded(classes, jobs)
    for job, own, other in zip(jobs, found, wanted, strict=True):
        assert own == other, job


@pytest.mark.slow
def test_java_needs_little_stack_for_values_inside_each_other() -> None:
    """As many as are ever allowed are read; more are refused where the first of them begins."""
    (reply,) = (case for case in CASES if case.name == "reply")
    named = msgspec.structs.replace(reply.protocol, name="demo", max_depth=256)
    deep = [[b"*1\r\n" * 255 + b"*0\r\n"], [b"*1\r\n" * 100_000]]
    with tempfile.TemporaryDirectory() as folder:
        classes = compile_decoders([write(Path(folder), named)], Path(folder, "classes"))
        _, (good, bad) = decoded(classes, [("demo", None, frames) for frames in deep])
    assert good["_error"] is None
    assert (bad["_error"]["kind"], bad["_error"]["offset"]) == ("limit", 1024)


def several(drawn: st.SearchStrategy[ir.Protocol]) -> st.SearchStrategy[list[ir.Protocol]]:
    """Return a strategy for the protocols of one run."""
    return st.lists(drawn, min_size=PROTOCOLS, max_size=PROTOCOLS)


def encoded(message: Message) -> list[bytes] | None:
    """Return the frames of a message; None if its values have no octets."""
    try:
        return message.encode()
    except EncodeError:
        return None


def write(folder: Path, protocol: ir.Protocol) -> Path:
    """Write the Java source of a protocol."""
    path = folder / protocol.name / "Decode.java"
    path.parent.mkdir()
    text = EMITTER.emit(protocol)
    assert isinstance(text, str)
    path.write_text(text, encoding="utf-8")
    return path
