"""Libraries: which extras are whole, by what the installation says it needs."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError

import pytest

from specwire.runtime.doctor import libraries
from specwire.runtime.doctor.finding import Finding, State
from tests.house.repository import ROOT

REQUIRES = [
    "lark<2,>=1.2",
    'numpy<3,>=2; extra == "capture"',
    'specwire[capture]; extra == "spark"',
    'pyspark[sql]==4.3.0; extra == "spark"',
    'aiohttp>=3.11; (python_version < "4") and extra == "metrics"',
]


def findings(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str]) -> dict[str, Finding]:
    """Return what is found where these releases are installed and nothing else."""

    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(libraries, "requires", lambda _: REQUIRES)
    monkeypatch.setattr(libraries, "version", version)
    return {finding.name: finding for finding in libraries.examine_libraries()}


@pytest.mark.parametrize(
    ("release", "bounds", "is_fit"),
    [
        ("1.2", ">=1.2,<2", True),
        ("1.10.3", ">=1.2,<2", True),
        ("2.0.0", "<2,>=1.2", False),
        ("1.1.9", ">=1.2", False),
        ("4.3", "==4.3.0", True),
        ("4.3.1", "==4.3.0", False),
        ("4.3.0rc1", "==4.3.0", True),
        ("3", ">3", False),
        ("3", "<=3.0", True),
        ("3", "!=3.0", False),
        ("17", "", True),
    ],
)
def test_releases_are_compared_by_their_numbers(release: str, bounds: str, is_fit: bool) -> None:
    """1.10 is newer than 1.2, and a zero at the end says nothing."""
    assert libraries.fits(release, bounds) is is_fit


def test_extras_are_whole_or_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extra that contains another needs its libraries too; a condition beside the extra is not one of ours."""
    found = findings(monkeypatch, {"lark": "1.3", "numpy": "2.4", "aiohttp": "3.14"})
    assert list(found) == ["libraries", "capture", "spark", "metrics"]
    assert found["libraries"] == Finding("libraries", State.OK, "lark 1.3")
    assert found["capture"] == Finding("capture", State.OK, "numpy 2.4")
    assert found["metrics"].state is State.OK
    assert found["spark"] == Finding(
        "spark",
        State.ABSENT,
        "not installed: pyspark; for decoding and answers on Spark, and the report",
        "pip install 'specwire[spark]'",
    )


def test_another_release_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was installed past pip, or upgraded since."""
    found = findings(monkeypatch, {"lark": "1.3", "numpy": "1.26.4"})
    assert found["capture"] == Finding(
        "capture",
        State.WRONG,
        "numpy 1.26.4 where <3,>=2 is wanted",
        "pip install --upgrade 'specwire[capture]'",
    )
    assert found["spark"].state is State.WRONG


def test_what_everything_needs_is_wrong_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not absent: nothing works without."""
    assert findings(monkeypatch, {})["libraries"].state is State.WRONG


def test_a_folder_on_the_path_has_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a wheel was unpacked and not installed."""

    def requires(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(libraries, "requires", requires)
    (finding,) = libraries.examine_libraries()
    assert (finding.name, finding.state) == ("libraries", State.ABSENT)


def test_arrow_that_does_not_load_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and made for another machine."""

    def load(name: str) -> None:
        raise ImportError("libarrow.so: cannot open shared object file")

    monkeypatch.setattr(libraries, "import_module", load)
    finding = libraries.examine_arrow()
    assert finding.state is State.WRONG and "libarrow.so" in finding.found


def test_arrow_that_is_not_there_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A codec needs none."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    finding = libraries.examine_arrow()
    assert (finding.state, finding.advice) == (State.ABSENT, "pip install 'specwire[arrow]'")


def test_every_extra_of_a_user_is_looked_at() -> None:
    """A new one in pyproject.toml gets its words here, unless it is for work on specwire."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) - {"codecs", "dev", "fuzz", "release", "run"} == set(
        libraries.FOR_USERS
    )
