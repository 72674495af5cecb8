"""Reader of ``profile.toml``, which declares for a grammar what ABNF cannot express."""
