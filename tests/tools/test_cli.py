"""The command line: what it lists, how fast it starts, how it reports errors."""

import importlib
import inspect
import subprocess
import sys

import pytest

from tilewright import __version__
from tilewright.tools import cli

HEAVY = ("numpy", "mlir", "torch", "tvm_ffi", "ml_dtypes")


def tilewright(*arguments, cwd=None, env=None):
    command = [sys.executable, "-c", "from tilewright.tools.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=env, timeout=120)


def test_help_lists_every_command():
    done = tilewright("--help")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in cli.COMMANDS)


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom tilewright.tools.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_module_and_help(name):
    module = importlib.import_module(f"tilewright.tools.commands.{name}")
    assert inspect.getdoc(module.command)
    done = tilewright(name, "--help")
    assert done.returncode == 0
    assert f"tilewright {name}" in done.stdout


def test_unknown_command_suggests_the_right_one():
    done = tilewright("complie")
    assert done.returncode == 2
    assert "No such command 'complie'. Did you mean 'compile'?" in done.stderr


def test_errors_are_printed_without_a_traceback(tmp_path):
    done = tilewright("compile", "nowhere.py:add", cwd=tmp_path)
    assert done.returncode == 1
    assert "ArgumentError: there is no file nowhere.py" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["-m", "tilewright"], ["-c", "from tilewright.tools.cli import main; main()"]])
def test_the_version_and_the_module_that_runs(command):
    done = subprocess.run([sys.executable, *command, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"tilewright {__version__}\n")
