"""Files to read, from the names that a user gives: folders, files, globs and lists of these.

A `Path` is taken literally, and so is a string that names an existing file. Any other string with
``*``, ``?``, ``[…]`` or ``{a,b}`` is a pattern. A folder with segments is a capture; its other
files are ignored. In a folder without segments, packet captures are read. They are recognised by
their first four octets.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, cast
from urllib.parse import unquote, urlsplit

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import SUFFIX, find_replaced, is_visible
from specwire.runtime.capture.segments import list_files
from specwire.runtime.pcap.packets import holds_packets
from specwire.runtime.spark.decoding.options import one_of
from specwire.runtime.spark.errors import InputError

Form = Literal["", "capture", "pcap"]
"""Kind of input that a user asks for; with the empty string, the content decides."""

_PATTERN = re.compile(r"[*?\[{]")
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Inputs:
    """Files to read, each once, in the order of their names.

    Attributes:
        segments: files that should be capture segments, unread.
        packets: files that should be packet captures, unread.
    """

    segments: tuple[Path, ...] = ()
    packets: tuple[Path, ...] = ()


def read_names(given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in Spark's options `path` and `paths`, a JSON array by `load([a, b])`.

    Raises InputError if `paths` is not such an array.
    """
    if listed := given.get("paths"):
        try:
            return msgspec.json.decode(listed, type=tuple[str, ...])
        except msgspec.DecodeError as error:
            raise InputError(f"option 'paths' is {listed!r}; it must be a JSON array of texts") from error
    return (given["path"],) if given.get("path") else ()


def read_form(word: str) -> Form:
    """Return the value of option `from`; raise InputError for an unknown one."""
    return cast(Form, one_of("from", word.casefold(), ("capture", "pcap"), word)) if word else ""


def find_inputs(names: Sequence[Path | str], form: Form = "") -> Inputs:
    """Return the files that the names refer to.

    Raises CaptureError for a name without a file, and for a file of another kind. Raises InputError
    for an address of another file system, and if there is no name.
    """
    if not names:
        raise InputError("there is no path: name the capture's folder in load(), or in the option 'path'")
    found = [one for name in names for one in _find(name, form)]
    segments = _unique(path for one in found for path in one.segments)
    by_folder: dict[Path, list[str]] = {}
    for path in segments:
        by_folder.setdefault(path.parent, []).append(path.name)
    replaced = {folder / name for folder, present in by_folder.items() for name in find_replaced(present)}
    return Inputs(
        tuple(path for path in segments if path not in replaced),
        tuple(_unique(path for one in found for path in one.packets)),
    )


def local_path_of(name: Path | str) -> Path:
    """Return the local file of a path or a ``file:`` address; raise InputError for other addresses.

    Spark does not escape names in addresses; other programs do. So an address is unescaped only if
    the file does not exist otherwise.
    """
    text = str(name)
    parts = urlsplit(text)
    if isinstance(name, Path) or not parts.scheme:
        return Path(text)
    if parts.scheme == "file":
        plain = Path("/" + text.removeprefix("file:").lstrip("/"))
        return plain if plain.exists() else Path(unquote(str(plain)))
    if "://" in text:
        raise InputError(
            f"{text}: the format specwire reads folders that every worker sees as files; "
            "read other places as Parquet and decode() that"
        )
    return Path(text)


def holds_packet_captures(folder: Path) -> bool:
    """Return whether a folder has packet captures and no segments."""
    try:
        return bool(find_inputs([folder]).packets)
    except CaptureError:
        return False


def _find(name: Path | str, form: Form) -> Iterator[Inputs]:
    path = local_path_of(name)
    matches = [path]
    if not (isinstance(name, Path) or path.exists()) and _PATTERN.search(str(path)):
        found = {Path(match) for pattern in _expand(str(path)) for match in glob.glob(pattern)}
        matches = sorted(match for match in found if match.name[0] not in "._")
        if not matches:
            raise CaptureError(f"{path}: no file or folder matches this pattern")
    for match in matches:
        yield _files_in(match, form) if match.is_dir() else _classify(match, form)


def _expand(pattern: str) -> Iterator[str]:
    """Yield a pattern once for each of its alternatives: ``a{1,2}`` gives ``a1`` and ``a2``."""
    parts = _ALTERNATIVES.split(pattern)
    choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
    return ("".join(chosen) for chosen in product(*choices))


def _classify(path: Path, form: Form) -> Inputs:
    if not path.exists():
        raise CaptureError(f"{path}: there is no such capture folder or file")
    if form == "pcap" or (form == "" and path.suffix != SUFFIX and holds_packets(path)):
        return Inputs(packets=(path,))
    if form == "capture" or path.suffix == SUFFIX:
        return Inputs(segments=(path,))
    raise CaptureError(f"{path}: neither a capture segment (*{SUFFIX}) nor a packet capture (pcap, pcapng)")


def _files_in(folder: Path, form: Form) -> Inputs:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.name[0] not in "._")
    except OSError as error:
        raise CaptureError(f"{folder}: the capture cannot be read: {error.strerror}") from error
    if form == "capture" or (form == "" and any(map(is_visible, names))):
        return Inputs(segments=tuple(list_files(folder)))
    packets = tuple(folder / name for name in names if holds_packets(folder / name))
    if packets:
        return Inputs(packets=packets)
    wanted = "packet captures (pcap, pcapng)" if form else f"segments (*{SUFFIX}) and no packet captures"
    hint = f"; name its folders as {folder}/*" if any((folder / name).is_dir() for name in names) else ""
    raise CaptureError(f"{folder}: the capture folder holds no {wanted}{hint}")


def _unique(paths: Iterator[Path]) -> list[Path]:
    """Return the paths, with each file once even if it has several names."""
    found: dict[Path, Path] = {}
    for path in paths:
        found.setdefault(path.resolve(), path)
    return list(found.values())
