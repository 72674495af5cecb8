"""Whether the libraries of each extra are installed, in a release that specwire's own metadata asks for.

Nothing is imported to find out, but for what may be there and still not run: a library with code of its own for
another processor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version

from specwire.runtime.doctor.finding import Finding, State

FOR_USERS = {
    "compile": "to turn specifications into packages",
    "constructs": "for the Construct declarations of packages",
    "peers": "to talk over ZeroMQ: peers, brokers and taps",
    "arrow": "to read captures, and to decode into columns",
    "capture": "to record the messages of peers",
    "spark": "for decoding and answers on Spark, and the report",
    "connect": "for a Spark Connect server",
    "norfab": "for the inventory of a NORFAB broker",
    "metrics": "for the counters and the page of a server",
    "testing": "for random messages in tests of your own",
    "docs": "for reference pages",
}
"""The extras that a user may want, and what for; the others are for work on specwire itself."""

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?\s*(?P<releases>[^;]*)(?:;(?P<when>.*))?"
)
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_BOUND = re.compile(r"(==|>=|<=|<|>|!=)\s*([\w.]+)")


def examine_libraries() -> Iterator[Finding]:
    """Yield a finding for what a plain installation brings, then one for each extra."""
    lines = _requirements()
    if not lines:
        found = "specwire is a folder on the path, not an installation: what it needs is not known"
        yield Finding("libraries", State.ABSENT, found, "pip install specwire")
        return
    yield _judge("libraries", list(_of_extra(lines, None)), "specwire", "for anything", State.WRONG)
    for extra, purpose in FOR_USERS.items():
        wanted = list(_of_extra(lines, extra))
        if wanted:
            yield _judge(extra, wanted, f"'specwire[{extra}]'", purpose, State.ABSENT)


def examine_arrow() -> Finding:
    """Return whether Arrow runs here: wheels of it are made for processors that not every machine has."""
    try:
        arrow = import_module("pyarrow")
    except ModuleNotFoundError:
        return Finding(
            "arrow",
            State.ABSENT,
            "pyarrow is not installed: captures cannot be read, nor messages decoded into columns",
            "pip install 'specwire[arrow]'",
        )
    except (ImportError, OSError) as error:
        return Finding(
            "arrow",
            State.WRONG,
            f"pyarrow cannot be imported: {error}",
            "pip install --force-reinstall pyarrow",
        )
    return Finding("arrow", State.OK, f"pyarrow {arrow.__version__}")


def fits(release: str, bounds: str) -> bool:
    """Whether a release is within bounds such as ``>=1.2,<2``; bounds of a kind not known here are held to be kept."""
    return all(_keeps(_numbers(release), sign, _numbers(bound)) for sign, bound in _BOUND.findall(bounds))


def _keeps(release: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    width = max(len(release), len(bound))
    ours, theirs = (each + (0,) * (width - len(each)) for each in (release, bound))
    match sign:
        case "==":
            return ours == theirs
        case "!=":
            return ours != theirs
        case ">=":
            return ours >= theirs
        case "<=":
            return ours <= theirs
        case ">":
            return ours > theirs
        case _:
            return ours < theirs


def _numbers(release: str) -> tuple[int, ...]:
    """Return the leading numbers of a release: (4, 3, 0) of ``4.3.0rc1``."""
    leading = re.match(r"\d+(?:\.\d+)*", release)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def _requirements() -> list[re.Match[str]]:
    try:
        lines = requires("specwire") or []
    except PackageNotFoundError:  # a folder on the path, not an installation
        return []
    return [match for line in lines if (match := _REQUIREMENT.match(line))]


def _of_extra(lines: list[re.Match[str]], extra: str | None) -> Iterator[tuple[str, str]]:
    """Yield name and bounds of what `extra` asks for, with what the extras ask for that it contains."""
    for line in lines:
        when = _EXTRA.search(line["when"] or "")
        if (when[1] if when else None) != extra:
            continue
        if line["name"] == "specwire":
            for other in line["extras"].split(","):
                yield from _of_extra(lines, other)
        else:
            yield line["name"], line["releases"].strip()


def _judge(
    name: str, wanted: Iterable[tuple[str, str]], install: str, purpose: str, absent: State
) -> Finding:
    """Return the finding on a group of libraries; `install` is what pip is to be told, `absent` how it is without."""
    here, missing, other = [], [], []
    for library, bounds in dict(wanted).items():
        try:
            release = version(library)
        except PackageNotFoundError:
            missing.append(library)
            continue
        here.append(f"{library} {release}")
        if not fits(release, bounds):
            other.append(f"{library} {release} where {bounds} is wanted")
    advice = f"pip install {install}"
    if other:
        return Finding(name, State.WRONG, "; ".join(other), f"pip install --upgrade {install}")
    if missing:
        return Finding(name, absent, f"not installed: {', '.join(missing)}; {purpose}", advice)
    return Finding(name, State.OK, ", ".join(here))
