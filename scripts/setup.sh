#!/bin/sh
# Find a Python that is new enough and let scripts/setup.py make .venv with it.
# PYTHON=... names one; otherwise the first of the usual names that is 3.11 or newer is taken.
set -eu
cd "$(dirname "$0")/.."

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    if ! is_new_enough "$PYTHON"; then
        echo "set-up: PYTHON=$PYTHON is not a Python 3.11 or newer; name another or leave PYTHON unset" >&2
        exit 1
    fi
    exec "$PYTHON" -E -s scripts/setup.py --chosen "$@"
fi

for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if is_new_enough "$candidate"; then
        exec "$candidate" -E -s scripts/setup.py "$@"
    fi
done
echo "set-up: no Python 3.11 or newer was found: install one (package python3.11 or newer, with its venv package)" \
    "or name one, as in: make setup PYTHON=path/to/python3" >&2
exit 1
