"""Sources of settings: their order, and a fault for everything that is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from specwire.runtime.kernel.settings import Section, Setting, describe_settings
from specwire.runtime.kernel.settings_sources import (
    ConfigurationError,
    Found,
    ServerConfiguration,
    find_faults,
    find_strangers,
    read_command_line,
    read_found,
    read_tables,
)


def _refuse_four(size: int) -> None:
    if size == 4:
        raise ValueError("4 is refused")


def _refuse_file(path: Path) -> None:
    raise ValueError(path.read_text())


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    file: Annotated[Path | None, Setting(help="File.", check=_refuse_file)] = None


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[Path | None, Setting(help="Where.", main=True)] = None
    keep: Annotated[str | None, Setting(help="How long.", rare=True)] = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Publish."""

    folders: Annotated[tuple[str, ...], Setting(help=("What."), value="FOLDER", argument=True, paths_end="")]
    endpoint: Annotated[str, Setting(help="Where.")] = "tcp://127.0.0.1:5670"
    curve: Annotated[Path | None, Setting(help="Key.")] = None
    report_every: Annotated[float, Meta(ge=0), Setting(help="How often.", rare=True)] = 600
    size: Annotated[int, Meta(ge=1, le=9), Setting(help="How much.", check=_refuse_four)] = 2
    quiet: Annotated[bool, Setting(help="Less.", reload=True)] = False
    capture: Recording = Recording()

    def __post_init__(self) -> None:
        if self.quiet and self.size == 9:
            raise ValueError("quiet and size 9 exclude each other")


SECTION: Section = describe_settings("filemq.serve", Settings)
SECTIONS = ("filemq.serve", "filemq.subscribe")


def read(
    folder: Path, text: str, environment: dict[str, str] | None = None, *, whole: bool = False
) -> dict[str, Found]:
    """Return what is found in a file with this text, which is the inside of the section unless `whole`."""
    file = folder / "specwire.toml"
    file.write_text(text if whole else f"[filemq.serve]\n{text}", encoding="utf-8")
    return read_found(SECTION, SECTIONS, file, environment or {})


def faults(folder: Path, text: str, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text, environment)
    return [str(fault) for fault in caught.value.faults]


def test_values_have_their_kind_and_paths_begin_at_the_file(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        'folders = ["a", "b=/x", "b=/", "/c"]\ncurve = "keys/me.key_secret"\n'
        "report-every = 3\nsize = 8\nquiet = true\n",
    )
    assert {key: each.value for key, each in found.items()} == {
        "folders": (f"{tmp_path}/a", f"{tmp_path}/b=/x", f"{tmp_path}/b=/", "/c"),
        "curve": tmp_path / "keys" / "me.key_secret",
        "report-every": 3.0,
        "size": 8,
        "quiet": True,
    }


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ada")
    found = read(tmp_path, 'folders = ["~/photos"]\ncurve = "~/me"\n')
    assert found["folders"].value == ("/users/ada/photos",) and found["curve"].value == Path("/users/ada/me")


def test_a_tilde_of_an_unknown_user_is_part_of_a_name(tmp_path: Path) -> None:
    found = read(tmp_path, 'folders = ["~nosuch/a"]\ncurve = "~nosuch/me"\n')
    assert found["folders"].value == (f"{tmp_path}/~nosuch/a",)
    assert found["curve"].value == tmp_path / "~nosuch/me"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("report-every = -1", "filemq.serve.report-every: expected a number of at least 0, not -1"),
        ("report-every = nan", "filemq.serve.report-every: expected a number of at least 0, not nan"),
        ("report-every = inf", "filemq.serve.report-every: expected a number of at least 0, not inf"),
        ('report-every = "3"', "filemq.serve.report-every: expected a number of at least 0, not '3'"),
        ("size = 10", "filemq.serve.size: expected a whole number from 1 to 9, not 10"),
        ("size = 1.5", "filemq.serve.size: expected a whole number from 1 to 9, not 1.5"),
        ("size = true", "filemq.serve.size: expected a whole number from 1 to 9, not true"),
        ("quiet = 1", "filemq.serve.quiet: expected true or false, not 1"),
        ('curve = ""', "filemq.serve.curve: expected a path, not ''"),
        ('curve = "a\\u0000b"', "filemq.serve.curve: expected a path, not 'a\\x00b'"),
        ("curve = 1979-05-27", "filemq.serve.curve: expected a path, not datetime.date(1979, 5, 27)"),
        ("endpoint = [1]", "filemq.serve.endpoint: expected text, not [1]"),
        ("endpoint.a.b = 1", "filemq.serve.endpoint: expected text, not {'a': {'b': 1}}"),
        ('folders = "a"', "filemq.serve.folders: expected a list of text in [ ], not 'a'"),
        ("folders = [1]", "filemq.serve.folders: expected a list of text in [ ], not [1]"),
        ("report-evry = 1", "filemq.serve.report-evry: unknown setting; did you mean 'report-every'?"),
        (
            "xyz = 1",
            (
                "filemq.serve.xyz: unknown setting; expected one of folders, endpoint, curve, report-every, "
                "size, quiet, capture.folder, capture.keep"
            ),
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
    assert found["size"] == Found(4, keys=("filemq", "serve", "size"))
    assert found["quiet"].value is True
    assert found["folders"].value == ("one", "two"), (
        "relative to where the server is started, as on the command line"
    )
    assert found["curve"].value == Path("here")


def test_a_variable_can_have_an_array_for_texts_with_commas(tmp_path: Path) -> None:
    found = read(tmp_path, "", {"SPECWIRE_FILEMQ_SERVE_FOLDERS": '["a,b", "c d"]'})
    assert found["folders"].value == ("a,b", "c d")


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("QUIET", "yeah", "expected true or false, not 'yeah'"),
        ("SIZE", "10", "expected a whole number from 1 to 9, not '10'"),
        ("REPORT_EVERY", "inf", "expected a number of at least 0, not inf"),
        ("CURVE", "", "expected a path, not ''"),
        ("FOLDERS", '["a", b]', "expected a list of text in [ ] as in TOML, not '[\"a\", b]'"),
        ("FOLDERS", "[]", "expected at least one value"),
        ("FOLDERS", " ", "expected at least one value"),
        ("QUIT", "1", "unknown setting; did you mean 'SPECWIRE_FILEMQ_SERVE_QUIET'?"),
    ],
)
def test_a_variable_that_cannot_be_used(tmp_path: Path, variable: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, "", {f"SPECWIRE_FILEMQ_SERVE_{variable}": text})
    (fault,) = caught.value.faults
    assert (fault.source, fault.reason) == (f"SPECWIRE_FILEMQ_SERVE_{variable}", reason)


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
    assert [str(fault) for fault in find_strangers(tables, names)] == [
        "norfb: unknown table; did you mean 'norfab'?",
        "filemq.server: unknown table; did you mean 'serve'?",
        "filemq.serve: expected a table [filemq.serve], not a value",
        "flux: expected a table such as [flux.broker], not a value",
        "zzz: unknown table; expected one of filemq, flux, norfab, bridge",
    ]


# --- groups


@pytest.mark.parametrize(
    "text",
    [
        'capture.folder = "in"\ncapture.keep = "7d"\n',
        '[filemq.serve.capture]\nfolder = "in"\nkeep = "7d"\n',
        'capture = {folder = "in", keep = "7d"}\n',
        'capture = "in"\ncapture-keep = "7d"\n',
    ],
    ids=["dotted", "table", "inline", "hyphens"],
)
def test_a_group_is_written_in_several_ways(tmp_path: Path, text: str) -> None:
    """The last one is that of files before 0.2."""
    found = read(tmp_path, text)
    assert {key: each.value for key, each in found.items()} == {
        "capture.folder": tmp_path / "in",
        "capture.keep": "7d",
    }


def test_a_key_of_a_group_that_is_unknown(tmp_path: Path) -> None:
    assert faults(tmp_path, 'capture.kep = "7d"') == [
        "filemq.serve.capture.kep: unknown setting; did you mean 'capture.keep'?"
    ]
    assert faults(tmp_path, 'capture-folder = "a"\ncapture.folder = "b"\n') == [
        "filemq.serve.capture.folder: capture.folder is set twice"
    ]


@pytest.mark.parametrize("variable", ["CAPTURE", "CAPTURE_FOLDER"])
def test_variables_of_a_group(tmp_path: Path, variable: str) -> None:
    found = read(tmp_path, "", {f"SPECWIRE_FILEMQ_SERVE_{variable}": "in"})
    assert found["capture.folder"].value == Path("in")


# --- the command line


def line(*assignments: str, **options: object) -> dict[str, object]:
    found = read_command_line(SECTION, options, assignments)
    return {key: (each.value, each.source) for key, each in found.items()}


def test_options_and_assignments() -> None:
    assert line("report-every=3", "capture=out", "quiet=true", endpoint="tcp://a=1:1", folders=["a,b"]) == {
        "folders": (("a,b",), "FOLDER"),
        "endpoint": ("tcp://a=1:1", "--endpoint"),
        "report-every": (3.0, "--set report-every"),
        "capture.folder": (Path("out"), "--set capture.folder"),
        "quiet": (True, "--set quiet"),
    }


def test_lists_in_an_assignment() -> None:
    assert line("folders=a, b")["folders"] == (("a", "b"), "--set folders")
    assert line('folders=["a,b"]')["folders"] == (("a,b",), "--set folders")
    assert line("folders= [ 'a', 'b' ] ")["folders"] == (("a", "b"), "--set folders")


def test_a_text_that_begins_with_a_bracket_is_no_list() -> None:
    """Such as a public key in Z85."""
    assert line("folders=[a-key")["folders"] == (("[a-key",), "--set folders")
    assert line("folders=[b-key, [key]")["folders"] == (("[b-key", "[key]"), "--set folders")


def test_faults_of_the_command_line() -> None:
    with pytest.raises(ConfigurationError) as caught:
        line("report-evry=1", "size", "size=10", "endpoint=tcp://b:1", "quiet=maybe", endpoint="tcp://a:1")
    assert str(caught.value).splitlines() == [
        "--set report-evry: unknown setting; did you mean 'report-every'?",
        "--set: expected KEY=VALUE, not 'size'",
        "--set size: expected a whole number from 1 to 9, not '10'",
        "--set endpoint: endpoint is set twice",
        "--set quiet: expected true or false, not 'maybe'",
    ]


# --- the settings that hold


def configuration(folder: Path, text: str, *assignments: str, **variables: str) -> ServerConfiguration:
    found = read(folder, text, {f"SPECWIRE_FILEMQ_SERVE_{name}": value for name, value in variables.items()})
    fixed = read_command_line(SECTION, {}, assignments)
    return ServerConfiguration(SECTION, SECTIONS, folder / "specwire.toml", found, fixed)


def test_command_line_before_environment_before_file_before_default(tmp_path: Path) -> None:
    held = configuration(
        tmp_path,
        'folders = ["/a"]\nendpoint = "tcp://file:1"\nsize = 5\nreport-every = 1\n',
        "endpoint=tcp://line:1",
        ENDPOINT="tcp://variable:1",
        SIZE="6",
    )
    assert held.settings() == Settings(
        folders=("/a",), endpoint="tcp://line:1", size=6, report_every=1.0, capture=Recording()
    )


@pytest.mark.parametrize(
    ("text", "assignments", "reasons"),
    [
        ("", (), ["filemq.serve.folders: is required, in the file or on the command line"]),
        ('folders = ["a"]\nsize = 4\n', (), ["filemq.serve.size: 4 is refused"]),
        ("", ("folders=a", "size=4"), ["--set size: 4 is refused"]),
        ("size = 9\nquiet = true\n", ("folders=a",), ["filemq.serve: quiet and size 9 exclude each other"]),
        ("size = 9\n", ("folders=a", "quiet=true"), ["--set quiet: quiet and size 9 exclude each other"]),
        (
            "report-every = 1\n",
            ("folders=a", "quiet=true", "size=9"),
            ["--set quiet and --set size: quiet and size 9 exclude each other"],
        ),
        (
            "size = 9\nquiet = true\n",
            (),
            [
                "filemq.serve: quiet and size 9 exclude each other",
                "filemq.serve.folders: is required, in the file or on the command line",
            ],
        ),
    ],
    ids=[
        "missing",
        "refused in the file",
        "refused on the line",
        "together in the file",
        "file and line",
        "together on the line",
        "together, and missing",
    ],
)
def test_settings_that_do_not_hold(
    tmp_path: Path, text: str, assignments: tuple[str, ...], reasons: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configuration(tmp_path, text, *assignments).settings()
    assert [str(fault) for fault in caught.value.faults] == reasons


def test_read_again(tmp_path: Path) -> None:
    """By parameter; the command line stays, and what is no longer set has its default."""
    held = configuration(tmp_path, 'folders = ["/a"]\nsize = 5\nquiet = true\n', "endpoint=tcp://line:1")
    read(tmp_path, 'folders = ["/a"]\nendpoint = "tcp://file:1"\nreport-every = 600\ncapture.keep = "7d"\n')
    assert held.read_again({}) == {"size": 2, "quiet": False, "capture.keep": "7d"}
    assert held.read_again({}) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("size = 4\n", "filemq.serve.size: 4 is refused"),
        ("size = 9\n", "--set quiet: quiet and size 9 exclude each other"),
    ],
)
def test_a_fault_that_is_read_again_changes_nothing(tmp_path: Path, text: str, reason: str) -> None:
    held = configuration(tmp_path, 'folders = ["/a"]\nsize = 5\n', "quiet=true")
    read(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        held.read_again({})
    assert [str(fault) for fault in caught.value.faults] == [reason]
    read(tmp_path, 'folders = ["/a"]\nsize = 6\n')
    assert held.read_again({}) == {"size": 6}, "compared with what the server has"


def test_a_value_that_does_not_change_is_not_checked_again(tmp_path: Path) -> None:
    held = configuration(tmp_path, "size = 4\n")
    read(tmp_path, "size = 4\nreport-every = 1\n")
    assert held.read_again({}) == {"report_every": 1.0}


def test_a_pipe_is_left_to_the_server(tmp_path: Path) -> None:
    """Such as ``--curve <(command)``: what the check reads, the server would not find."""
    reader, writer = os.pipe()
    os.write(writer, b"secret")
    os.close(writer)
    section = describe_settings("some.server", Reading)
    pipe = Path(f"/dev/fd/{reader}")
    assert [*find_faults(section, {"file": Found(pipe)})] == []
    assert pipe.read_text() == "secret"
    os.close(reader)
    (tmp_path / "file").write_text("refused")
    (fault,) = find_faults(section, {"file": Found(tmp_path / "file")})
    assert fault.reason == "refused"
