"""``python -m specwire``: the command line, where the program ``specwire`` is not on the path."""

from specwire.runtime.cli.main import main

if __name__ == "__main__":
    main()
