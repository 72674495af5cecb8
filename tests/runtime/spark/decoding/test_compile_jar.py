"""The compiler of the Java decoders: the same octets each time."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from specwire.runtime.spark.decoding import compile_jar
from specwire.runtime.spark.session import target
from tests.conftest import BRIEF_JAVAC


def write(path: Path, digest: str, *classes: str) -> Path:
    """Write a jar of these entries that says it is of sources with that digest."""
    manifest = f"Manifest-Version: 1.0\r\n{target.DIGEST}: {digest}\r\n\r\n".encode()
    compile_jar.write_jar(path, {**dict.fromkeys(classes, b"\xca\xfe"), target.MANIFEST: manifest})
    return path


def test_the_same_entries_give_the_same_octets(tmp_path: Path) -> None:
    """Whatever their order, and whenever it is."""
    one = write(tmp_path / "one.jar", "0", "a/B.class", "a/A.class")
    other = write(tmp_path / "other.jar", "0", "a/A.class", "a/B.class")
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert archive.namelist() == [target.MANIFEST, "a/A.class", "a/B.class"]
        assert {entry.date_time for entry in archive.infolist()} == {compile_jar.TIME}
    assert list(tmp_path.iterdir()) == [one, other] or list(tmp_path.iterdir()) == [other, one]


@pytest.mark.slow
def test_the_same_sources_give_the_same_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled anew, it is the jar that is there."""
    javac = compile_jar.find_javac()
    if javac is None or target.jar_trouble():
        pytest.skip(target.jar_trouble() or "there is no javac")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", BRIEF_JAVAC)
    compile_jar.compile_jar(javac, tmp_path / "again.jar")
    assert (tmp_path / "again.jar").read_bytes() == target.JAR.read_bytes()


def test_a_fault_of_the_compiler_is_told(tmp_path: Path) -> None:
    """What it says stands below the sentence."""
    javac = tmp_path / "javac"
    javac.write_text("#!/bin/sh\necho 'Decode.java:1: error: nothing works' >&2\nexit 1\n")
    javac.chmod(0o755)
    with pytest.raises(
        compile_jar.CompileError, match=r"refused the Java decoders:\nDecode.java:1: error: nothing works"
    ):
        compile_jar.compile_jar(javac, tmp_path / "some.jar")
    assert not (tmp_path / "some.jar").exists()
