"""The command line answers quickly, and its errors are messages with an exit status."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nocta.cli
from nocta.cli.app import COMMANDS, Row, app, load_command
from nocta.core.errors import DataError

runner = CliRunner()


def attempt(what: str, times: int = 1) -> None:
    """Act, or fail on request.

    This paragraph has a line that ends early
    and must be put together again.
    """
    if what == "bad-data":
        raise DataError("line 3: wrong.\nAnd more.")
    if what == "bug":
        raise RuntimeError("oops")
    if what == "closed-pipe":
        raise BrokenPipeError(32, "Broken pipe")
    print(f"{what} x {times}")


@pytest.fixture(autouse=True)
def _a_command_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("nocta.cli.attempt")
    module.attempt = attempt  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nocta.cli.attempt", module)
    monkeypatch.setitem(COMMANDS, "attempt", Row("Try it.", "nocta attempt this"))


def test_help_lists_every_command() -> None:
    shown = runner.invoke(app, ["--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    for name, row in COMMANDS.items():
        assert name in shown.stdout
        assert row.help in shown.stdout


def test_a_command_runs() -> None:
    assert runner.invoke(app, ["attempt", "this", "--times", "2"]).stdout == "this x 2\n"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["attempt", "bad-data"], 2, "Error: line 3: wrong.\nAnd more."),
        (["attempt", "bug"], 1, "Unexpected RuntimeError: oops\nRun the same command with --debug"),
        (["attempt"], 2, "Missing argument"),
        (["attempt", "this", "--times", "many"], 2, "--times"),
        (["attemt", "this"], 2, "attempt"),
        (["absent"], 2, "No such command"),
    ],
)
def test_errors_have_a_message_and_a_status(args: list[str], status: int, message: str) -> None:
    shown = runner.invoke(app, args)
    assert shown.exit_code == status
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    "args", [["--debug", "attempt", "bad-data"], ["attempt", "bad-data", "--debug"]]
)
def test_debug_shows_the_traceback(args: list[str]) -> None:
    shown = runner.invoke(app, args)
    assert shown.exit_code == 2
    assert "Traceback" in shown.stderr
    assert "in attempt" in shown.stderr


def test_a_closed_pipe_is_no_error() -> None:
    shown = runner.invoke(app, ["attempt", "closed-pipe"])
    assert shown.exit_code == 1
    assert "Unexpected" not in shown.stderr


def test_main_exits_with_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        nocta.cli.main(["attempt", "bad-data"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "Error: line 3: wrong.\nAnd more.\n"
    with pytest.raises(SystemExit) as left:
        nocta.cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("nocta ")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_its_example(name: str) -> None:
    shown = runner.invoke(app, [name, "--help"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    lines = [line.strip() for line in shown.stdout.splitlines() if line.strip()]
    assert lines[-1] == f"Example: {COMMANDS[name].example}"  # on one line of a terminal


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_can_be_typed(name: str) -> None:
    program, command, *args = shlex.split(COMMANDS[name].example)
    assert (program, command) == ("nocta", name)
    load_command(name).make_context(name, args)  # raises on a wrong option


def test_paragraphs_of_help_are_filled() -> None:
    shown = runner.invoke(app, ["attempt", "--help"], env={"COLUMNS": "120"}).stdout
    assert "This paragraph has a line that ends early and must be put together again." in shown


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, nocta.cli\n"
        "try: nocta.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'pandas', 'sklearn', 'scipy', 'numpy', 'matplotlib', 'pydantic'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - started < 5  # half a second on an idle machine


def test_being_told_to_end_is_like_an_interrupt(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import nocta.cli; nocta.cli.main()", "compare", "synthetic"]
    options = ["--quick", "--methods", "random,static", "--seeds", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    for _ in range(600):
        if (tmp_path / "setup.json").exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "run the same command again to continue" in said
