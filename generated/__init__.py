# Written by specwire from generator/support/__init__.py. Do not edit; change that file and run `make generate`.
"""Packages that specwire wrote, one for each protocol, and what they share."""
