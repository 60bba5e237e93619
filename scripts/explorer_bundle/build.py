"""Makes `tools/explorer/assets/codemirror.js`, the explorer's text panes, from CodeMirror's packages; needs npm.

    python scripts/explorer_bundle/build.py

`package-lock.json` has the versions. To take newer ones: `npm update` in this folder, then run this and the tests.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parents[1] / "src" / "tilewright" / "tools" / "explorer" / "assets"
OPTIONS = (
    "--bundle", "--minify", "--format=iife", "--global-name=CodeMirror", "--target=es2022", "--legal-comments=none",
)  # fmt: skip


def main() -> int:
    """Bundle, and write the licence with the versions beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("package.json", "package-lock.json", "entry.js"):
            shutil.copy(HERE / file, folder)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True)
        out = ASSETS / "codemirror.js"
        program = folder / "node_modules" / ".bin" / "esbuild"
        subprocess.run([program, "entry.js", *OPTIONS, f"--outfile={out}"], cwd=folder, check=True)
        (ASSETS / "codemirror.LICENSE").write_text(licence(folder / "node_modules"), encoding="utf-8")
    return 0


def licence(packages: Path) -> str:
    """The licence of CodeMirror, with the packages that the bundle is made of."""
    made_of = sorted(path.parent for path in packages.rglob("package.json") if is_part(path.parent))
    lines = [f"{folder.relative_to(packages)} {version_of(folder)}" for folder in made_of]
    text = (packages / "@codemirror" / "view" / "LICENSE").read_text(encoding="utf-8")
    return "\n".join(["codemirror.js is bundled from:", *lines, "", text])


def is_part(folder: Path) -> bool:
    """Whether it is a package of the bundle, all of which have one licence."""
    return "esbuild" not in str(folder) and (folder / "LICENSE").is_file() and "version" in described(folder)


def version_of(folder: Path) -> str:
    """The version of a package."""
    return str(described(folder)["version"])


def described(folder: Path) -> dict[str, object]:
    """What a package says of itself."""
    found: dict[str, object] = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main())
