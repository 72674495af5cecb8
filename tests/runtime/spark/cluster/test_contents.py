"""A package folder is read only where it is whole and for this Python."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from specwire import __version__
from specwire.runtime.spark.cluster.package import ARCHIVE, JAR, NOTE, Note, python_version, read_package
from specwire.runtime.spark.errors import InputError


def write_note(
    folder: Path, *, python: str = python_version(), release: str = __version__, jar: bool = False
) -> None:
    """Write the note of a package, and an archive that nobody opens."""
    releases = {"specwire": release}
    note = Note(
        python=python, platform="", distributions=releases, archive_octets=0, archive_sha256="", jar=jar
    )
    (folder / NOTE).write_bytes(msgspec.json.encode(note))
    (folder / ARCHIVE).touch()


def test_a_whole_package_is_read(tmp_path: Path) -> None:
    """Its files by their full names, for a Spark that works elsewhere."""
    write_note(tmp_path)
    package = read_package(tmp_path)
    assert package.archive == tmp_path.resolve() / ARCHIVE
    assert package.jar is None


def test_the_jar_is_there_where_the_note_says_so(tmp_path: Path) -> None:
    """It is shipped with the archive."""
    write_note(tmp_path, jar=True)
    (tmp_path / JAR).touch()
    assert read_package(tmp_path).jar == tmp_path.resolve() / JAR


def test_another_folder_is_no_package(tmp_path: Path) -> None:
    """The sentence says how to write one."""
    with pytest.raises(
        InputError, match=r"no package folder; `specwire pipeline package --out .*` writes one"
    ):
        read_package(tmp_path)


def test_a_note_that_is_none_is_refused(tmp_path: Path) -> None:
    """As a folder without a note is."""
    (tmp_path / NOTE).write_text("{}")
    with pytest.raises(InputError, match="no package folder"):
        read_package(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Somebody copied half of it."""
    write_note(tmp_path, jar=True)
    (tmp_path / ARCHIVE).unlink()
    with pytest.raises(InputError, match=f"incomplete: {ARCHIVE}, {JAR} is missing"):
        read_package(tmp_path)


def test_another_python_is_refused(tmp_path: Path) -> None:
    """Functions travel between driver and executors as that version writes them."""
    write_note(tmp_path, python="3.10")
    with pytest.raises(InputError, match=r"for Python 3\.10 and this is Python 3\.\d+; write it again"):
        read_package(tmp_path)


def test_another_release_is_refused(tmp_path: Path) -> None:
    """Or executors would decode by other tables than the driver expects."""
    write_note(tmp_path, release="0.0.1")
    with pytest.raises(
        InputError, match=re.escape(f"of specwire 0.0.1 and this is {__version__}; write it again")
    ):
        read_package(tmp_path)
