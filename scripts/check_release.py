"""Whether a tag may be released: `python scripts/check_release.py v0.1.0`.

The tag is the version of `pyproject.toml`, and `CHANGELOG.md` has a heading for it with a date.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(tag: str, root: Path = ROOT) -> int:
    """Print what stands against the release; the exit status."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    findings = []
    if tag != f"v{version}":
        findings.append(f"the tag is {tag}, the version of pyproject.toml is {version}")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", changelog, re.MULTILINE):
        findings.append(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'")
    print("\n".join(findings) if findings else f"{tag} can be released")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
