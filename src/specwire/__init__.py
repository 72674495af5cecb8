"""specwire: published protocol specifications in, working software out.

The code lives in three folders at the top of the repository, which this package reaches through
links: ``specwire.generator`` reads specifications and writes packages, ``specwire.generated`` holds
the packages it wrote, ``specwire.runtime`` runs peers, captures their traffic and decodes it on Spark.
"""

__version__: str


def __getattr__(name: str) -> str:
    """Return `__version__`, that of the installation. It is looked up when asked for, which takes a while."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("specwire")
    except PackageNotFoundError:  # These are sources that nobody has installed.
        return "0+unknown"
