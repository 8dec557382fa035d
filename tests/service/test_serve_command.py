"""`nocta serve`, `nocta token` and `nocta backup`: what is refused, and what is printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.core.errors import ConfigError
from nocta.service.serving import ServeRequest, is_loopback, serve
from nocta.service.store import Request, Store


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(arg) for arg in args])
    return found.exit_code, " ".join(found.output.split())


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    store = tmp_path / "cases.db"
    status, shown = invoke("token", store, "--name", "ward-3", "--role", "read", "--days", "9")
    token = re.search(r"nocta_[\w-]{40,}", shown)
    assert status == 0
    assert token is not None
    status, shown = invoke("token", store)
    assert "ward-3 read valid" in shown
    assert token[0] not in shown
    assert invoke("token", store, "--revoke", "ward-3")[0] == 0
    assert "ward-3 read revoked" in invoke("token", store)[1]
    assert invoke("token", store, "--revoke", "nobody")[0] == 2
    assert invoke("token", store, "--name", "x", "--role", "admin")[0] == 2


def test_a_backup_is_not_written_over_anything(tmp_path: Path) -> None:
    store, copy = tmp_path / "cases.db", tmp_path / "copy.db"
    kept = Store(store)
    kept.add_case("a", "A", {}, Request("me", "model"))
    assert invoke("backup", store, "--out", copy) == (0, f"Copied 1 case to {copy}.")
    assert Store(copy, read_only=True).case("a").name == "A"
    assert invoke("backup", store, "--out", copy)[0] == 2
    assert invoke("backup", store, "--out", copy, "--force")[0] == 0
    assert invoke("backup", store, "--out", store, "--force")[0] == 2
    assert invoke("backup", tmp_path / "nothing.db", "--out", tmp_path / "x.db")[0] == 2


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x.y", False)],
)
def test_only_loopback_is_local(host: str, local: bool) -> None:
    assert is_loopback(host) == local


def test_nobody_else_is_let_in_without_a_token(fitted_model: Path, tmp_path: Path) -> None:
    request = ServeRequest(fitted_model, 0.004, tmp_path / "cases.db", host="0.0.0.0", port=0)
    with pytest.raises(ConfigError, match="no valid token"):
        serve(request, print)


def test_a_folder_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    status, shown = invoke("serve", tmp_path, "--store", tmp_path / "cases.db")
    assert (status, "is not a saved model" in shown) == (2, True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_it_serves_until_it_is_stopped(fitted_model: Path, tmp_path: Path) -> None:
    command = ["serve", str(fitted_model), "--store", str(tmp_path / "cases.db"), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from nocta.cli import main; main()", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        said = [process.stdout.readline() for _ in range(3)]
        opened = re.search(r"Open (http://127\.0\.0\.1:\d+)/open\?key=([\w-]{20,})", said[1])
        assert opened is not None, (said, process.poll())
        request = urllib.request.Request(
            f"{opened[1]}/api/model", headers={"Authorization": f"Bearer {opened[2]}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert b'"classes"' in answer.read()
        process.send_signal(signal.SIGINT)
        log = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (0, 130, -signal.SIGINT), log
    assert opened[2] not in log
