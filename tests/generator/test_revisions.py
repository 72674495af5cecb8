"""Grammars of a commit against those of the working tree."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from specwire.generator.diagnostics import SpecError
from specwire.generator.revisions import RevisionError, changes_since
from tests.generator.git import commit_all, start_repository
from tests.generator.oven import OVEN, OVEN_2, OVEN_3, write_oven

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def grammars(tmp_path: Path) -> Path:
    """The grammars of a repository whose only commit has the first edition."""
    start_repository(tmp_path)
    write_oven(tmp_path / "specs" / "grammars")
    (tmp_path / "specs" / "grammars" / "README.md").write_text("Ours.\n", encoding="utf-8")
    commit_all(tmp_path)
    return tmp_path / "specs" / "grammars"


def test_nothing_changed(grammars: Path) -> None:
    assert changes_since("HEAD", grammars) == ()


def test_a_new_edition_in_the_working_tree(grammars: Path) -> None:
    write_oven(grammars, OVEN_3)
    (one,) = changes_since("HEAD", grammars)
    assert (one.name, one.status) == ("oven", "changed")
    assert one.change and one.change.comparison.verdict == "breaking"
    editions = one.change.comparison.old.edition, one.change.comparison.new.edition
    assert editions == ("Oven v1", "Oven v3")


def test_any_name_of_a_commit(grammars: Path) -> None:
    write_oven(grammars, OVEN_2)
    commit_all(grammars)
    assert changes_since("HEAD", grammars) == ()
    for name in ("HEAD~1", "main~1"):
        (one,) = changes_since(name, grammars)
        assert one.change and one.change.comparison.verdict == "conditional"


def test_a_comment_is_a_change_without_effect(grammars: Path) -> None:
    path = grammars / "oven" / "grammar.abnf"
    path.write_text("; One more line.\n" + path.read_text("utf-8"), encoding="utf-8")
    (one,) = changes_since("HEAD", grammars)
    assert one.change and one.change.comparison.verdict == "same"


def test_protocols_that_extend_a_changed_one(grammars: Path) -> None:
    (grammars / "gas").mkdir()
    (grammars / "gas" / "profile.toml").write_text('name = "gas"\nbase = "oven"\n', encoding="utf-8")
    commit_all(grammars)
    write_oven(grammars, OVEN_3)
    found = changes_since("HEAD", grammars)
    assert [(one.name, one.change and one.change.comparison.verdict) for one in found] == [
        ("gas", "breaking"),
        ("oven", "breaking"),
    ]


def test_added_and_removed(grammars: Path) -> None:
    shutil.copytree(grammars / "oven", grammars / "stove")
    commit_all(grammars)
    shutil.rmtree(grammars / "oven")
    (grammars / "lamp").mkdir()
    (grammars / "lamp" / "grammar.abnf").write_text("lamp = %x01 2OCTET\n", encoding="utf-8")
    found = changes_since("HEAD", grammars)
    assert [(one.name, one.status, one.change) for one in found] == [
        ("lamp", "added", None),
        ("oven", "removed", None),
    ]
    assert changes_since("HEAD", grammars, ["stove"]) == ()
    assert [one.name for one in changes_since("HEAD", grammars, ["lamp"])] == ["lamp"]
    with pytest.raises(RevisionError, match=r"neither .* nor HEAD has a protocol 'grill'"):
        changes_since("HEAD", grammars, ["grill"])


def test_a_folder_that_the_commit_does_not_have(grammars: Path) -> None:
    shutil.copytree(grammars, grammars.parent / "more")
    assert [one.status for one in changes_since("HEAD", grammars.parent / "more")] == ["added"]


def test_faults_are_shown_in_the_commit_and_in_the_folder(grammars: Path) -> None:
    path = grammars / "oven" / "grammar.abnf"
    sound = path.read_text("utf-8")
    path.write_text(sound.replace("2OCTET", "2OCTETTES"), encoding="utf-8")
    with pytest.raises(SpecError) as refused:
        changes_since("HEAD", grammars)
    assert str(refused.value).startswith(f"{path.as_posix()}:")
    commit_all(grammars)
    path.write_text(sound, encoding="utf-8")
    with pytest.raises(SpecError) as refused:
        changes_since("HEAD", grammars)
    assert str(refused.value).startswith(f"HEAD:{path.as_posix()}:")


@pytest.mark.parametrize("name", ["nope", "--all", "", "HEAD:specs"])
def test_no_such_commit(grammars: Path, name: str) -> None:
    with pytest.raises(RevisionError, match="there is no commit"):
        changes_since(name, grammars)


def test_no_repository(tmp_path: Path) -> None:
    write_oven(tmp_path / "grammars", OVEN)
    with pytest.raises(RevisionError, match="is in no Git repository"):
        changes_since("HEAD", tmp_path / "grammars")


def test_no_git(grammars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(grammars))
    with pytest.raises(RevisionError, match="git is not installed"):
        changes_since("HEAD", grammars)


def test_the_repository_is_that_of_the_grammars(
    grammars: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a hook, for which Git sets variables."""
    other = tmp_path_factory.mktemp("other")
    start_repository(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert changes_since("HEAD", grammars) == ()


def test_links_and_modes(grammars: Path) -> None:
    """An executable file is a file; a link is not read."""
    path = grammars / "oven" / "grammar.abnf"
    path.chmod(0o755)
    (grammars / "alias").symlink_to("oven", target_is_directory=True)
    commit_all(grammars)
    assert changes_since("HEAD", grammars) == ()
