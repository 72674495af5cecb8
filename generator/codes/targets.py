"""E8xx: targets and the templates that ``specwire generate --templates`` puts in place of ours."""

from __future__ import annotations

from specwire.generator.codes.row import Code

TARGETS = (
    Code("E801", "A template of no target", "The folder of templates holds a file that no target asks for."),
    Code("E802", "A template that fails", "Jinja cannot read or fill in the template."),
    Code("E803", "Generated text that is no Python", "What the template made is not Python."),
)
