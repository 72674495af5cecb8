"""E8xx: targets, and the templates of ``specwire generate --templates``."""

from __future__ import annotations

from specwire.generator.codes.row import Code

TARGETS = (
    Code("E801", "A template without a target", "The template folder contains a file that no target uses."),
    Code("E802", "A template that fails", "Jinja cannot parse or render the template."),
    Code("E803", "Generated text that is not Python", "The output of the template is not valid Python."),
)
