"""Files of the inventory as Jinja2 templates, rendered in a sandbox.

A template knows `env`, the environment of the broker's process, as deployed inventories use it: ``{{ env.TOKEN }}``. A variable
that is not there is an error at its line and not an empty text; ``{{ env.TOKEN | default("none") }}`` says what to take then.

The sandbox keeps templates from Python's inside and from files. Whoever writes them runs the broker, so the
bounds (of ranges, of products, of widths, of the text that comes out) are there against slips.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specwire.runtime.norfab.inventory.faults import InventoryError, Place
from specwire.runtime.norfab.inventory.values import MAX_OCTETS

MAX_WIDTH = 10_000
MAX_POWER = 1_000
_WIDE = re.compile(r"\d{5}|\*")
"""A width or precision in a format that is too large, or that is not seen."""
_PADDING = frozenset({"center", "expandtabs", "ljust", "rjust", "zfill"})


class _Sandbox(ImmutableSandboxedEnvironment):
    """Bounds what a single operation can make."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Return ``left operator right``; raises SecurityError where that would be too large."""
        if operator == "*":
            _check_product(left, right)
            _check_product(right, left)
        elif operator == "**" and (abs(right) > MAX_POWER or abs(left) > 2**64):
            raise SecurityError("a power is too large")
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call what a template calls; raises SecurityError where text would be padded too far."""
        method = getattr(
            called, "__wrapped__", called
        )  # the sandbox has its own way to format, around the method
        name, owner = getattr(method, "__name__", ""), getattr(method, "__self__", None)
        if name in _PADDING:
            _check_widths(args)
        elif name in ("format", "format_map") and isinstance(owner, str):
            _check_format(owner)
        return super().call(context, called, *args, **kwargs)


def _check_product(many: Any, times: Any) -> None:
    if isinstance(times, int) and isinstance(many, str | list | tuple) and len(many) * times > MAX_OCTETS:
        raise SecurityError("a product is too large")


def _check_format(text: str) -> None:
    if _WIDE.search(text):
        raise SecurityError(f"a width in a format is up to {MAX_WIDTH - 1}")


def _check_widths(widths: tuple[Any, ...]) -> None:
    if any(isinstance(width, int) and width > MAX_WIDTH for width in widths):
        raise SecurityError(f"a width is up to {MAX_WIDTH}")


def _format(text: str, *args: Any, **kwargs: Any) -> str:
    _check_format(text)
    return text % (kwargs or args)


def _center(text: str, width: int = 80) -> str:
    _check_widths((width,))
    return str(text).center(width)


def _make_sandbox() -> _Sandbox:
    sandbox = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    sandbox.filters |= {"format": _format, "center": _center}
    del sandbox.globals["lipsum"]
    return sandbox


def render(text: str, file: str, env: Mapping[str, str] | None = None) -> str:
    """Return what the template `text` gives; raises InventoryError.

    Args:
        file: its name, for errors.
        env: what stands for the environment; by default that of this process.
    """
    if "{" not in text:
        return text
    pieces: list[str] = []
    size = 0
    try:
        template = _make_sandbox().from_string(text)
        for piece in template.generate(env=dict(os.environ if env is None else env)):
            size += len(piece)
            if size > MAX_OCTETS:
                raise InventoryError(Place(file), f"the template gives more than {MAX_OCTETS} octets")
            pieces.append(piece)
    except TemplateSyntaxError as error:
        raise InventoryError(Place(file, error.lineno), f"not a Jinja2 template: {error.message}") from error
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        reason = f"the template fails: {error}"
        raise InventoryError(Place(file, _line_of(error.__traceback__)), reason) from error
    return "".join(pieces)


def _line_of(trace: TracebackType | None) -> int:
    """Return the line of the template at which an error arose; Jinja2 puts it into the trace."""
    line = 1
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
