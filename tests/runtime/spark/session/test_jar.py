"""The jar of the Java decoders: never used where it is not of its sources."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from specwire.runtime.spark.session import target
from tests.generated.vectors import PACKAGES
from tests.runtime.spark.decoding.test_compile_jar import write


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
    monkeypatch.setattr(target, "JAR", path)
    reason = target.jar_trouble()
    assert reason is not None and "`make jar`" in reason and "\n" not in reason
    assert target.find_jar() is None


def test_a_jar_of_these_sources_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "decoders.jar", target.sources_digest())
    monkeypatch.setattr(target, "JAR", path)
    assert target.jar_trouble() is None
    assert target.find_jar() == path


def test_every_package_has_java_sources() -> None:
    """A class for each protocol, beside what they share."""
    folders = {path.parent.name for path in target.java_sources() if path.name == "Decode.java"}
    assert folders == set(PACKAGES)


def test_comments_do_not_make_a_jar_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every template and every profile is in the digest that a header gives; the code is what counts."""
    source = tmp_path / "demo" / "Decode.java"
    source.parent.mkdir()
    monkeypatch.setattr(target, "GENERATED", tmp_path)
    digests = []
    for text in (
        "/**\n * Digest: 1.\n */\nclass A {}",
        "/**\n * Digest: 2.\n */\nclass A {}",
        "/**\n */\nclass B {}",
    ):
        source.write_text(text)
        digests.append(target.sources_digest())
    assert digests[0] == digests[1] != digests[2]


def test_a_change_of_a_source_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is kept only as long as jar and sources look the same."""
    source = tmp_path / "demo" / "Decode.java"
    source.parent.mkdir()
    source.write_text("class A {}")
    monkeypatch.setattr(target, "GENERATED", tmp_path)
    monkeypatch.setattr(target, "JAR", write(tmp_path / "decoders.jar", target.sources_digest()))
    read: list[str] = []
    digest = target.sources_digest

    def count() -> str:
        read.append("")
        return digest()

    monkeypatch.setattr(target, "sources_digest", count)
    assert target.jar_trouble() is None and target.jar_trouble() is None
    assert len(read) == 1
    source.write_text("class Another {}")
    assert "not compiled from the sources" in str(target.jar_trouble())
    write(tmp_path / "decoders.jar", digest())
    assert target.jar_trouble() is None
