"""Whatever is wrong with the input: one sentence, exit status 2, and nothing is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

from nocta.cli.app import app

SCHEMA = """
subject = "id"
time = "years"
grid = [0, 1]
label = "label"
[features.alt]
cost = 3.0
"""
ROWS = "".join(f"s{i},{t},{i + t},{i % 2}\n" for i in range(12) for t in (0, 1))
TABLE = "id,years,alt,label\n" + ROWS


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, its schema, a text file, and a Parquet file that is damaged."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE, "utf-8")
    (tmp_path / "t.schema.toml").write_text(SCHEMA, "utf-8")
    (tmp_path / "file").write_text("mine", "utf-8")
    (tmp_path / "card.md").write_text("mine", "utf-8")
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("mine", "utf-8")
    nested = pa.table({"id": ["a"], "years": [0.0], "alt": [{"x": 1}], "label": [0]})
    parquet.write_table(nested, tmp_path / "nested.parquet")
    shutil.copy(tmp_path / "t.schema.toml", tmp_path / "nested.schema.toml")
    text = pa.table({"id": ["a", "b"] * 9, "years": [0.0, 1.0] * 9})
    parquet.write_table(text, tmp_path / "cut.parquet", compression="none")
    data = bytearray((tmp_path / "cut.parquet").read_bytes())
    data[4:30] = b"\xff" * 26
    (tmp_path / "cut.parquet").write_bytes(bytes(data))
    shutil.copy(tmp_path / "t.schema.toml", tmp_path / "cut.schema.toml")
    return tmp_path


def schema_with(old: str, new: str) -> str:
    assert old in SCHEMA
    return SCHEMA.replace(old, new)


DEEP = "x = " + "[" * 5000 + "]" * 5000
#: What is wrong with the schema, and what is said.
SCHEMAS = {
    "deep": (DEEP, "nested too deeply"),
    "nan in grid": (schema_with("[0, 1]", "[0, nan]"), "grid is [0, nan]. It should be a list of"),
    "inf in grid": (schema_with("[0, 1]", "[0, inf]"), "grid is [0, inf]. It should be a list of"),
    "no slot": (schema_with("[0, 1]", "[]"), "grid is []. It should be a list of finite numbers"),
    "inf end": (schema_with("grid", "end = inf\ngrid"), "end is inf. It should be a number"),
    "huge cost": (schema_with("3.0", "1e308"), "Use another unit, so that they add up to at most"),
    "nan cost": (schema_with("3.0", "nan"), "a cost is a number of at least 0"),
    "one cost for two visits": (schema_with("3.0", "[1]"), "has 1 costs for 2 visits"),
    "text cost": (schema_with("3.0", "'much'"), "It should be a number"),
    "not TOML": ("a = [", "not valid TOML"),
    "empty": ("", "subject is missing"),
}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("command", [["describe", "t.csv"], ["fit", "t.csv", "--out", "model"]])
def test_a_schema_that_cannot_be_used(name: str, command: list[str], place: Path) -> None:
    text, said = SCHEMAS[name]
    (place / "t.schema.toml").write_text(text, "utf-8")
    status, shown = invoke(*command)
    assert said in shown
    assert status == 2
    assert not (place / "model").exists()


#: A command, and what is said.
COMMANDS = {
    "fit t.csv --out file/model": "is a file",
    "fit t.csv --out full": "is not empty and holds no model",
    "fit t.csv --out m --seed 4294967296": "--seed",
    "fit t.csv --out m --fractions nan,nan,nan": "is not a list of numbers",
    "fit t.csv --out m --fractions 1,1": "expected the sizes of",
    "fit t.csv --out m --preset best": "use 'default' or 'paper'",
    "fit t.csv --out m -o hidden=nan": "hidden",
    "compare t.csv --methods static --out file/run": "is a file",
    "compare t.csv --methods static --out full": "holds other files",
    "compare t.csv --methods static --out run --budgets inf": "is not a list of numbers",
    "compare t.csv --methods static --out run --budgets=-1": "budget",
    "compare t.csv --methods static --out run --cost-weights nan": "is not a list of numbers",
    "compare t.csv --methods stati --out run": "Did you mean 'static'?",
    "compare synthetic -o static.seed=1 --methods static --out run": "seed",
    "optimum synthetic --out file/o.csv": "is a file",
    "reproduce table-synthetic --out full": "holds other files",
    "reproduce table-synthetic --out file": "is a file",
    "demo --out file/demo": "is a file",
    "describe t.csv --out card.md": "Add --force to replace it",
    "describe t.csv --figure card.bmp": "unknown format",
    "describe nested.parquet": "column 'alt' holds lists or structures",
    "describe cut.parquet": "cut short or damaged",
    "describe synthetic --data-option seed=-1": "seed is -1; use a whole number",
    "describe synthetic --data-option seed=4294967296": "use a whole number",
    "describe nowhere.csv": "nowhere.csv",
    "describe .": "has no schema",
    "init file/t.csv": "file",
    "init t.csv --out file/schema.toml": "is a file",
    "plan full one.csv": "is not a saved model",
    "score full t.csv --out file/o.parquet": "is a file",
    "evaluate nowhere t.csv --out r.csv": "does not exist",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_work(command: str, place: Path) -> None:
    before = snapshot(place)
    status, shown = invoke(*command.split())
    assert COMMANDS[command] in shown
    assert status == 2
    assert snapshot(place) == before


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_describe_replaces_files_only_if_told_to(place: Path) -> None:
    assert invoke("describe", "t.csv", "--out", "card.md", "--force")[0] == 0
    assert (place / "card.md").read_text("utf-8") != "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cost-weight", "1e300"], "is too large to compute with"),
        (["--cost-weight", "nan"], "cost"),
        (["--cost-weight", "inf"], "cost"),
        (["--budget", "nan"], "budget"),
    ],
)
def test_no_advice_is_made_of_numbers_that_are_none(
    options: list[str], said: str, fitted_model: Path
) -> None:
    patient = Path(__file__).parents[2] / "examples" / "one-patient.csv"
    status, shown = invoke("plan", fitted_model, patient, *options)
    assert said in shown
    assert status == 2
    assert "Next:" not in shown


def test_a_full_disk_is_one_sentence(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    before = snapshot(place)
    status, shown = invoke("describe", "t.csv", "--out", "new.md")
    assert status == 2
    assert "No space left on device. What was written before is as it was." in shown
    assert snapshot(place) == before


def test_warnings_never_reach_the_user(place: Path) -> None:
    code = (
        "import warnings, nocta.cli.app as a; real = a.load_command\n"
        "def load(name):\n"
        "    warnings.warn('a matter of developers', RuntimeWarning)\n"
        "    return real(name)\n"
        "a.load_command = load; from nocta.cli import main; main(['methods', 'static'])"
    )
    env = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, text=True)
    assert done.returncode == 0
    assert done.stderr == ""


# -- structure ------------------------------------------------------------------------------

_WORDS = st.sampled_from(
    ["id", "years", "alt", "label", "", "x", "$\\frac{1}{2$", "<script>", "ä", "[b]", "nan", "0"]
)
_NUMBERS = st.one_of(
    st.floats(), st.integers(), st.sampled_from(["", "nan", "inf", "-1", "1e400", "x", '"', "é"])
)
_LEAVES = st.one_of(_WORDS, st.integers(-(2**70), 2**70), st.floats(), st.booleans())
_TREES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3)
)
_KEYS = st.sampled_from(
    ["subject", "time", "visit", "grid", "label", "features", "groups", "visit_fee", "classes"]
) | st.sampled_from(
    ["context", "categories", "end", "snap", "n_visits", "first_visit", "split", "nothing"]
)
_FUZZ = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@_FUZZ
@given(changes=st.dictionaries(_KEYS, _TREES, min_size=1, max_size=4))
def test_no_schema_breaks_a_command(place: Path, changes: dict[str, object]) -> None:
    base = {"subject": "id", "time": "years", "grid": [0, 1], "label": "label"}
    base["features"] = {"alt": {"cost": 3.0}}
    (place / "t.schema.toml").write_text(_toml({**base, **changes}), "utf-8")
    status, shown = invoke("describe", "t.csv")
    assert status in (0, 2), shown


@_FUZZ
@given(
    header=st.lists(_WORDS, max_size=6),
    rows=st.lists(st.lists(_NUMBERS, max_size=6), max_size=8),
    end=st.sampled_from(["\n", "\r\n", "\r", "\x00", "\ufeff"]),
)
def test_no_table_breaks_a_command(
    place: Path, header: list[str], rows: list[list[object]], end: str
) -> None:
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
    (place / "t.csv").write_text(end.join(lines), "utf-8")
    for command in (["describe", "t.csv"], ["init", "t.csv", "--out", "s.toml", "--force"]):
        status, shown = invoke(*command)
        assert status in (0, 2), shown


def _toml(value: object) -> str:
    """A document of nested values, inline below the first level."""
    assert isinstance(value, dict)
    return "".join(f"{_inline(key)} = {_inline(item)}\n" for key, item in value.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inline(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value + "'" if "'" not in value else '""'
    return repr(value)
