"""Look for known vulnerabilities in the releases that set-up installs: ``make audit``.

``pip-audit`` asks the package index for the advisories on each line of constraints.txt. An index
that mirrors PyPI may not have them; then nothing was checked, and the exit status is 3.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_CHECKED = 3


def main() -> int:
    """Print the vulnerabilities; return 0 if there are none, 1 if there are some, 3 if nothing was checked."""
    options = ("--requirement", ROOT / "constraints.txt", "--no-deps", "--disable-pip", "--format", "json")
    ran = subprocess.run(
        [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        dependencies = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (ran.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]
        print(f"audit: nothing was checked: {reason}", file=sys.stderr)
        return NOT_CHECKED
    return report(dependencies)


def report(dependencies: list[dict[str, object]]) -> int:
    """Print the vulnerabilities of what pip-audit looked at; return the exit status."""
    skipped = [each for each in dependencies if "skip_reason" in each]
    if len(skipped) == len(dependencies):
        print("audit: nothing was checked: this package index has no advisories", file=sys.stderr)
        return NOT_CHECKED
    found = 0
    for each in dependencies:
        for vulnerability in each.get("vulns") or ():  # type: ignore[attr-defined]
            found += 1
            fixed = ", ".join(vulnerability["fix_versions"]) or "no release yet"
            print(f"{each['name']} {each['version']}: {vulnerability['id']}, fixed in {fixed}")
    print(f"audit: {len(dependencies) - len(skipped)} libraries checked, {found} vulnerabilities", end="")
    print(f"; not known to the index: {', '.join(str(each['name']) for each in skipped)}" if skipped else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
