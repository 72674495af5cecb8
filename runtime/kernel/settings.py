"""Settings of a server: a struct declares each setting once, everything else is derived from it.

A server has a frozen msgspec struct. The annotation of a field states its type, its bounds as
`msgspec.Meta`, and its help, unit and behaviour as a `Setting`::

    class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
        '''Publish folders, and send every change to the subscribed clients.'''

        folders: Annotated[tuple[str, ...], Setting(help="Folders to publish.", argument=True)]
        report_every: Annotated[
            float,
            Meta(ge=0),
            Setting(help="Time between two reports.", value="SECONDS", reload=True, rare=True),
        ] = 600
        capture: CaptureSettings = CaptureSettings()

Without a `Setting`, the help is the description of `msgspec.Meta`. A rule about several fields is a
``ValueError`` that the struct's ``__post_init__`` raises. It must not read required fields: they
are None when a configuration without them is checked.

`describe_settings` returns the `Section` that the command line, the TOML file, environment
variables, ``config check|show|example``, SIGHUP reload, systemd units and the tables of the
documentation are made of.

A field that is a struct is a group: its keys are ``capture.keep``, or ``capture-keep``. The group
itself may be set to the value of its `main` field: ``capture = "DIR"`` means ``capture.folder =
"DIR"``.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

PREFIX = "SPECWIRE"

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. A field's annotation states the first attributes, `complete` adds the rest.

    Attributes:
        help: what it means, in sentences.
        value: name of its value in help: a unit such as ``SECONDS``, or ``FILE``.
        argument: it is an argument of the command instead of an option.
        rare: it has no option of its own; ``--set KEY=VALUE``, the file or a variable sets it.
        reload: a running server applies a changed value at SIGHUP.
        check: raises ValueError for a value that the server would refuse.
        writes: it names a folder that the server writes to.
        main: the value of the group itself.
        paths_end: text that ends so names a file or folder, relative to the file that sets it.
        key: name in the file: ``report-every``, ``capture.keep``.
        parameter: field that holds it, or parameter of the command: ``report_every``.
        kind: type that msgspec checks, without None.
        expected: the kind in words.
        default: value that holds if nothing sets it; None is unset.
        required: there is no default.
        is_list: it has several values.
        is_flag: it is true or false.
    """

    help: str
    value: str = ""
    argument: bool = False
    rare: bool = False
    reload: bool = False
    check: Callable[[Any], object] | None = None
    writes: bool = False
    main: bool = False
    paths_end: str | None = None

    key: str = ""
    parameter: str = ""
    kind: Any = str
    expected: str = ""
    default: Any = None
    required: bool = False
    is_list: bool = False
    is_flag: bool = False

    def convert(self, value: object, *, base: Path, as_text: bool = False) -> Any:
        """Return `value` with the setting's type, its paths below `base`.

        Args:
            as_text: numbers and flags are text, as in an environment variable.

        Raises:
            ValueError: wrong type or out of bounds; the text says what was expected.
        """
        try:
            found = msgspec.convert(value, self.kind, strict=not as_text, dec_hook=_make_path)
        except (msgspec.ValidationError, ValueError, TypeError):
            raise ValueError(f"expected {self.expected}, not {_show(value)}") from None
        if isinstance(found, float) and not math.isfinite(found):
            raise ValueError(f"expected {self.expected}, not {found}")
        if self.required and self.is_list and not found:
            raise ValueError("expected at least one value")
        return _anchor(found, base, self.paths_end)

    def names(self) -> Iterator[str]:
        """Yield the names by which a file may set it."""
        yield self.key
        if "." in self.key:
            yield self.key.replace(".", "-")
        if self.main:
            yield self.key.rpartition(".")[0]

    @property
    def option(self) -> str:
        """Name of its option without the dashes."""
        return [*self.names()][-1]


class Section(msgspec.Struct, frozen=True):
    """The settings of one server.

    Attributes:
        name: words of its command with dots: ``filemq.serve``.
        title: what the command does, in a sentence.
        struct: type that holds the settings; None if a command takes them as parameters.
    """

    name: str
    title: str
    settings: tuple[Setting, ...]
    struct: type[msgspec.Struct] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Path of its table in the file."""
        return tuple(self.name.split("."))

    @property
    def prefix(self) -> str:
        """Beginning of its environment variables."""
        return f"{PREFIX}_{self.name.replace('.', '_').upper()}_"

    def variable(self, setting: Setting) -> str:
        """Return the environment variable of a setting."""
        return self.prefix + _upper(setting.key)

    def variables(self) -> dict[str, Setting]:
        """Return the setting of each environment variable; one of several spellings comes first."""
        return {self.prefix + _upper(name): each for each in self.settings for name in each.names()}

    def find(self, name: str) -> Setting | None:
        """Return the setting with that name, in any of its spellings."""
        return next((setting for setting in self.settings if name in setting.names()), None)

    def has_group(self, name: str) -> bool:
        """Return whether `name` is a group, which is a table in the file."""
        return any(setting.key.startswith(f"{name}.") for setting in self.settings)

    def missing(self, keys: Container[str]) -> list[Setting]:
        """Return the required settings that are not among `keys`."""
        return [setting for setting in self.settings if setting.required and setting.key not in keys]

    def build(self, values: Mapping[str, Any]) -> Any:
        """Return the struct with these values by key, and defaults for the others.

        Raises:
            ValueError: the struct's ``__post_init__`` refuses them together.
        """
        assert self.struct is not None, "commands with parameters build no struct"
        by_parameter = {each.parameter: values[each.key] for each in self.settings if each.key in values}
        return _build(self.struct, by_parameter)


def describe_settings(name: str, struct: type[msgspec.Struct]) -> Section:
    """Return the section `name` that a struct declares.

    Required settings come first, and those of the struct before those that it inherits.
    """
    title = (inspect.getdoc(struct) or "").partition("\n\n")[0].replace("\n", " ")
    settings = sorted(_settings_of(struct, ""), key=lambda setting: not setting.required)
    return Section(name, title, tuple(settings), struct)


def complete(setting: Setting, hint: Any, **attributes: Any) -> Setting:
    """Return a setting with kind and words of a type hint, and other attributes as given."""
    kind, bounds = _unwrap(hint)
    is_list = get_origin(kind) in (list, tuple)
    if is_list:
        single, own_bounds = _unwrap(get_args(kind)[0])
        checked, words = _bound(single, [*own_bounds, *bounds])
        items = (checked, ...) if get_origin(kind) is tuple else (checked,)
        checked, words = GenericAlias(get_origin(kind), items), f"a list of {words} in [ ]"
    else:
        checked, words = _bound(kind, bounds)
    return msgspec.structs.replace(
        setting, kind=checked, expected=words, is_list=is_list, is_flag=kind is bool, **attributes
    )


def _settings_of(struct: type[msgspec.Struct], group: str) -> Iterator[Setting]:
    hints = get_type_hints(struct, include_extras=True)
    fields = msgspec.structs.fields(struct)
    for field in sorted(fields, key=lambda field: field.name not in struct.__annotations__):
        hint, parameter = hints[field.name], group + field.name
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _settings_of(hint, f"{parameter}.")
            continue
        described = "".join(meta.description or "" for meta in _unwrap(hint)[1][-1:])
        declared = next((one for one in get_args(hint) if isinstance(one, Setting)), Setting(help=described))
        yield complete(
            declared,
            hint,
            key=parameter.replace("_", "-"),
            parameter=parameter,
            default=None if field.required else _default_of(field),
            required=field.required,
        )


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


def _build(struct: type[msgspec.Struct], values: Mapping[str, Any]) -> Any:
    own = {name: value for name, value in values.items() if "." not in name}
    for group in {name.partition(".")[0] for name in values if "." in name}:
        below = {n.removeprefix(f"{group}."): v for n, v in values.items() if n.startswith(f"{group}.")}
        own[group] = _build(get_type_hints(struct)[group], below)
    return struct(**own)


def _unwrap(hint: Any) -> tuple[Any, list[msgspec.Meta]]:
    """Return a type without annotations and None, and the bounds among the annotations."""
    bounds: list[msgspec.Meta] = []
    while True:
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            bounds += [extra for extra in extras if isinstance(extra, msgspec.Meta)]
        elif get_origin(hint) in (Union, UnionType):
            (hint,) = (each for each in get_args(hint) if each is not NoneType)
        else:
            return hint, bounds


def _bound(kind: Any, bounds: Sequence[msgspec.Meta]) -> tuple[Any, str]:
    """Return what msgspec checks of one value, and the same in words."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind, _choice([str(each.value) for each in kind])
    if get_origin(kind) is Literal:
        return kind, _choice([str(each) for each in get_args(kind)])
    if get_origin(kind) in (dict, Mapping):
        return kind, "a table { }"
    if kind is str:
        bounds = [msgspec.Meta(min_length=1), *bounds]
    least, above, most = (
        next((value for bound in bounds if (value := getattr(bound, name)) is not None), None)
        for name in ("ge", "gt", "le")
    )
    limits = {"of at least": least, "above": above, "of at most": most}
    words = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if limit is not None)
    if least is not None and most is not None:
        words = f"from {least:g} to {most:g}"
    words = f"{_WORDS[kind]} {words}".rstrip()
    return Annotated[(kind, *bounds)] if bounds else kind, words


def _choice(values: list[str]) -> str:
    return f"one of {', '.join(map(repr, values))}"


def _upper(key: str) -> str:
    return key.replace("-", "_").replace(".", "_").upper()


def _make_path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str) and value and "\0" not in value:
        return Path(value)
    raise ValueError(value)


def _anchor(value: Any, base: Path, paths_end: str | None) -> Any:
    """Return a relative path below `base`, and everything else unchanged."""
    match value:
        case Path():
            return base / os.path.expanduser(value)
        case str() if paths_end is not None and value.endswith(paths_end):
            # Not a Path, which would drop the end of a text such as ``photos=/``.
            return os.path.join("" if base == Path() else base, os.path.expanduser(value))
        case list() | tuple():
            return type(value)(_anchor(each, base, paths_end) for each in value)
        case _:
            return value


def show_value(value: object) -> str:
    """Return a value of a setting as text for people."""
    match value:
        case None:
            return "unset"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ", ".join(map(show_value, value)) or "empty"
        case Enum():
            return str(value.value)
        case _:
            return str(value)


def _show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    shown = f"{value!r}"
    return shown if len(shown) <= 80 else f"{shown[:79]}…"
