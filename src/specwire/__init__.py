"""specwire: published protocol specifications in, working software out.

The code lives in three folders at the top of the repository, which this package reaches through
links: ``specwire.generator`` reads specifications and writes packages, ``specwire.generated`` holds
the packages it wrote, ``specwire.runtime`` runs peers, captures their traffic and decodes it on Spark.
"""

__version__ = "0.1.0"
