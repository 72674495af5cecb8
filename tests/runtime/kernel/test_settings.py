"""The settings contract: what a struct declares, and what is derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from specwire.runtime.kernel.settings import Setting, describe_settings
from specwire.runtime.kernel.settings_sources import ConfigurationError, read_command_line


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    place: Annotated[Path | None, Setting(help="Where.", main=True)] = None
    how_long: Annotated[float, Meta(ge=0, le=1), Setting(help="How long.")] = 0.5


class Base(msgspec.Struct, frozen=True, kw_only=True):
    log_level: Annotated[int, Meta(ge=1), Setting(help="Level.")] = 3


class Declared(Base, frozen=True, kw_only=True):
    """Do something,
    and more.

    Details.
    """

    colour: Annotated[Colour, Setting(help="Colour.")] = Colour.RED
    names: Annotated[tuple[str, ...], Setting(help="Names.", value="NAME", argument=True)]
    mode: Annotated[Literal["a", "b"] | None, Setting(help="Mode.")] = None
    group: Group = Group()


Text = Annotated[str, Meta(max_length=3, description="Short text.")]


class Plain(msgspec.Struct, frozen=True, kw_only=True):
    """A struct that knows nothing of settings."""

    text: Annotated[Text, Meta(description="A name.")] = ""
    texts: Annotated[tuple[Text, ...], Meta(description="Names.")] = ()
    pause_s: Annotated[float, Meta(gt=0, le=9), Meta(description="A pause.")] = 5.0
    small: Annotated[int, Meta(le=3)] = 1
    headers: Annotated[Mapping[str, str], Meta(description="Properties.")] = {}


SECTION = describe_settings("some.server", Declared)


def test_what_a_struct_declares() -> None:
    """Required first, then its own, then inherited ones."""
    assert (SECTION.name, SECTION.title) == ("some.server", "Do something, and more.")
    rows = [(each.key, each.parameter, each.expected, each.default) for each in SECTION.settings]
    assert rows == [
        ("names", "names", "a list of text in [ ]", None),
        ("colour", "colour", "one of 'red', 'blue'", Colour.RED),
        ("mode", "mode", "one of 'a', 'b'", None),
        ("group.place", "group.place", "a path", None),
        ("group.how-long", "group.how_long", "a number from 0 to 1", 0.5),
        ("log-level", "log_level", "a whole number of at least 1", 3),
    ]
    assert [each.key for each in SECTION.settings if each.required] == ["names"]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("log-level", "log-level"),
        ("group", "group.place"),
        ("group.place", "group.place"),
        ("group-place", "group.place"),
        ("group-how-long", "group.how-long"),
        ("log_level", None),
        ("group.log-level", None),
    ],
)
def test_names_of_a_setting(name: str, key: str | None) -> None:
    found = SECTION.find(name)
    assert (found.key if found else None) == key


def test_options_and_variables() -> None:
    assert [each.option for each in SECTION.settings if not each.argument] == [
        *("colour", "mode", "group", "group-how-long", "log-level")
    ]
    assert [SECTION.variable(each) for each in SECTION.settings[-2:]] == [
        *("SPECWIRE_SOME_SERVER_GROUP_HOW_LONG", "SPECWIRE_SOME_SERVER_LOG_LEVEL")
    ]


@pytest.mark.parametrize(
    ("key", "value", "as_text", "converted"),
    [
        ("colour", "blue", False, Colour.BLUE),
        ("log-level", 7, False, 7),
        ("log-level", "7", True, 7),
        ("group.how-long", 1, False, 1.0),
        ("group.how-long", "0.25", True, 0.25),
        ("group.place", "a/b", False, Path("/base/a/b")),
        ("group.place", "/a/b", True, Path("/a/b")),
        ("names", ["a"], True, ("a",)),
    ],
)
def test_convert(key: str, value: Any, as_text: bool, converted: Any) -> None:
    setting = SECTION.find(key)
    assert setting is not None
    assert setting.convert(value, base=Path("/base"), as_text=as_text) == converted


def test_build() -> None:
    built = SECTION.build({"names": ("a",), "group.how-long": 1.0, "log-level": 9})
    assert built == Declared(names=("a",), group=Group(how_long=1.0), log_level=9)
    assert SECTION.build({"names": ()}) == Declared(names=())


def test_missing() -> None:
    assert [each.key for each in SECTION.missing(())] == ["names"]
    assert SECTION.missing(("names",)) == []


def test_a_struct_with_bounds_and_descriptions_only() -> None:
    plain = describe_settings("zre.join", Plain).settings
    assert [(each.key, each.help, each.expected) for each in plain] == [
        ("text", "A name.", "text"),
        ("texts", "Names.", "a list of text in [ ]"),
        ("pause-s", "A pause.", "a number above 0 and of at most 9"),
        ("small", "", "a whole number of at most 3"),
        ("headers", "Properties.", "a table { }"),
    ]
    assert [each.default for each in plain] == ["", (), 5.0, 1, {}]
    for setting, value in zip(plain, ("long", ["long"], 0, 4, {"a": 1}), strict=True):
        with pytest.raises(ValueError, match="expected "):
            setting.convert(value, base=Path())


def test_values_of_such_a_struct() -> None:
    section = describe_settings("zre.join", Plain)
    found = read_command_line(section, {}, ['headers={X-A = "1"}', "texts=a,b", "pause-s=9", "text=abc"])
    assert section.build({key: each.value for key, each in found.items()}) == Plain(
        headers={"X-A": "1"}, texts=("a", "b"), pause_s=9.0, text="abc"
    )
    with pytest.raises(ConfigurationError, match="--set headers: expected a table"):
        read_command_line(section, {}, ["headers=X-A=1"])
