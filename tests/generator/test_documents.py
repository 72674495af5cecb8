"""A document becomes a grammar and a profile: every markup, every trap, every finding.

A golden case is a folder in tests/golden/import: the document, what is said about it, and the two files that
come of it, which are missing where nothing may be written.
"""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path

import pytest

from specwire import generator
from specwire.generator import ir
from specwire.generator.diagnostics import Severity, Source, SpecError
from specwire.generator.documents.blocks import cut_blocks
from specwire.generator.documents.editions import compile_document
from specwire.generator.documents.importing import import_document
from specwire.generator.documents.misspellings import is_slip
from specwire.generator.documents.profile_text import edit_source, quote
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol
from tests.generator.documents import write_document
from tests.golden_files import cases, check_golden


@pytest.mark.parametrize("case", cases("import"), ids=lambda case: case.name)
def test_import(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (document,) = case.glob("document.*")
    monkeypatch.chdir(case)
    try:
        imported = import_document(Path(document.name), "demo", shown="grammars/demo")
    except SpecError as error:
        check_golden(case / "stderr.txt", f"{error}\n")
        assert not (case / "expected").exists()
        return
    found = "".join(f"{diagnostic.render()}\n" for diagnostic in imported.diagnostics)
    check_golden(case / "stderr.txt", found)
    check_golden(case / "expected" / "grammar.abnf", imported.grammar_text)
    check_golden(case / "expected" / "profile.toml", imported.profile_text)


def test_every_finding_of_import_is_shown_by_a_test() -> None:
    folder = Path(generator.__file__).parent
    modules = (folder / "documents").glob("*.py")
    defined = {code for path in modules for code in re.findall(r'"([EW]7\d\d)"', path.read_text("utf-8"))}
    shown = {
        code
        for case in cases("import")
        for code in re.findall(r"\[([EW]7\d\d)\]", (case / "stderr.txt").read_text("utf-8"))
    }
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    shown |= {code for code in defined if re.search(rf'== \W*"{code}"', tests)}
    assert shown == defined


def codes(path: Path, protocol: str = "demo") -> list[str]:
    """Return the codes of the errors that an import ends with."""
    with pytest.raises(SpecError) as refused:
        import_document(path, protocol)
    return [found.code for found in refused.value.diagnostics if found.severity is Severity.ERROR]


def test_a_block_knows_its_lines() -> None:
    text = "prose\n\n```\n\n  a = %x01\n  b = 4OCTET\n```\nmore prose\n"
    (block,) = cut_blocks(Source("d", text))
    assert (block.kind, block.markup, block.first_line, block.last_line, block.indent) == (
        "grammar", "fence", 4, 6, 2,
    )  # fmt: skip
    lines = text.split("\n")
    for number, line in enumerate(block.text.split("\n"), start=1):
        assert line in ("", lines[number - 1])


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_are_all_the_same(tmp_path: Path, ends: str) -> None:
    path = write_document(tmp_path, ends.join(["Title", "", "a = %x01 b", "b = OCTET", "", "prose"]))
    assert import_document(path, "demo").grammar_text.endswith("\n\na = %x01 b\nb = OCTET\n")


def test_faults_are_shown_in_the_document(tmp_path: Path) -> None:
    path = write_document(tmp_path, "prose\n\n[[code]]\n   a = %x01 b\n   b = ( OCTET\n[[/code]]\n")
    with pytest.raises(SpecError) as refused:
        import_document(path, "demo")
    (fault,) = [found for found in refused.value.diagnostics if found.severity is Severity.ERROR]
    assert str(fault.span).endswith("document.txt:5:8")
    assert "   5 |    b = ( OCTET" in fault.render()


def test_an_erratum_mends_the_new_edition_before_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    profile = 'name = "demo"\n\n[[errata]]\nrule = "b"\nwas = "( OCTET"\nnow = "OCTET"\nwhy = "A bracket too many."\n'
    (folder / "profile.toml").write_text(profile, encoding="utf-8")
    path = write_document(tmp_path, "a = %x01 b\nb = ( OCTET\n")
    imported = import_document(path, "demo", folder=folder)
    assert imported.grammar_text.endswith("a = %x01 b\nb = ( OCTET\n")
    assert imported.profile_text.startswith(profile)


COMMENTED = """\
# Oven

    ; How the oven talks to nobody in particular.
    oven   = *( heat / door )

    heat   = magic %x01 degrees pairs note   ; somebody's words
                 ; and more of them
    magic  = %xBA %xCE
    door   = magic %x02                      ; "quoted; words"
    degrees = 3OCTET                         ; a large number, they say
    pairs  = size *pair
    pair   = size *VCHAR                     ; formatted as name=value
    size   = OCTET
    note   = *OCTET                          ; a ZeroMQ frame of its own
    semi   = ";"                             ; not the end
"""


def test_words_of_the_document_can_be_left_out(tmp_path: Path) -> None:
    """What the layout is inferred from stays, in our words; rules are what they were."""
    path = write_document(tmp_path, COMMENTED)
    text = import_document(path, "demo", comments=False).grammar_text
    assert (
        text.partition("\n\n")[2]
        == """\
oven   = *( heat / door )

heat   = magic %x01 degrees pairs note
magic  = %xBA %xCE
door   = magic %x02
degrees = 3OCTET ; integer, network order
pairs  = size *pair
pair   = size *VCHAR ; name=value
size   = OCTET
note   = *OCTET ; ZeroMQ frame
semi   = ";"
"""
    )
    for comments in (False, True):
        folder = tmp_path / f"{comments}"
        write_imported(import_document(path, "demo", comments=comments), folder)
        (message, _) = compile_protocol(folder).protocol.messages
        frame, note = message.parts
        assert isinstance(frame, ir.Frame) and isinstance(note, ir.Frame)
        types = [type(field.type).__name__ for field in frame.fields]
        assert types[2:] == ["IntegerType", "PairsType"]


def test_a_grammar_and_a_table_give_the_messages_together(tmp_path: Path) -> None:
    """A profile that lists the commands of the tables alone would hide the messages of the grammar."""
    text = "```\nbake = magic %x01 size\nmagic = %xBA %xCE\nsize = OCTET\n```\n\nAn OPEN command consists of 2 frames:\n\n* Frame 0: 0x02 (one byte)\n* Frame 1: Size (binary)\n"
    folder = tmp_path / "demo"
    imported = import_document(write_document(tmp_path, text), "demo", folder=folder)
    assert (
        "messages" not in imported.profile_text
        and "OPEN            = command-open size" in imported.grammar_text
    )
    write_imported(imported, folder)
    assert {message.name for message in compile_protocol(folder).protocol.messages} == {"bake", "OPEN"}


def test_messages_that_the_dialog_forgets_are_listed(tmp_path: Path) -> None:
    text = "talk = C:ask *S:tell\nask = sign %x01 size\ntell = sign %x02\nsign = %xBA %xCE\nsize = OCTET\n"
    assert "messages" not in import_document(write_document(tmp_path, text), "demo").profile_text
    text += "bye = sign %x03\npart = %x01 size\nlist = size *part\n"
    profile = import_document(write_document(tmp_path, text), "demo").profile_text
    assert tomllib.loads(profile)["messages"] == ["ask", "tell", "bye"]


def test_rules_that_use_each_other_often_are_read_once(tmp_path: Path) -> None:
    text = "".join(f"a{n} = a{n + 1} a{n + 1}\nb{n} = b{n + 1} b{n + 1}\n" for n in range(45))
    text += "a45 = %x01 a45\nb45 = C:b0 b0\nm = a0 b0 OCTET\n"
    assert import_document(write_document(tmp_path, text), "demo").rules == 93


def test_names_that_another_specification_defines(tmp_path: Path) -> None:
    """The protocol beside it that has all of them is proposed as the base."""
    path = write_document(tmp_path, "a = %x01 size tail\nb = *tail\n")
    (found,) = import_document(path, "demo", folder=tmp_path / "g" / "demo").diagnostics
    assert found.code == "W717" and str(found.span).endswith("document.txt:1:10")
    assert found.message == "'size' and 1 more name are not defined in the document"
    for name, rules in (
        ("a", "size = OCTET\n"),
        ("b", "Size = OCTET\ntail = *OCTET\n"),
        ("demo", "size = 2OCTET\n"),
    ):
        (tmp_path / "g" / name).mkdir(parents=True)
        (tmp_path / "g" / name / "grammar.abnf").write_text(rules, encoding="utf-8")
    (found,) = import_document(path, "demo", folder=tmp_path / "g" / "demo").diagnostics
    assert found.help == "protocol 'b' defines them: write base = \"b\" in the profile to use its rules"


def test_a_base_that_the_document_names(tmp_path: Path) -> None:
    """The profile has it as base, and a message that only the base defines stays in the dialog."""
    base = write_document(tmp_path, "# Key Protocol\n\n    S:sorry = %x09 size\n    size = OCTET\n", "key.md")
    grammars = tmp_path / "grammars"
    write_imported(import_document(base, "key", folder=grammars / "key"), grammars / "key")
    text = "# Door Protocol\n\nIt extends the {}.\n\n    door = C:knock ( S:open / S:sorry )\n"
    text += "    knock = %x01 size\n    open = %x02\n"
    path = write_document(tmp_path, text.format("Key Protocol"), "door.md")
    imported = import_document(path, "door", folder=grammars / "door")
    assert tomllib.loads(imported.profile_text)["base"] == "key" and not imported.errata
    write_imported(imported, grammars / "door")
    assert [m.name for m in compile_protocol(grammars / "door").protocol.messages] == [
        "sorry",
        "knock",
        "open",
    ]
    path = write_document(tmp_path, text.format("rules of another document"), "door.md")
    assert "base" not in tomllib.loads(import_document(path, "other", folder=grammars / "other").profile_text)


def test_another_document_is_another_edition(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    before = 'name = "demo"\ntitle = "Ours"\nedition = "Oven v1"\n\n[source]\ndocument = "d"\nsha256 = "00"\n'
    (folder / "profile.toml").write_text(before, encoding="utf-8")
    path = write_document(
        tmp_path, "# Oven Protocol\n\nThis is version 2 of Oven.\n\n    a = %x01 b\n    b = OCTET\n"
    )
    imported = import_document(path, "demo", folder=folder)
    assert imported.edition_was == "Oven v1"
    assert imported.profile_text.startswith('name = "demo"\ntitle = "Ours"\nedition = "Oven v2"\n')
    (folder / "profile.toml").write_text(
        imported.profile_text.replace("Oven v2", "v2, as we call it"), encoding="utf-8"
    )
    again = import_document(path, "demo", folder=folder)
    assert again.edition_was is None and 'edition = "v2, as we call it"' in again.profile_text


@pytest.mark.parametrize(
    ("word", "name", "slip"),
    [
        ("messsage", "message", True), ("mesage", "message", True), ("massage", "message", True),
        ("messaeg", "message", True), ("octec", "octet", True), ("message", "message", False),
        ("number-8", "number-4", False), ("number", "number-4", False), ("output", "input", False),
        ("strings-1", "string-1", True), ("", "a", True), ("a", "", True),
    ],
)  # fmt: skip
def test_what_is_a_slip(word: str, name: str, slip: bool) -> None:
    assert is_slip(word, name) is slip


def test_faults_of_a_compiled_document_are_shown_in_it(tmp_path: Path) -> None:
    path = write_document(
        tmp_path,
        "Oven\n\n[[code]]\n   heat = %x01 degrees rest\n   degrees = *OCTET\n   rest = *OCTET\n[[/code]]\n",
    )
    with pytest.raises(SpecError) as refused:
        compile_document(path)
    fault = next(found for found in refused.value.diagnostics if found.severity is Severity.ERROR)
    assert str(fault.span).startswith(f"{path.as_posix()}:4:")


PROFILE = """\
# Ours, not to be lost.
name = "demo"      # the name
[source]
document = 'old.txt'   # where it is from

[[errata]]
rule = "a"
was = "b | c"
now = "b / c"
why = "RFC 5234 writes alternatives with a slash."
"""


def test_a_new_edition_keeps_the_profile_and_shows_what_changes(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    old = "a = b | c\nb = %x01\nc = %x02 d\nd = OCTET\ne = d\n"
    (folder / "grammar.abnf").write_text(old, encoding="utf-8")
    (folder / "profile.toml").write_text(PROFILE, encoding="utf-8")
    path = write_document(tmp_path, "a = b / c  ; mended\nc = %x02 2d\nb = %x01\nd = OCTET\nf = 2OCTET\n")
    imported = import_document(path, "demo", folder=folder, shown="grammars/demo")
    assert [line for change in imported.changes for line in change.lines] == [
        "-c = %x02 d", "+c = %x02 2d", "-e = d", "+f = 2OCTET",
    ]  # fmt: skip
    (stale,) = imported.diagnostics
    assert stale.code == "W708"
    assert str(stale.span) == "grammars/demo/profile.toml:8:1"
    assert "the rule is now 'b / c'" in stale.message
    before, after = PROFILE.split("\n"), imported.profile_text.split("\n")
    added = [line for line in after if line not in before]
    assert len(added) == 1 and added[0].startswith('sha256 = "')
    assert [line for line in after if line not in added] == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('name = "x"\n', 'name = "x"\n\n[source]\ndocument = "d"\nsha256 = "s"\n'),
        ('[source]\ndocument = "a"', '[source]\ndocument = "d"\nsha256 = "s"'),
        ("[source]\nsha256 = ''\ndocument = '''a'''\n", '[source]\nsha256 = "s"\ndocument = "d"\n'),
        ('source = { document = "a" } # c\n', 'source = { document = "d", sha256 = "s" } # c\n'),
        ('source.document = "a"\n[types.x]\n', 'source.document = "d"\nsource.sha256 = "s"\n[types.x]\n'),
        ('[source] # c\n\n[types.x]\nname = "y"\n', '[source] # c\ndocument = "d"\nsha256 = "s"\n\n[types.x]\nname = "y"\n'),
    ],
)  # fmt: skip
def test_the_source_of_a_profile_is_edited_in_its_own_style(before: str, after: str) -> None:
    assert edit_source(before, document="d", sha256="s") == after
    assert edit_source(after, document=None, sha256="s") == after


@pytest.mark.parametrize(
    "text", ["plain", 'with "quotes"', "back\\slash", "both ' and \"", "caf\u00e9", "\x7f"]
)
def test_quoted_text_reads_back(text: str) -> None:
    assert tomllib.loads(f"x = {quote(text)}") == {"x": text}


def test_names_that_no_package_can_have(tmp_path: Path) -> None:
    path = write_document(tmp_path, "a = %x01\n")
    assert codes(path, "../x") == ["E700"]


JUNK = {
    "NUL": b"a = %x01\0\n",
    "empty": b"",
    "blanks": b" " * 1_000_000,
    "line ends": b"\n" * 500_000,
    "fences": b"```\n" * 100_000,
    "dashes": b"\n----\n" * 100_000,
    "unclosed": b"[[code]]\n" * 50_000,
    "brackets": b"a = " + b"(" * 500_000,
    "one line": b"a = %x01 " + b"a " * 400_000,
    "frames": b"Frame 0: Empty frame\n" * 40_000,
    "steps": b"C: A\nS: B\n" * 50_000,
    "comments": b"; a\n" * 200_000,
    "form feeds": b"\f\n" * 200_000,
    "page ends": b"[Page 1]\n\n" * 100_000,
    "names": b"".join(b"a%d b  = c\n" % n for n in range(3_000)),
}


@pytest.mark.parametrize("name", JUNK)
def test_junk_is_refused_quickly(tmp_path: Path, name: str) -> None:
    path = tmp_path / "junk"
    path.write_bytes(JUNK[name])
    start = time.process_time()
    assert codes(path)[0] == ("E701" if name == "NUL" else "E702")
    assert time.process_time() - start < 20, "a second or so; minutes where the work grows with the square"


@pytest.mark.parametrize(
    "octets",
    [b"a = %x01\nprose\n" * 50_000, b"a = %x01\n" + b"/ %x02\n" * 100_000, b"x" * (9 * 2**20)],
    ids=["many", "long", "large"],
)
def test_more_than_a_grammar_can_be(tmp_path: Path, octets: bytes) -> None:
    path = tmp_path / "junk"
    path.write_bytes(octets)
    assert codes(path)[0] == "E703"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_document_without_end_is_read_up_to_a_bound() -> None:
    assert codes(Path("/dev/zero"))[0] == "E703"


def test_octets_that_are_not_utf8_matter_in_rules_only(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("Gr\u00f6\u00dfe\n\na = %x01 b\nb = OCTET\n".encode("latin-1"))
    assert import_document(path, "demo").rules == 2
    path.write_bytes("a = %x01 b ; Gr\u00f6\u00dfe \nb = OCTET ; ".encode() + b"\xf6\n")
    assert "E129" in codes(path)


@pytest.mark.parametrize(
    ("encoding", "called"),
    [("latin-1", "Windows-1252"), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("utf-16-be", "UTF-16")],
)
def test_documents_in_other_encodings(tmp_path: Path, encoding: str, called: str) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes("a = %x01 b ; Gr\u00f6\u00dfe\r\nb = OCTET\r\n".encode(encoding))
    imported = import_document(path, "demo")
    assert "a = %x01 b ; Gr\u00f6\u00dfe\nb = OCTET\n" in imported.grammar_text
    (found,) = imported.diagnostics
    assert [found.code] == ["W721"] and found.message.endswith(f"is read as {called}")


def test_an_octet_that_is_not_utf8_in_a_frame_of_a_list(tmp_path: Path) -> None:
    text = b'# Door\n\nThe open message consists of these frames:\n\n* An empty frame.\n* An edition, to be "\x931".\n\xc3\xb6\n'
    path = tmp_path / "door.md"
    path.write_bytes(text)
    assert "E129" in codes(path)


def test_a_write_that_fails_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "demo"
    path = write_document(tmp_path, "a = %x01 b\nb = OCTET\n")
    write_imported(import_document(path, "demo", folder=folder), folder)
    before = {file: file.read_bytes() for file in folder.iterdir()}
    path.write_text("a = %x01 b\nb = 2OCTET\n", encoding="utf-8")
    imported = import_document(path, "demo", folder=folder)
    write_bytes = Path.write_bytes

    def full(self: Path, octets: bytes) -> int:
        if "profile" in self.name:
            raise OSError(28, "No space left on device", str(self))
        return write_bytes(self, octets)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_imported(imported, folder)
    with pytest.raises(OSError, match="No space left"):
        write_imported(imported, tmp_path / "other")
    assert {file: file.read_bytes() for file in folder.iterdir()} == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["demo", "document.txt"]


@pytest.mark.parametrize(
    "text",
    [
        "Grammar::\n\n  a = %x01 b\n  b = OCTET\n\nprose\n",
        "~~~ abnf\na = %x01 b\nb = OCTET\n~~~\n",
        "1. item\n\n   ```{.abnf}\n   a = %x01 b\n   b = OCTET\n   ```\n",
        "[source,abnf]\n----\na = %x01 b\nb = OCTET\n----\n",
        ".Title\n....\na = %x01 b\nb = OCTET\n....\n",
        "[[code]]\na = %x01 b\nb = OCTET[[/code]]\n",
        "a\u00a0= %x01\u00a0b\nb =\u00a0OCTET\n",
        "<pre>\na = %x01 b\nb = OCTET\n</pre>\n",
        "prose\n\n\ta = %x01 b\n\tb = OCTET\n\nprose\n",
        ".. code:: ABNF\n   :name: x\n\n   a = %x01 b\n   b = OCTET\nprose\n",
        "Heading\n----\n\na = %x01 b\nb = OCTET\n\nOther\n----\n",
        "```\na = %x01 b\nb = OCTET\n````\n\n```sh\nc = %x02\n```\n",
        "a = %x01 b\nb = OCTET\n\nThe size = of it\nx = y\n",
        "```python\nx = 4 * OCTET\n```\n\n```\na = %x01 b\nb = OCTET\n```\n",
    ],
)
def test_the_same_grammar_in_every_markup(tmp_path: Path, text: str) -> None:
    imported = import_document(write_document(tmp_path, text), "demo")
    assert imported.grammar_text.partition("\n\n")[2] == "a = %x01 b\nb = OCTET\n"
    assert [block.kind for block in imported.blocks] == ["grammar"]
