"""Bars on a terminal, a few lines elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from nocta.core import progress
from nocta.core.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_keeps_one_line_of_a_short_bar(capsys: pytest.CaptureFixture[str]) -> None:
    bar = progress_bar(range(2000), desc="epochs", mininterval=0.0, miniters=1)
    for i in bar:
        bar.set_postfix(loss=i)
    bar.close()
    shown = capsys.readouterr().err
    assert "\r" not in shown
    assert len(shown.splitlines()) == 1
    assert shown.startswith("epochs: 100%")
    assert "2000/2000" in shown
    assert "loss=1999" in shown


def test_a_long_bar_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress_bar(total=10, desc="jobs", leave=False) as bar:
        for _ in range(9):
            now[0] += 20.0
            bar.update()
            bar.refresh()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("|")[-1].split()[0] for line in lines] == ["3/10", "6/10", "9/10"]


def test_a_terminal_has_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    list(progress_bar(range(3), desc="epochs"))
    assert screen.getvalue().count("\repochs") >= 2


def test_nothing_is_shown_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress_bar(range(3), show=False)) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_a_bar_may_outlive_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    bar = progress_bar(total=3)
    log.close()
    bar.close()


@pytest.mark.parametrize("show", [True, False])
def test_a_process_without_a_console_goes_on(monkeypatch: pytest.MonkeyPatch, show: bool) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress_bar(range(3), show=show)) == [0, 1, 2]


def test_a_stream_that_can_only_write_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Log:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

    log = Log()
    monkeypatch.setattr(sys, "stderr", log)
    assert list(progress_bar(range(3))) == [0, 1, 2]
    assert log.text.count("\n") == 1
    assert "3/3" in log.text
