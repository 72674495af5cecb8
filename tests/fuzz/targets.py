"""What is fuzzed: a table. A target is the name of its folder in the corpus, a check, and what it begins with.

To fuzz something else, write a check, a function of octets that raises where a promise does not hold, and a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.fuzz import seeds

PACKAGES = ("cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zmtp", "zre")
STREAMS = ("flux", "zmtp")
BROKERS = ("flux", "cmb1", "cmb1_json")

Check = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """Something that is fuzzed."""

    name: str
    prepare: Callable[[], Check]
    """Imports what is fuzzed, when it is wanted, and returns the check."""
    seeds: Callable[[], Iterable[bytes]]
    depth: int = 0
    """How often an input is split into pieces: 1 for frames, 2 for messages of frames."""
    longest: int = 2048
    """Octets of an input."""
    words: Callable[[], Iterable[bytes]] = tuple
    """What libFuzzer is to try."""


def _codec(name: str) -> Check:
    from tests.fuzz.codecs import codec_check

    return codec_check(name)


def _columns(name: str) -> Check:
    from tests.fuzz.columns import columns_check

    return columns_check(name)


def _stream(name: str) -> Check:
    from tests.fuzz.streams import stream_check

    return stream_check(name)


def _broker(name: str) -> Check:
    from tests.fuzz.brokers import broker_check

    return broker_check(name)


def _grammar(name: str) -> Check:
    from tests.fuzz import grammars

    prepare: Callable[[], Check] = getattr(grammars, f"{name}_check")
    return prepare()


def _targets() -> Iterator[Target]:
    for name in PACKAGES:
        yield Target(
            f"codec-{name}", partial(_codec, name), partial(seeds.codec_seeds, name), 1,
            words=partial(seeds.words, name),
        )  # fmt: skip
    for name in STREAMS:
        yield Target(f"stream-{name}", partial(_stream, name), partial(seeds.stream_seeds, name))
    for name in PACKAGES:
        yield Target(
            f"columns-{name}", partial(_columns, name), partial(seeds.column_seeds, name), 2,
            words=partial(seeds.words, name),
        )  # fmt: skip
    for name in BROKERS:
        yield Target(
            f"broker-{name}", partial(_broker, name), partial(seeds.broker_seeds, name), 2,
            words=partial(seeds.words, name),
        )  # fmt: skip
    for name, patterns, tokens in (
        ("abnf", seeds.GRAMMARS, ABNF),
        ("frame_table", seeds.DOCUMENTS, TABLES),
        ("document", seeds.DOCUMENTS, (*TABLES, *ABNF, *MARKUP)),
        ("profile", seeds.PROFILES, PROFILE),
    ):
        yield Target(
            name, partial(_grammar, name), partial(seeds.files, *patterns, longest=2048),
            words=partial(tuple, tokens),
        )  # fmt: skip


ABNF = (b"%x", b"%d1", b"%b", b"1*", b"=/", b"%s\"", b"%i\"", b"\n ", b" / ", b"C:", b"<", b"OCTET", b"VCHAR", b"..", b"| ")  # fmt: skip
TABLES = (b"Frame ", b"Frames 3+:", b"Empty", b"0x04", b" (8 octets)", b"representing ", b" or ", b", if OK", b"command\n---\n")  # fmt: skip
MARKUP = (b"```", b"::\n\n", b"[[code]]", b"----\n", b"C: OPEN", b"S: *", b"Repeat:", b"# ", b"\t", b"\f", b".. code::")  # fmt: skip
PROFILE = (b"[[errata]]\n", b"[types.", b"name = ", b"base = ", b"[[rules]]\n", b"'''", b"\"\"\"", b"members = {", b"presence = [")  # fmt: skip

TARGETS = {target.name: target for target in _targets()}
"""Every target by its name."""
