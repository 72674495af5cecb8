"""Options by name: from text as Spark hands them over, from Python values, and what is refused."""

from __future__ import annotations

import pytest

from specwire.runtime.spark.decoding.options import KNOWN, Mode, Options, read_options, resolve_dialect
from specwire.runtime.spark.errors import InputError


def test_nothing_given_is_everything_kept() -> None:
    """PERMISSIVE, all messages, all columns, nothing added, no number cut."""
    assert read_options({}) == Options(Mode.PERMISSIVE, "", (), (), False, False, False, False, "decimal")


def test_text_and_values_mean_the_same() -> None:
    """Spark knows text alone, and names without case."""
    text = {"Mode": "failfast", "MESSAGE": "Nom, Hugz", "columns": "seq", "Record_Id": "TRUE", "u64": "Long"}
    values = {"mode": Mode.FAILFAST, "message": ["Nom", "Hugz"], "columns": ("seq",), "record_id": True}
    assert read_options(text) == read_options({**values, "u64": "long"})


def test_an_unknown_option_is_named_and_the_known_ones_are_listed() -> None:
    """With the one that it may have been."""
    with pytest.raises(InputError) as caught:
        read_options({"modes": "PERMISSIVE"})
    assert str(caught.value) == (
        "there is no option 'modes' (is it 'mode'?); the known ones are mode, dialect, message, columns, debug, "
        "record_id, record_frames, input_file, u64"
    )
    with pytest.raises(InputError, match=r"there is no option 'debug'; the known ones are mode, path"):
        read_options({"debug": "true"}, ("mode",), ("mode", "path"))


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("mode", "LENIENT", "PERMISSIVE or DROPMALFORMED or FAILFAST"),
        ("u64", "int", "decimal or long"),
        ("debug", "yes", "true or false"),
        ("record_id", 1, "true or false"),
        ("message", 7, "names, or text with commas between them"),
        ("columns", ["seq", 7], "names, or text with commas between them"),
    ],
)
def test_a_wrong_value_is_told_with_what_it_may_be(name: str, value: object, allowed: str) -> None:
    """In one sentence that names the option."""
    with pytest.raises(InputError) as caught:
        read_options({name: value})
    assert str(caught.value) == f"option '{name}' is {value!r}; it may be {allowed}"


def test_every_option_has_a_reader() -> None:
    """Or a flag would be taken for what it is not."""
    given = {name: "true" for name in KNOWN if name.startswith(("debug", "record", "input"))}
    assert all(getattr(read_options(given), name) is True for name in given)


def test_a_dialect_is_a_package_of_its_own() -> None:
    """NORFAB's deployed peers write commands of four octets."""
    assert resolve_dialect("norfab", "") == "norfab"
    assert resolve_dialect("norfab", "ascii") == "norfab_ascii"
    with pytest.raises(InputError, match="option 'dialect' is 'hex'; norfab has ascii"):
        resolve_dialect("norfab", "hex")
    with pytest.raises(InputError, match="option 'dialect' is 'ascii'; flux has no dialect but its own"):
        resolve_dialect("flux", "ascii")
