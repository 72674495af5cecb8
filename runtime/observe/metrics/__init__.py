"""The measures of each server, made of its status document; docs/observability.md lists them all."""
