"""The form in which the project is published: the package page, workflows, forms, extras, the check of a tag."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE = PROJECT["urls"]["Source"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILES_OF_GITHUB = sorted((ROOT / ".github").rglob("*.yml"))


def targets_of_make():
    return set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))


def run_lines(value):
    """Every `run:` of a workflow, at any depth."""
    if isinstance(value, dict):
        yield from (item for key, item in value.items() if key == "run")
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from run_lines(item)


def test_links_of_the_package_page_are_absolute_and_lead_to_files():
    links = re.findall(r"\]\(([^)]+)\)", README)
    raw = SOURCE.replace("https://github.com/", "https://raw.githubusercontent.com/")
    for link in links:
        path = re.fullmatch(rf"(?:{re.escape(SOURCE)}/blob|{re.escape(raw)})/main/([^#]+)(#.*)?", link)
        assert path, f"README: {link} does not work on the package page"
        assert (ROOT / path[1]).is_file(), link
    assert len(links) > 8


def test_addresses_name_one_repository():
    others = [url for name, url in PROJECT["urls"].items() if name != "Documentation" and not url.startswith(SOURCE)]
    named = {
        address
        for file in [*FILES_OF_GITHUB, ROOT / "SECURITY.md"]
        for address in re.findall(r"https://github\.com/\w+/\w+", file.read_text())
    }
    assert not others
    assert named == {SOURCE}


@pytest.mark.parametrize("file", FILES_OF_GITHUB, ids=lambda file: file.name)
def test_workflows_call_targets_of_make(file):
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(file.read_text())
    commands = list(run_lines(content))
    if file.parent.name == "workflows":
        assert content[True], "no trigger"  # YAML reads the key `on` as true
        assert commands
    for command in commands:
        words = [word for word in command.split() if "=" not in word]
        if words[0] == "make":
            assert set(words[1:]) <= targets_of_make(), command
        else:
            assert words[0].startswith(".venv/bin/"), command


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda f: f.name)
def test_issue_forms_have_what_github_asks_for(file):
    form = pytest.importorskip("yaml").safe_load(file.read_text())
    assert form.keys() >= {"name", "description", "body"}
    identities = [item["id"] for item in form["body"]]
    assert len(set(identities)) == len(identities)
    assert all(item["attributes"]["label"] for item in form["body"])


def test_extras_are_there_and_explained():
    extras = PROJECT["optional-dependencies"].keys()
    assert extras >= {"torch", "notebook", "docs", "test"}
    assert not [name for name in extras if f"`{name}`" not in README]


@pytest.mark.parametrize(
    ("tag", "heading", "message"),
    [
        ("v1.2.3", "## [1.2.3] - 2026-01-31", "v1.2.3 can be released"),
        ("v1.2.4", "## [1.2.3] - 2026-01-31", "the tag is v1.2.4, the version of pyproject.toml is 1.2.3"),
        ("v1.2.3", "## [Unreleased]", "CHANGELOG.md has no heading '## [1.2.3] - YYYY-MM-DD'"),
    ],
)
def test_a_release_has_its_version_and_its_heading(tmp_path, tag, heading, message):
    (tmp_path / "pyproject.toml").write_text(f"[project]\nversion = {json.dumps('1.2.3')}\n")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "check_release.py"
    script.write_text((ROOT / "scripts" / "check_release.py").read_text())
    done = subprocess.run([sys.executable, str(script), tag], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == message
    assert (done.returncode == 0) == ("can be" in message)


def test_the_source_distribution_holds_what_its_makefile_needs():
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {"src", "tests", "docs", "examples", "bench", "scripts", "Makefile", "uv.lock"} <= set(included["include"])
