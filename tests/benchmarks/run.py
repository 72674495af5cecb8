"""Measure the generated codecs against Construct, in one process: ``make bench``.

The yardstick is the package's own Construct declaration, interpreted (never ``.compile()``, which changes
errors), with the same validation. Ratios are what counts: the machine's speed is in both numbers. Each
number is the best of several rounds, because everything else that a machine does only adds time; all ways to
read or write a message take turns. ``--gate`` fails where a goal of `cases` is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from types import ModuleType

import msgspec
from rich.console import Console
from rich.table import Table

from tests.benchmarks import kaitai_style
from tests.benchmarks.cases import CASES, Case, Goals
from tests.benchmarks.timing import Work, best_ns
from tests.benchmarks.unchecked import unchecked

CHECKS_AT_MOST = 20
"""Percent that validation may add to a decode without."""
KAITAI, UNCHECKED, MSGPACK = "Kaitai style", "without checks", "msgspec, MessagePack"


@dataclass(frozen=True)
class Result:
    """A case in a build: nanoseconds a message, and how many times slower interpreted Construct was."""

    case: str
    build: str
    decode_ns: float
    decode_ratio: float
    encode_ns: float
    encode_ratio: float


@dataclass(frozen=True)
class Other:
    """Another way to read the message of a case, and how many times as long it takes as the pure decode."""

    case: str
    way: str
    decode_ns: float
    ratio: float


@dataclass(frozen=True)
class Missed:
    """A goal that is not met: what was wanted, what was measured, and by how much of a hundred it falls short."""

    case: str
    what: str
    wanted: float
    measured: float

    def __str__(self) -> str:
        short = abs(1 - self.measured / self.wanted) * 100
        return (
            f"{self.case}, {self.what}: {self.measured:.1f}, wanted {self.wanted:g}: missed by {short:.0f} %"
        )


def builds(package: str) -> dict[str, ModuleType]:
    """Return the builds of a package that are there, by their names."""
    active = import_module(f"specwire.generated.{package}")
    pure = import_module(f"specwire.generated.{package}.codec")
    return {"pure": pure} | ({"native": active} if active.ACCELERATED else {})


def measure(name: str, case: Case) -> tuple[list[Result], list[Other]]:
    """Measure one case in every build, and in the other ways to read it."""
    there = builds(case.package)
    message = case.message(there["pure"])
    frames = message.encode()
    works = _yardsticks(case, frames) | _others(name, case, frames)
    for build, module in there.items():
        own = case.message(module)
        assert own.encode() == frames
        assert module.decode(frames) == own
        works[f"{build} decode"] = module.decode, (frames,)
        works[f"{build} encode"] = own.encode, ()
    ns = best_ns(works)
    results = [
        Result(
            name,
            build,
            ns[f"{build} decode"],
            ns["construct decode"] / ns[f"{build} decode"],
            ns[f"{build} encode"],
            ns["construct encode"] / ns[f"{build} encode"],
        )
        for build in there
    ]
    ways = [way for way in (KAITAI, UNCHECKED, MSGPACK) if way in ns]
    return results, [Other(name, way, ns[way], ns[way] / ns["pure decode"]) for way in ways]


def _yardsticks(case: Case, frames: list[bytes]) -> dict[str, Work]:
    """Construct's parsing and building of the same frames."""
    constructs = import_module(f"specwire.generated.{case.package}.constructs")
    name, values = constructs.parse(frames)
    assert constructs.build(name, values) == frames
    message = case.message(builds(case.package)["pure"])
    declaration, flags = constructs.MESSAGES[name], getattr(message, "wire_flags", 0)
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    return {
        "construct decode": (lambda octets: declaration.parse(octets, flags=flags), (stream,)),
        "construct encode": (lambda: constructs.build(name, values), ()),
    }


def _others(name: str, case: Case, frames: list[bytes]) -> dict[str, Work]:
    """The other ways to read the message; MessagePack carries the same values, to show the scale."""
    message = case.message(builds(case.package)["pure"])
    decode = unchecked(case.package).decode
    assert msgspec.structs.astuple(decode(frames)) == msgspec.structs.astuple(message)
    packed = msgspec.msgpack.encode(message)
    decoder = msgspec.msgpack.Decoder(type(message))
    assert decoder.decode(packed) == message
    works: dict[str, Work] = {
        UNCHECKED: (decode, (frames,)),
        MSGPACK: (decoder.decode, (packed,)),
    }
    kaitai = kaitai_style.reader(name, message, frames)
    return works if kaitai is None else {KAITAI: kaitai, **works}


def missed(results: list[Result], others: list[Other]) -> Iterator[Missed]:
    """Yield the goals that are not met."""
    for result in results:
        case = CASES[result.case]
        goals: Goals = case.pure if result.build == "pure" else case.native
        for what, wanted, found in (
            ("decode", goals.decode, result.decode_ratio),
            ("encode", goals.encode, result.encode_ratio),
        ):
            if wanted is not None and found < wanted:
                yield Missed(result.case, f"{result.build} {what}, x Construct", wanted, found)
    for other in others:
        wanted = CASES[other.case].kaitai
        if other.way == KAITAI and wanted is not None and other.ratio < wanted:
            yield Missed(other.case, "pure decode, x Kaitai style", wanted, other.ratio)
        if other.way == UNCHECKED and _cost(other) > CHECKS_AT_MOST:
            yield Missed(other.case, "cost of the checks in percent", CHECKS_AT_MOST, _cost(other))


def _cost(other: Other) -> float:
    """What the checks add to a decode without them, in percent."""
    return (1 / other.ratio - 1) * 100


def main() -> int:
    """Measure every case and print tables, or JSON with ``--json``; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--gate", action="store_true", help="fail where a goal is missed")
    options = parser.parse_args()
    results: list[Result] = []
    others: list[Other] = []
    for name, case in CASES.items():
        found, beside = measure(name, case)
        results += found
        others += beside
    short = list(missed(results, others))
    if options.json:
        rows = {"builds": results, "others": others, "missed": short}
        figures = {key: list(map(asdict, found)) for key, found in rows.items()}  # type: ignore[call-overload]
        json.dump(figures, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        _show(results, others, short)
    return int(options.gate and bool(short))


def _show(results: list[Result], others: list[Other], short: list[Missed]) -> None:
    console = Console(width=110)
    for build in dict.fromkeys(result.build for result in results):
        console.print(_build_table(build, [result for result in results if result.build == build]))
    table = Table(title="Other ways to read the same message", title_justify="left")
    for head in ("message", "way", "decode ns", "x pure", "the checks cost %"):
        table.add_column(head, justify="left" if head in ("message", "way") else "right")
    for other in others:
        cost = f"{_cost(other):.0f}" if other.way == UNCHECKED else ""
        table.add_row(other.case, other.way, f"{other.decode_ns:,.0f}", f"{other.ratio:.2f}", cost)
    console.print(table)
    console.print("\n".join(map(str, short)) if short else "Every goal is met.", highlight=False)


def _build_table(build: str, results: list[Result]) -> Table:
    table = Table(title=f"Generated codec against interpreted Construct, {build}", title_justify="left")
    table.add_column("message")
    for head in ("decode ns", "x Construct", "wanted", "encode ns", "x Construct", "wanted"):
        table.add_column(head, justify="right")
    for result in results:
        case = CASES[result.case]
        goals = case.pure if build == "pure" else case.native
        table.add_row(
            result.case,
            f"{result.decode_ns:,.0f}",
            f"{result.decode_ratio:.1f}",
            "" if goals.decode is None else f"{goals.decode:g}",
            f"{result.encode_ns:,.0f}",
            f"{result.encode_ratio:.1f}",
            "" if goals.encode is None else f"{goals.encode:g}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
