"""What `make dist` builds from, and what its trials ask for; building and installing itself takes minutes, and is done there."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dist
import trials
from tests.house.repository import ROOT, is_support, product_files
from trial_places import Place, TrialError


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a distribution is made of."""
    folder = tmp_path_factory.mktemp("sources")
    dist.copy_sources(folder)
    return folder


def test_everything_of_ours_is_copied(sources: Path) -> None:
    """Every file of the linked folders, links as links that lead to the copies."""
    ours = {
        path.relative_to(ROOT) for path in product_files() if path.relative_to(ROOT).parts[0] in dist.LINKED
    }
    assert [str(name) for name in sorted(ours) if not (sources / name).is_file()] == []
    for name in dist.LINKED:
        link = sources / "src/specwire" / name
        assert link.is_symlink() and link.resolve() == (sources / name).resolve()
    shared = [path.relative_to(ROOT / "generator/support") for path in product_files() if is_support(path)]
    assert shared and all((sources / "generated" / name).is_file() for name in shared)


def test_nothing_of_tools_is_copied(sources: Path) -> None:
    """What an earlier build left, or Python wrote, does not come along."""
    names = {path.name for path in sources.rglob("*")}
    assert not {name for name in names if name.endswith((".so", ".pyc", ".egg-info"))} | names & {
        "__pycache__"
    }
    assert {path.name for path in sources.iterdir()} == {*dist.LINKED, *dist.FILES, "src"}


def test_release_needs_its_section_of_the_changelog() -> None:
    """A preview needs none; a section that says "unreleased" is not that of a release."""
    changelog = "# Changelog\n\n## 0.3.0 (unreleased)\n\n## 0.2.0\n"
    dist.check_changelog("0.2.0", changelog)
    dist.check_changelog("0.3.0.dev12", changelog)
    with pytest.raises(dist.BuildError, match=r"no section '## 0\.3\.0'"):
        dist.check_changelog("0.3.0", changelog)


def test_a_codec_needs_msgspec_alone(tmp_path: Path) -> None:
    """Without site-packages, and with neither Lark nor Spark to be found, a package is imported and used."""
    spec = find_spec("msgspec")
    assert spec is not None and spec.origin is not None
    (tmp_path / "msgspec").symlink_to(Path(spec.origin).parent)
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT / 'src')!r}]\n"
    command = [sys.executable, "-I", "-S", "-c", path + trials.NEEDS_LITTLE]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_every_kind_of_distribution_is_tried() -> None:
    """The wheel in C, the wheel in Python, the source archive; without dependencies, plain and with Spark."""
    tried = {(trial.distribution, trial.install[0]) for trial in trials.TRIALS.values()}
    compiling = {(kind, "{}[compile,peers]") for kind in (trials.WHEEL, trials.PURE_WHEEL, trials.ARCHIVE)}
    assert compiling | {(trials.WHEEL, words) for words in ("{}[capture,spark]", "--no-deps", "{}")} <= tried


def test_a_distribution_that_is_missing_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And status 1, before anything is installed."""
    monkeypatch.setattr(dist, "DIST", tmp_path)
    assert dist.main(["--only", "pure"]) == 1
    assert capsys.readouterr().err.startswith(
        "dist: dist/ has 0 files specwire-*-py3-none-any.whl: build first"
    )


def test_what_fails_in_a_trial_is_named(tmp_path: Path) -> None:
    """The command, its status, and what it said."""
    place = Place(Path(sys.executable).parent, tmp_path, tmp_path)
    with pytest.raises(TrialError, match=r"status 3: .*python -c (.|\n)*lost") as failure:
        place.run("python", "-c", "import sys; print('lost'); sys.exit(3)")
    assert "lost" in str(failure.value)


def test_a_trial_sees_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No path of Python, no setting, and the environment's programs first."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("SPECWIRE_PURE", "1")
    variables = Place(tmp_path / "bin", tmp_path, tmp_path).variables
    assert not {name for name in variables if name.startswith(("PYTHON", "SPECWIRE"))}
    assert variables["PATH"].startswith(str(tmp_path / "bin"))
