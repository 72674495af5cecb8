"""The jar of the Java decoders: the same octets each time, and never used where it is not of its sources."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from specwire.runtime.spark.decoding import compile_jar, jar
from tests.generated.vectors import PACKAGES


def write(path: Path, digest: str, *classes: str) -> Path:
    """Write a jar of these entries that says it is of sources with that digest."""
    manifest = f"Manifest-Version: 1.0\r\n{jar.DIGEST}: {digest}\r\n\r\n".encode()
    compile_jar.write_jar(path, {**dict.fromkeys(classes, b"\xca\xfe"), jar.MANIFEST: manifest})
    return path


def test_the_same_entries_give_the_same_octets(tmp_path: Path) -> None:
    """Whatever their order, and whenever it is."""
    one = write(tmp_path / "one.jar", "0", "a/B.class", "a/A.class")
    other = write(tmp_path / "other.jar", "0", "a/A.class", "a/B.class")
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert archive.namelist() == [jar.MANIFEST, "a/A.class", "a/B.class"]
        assert {entry.date_time for entry in archive.infolist()} == {compile_jar.TIME}
    assert list(tmp_path.iterdir()) == [one, other] or list(tmp_path.iterdir()) == [other, one]


@pytest.mark.parametrize("kind", ["none", "no archive", "no manifest", "other sources"])
def test_what_is_no_jar_of_these_sources_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """One sentence each that says what to do."""
    path = tmp_path / "decoders.jar"
    match kind:
        case "no archive":
            path.write_bytes(b"no archive")
        case "no manifest":
            zipfile.ZipFile(path, "w").close()
        case "other sources":
            write(path, "0" * 64)
    monkeypatch.setattr(jar, "JAR", path)
    reason = jar.jar_trouble()
    assert reason is not None and "`make jar`" in reason and "\n" not in reason
    assert jar.find_jar() is None


def test_a_jar_of_these_sources_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "decoders.jar", jar.sources_digest())
    monkeypatch.setattr(jar, "JAR", path)
    assert jar.jar_trouble() is None
    assert jar.find_jar() == path


def test_every_package_has_java_sources() -> None:
    """A class for each protocol, beside what they share."""
    folders = {path.parent.name for path in jar.java_sources() if path.name == "Decode.java"}
    assert folders == set(PACKAGES)


def test_comments_do_not_make_a_jar_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every template and every profile is in the digest that a header gives; the code is what counts."""
    source = tmp_path / "Decode.java"
    monkeypatch.setattr(jar, "GENERATED", tmp_path)
    digests = []
    for text in (
        "/**\n * Digest: 1.\n */\nclass A {}",
        "/**\n * Digest: 2.\n */\nclass A {}",
        "/**\n */\nclass B {}",
    ):
        source.write_text(text)
        digests.append(jar.sources_digest())
    assert digests[0] == digests[1] != digests[2]


def test_a_change_of_a_source_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is kept only as long as jar and sources look the same."""
    source = tmp_path / "Decode.java"
    source.write_text("class A {}")
    monkeypatch.setattr(jar, "GENERATED", tmp_path)
    monkeypatch.setattr(jar, "JAR", write(tmp_path / "decoders.jar", jar.sources_digest()))
    read: list[str] = []
    digest = jar.sources_digest

    def count() -> str:
        read.append("")
        return digest()

    monkeypatch.setattr(jar, "sources_digest", count)
    assert jar.jar_trouble() is None and jar.jar_trouble() is None
    assert len(read) == 1
    source.write_text("class Another {}")
    assert "not compiled from the sources" in str(jar.jar_trouble())
    write(tmp_path / "decoders.jar", digest())
    assert jar.jar_trouble() is None


def test_reserved_words_have_an_underline(tmp_path: Path) -> None:
    """No package of Java can be called ``new``."""
    path = write(tmp_path / "some.jar", "0", "specwire/generated/new_/Decode.class")
    assert jar.decoder_class("new", path) == "specwire.generated.new_.Decode"
    assert jar.decoder_class("old", path) is None


@pytest.mark.slow
def test_the_same_sources_give_the_same_jar(tmp_path: Path) -> None:
    """Compiled anew, it is the jar that is there."""
    javac = compile_jar.find_javac()
    if javac is None or jar.jar_trouble():
        pytest.skip(jar.jar_trouble() or "there is no javac")
    compile_jar.compile_jar(javac, tmp_path / "again.jar")
    assert (tmp_path / "again.jar").read_bytes() == jar.JAR.read_bytes()


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
