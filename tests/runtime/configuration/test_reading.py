"""What a configuration may say: kinds and bounds, the environment over the file, and a fault for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from specwire.runtime.configuration.faults import ConfigurationError
from specwire.runtime.configuration.reading import (
    Found,
    find_strangers,
    read_section,
    read_tables,
)
from specwire.runtime.configuration.settings import Section, Setting


def setting(key: str, kind: object, wanted: str, **more: object) -> Setting:
    return msgspec.convert(
        {"key": key, "parameter": key.replace("-", "_"), "kind": kind, "wanted": wanted, "help": "", **more},
        Setting,
    )


SECTION = Section(
    "filemq.serve",
    "Publish.",
    (
        setting("folders", list[str], "a list of text in [ ]", is_list=True, paths_end=""),
        setting("endpoint", str, "text"),
        setting("curve", Path, "a path"),
        setting("report-every", Annotated[float, msgspec.Meta(ge=0)], "a number of at least 0"),
        setting("size", Annotated[int, msgspec.Meta(ge=1, le=9)], "a whole number from 1 to 9"),
        setting("quiet", bool, "true or false", is_flag=True),
    ),
)


def read(
    folder: Path, text: str, environment: dict[str, str] | None = None, *, whole: bool = False
) -> dict[str, Found]:
    """Return what is found in a file with this text, which is the inside of the section unless `whole`."""
    file = folder / "specwire.toml"
    file.write_text(text if whole else f"[filemq.serve]\n{text}", encoding="utf-8")
    return read_section(SECTION, read_tables(file), file=file, environment=environment or {})


def faults(folder: Path, text: str, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text, environment)
    return [fault.reason for fault in caught.value.faults]


def test_values_have_their_kind_and_paths_begin_at_the_file(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        'folders = ["a", "b=/x", "b=/", "/c"]\ncurve = "keys/me.key_secret"\nreport-every = 3\nsize = 9\nquiet = true\n',
    )
    assert {key: each.value for key, each in found.items()} == {
        "folders": [f"{tmp_path}/a", f"{tmp_path}/b=/x", f"{tmp_path}/b=/", "/c"],
        "curve": tmp_path / "keys" / "me.key_secret",
        "report-every": 3.0,
        "size": 9,
        "quiet": True,
    }


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ada")
    found = read(tmp_path, 'folders = ["~/photos"]\ncurve = "~/me"\n')
    assert found["folders"].value == ["/users/ada/photos"] and found["curve"].value == Path("/users/ada/me")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("report-every = -1", "filemq.serve.report-every: a number of at least 0 is wanted, not -1"),
        ("report-every = nan", "filemq.serve.report-every: a number of at least 0 is wanted, not nan"),
        ("report-every = inf", "filemq.serve.report-every: a number of at least 0 is wanted, not inf"),
        ('report-every = "3"', "filemq.serve.report-every: a number of at least 0 is wanted, not '3'"),
        ("size = 10", "filemq.serve.size: a whole number from 1 to 9 is wanted, not 10"),
        ("size = 1.5", "filemq.serve.size: a whole number from 1 to 9 is wanted, not 1.5"),
        ("size = true", "filemq.serve.size: a whole number from 1 to 9 is wanted, not true"),
        ("quiet = 1", "filemq.serve.quiet: true or false is wanted, not 1"),
        ('curve = ""', "filemq.serve.curve: a path is wanted, not ''"),
        ('curve = "a\\u0000b"', "filemq.serve.curve: a path is wanted, not 'a\\x00b'"),
        ("curve = 1979-05-27", "filemq.serve.curve: a path is wanted, not datetime.date(1979, 5, 27)"),
        ("endpoint = [1]", "filemq.serve.endpoint: text is wanted, not [1]"),
        ("endpoint.a.b = 1", "filemq.serve.endpoint: text is wanted, not {'a': {'b': 1}}"),
        ('folders = "a"', "filemq.serve.folders: a list of text in [ ] is wanted, not 'a'"),
        ("folders = [1]", "filemq.serve.folders: a list of text in [ ] is wanted, not [1]"),
        ("report-evry = 1", "filemq.serve.report-evry is not known; did you mean 'report-every'?"),
        (
            "xyz = 1",
            "filemq.serve.xyz is not known; there are folders, endpoint, curve, report-every, size, quiet",
        ),
    ],
)
def test_a_value_that_cannot_be_used(tmp_path: Path, line: str, reason: str) -> None:
    assert faults(tmp_path, line) == [reason]


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    assert len(faults(tmp_path, "quiet = 1\nsize = 0\nqiet = 1\n", {"SPECWIRE_FILEMQ_SERVE_SIZE": "x"})) == 4


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    (reason,) = faults(tmp_path, f'quiet = "{"x" * 1000}"')
    assert len(reason) < 200 and reason.endswith("…")


def test_the_environment_holds_before_the_file(tmp_path: Path) -> None:
    environment = {
        "SPECWIRE_FILEMQ_SERVE_REPORT_EVERY": "2.5",
        "SPECWIRE_FILEMQ_SERVE_QUIET": "true",
        "SPECWIRE_FILEMQ_SERVE_FOLDERS": "one, two",
        "SPECWIRE_FILEMQ_SERVE_CURVE": "here",
        "SPECWIRE_FILEMQ_SUBSCRIBE_QUIET": "other sections are not looked at",
        "PATH": "/bin",
    }
    found = read(tmp_path, "report-every = 9\nsize = 4\n", environment)
    assert found["report-every"] == Found(2.5, "SPECWIRE_FILEMQ_SERVE_REPORT_EVERY")
    assert found["size"] == Found(4)
    assert found["quiet"].value is True
    assert found["folders"].value == ["one", "two"], (
        "relative to where the server is started, as on the command line"
    )
    assert found["curve"].value == Path("here")


def test_a_variable_can_have_an_array_for_texts_with_commas(tmp_path: Path) -> None:
    found = read(tmp_path, "", {"SPECWIRE_FILEMQ_SERVE_FOLDERS": '["a,b", "c d"]'})
    assert found["folders"].value == ["a,b", "c d"]


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("QUIET", "yeah", "true or false is wanted, not 'yeah'"),
        ("SIZE", "10", "a whole number from 1 to 9 is wanted, not '10'"),
        ("REPORT_EVERY", "inf", "a number of at least 0 is wanted, not inf"),
        ("CURVE", "", "a path is wanted, not ''"),
        ("FOLDERS", "[a", "a TOML array, or texts with commas between them, is wanted, not '[a'"),
        ("QUIT", "1", "there is no such setting; did you mean 'SPECWIRE_FILEMQ_SERVE_QUIET'?"),
    ],
)
def test_a_variable_that_cannot_be_used(tmp_path: Path, variable: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, "", {f"SPECWIRE_FILEMQ_SERVE_{variable}": text})
    (fault,) = caught.value.faults
    assert (fault.variable, fault.reason) == (f"SPECWIRE_FILEMQ_SERVE_{variable}", reason)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="it cannot be read: No such file or directory"):
        read_tables(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="it cannot be read: Is a directory"):
        read_tables(tmp_path)
    (tmp_path / "specwire.toml").write_text("a = [")
    with pytest.raises(ConfigurationError, match="it is not TOML: "):
        read_tables(tmp_path / "specwire.toml")


def test_tables_that_are_no_section() -> None:
    tables = {
        "norfb": {"broker": {}},
        "filemq": {"server": {}, "serve": 1, "subscribe": {"paths": ["/"]}},
        "flux": 3,
        "zzz": 1,
        "bridge": {"quit": 1},
    }
    names = ["filemq.serve", "filemq.subscribe", "flux.broker", "norfab.broker", "bridge"]
    assert [(fault.keys, fault.reason) for fault in find_strangers(tables, names)] == [
        (("norfb",), "norfb is not known; did you mean 'norfab'?"),
        (("filemq", "server"), "filemq.server is not known; did you mean 'serve'?"),
        (("filemq", "serve"), "filemq.serve is not a value: write a table [filemq.serve]"),
        (("flux",), "flux is not a value: write a table such as [flux.broker]"),
        (("zzz",), "zzz is not known; there are filemq, flux, norfab, bridge"),
    ]
