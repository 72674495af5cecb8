"""Reader of ``profile.toml`` that reports every fault of the file, each at its place.

    E501  the file cannot be read, or is not TOML
    E502  an unknown key, or a value of the wrong type
    E503  an invalid protocol name
    E504  a base that cannot be extended
    E510  an invalid value

`specwire.generator.passes.declarations` checks later whether the rules and messages that the
profile names exist.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import StructMeta

from specwire.generator.diagnostics import Diagnostics, Source, Span, SpecError
from specwire.generator.profile import toml_places
from specwire.generator.profile.tables import LoadedProfile, Profile
from specwire.generator.profile.value_checks import check_values

PROFILE = "profile.toml"
NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
MAX_CHARACTERS = 200_000
"""Characters of a profile, ten times the longest one in this repository."""
_MAX_OCTETS = 4 * MAX_CHARACTERS
"""A longer file also has too many characters: a character of UTF-8 has at most four octets."""
_BASE_HELP = "name a protocol in the same folder that does not extend this one, or remove `base`"
_KIND_HELP = "docs/reference/grammars.md shows every key with a value"
_NAME_HELP = "use lower-case letters, digits and '_', beginning with a letter"


def load_profile(folder: Path, diagnostics: Diagnostics, *, shown: str) -> LoadedProfile:
    """Read ``folder/profile.toml``; a missing file is an empty profile with the name of the folder.

    Args:
        shown: the folder as diagnostics print it.

    Raises:
        SpecError: the file, or the profile of a base, has errors.
    """
    loaded = _load(folder, diagnostics, shown, ())
    if loaded is None or diagnostics.errors:
        raise SpecError(tuple(diagnostics))
    return loaded


def _load(folder: Path, diagnostics: Diagnostics, shown: str, above: tuple[str, ...]) -> LoadedProfile | None:
    """Return the profile in `folder`; `above` are the names of the protocols that extend it."""
    source = _read(folder / PROFILE, f"{shown}/{PROFILE}", diagnostics)
    if source is None:
        return None
    profile = _parse(source, folder.name, diagnostics)
    if profile is None:
        return None
    loaded = LoadedProfile(profile, source, folder=folder)
    if not NAME.match(profile.name):
        message = f"{profile.name!r} is not a valid protocol name"
        diagnostics.error("E503", loaded.place("name"), message, _NAME_HELP)
    check_values(loaded, diagnostics)
    _check_payloads(loaded, diagnostics)
    if profile.base is None:
        return loaded
    if not _may_extend(profile.base, loaded, (*above, folder.name), diagnostics):
        return None
    base_shown = (PurePath(shown).parent / profile.base).as_posix()
    base = _load(folder.parent / profile.base, diagnostics, base_shown, (*above, folder.name))
    return base and replace(loaded, profile=_inherit(base.profile, loaded), base=base)


def _check_payloads(loaded: LoadedProfile, diagnostics: Diagnostics) -> None:
    for number, payload in enumerate(loaded.profile.payload):
        if not (loaded.folder / payload.json_schema).is_file():
            place = loaded.place("payload", number, "json-schema")
            message = f"there is no file {payload.json_schema!r} beside the profile"
            diagnostics.error("E510", place, message, "name a file with the JSON Schema of the payload")


def _may_extend(base: str, loaded: LoadedProfile, above: tuple[str, ...], diagnostics: Diagnostics) -> bool:
    place = loaded.place("base")
    if not NAME.match(base):
        diagnostics.error("E504", place, f"{base!r} is not a valid protocol name", _NAME_HELP)
    elif base in above:
        chain = " -> ".join((*above[above.index(base) :], base))
        diagnostics.error("E504", place, f"protocol {base!r} extends itself: {chain}", _BASE_HELP)
    elif not (loaded.folder.parent / base / PROFILE).is_file():
        diagnostics.error("E504", place, f"base protocol {base!r} has no profile", _BASE_HELP)
    else:
        return True
    return False


def _read(path: Path, shown: str, diagnostics: Diagnostics) -> Source | None:
    try:
        with path.open("rb") as stream:
            octets = stream.read(_MAX_OCTETS + 1)
    except FileNotFoundError:
        return Source(shown, "")
    except OSError as error:
        _unreadable(
            Source(shown, ""),
            f"cannot be read: {error.strerror}",
            diagnostics,
            "make the file readable, or remove it",
        )
        return None
    # Line ends as TOML reads them; `tomllib.loads` refuses a carriage return on its own.
    source = Source(shown, octets.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))
    if len(octets) > _MAX_OCTETS or len(source.text) > MAX_CHARACTERS:
        much = f"the profile has more than {MAX_CHARACTERS:,} characters, which is the maximum"
        _unreadable(source, much, diagnostics, "remove entries that the grammar already defines")
        return None
    foreign = re.search("[\udc80-\udcff]", source.text)
    if foreign:
        span = LoadedProfile(Profile(""), source).span(*foreign.span())
        diagnostics.error("E501", span, "the file is not UTF-8", "save the file as UTF-8")
        return None
    return source


def _unreadable(source: Source, message: str, diagnostics: Diagnostics, help: str) -> None:
    diagnostics.error("E501", Span(source, 1, 1, 1, 2), message, help)


def _parse(source: Source, folder_name: str, diagnostics: Diagnostics) -> Profile | None:
    try:
        table = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        _report_toml(source, str(error), diagnostics)
        return None
    except (ValueError, RecursionError):
        # A number of thousands of digits, or arrays inside arrays without end.
        message = "the profile cannot be read: a value is too large or nested too deeply"
        _unreadable(source, message, diagnostics, "use numbers of at most 64 bits, and do not nest arrays")
        return None
    if not table:
        return Profile(name=folder_name)
    if "name" not in table:
        message = "profile: the protocol's `name` is missing"
        diagnostics.error("E502", Span(source, 1, 1, 1, 2), message, f'write: name = "{folder_name}"')
        table["name"] = folder_name
    return _convert(table, source, diagnostics)


def _report_toml(source: Source, message: str, diagnostics: Diagnostics) -> None:
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    sentence = message[: found.start()] if found else message
    lines = source.text.split("\n")
    line, column = (int(found[1]), int(found[2])) if found and found[1] else (len(lines), len(lines[-1]) + 1)
    span = Span(source, line, column, line, column + 1)
    help = (
        "write key = value, with texts in double quotes and lists in [ ]; begin a table with [name] on "
        "a separate line"
    )
    diagnostics.error("E501", span, f"not TOML: {sentence}", help)


def _convert(table: dict[str, Any], source: Source, diagnostics: Diagnostics) -> Profile | None:
    """Return the profile of a TOML table; report each faulty entry separately."""
    loaded = LoadedProfile(Profile(""), source)
    fields = {name: field.type for name, field in _fields(Profile).items()}
    values: dict[str, Any] = {}
    sound = True
    for key, value in table.items():
        if key not in fields:
            diagnostics.error("E502", loaded.place(key), *_unknown(key, fields))
            sound = False
            continue
        faults = list(_faults(value, fields[key], (key,)))
        for path, message, help in faults:
            diagnostics.error("E502", loaded.place(*path), message, help)
        if not faults:
            values[key] = msgspec.convert(value, fields[key])
        sound = sound and not faults
    return Profile(**values) if sound else None


def _faults(
    value: object, type: Any, path: toml_places.Path
) -> Iterator[tuple[toml_places.Path, str, str | None]]:
    """Yield place, message and help of each fault in a value."""
    inner = get_args(type)
    if isinstance(value, dict) and inner and getattr(type, "__origin__", None) is dict:
        for key, entry in value.items():
            yield from _faults(entry, inner[1], (*path, key))
        return
    if isinstance(value, list) and inner and getattr(type, "__origin__", None) is tuple:
        for number, entry in enumerate(value):
            yield from _faults(entry, inner[0], (*path, number))
        return
    struct = next((found for found in (type, *inner) if isinstance(found, StructMeta)), None)
    if isinstance(value, dict) and struct is not None:
        yield from _table_faults(value, struct, path)
        return
    try:
        msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        sentence = str(error).partition(" - at ")[0]
        yield path, f"profile: {sentence[0].lower()}{sentence[1:]}", _allowed(type) or _KIND_HELP


def _table_faults(
    value: dict[str, Any], type: Any, path: toml_places.Path
) -> Iterator[tuple[toml_places.Path, str, str | None]]:
    known = _fields(type)
    for key, entry in value.items():
        if key in known:
            yield from _faults(entry, known[key].type, (*path, key))
        else:
            yield ((*path, key), *_unknown(key, known))
    for name, field in known.items():
        if field.required and name not in value:
            yield path, f"profile: `{name}` is missing", f"write {name} = … here"


def _allowed(type: Any) -> str | None:
    """Return a sentence that lists the values of a key; None if they cannot be listed."""
    words = [
        word
        for choice in (type, *get_args(type))
        if get_origin(choice) is Literal
        for word in get_args(choice)
    ]
    return f"the values are {', '.join(map(json.dumps, words))}" if words else None


@cache
def _fields(type: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(type)}


def _unknown(key: str, known: dict[str, Any]) -> tuple[str, str]:
    close = get_close_matches(key, known, n=1)
    guess = f"did you mean '{close[0]}'? " if close else ""
    return f"profile: there is no key `{key}` here", f"{guess}The keys are {', '.join(known)}"


def _inherit(base: Profile, loaded: LoadedProfile) -> Profile:
    """Return the profile with the entries and keys that it inherits; a key that it has, even empty, is its own."""
    profile = loaded.profile
    merged: dict[str, Any] = {}
    for name in ("roles", "types", "message", "timers", "constants", "unexpected"):
        merged[name] = {**getattr(base, name), **getattr(profile, name)}
    for name in (
        "messages",
        "dialogs",
        "answers",
        "stream",
        "payload",
        "case",
        "max_depth",
        "single_frame",
        "redact",
        "prose",
    ):
        merged[name] = getattr(profile if (name,) in loaded.places else base, name)
    return msgspec.structs.replace(profile, **merged)
