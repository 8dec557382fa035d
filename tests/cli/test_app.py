"""The command line answers quickly, and its errors are messages with an exit status."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nocta.cli
from nocta.cli.app import COMMANDS, LazyCommand, app
from nocta.core.errors import DataError

runner = CliRunner()


def act(what: str, times: int = 1) -> None:
    """Act, or fail on request."""
    if what == "bad-data":
        raise DataError("line 3: wrong.\nAnd more.")
    if what == "bug":
        raise RuntimeError("oops")
    if what == "closed-pipe":
        raise BrokenPipeError(32, "Broken pipe")
    print(f"{what} x {times}")


@pytest.fixture(autouse=True)
def _a_command_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("nocta_try")
    module.act = act  # type: ignore[attr-defined]
    module.__spec__ = types.SimpleNamespace(name="nocta_try")  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "nocta_try", module)
    monkeypatch.setitem(COMMANDS, "try", LazyCommand("nocta_try:act", "Try it."))
    monkeypatch.setitem(COMMANDS, "absent", LazyCommand("nocta.cli.absent:absent", "Not there."))


def test_help_lists_what_exists() -> None:
    shown = runner.invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert "Try it." in shown.stdout
    assert "describe" in shown.stdout
    assert "Not there." not in shown.stdout


def test_a_command_runs() -> None:
    assert runner.invoke(app, ["try", "this", "--times", "2"]).stdout == "this x 2\n"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["try", "bad-data"], 2, "Error: line 3: wrong.\nAnd more."),
        (["try", "bug"], 1, "Unexpected RuntimeError: oops\nRun the same command with --debug"),
        (["try"], 2, "Missing argument"),
        (["try", "this", "--times", "many"], 2, "--times"),
        (["tri", "this"], 2, "try"),
        (["absent"], 2, "No such command"),
    ],
)
def test_errors_have_a_message_and_a_status(args: list[str], status: int, message: str) -> None:
    shown = runner.invoke(app, args)
    assert shown.exit_code == status
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("args", [["--debug", "try", "bad-data"], ["try", "bad-data", "--debug"]])
def test_debug_shows_the_traceback(args: list[str]) -> None:
    shown = runner.invoke(app, args)
    assert shown.exit_code == 2
    assert "Traceback" in shown.stderr
    assert "in act" in shown.stderr


def test_a_closed_pipe_is_no_error() -> None:
    shown = runner.invoke(app, ["try", "closed-pipe"])
    assert shown.exit_code == 1
    assert "Unexpected" not in shown.stderr


def test_main_exits_with_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        nocta.cli.main(["try", "bad-data"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "Error: line 3: wrong.\nAnd more.\n"
    with pytest.raises(SystemExit) as left:
        nocta.cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("nocta ")


def test_every_listed_command_loads() -> None:
    for name, command in COMMANDS.items():
        if command.exists and name != "try":
            shown = runner.invoke(app, [name, "--help"])
            assert shown.exit_code == 0, name


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
    assert "the same command goes on" in said
