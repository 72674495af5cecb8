"""Update of a protocol to a new edition: what is written, what is kept, and that nothing is half done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from specwire.generator.diagnostics import SpecError
from specwire.generator.packages import package_files
from specwire.generator.pipeline import compile_protocol
from specwire.generator.targets import choose_targets
from specwire.generator.update import Update, find_protocols, prepare_update
from tests.generator.oven import OVEN, OVEN_2, OVEN_3, write_oven


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the first edition in ``grammars``, and its package in ``wire``."""
    project = tmp_path_factory.mktemp("project")
    _generate(project / "wire", write_oven(project / "grammars"))
    return project


@pytest.fixture
def oven(first: Path, tmp_path: Path) -> Path:
    """The folder of the protocol in a copy of that project."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path / "grammars" / "oven"


def _generate(packages: Path, *folders: Path, targets: list[str] | None = None) -> None:
    protocols = [compile_protocol(folder, shown=folder.as_posix()) for folder in folders]
    chosen = [*choose_targets(), *(choose_targets(targets) if targets else ())]
    files = package_files([one.protocol for one in protocols], chosen, compilations=protocols)
    for name, text in files.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text, encoding="utf-8")


def _prepare(folder: Path, text: str, edition: str | None = None) -> Update:
    document = folder.parent.parent / "oven.md"
    document.write_text(text, encoding="utf-8")
    return prepare_update(document, folder, folder.parent.parent / "wire", edition=edition)


def _everything(folder: Path) -> dict[str, bytes]:
    """Return all files beside the document, by name."""
    paths = (path for path in folder.parent.parent.rglob("*") if path.is_file() and path.name != "oven.md")
    return {path.as_posix(): path.read_bytes() for path in paths}


def test_all_files_are_those_of_the_new_edition(oven: Path) -> None:
    """What `generate` would write from the new grammar; the profile keeps what its owner wrote."""
    profile = oven / "profile.toml"
    profile.write_text(profile.read_text("utf-8") + "\n[timers]\nidle = 3.0  # ours\n", encoding="utf-8")
    before = _everything(oven)
    update = _prepare(oven, OVEN_2)
    assert _everything(oven) == before
    pending = update.pending()
    assert update.write() == pending and oven / "grammar.abnf" in pending
    assert profile.read_text("utf-8").endswith("\n[timers]\nidle = 3.0  # ours\n")
    assert (update.change.old.edition, update.change.new.edition) == ("Oven v1", "Oven v2")
    expected = package_files([compile_protocol(oven, shown=oven.as_posix()).protocol])
    package = oven.parent.parent / "wire"
    assert {name: (package / name).read_text("utf-8") for name in expected} == expected
    again = _prepare(oven, OVEN_2)
    assert (again.pending(), again.change.comparison.verdict, again.must_act) == ([], "same", False)


def test_what_must_be_done(oven: Path) -> None:
    assert _prepare(oven, OVEN_2).change.comparison.verdict == "conditional"
    update = _prepare(oven, OVEN_3)
    assert (update.change.comparison.verdict, update.must_act) == ("breaking", True)


def test_protocols_that_extend_it_are_compared_and_their_packages_written(oven: Path) -> None:
    """Directly or not; a package that was never generated is not written."""
    for name, base in (("gas", "oven"), ("blue", "gas")):
        (oven.parent / name).mkdir()
        text = f'name = "{name}"\nbase = "{base}"\nedition = "{name} 1"\n'
        (oven.parent / name / "profile.toml").write_text(text, encoding="utf-8")
    (oven.parent / "zre").mkdir()
    (oven.parent / "zre" / "grammar.abnf").write_text("zre = %x01 2OCTET\n", encoding="utf-8")
    packages = oven.parent.parent / "wire"
    _generate(packages, oven.parent / "blue")
    update = _prepare(oven, OVEN_3)
    assert [change.new.name for change in update.changes] == ["oven", "blue", "gas"]
    assert {change.comparison.verdict for change in update.changes} == {"breaking"}
    update.write()
    assert sorted(path.name for path in packages.iterdir()) == ["blue", "oven"]
    expected = package_files([compile_protocol(oven.parent / "blue", shown="x").protocol])
    assert (packages / "blue/codec.py").read_text("utf-8") == expected["blue/codec.py"]


def test_extra_targets_of_the_package_stay_current(oven: Path) -> None:
    packages = oven.parent.parent / "wire"
    _generate(packages, oven, targets=["wireshark"])
    (script,) = (packages / "oven").glob("*.lua")
    before = script.read_text("utf-8")
    assert script in _prepare(oven, OVEN_3).write()
    assert script.read_text("utf-8") != before


def test_an_erratum_that_corrects_nothing_any_more_is_removed(oven: Path) -> None:
    """Or the new edition would not compile."""
    profile = oven / "profile.toml"
    erratum = '[[errata]]\nrule = "degrees"\nwas = "2OCTEC"\nnow = "2OCTET"\nwhy = "A slip."\n'
    profile.write_text(f"{profile.read_text('utf-8')}\n{erratum}", encoding="utf-8")
    (oven / "grammar.abnf").write_text((oven / "grammar.abnf").read_text().replace("2OCTET", "2OCTEC"))
    update = _prepare(oven, OVEN_2)
    assert "W708" in [found.code for found in update.imported.diagnostics]
    update.write()
    assert "errata" not in profile.read_text("utf-8")
    assert compile_protocol(oven, shown="oven").protocol.edition == "Oven v2"


def test_the_edition_can_be_named(oven: Path) -> None:
    assert _prepare(oven, OVEN_2, edition="Oven v1").change.new.edition == "Oven v1"
    _prepare(oven, OVEN_2, edition="March").write()
    assert 'edition = "March"' in (oven / "profile.toml").read_text("utf-8")


@pytest.mark.parametrize(
    "text", ["Nothing here.\n", OVEN.replace("2OCTET", "2OCTETTES"), OVEN.replace("%x01", "( %x01")]
)
def test_nothing_is_written_when_the_new_edition_does_not_compile(oven: Path, text: str) -> None:
    before = _everything(oven)
    with pytest.raises(SpecError) as refused:
        _prepare(oven, text)
    assert str(refused.value).startswith(str(oven.parent.parent / "oven.md"))
    assert _everything(oven) == before


def test_an_edition_that_does_not_compile_cannot_be_updated(oven: Path) -> None:
    grammar = oven / "grammar.abnf"
    grammar.write_text(grammar.read_text("utf-8").replace("2OCTET", "2OCTETTES"), encoding="utf-8")
    with pytest.raises(SpecError) as refused:
        _prepare(oven, OVEN_2)
    assert str(refused.value).startswith(grammar.as_posix())


def test_a_file_of_somebody_else_stops_everything(oven: Path) -> None:
    (oven.parent.parent / "wire/oven/codec.py").write_text("# mine\n", encoding="utf-8")
    before = _everything(oven)
    with pytest.raises(FileExistsError, match="not written by specwire"):
        _prepare(oven, OVEN_2).write()
    assert _everything(oven) == before


@pytest.mark.parametrize("name", ["codec.py", "grammar.abnf", "profile.toml"])
def test_a_failure_in_the_middle_leaves_everything_as_it_was(
    oven: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _everything(oven)
    update = _prepare(oven, OVEN_2)
    replace = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise OSError(5, "Input/output error", os.fspath(target))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="Input/output error"):
        update.write()
    assert _everything(oven) == before


def test_the_grammar_is_replaced_last(oven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that an update that was killed can be made again, with the same report."""
    order: list[str] = []
    replace = Path.replace

    def record(path: Path, target: Path) -> Path:
        order.append(Path(target).name)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", record)
    _prepare(oven, OVEN_2).write()
    assert order[-2:] == ["grammar.abnf", "profile.toml"] and "codec.py" in order


def test_other_files_of_the_folder_are_there_when_it_is_compiled(oven: Path) -> None:
    """Such as the JSON Schema that a profile names."""
    (oven / "heat.json").write_text('{"type": "object"}', encoding="utf-8")
    profile = oven / "profile.toml"
    payload = '[[payload]]\ntopic = "heat"\nby = "text"\njson-schema = "heat.json"\n'
    profile.write_text(f"{profile.read_text('utf-8')}\n{payload}", encoding="utf-8")
    _prepare(oven, OVEN_2).write()
    assert (oven / "heat.json").is_file()


def test_the_protocol_of_a_document(oven: Path) -> None:
    """By the name in the profile, also as the last part of an address, else by the title."""
    grammars, document = oven.parent, oven.parent.parent / "new.md"
    document.write_text(OVEN_2, encoding="utf-8")
    assert find_protocols(document, grammars) == [oven]
    profile = oven / "profile.toml"
    text = profile.read_text("utf-8").replace('title = "Oven Protocol"', 'title = "Ours"')
    profile.write_text(text, encoding="utf-8")
    assert find_protocols(document, grammars) == []
    for source in ("new.md", "example.org/specs/new.md"):
        profile.write_text(text.replace('document = "oven.md"', f'document = "{source}"'), encoding="utf-8")
        assert find_protocols(document, grammars) == [oven]
    (grammars / "broken").mkdir()
    (grammars / "broken" / "profile.toml").write_text("name = \n", encoding="utf-8")
    assert find_protocols(document, grammars) == [oven]
