"""Templates of the user: they take the place of ours, and what is wrong with them is told at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generator.test_targets import files, project  # noqa: F401
from tests.runtime.cli.commands import Outcome, specwire

HEADER = "{{ header }}\n"


def generate(capfd: pytest.CaptureFixture[str], *arguments: str, **templates: str | bytes) -> Outcome:
    """Write templates into the folder ``mine``, by name, and generate with them."""
    Path("mine").mkdir(exist_ok=True)
    for name, text in templates.items():
        path = Path("mine", f"{name}.j2")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return specwire(capfd, "generate", "--out", "wire", "--templates", "mine", *arguments)


@pytest.mark.usefixtures("project")
def test_an_override_takes_the_place_of_ours(capfd: pytest.CaptureFixture[str]) -> None:
    """And only of that one; a check with the same templates finds no drift, one without does."""
    text = HEADER + '{% include "specwire/schema.py.j2" %}\nMINE = "{{ messages | length }}"\n'
    assert generate(capfd, **{"schema.py": text}).status == 0
    schema = Path("wire/demo/schema.py").read_text(encoding="utf-8")
    assert schema.endswith('MINE = "2"\n') and "SCHEMAS: Mapping[str, StructType]" in schema
    assert "class Ping" in Path("wire/demo/codec.py").read_text(encoding="utf-8")
    assert generate(capfd, "--check").status == 0
    drift = specwire(capfd, "generate", "--out", "wire", "--check")
    assert drift.status == 1 and '-MINE = "2"\n' in drift.out


@pytest.mark.usefixtures("project")
def test_parts_are_included_by_names_that_override_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    text = HEADER + '{% include "_part.j2" %}\n'
    assert generate(capfd, **{"layout.py": text, "_part": "PART = 1"}).status == 0
    assert Path("wire/demo/layout.py").read_text(encoding="utf-8").endswith("\nPART = 1\n")


FAULTS: dict[str, tuple[str | bytes, str, str]] = {
    "a name that the view lacks": (HEADER + "x = {{ nothing }}\n", "2:1", "'nothing' is undefined"),
    "an attribute that there is none of": (HEADER + "\nx = {{ names.a.b }}\n", "3:1", "has no attribute 'a'"),
    "a block that is never closed": (HEADER + "{% if names %}\nx = 1\n", "3:1", "Unexpected end of template"),
    "an unknown tag": ("\n\n  {% frobnicate %}\n", "3:3", "Encountered unknown tag 'frobnicate'"),
    "a filter that there is none of": (HEADER + "{{ names | shout }}\n", "2:1", "No filter named 'shout'"),
    "a type error": ("{{ 1 + names }}\n", "1:1", "TypeError: unsupported operand"),
    "a part that is not there": (HEADER + '{% include "_none.j2" %}\n', "2:1", "there is no template '_none.j2'"),
    "itself": ('{% include "layout.py.j2" %}\n', "1:1", "the template includes itself"),
    "no UTF-8": (b"# fine\n# \xff\n", "2:1", "the template is not UTF-8"),
    "no header": ("x = 1\n", "", "'layout.py' without the text of `notice(protocol)`"),
    "no Python": (HEADER + "def f(:\n", "demo/layout.py (not written):", "target 'layout' writes what is no Python"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_template_is_told_at_its_line(
    fault: str,
    project: Path,  # noqa: F811
    capfd: pytest.CaptureFixture[str],
) -> None:
    text, place, told = FAULTS[fault]
    outcome = generate(capfd, **{"layout.py": text})
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err and "Traceback" not in outcome.err, outcome.err
    if place[:1].isdigit():
        assert outcome.err.startswith(f"mine/layout.py.j2:{place}: error[E802]: ")
    else:
        assert place in outcome.err
    assert files(project) == {"grammars/demo/grammar.abnf", "mine/layout.py.j2"}


@pytest.mark.usefixtures("project")
def test_a_fault_in_a_part_is_told_there(capfd: pytest.CaptureFixture[str]) -> None:
    text = HEADER + '{% include "_part.j2" %}\n'
    outcome = generate(capfd, **{"layout.py": text, "_part": "\n\n{{ gone }}\n"})
    assert outcome.err.startswith("mine/_part.j2:3:1: error[E802]: 'gone' is undefined\n   3 | {{ gone }}\n")


@pytest.mark.usefixtures("project")
def test_names_that_override_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Every one of them, with what was probably meant."""
    outcome = generate(capfd, **{"codek.py": "x", "zzz": "x"})
    assert outcome.status == 2
    assert "mine/codek.py.j2:1:1: error[E801]: no target has a template 'codek.py.j2'" in outcome.err
    assert "did you mean 'codec.py.j2'? there are codec.py.j2, " in outcome.err
    assert "mine/zzz.j2:1:1: error[E801]" in outcome.err


@pytest.mark.usefixtures("project")
def test_a_folder_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    for given in ("none", "grammars/demo/grammar.abnf"):
        outcome = specwire(capfd, "generate", "--templates", given)
        assert (outcome.status, outcome.err) == (2, f"specwire: {given} is not a folder of templates\n")
