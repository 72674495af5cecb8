"""How a package is used, as lines to copy: by this program, by spark-submit, and in a Connect session of one's own."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from specwire.runtime.spark.cluster.contents import ENVIRONMENT, JOB, PYTHON, Package

PIPELINE = ("pipeline", "run", "--capture", "CAPTURE", "--out", "OUT")
"""What the lines submit; words in capitals are for the reader to replace."""


def pipeline_line(package: Package, *where: str) -> str:
    """Return the line that runs the pipeline from here, `where` being its --master or --remote."""
    return _line([["specwire", *PIPELINE], [*where], ["--package", str(package.folder)]])


def submit_line(package: Package, master: str) -> str:
    """Return the spark-submit line; the driver runs here, with the Python that runs now.

    Spark reads files with a blank in their name as URIs only.
    """
    words = [
        ["spark-submit", "--master", master],
        ["--archives", f"{package.archive.as_uri()}#{ENVIRONMENT}"],
        *([["--jars", package.jar.as_uri()]] if package.jar else []),
        ["--conf", f"spark.pyspark.driver.python={sys.executable}"],
        ["--conf", f"spark.pyspark.python={PYTHON}"],
        [str(package.folder / JOB), *PIPELINE],
    ]
    return _line(words)


def artifact_lines(package: Package) -> str:
    """Return the Python lines that give a package to a session of Spark Connect."""
    lines = [
        f'spark.addArtifacts("{package.archive}#{ENVIRONMENT}", archive=True)',
        f'spark.conf.set("spark.sql.execution.pyspark.python", "{PYTHON}")',
    ]
    if package.jar:
        lines.append(f'spark.addArtifacts("{package.jar}")')
    return "\n".join(lines)


def _line(words: Sequence[Sequence[str]]) -> str:
    return " \\\n    ".join(shlex.join(part) for part in words)
