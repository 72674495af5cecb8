"""Packages of several protocols, generated together and imported for a while: the formatter is started once for all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from specwire.generator import ir
from specwire.generator.packages import package_files
from specwire.generator.targets import choose_targets


@contextmanager
def imported(folder: Path, protocols: Sequence[ir.Protocol], *targets: str) -> Iterator[list[ModuleType]]:
    """Import the packages of protocols with names of their own, which have these targets and what they require."""
    for path, text in package_files(protocols, choose_targets(targets)).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    names = {protocol.name for protocol in protocols}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.syspath_prepend(str(folder))
        try:
            yield [importlib.import_module(protocol.name) for protocol in protocols]
        finally:
            for loaded in [name for name in sys.modules if name.split(".")[0] in names]:
                del sys.modules[loaded]


def has_records(protocols: Sequence[ir.Protocol]) -> bool:
    """Whether records are among the fields: the first that hypothesis draws are the smallest there are."""
    return any(
        isinstance(field.type, ir.RecordType | ir.UnionType)
        for protocol in protocols
        for message in protocol.messages
        for field in message.fields
    )
