"""The measures of each server, made of its status document; docs/reference/observability.md lists them all."""
