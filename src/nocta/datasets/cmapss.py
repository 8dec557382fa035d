"""NASA's simulated turbofan engines (C-MAPSS): does an engine fail within 40 cycles?

Reads the four subsets FD001 to FD004 as published, engines of the training and of the test files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, did_you_mean
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._files import locate, missing
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    import pandas as pd

N_SLOTS, SLOT_CYCLES, HORIZON = 18, 20, 40
VISIT_FEE = 0.2
SPEED, PRESSURE, FLOW = 0.2, 0.5, 1.0
SETTINGS = ("altitude", "mach", "throttle")
MEASUREMENTS = (
    Measurement("settings", "altitude, Mach number, throttle", 0.0, columns=SETTINGS),
    Measurement("Nf", "physical fan speed (s8)", SPEED, "rpm", "speed"),
    Measurement("Nc", "physical core speed (s9)", SPEED, "rpm", "speed"),
    Measurement("NRf", "corrected fan speed (s13)", SPEED, "rpm", "speed"),
    Measurement("NRc", "corrected core speed (s14)", SPEED, "rpm", "speed"),
    Measurement("T24", "outlet of the low-pressure compressor (s2)", 0.5, "°R", "temperature"),
    Measurement("T30", "outlet of the high-pressure compressor (s3)", 0.5, "°R", "temperature"),
    Measurement("T50", "outlet of the low-pressure turbine (s4)", 0.5, "°R", "temperature"),
    Measurement("P15", "total pressure in the bypass duct (s6)", PRESSURE, "psia", "pressure"),
    Measurement("P30", "total pressure behind the compressors (s7)", PRESSURE, "psia", "pressure"),
    Measurement("epr", "engine pressure ratio (s10)", PRESSURE, "", "pressure"),
    Measurement("Ps30", "static pressure of the same place (s11)", PRESSURE, "psia", "pressure"),
    Measurement("phi", "fuel flow over Ps30 (s12)", FLOW, "pps/psi", "flow"),
    Measurement("BPR", "bypass ratio (s15)", FLOW, "", "flow"),
    Measurement("farB", "fuel-air ratio of the burner (s16)", FLOW, "", "flow"),
    Measurement("htBleed", "bleed enthalpy (s17)", FLOW, "", "flow"),
    Measurement("W31", "coolant bleed of the high-pressure turbine (s20)", FLOW, "lbm/s", "flow"),
    Measurement("W32", "coolant bleed of the low-pressure turbine (s21)", FLOW, "lbm/s", "flow"),
)  # fmt: skip
#: The 26 columns of the files; inlet conditions and demanded speeds only repeat the settings.
COLUMNS = (
    "unit", "cycle", *SETTINGS,
    "T2", "T24", "T30", "T50", "P2", "P15", "P30", "Nf", "Nc", "epr", "Ps30", "phi", "NRf", "NRc",
    "BPR", "farB", "htBleed", "Nf_dmd", "PCNfR_dmd", "W31", "W32",
)  # fmt: skip
#: Engines of the training and of the test file of every subset.
SUBSETS = {"FD001": (100, 100), "FD002": (260, 259), "FD003": (100, 100), "FD004": (249, 248)}


def load(
    log: LoadLog,
    *,
    path: str | Path | None = None,
    subsets: Sequence[str] = tuple(SUBSETS),
    horizon: int = HORIZON,
    relative: bool = True,
    visit_fee: float = VISIT_FEE,
) -> Cohort:
    """Read a snapshot of every 20th cycle of each engine; the card explains the options."""
    for name in subsets:
        if name not in SUBSETS:
            hint = did_you_mean(name, SUBSETS)
            raise ConfigError(f"There is no subset '{name}'.{hint} Known: {', '.join(SUBSETS)}.")
    if horizon < 1:
        raise ConfigError(f"horizon is {horizon}; it must be at least 1 cycle.")
    folder = locate(CARD, path, _find)
    import pandas as pd

    frames = [_read_part(folder, name, part, log) for name in subsets for part in _PARTS]
    cycles = pd.concat(frames, ignore_index=True)
    if relative:
        _make_relative(cycles)
    taken = (cycles["cycle"] % SLOT_CYCLES == 0) & (cycles["cycle"] <= N_SLOTS * SLOT_CYCLES)
    rows = cycles[taken]
    n_short = cycles["subject"].nunique() - rows["subject"].nunique()
    log.drop(n_short, "engines", f"fewer than {SLOT_CYCLES} cycles recorded")
    log.note(f"{len(cycles):,} cycles read; a slot is the snapshot of every {SLOT_CYCLES}th")
    rows = rows.assign(
        slot=rows["cycle"] // SLOT_CYCLES - 1, label=(rows["left"] <= horizon).astype(np.int64)
    )
    return to_cohort(
        rows,
        make_catalog(MEASUREMENTS, N_SLOTS, visit_fee=visit_fee),
        log,
        name=CARD.name,
        classes=("runs on", "fails soon"),
        slot_times=tuple(float(SLOT_CYCLES * (t + 1)) for t in range(N_SLOTS)),
        time_unit="cycles",
    )


_PARTS = ("train", "test")


def _find(place: Path) -> Path | None:
    """The folder with the text files, at this place or one below."""
    if not place.is_dir():
        return None
    found = (
        p.parent for depth in ("", "*/") for p in sorted(place.glob(f"{depth}train_FD00?.txt*"))
    )
    return next(found, None)


def _table(folder: Path, name: str, columns: Sequence[str], log: LoadLog) -> pd.DataFrame:
    """One of the text files, packed with gzip or not."""
    import pandas as pd

    file = next(
        (f for f in (folder / f"{name}.txt", folder / f"{name}.txt.gz") if f.exists()), None
    )
    if file is None:
        raise missing(CARD, [folder], f"{name}.txt is missing")
    try:
        table = pd.read_csv(file, sep=r"\s+", header=None, dtype=np.float64)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"'{file}' is damaged: {error}. Unpack it again.") from error
    if table.shape[1] != len(columns) or table.isna().to_numpy().any():
        raise DataError(
            f"'{file}' has {table.shape[1]} columns and {int(table.isna().to_numpy().sum())} empty "
            f"values; expected {len(columns)} columns of numbers. Unpack it again."
        )
    log.read(file)
    return table.set_axis(list(columns), axis=1)


def _read_part(folder: Path, subset: str, part: str, log: LoadLog) -> pd.DataFrame:
    """Every cycle of the engines of a file, with the number of cycles left until failure."""
    table = _table(folder, f"{part}_{subset}", COLUMNS, log)
    last = table.groupby("unit")["cycle"].max()
    if part == "test":  # cut off before failure; another file tells what was left
        left = _table(folder, f"RUL_{subset}", ("left",), log)["left"].to_numpy()
        if len(left) != len(last):
            raise DataError(
                f"RUL_{subset}.txt has {len(left)} lines for the {len(last)} engines of "
                f"test_{subset}.txt. Unpack both again."
            )
        last = last + left
    whole = SUBSETS[subset][_PARTS.index(part)]
    if len(last) < whole:
        log.warn(f"{part}_{subset}.txt has {len(last):,} engines; the whole file has {whole:,}.")
    unit = table["unit"].astype(np.int64)
    return table.assign(
        left=table["unit"].map(last) - table["cycle"],
        subject=f"{subset}-{part}-" + unit.astype(str),
        split=part,
    )


def _make_relative(cycles: pd.DataFrame) -> None:
    """Replace every reading by its distance, in standard deviations, from a new engine's.

    The reference are the cycles before the first slot of the engines of the training files, under
    the same flight condition. No slot and no label is used.
    """
    readings = [c for m in MEASUREMENTS for c in m.feature().columns if c not in SETTINGS]
    condition = cycles["altitude"].round().astype(np.int64).rename("condition")
    new = (cycles["cycle"] < SLOT_CYCLES) & (cycles["split"] == "train")
    groups = cycles.loc[new, readings].groupby(condition[new])
    strange = sorted(set(condition) - set(groups.groups))
    if strange:
        raise DataError(
            f"No engine of the training files flies at altitude {strange[0]},000 ft in its first "
            f"{SLOT_CYCLES - 1} cycles, so its readings there cannot be compared with new engines. "
            f"Unpack the files again, or set relative=False to use the readings as they are."
        )
    center, spread = (f.loc[condition].to_numpy() for f in (groups.mean(), groups.std(ddof=0)))
    constant = spread <= 1e-9 * np.abs(center)
    cycles[readings] = (cycles[readings] - center) / np.where(constant, 1.0, spread)


CARD = Card(
    name="cmapss",
    title="NASA C-MAPSS turbofan engines (simulated): failure within 40 cycles",
    origin=(
        "Simulated by NASA with the Commercial Modular Aero-Propulsion System Simulation: engines "
        "that wear out under one or six flight conditions and one or two kinds of fault."
    ),
    size="1,414 engines, 18 slots",
    labels="2 classes, 13 % positive",
    label_rule=(
        "The engine fails within 40 cycles after the snapshot. Engines of the training files fail "
        "after their last cycle; for those of the test files, RUL_FD00#.txt says how many cycles "
        "were left."
    ),
    slots=(
        "every 20th cycle from the 20th to the 360th, the readings of that cycle; a slot exists "
        "while the record of the engine lasts"
    ),
    license="to be confirmed",
    terms=(
        "Third-party catalogs list it as public domain, a work of the US Government; we have "
        "seen no license text by NASA, which asks for acknowledgment."
    ),
    access="download",
    get="Download CMAPSSData.zip from NASA's Prognostics Data Repository; unpack it.",
    url="https://www.nasa.gov/intelligent-systems-division/discovery-and-systems-health/pcoe/pcoe-data-set-repository/",
    files=(
        "train_FD001.txt, test_FD001.txt, RUL_FD001.txt, and the same for FD002 to FD004",
        "(may be packed as .txt.gz)",
    ),
    citations=(
        "Saxena, Goebel, Simon, Eklund, Damage propagation modeling for aircraft engine "
        "run-to-failure simulation, International Conference on Prognostics and Health "
        "Management (PHM08), 2008",
    ),
    measurements=MEASUREMENTS,
    unit="engine",
    split_column="part",
    visit_fee=VISIT_FEE,
    cost_source=(
        "Ours, not a price list: settings 0, speeds .2, temperatures and pressures .5, flows, "
        "ratios and bleeds 1, and .2 for every download."
    ),
    options={
        "subsets": 'which subsets to read ("FD001", "FD002", "FD003", "FD004")',
        "horizon": f"an engine is positive if it fails within this number of cycles ({HORIZON})",
        "relative": (
            "readings in standard deviations from those of new engines under the same flight "
            "condition, or as recorded (True)"
        ),
        "visit_fee": f"fee of a download, charged once per visit ({VISIT_FEE})",
    },
    traps=(
        "Readings depend on the flight condition far more than on wear. By default they are "
        "relative to new engines under the same condition (cycles 1 to 19 of all engines in the "
        "training files, before the first slot); units are those of relative=False.",
        "Room for planning (benchmarks/headroom.py, gradient boosting, one split): average "
        "precision .96 from everything, .90 from pressures or from flows, .88 from temperatures, "
        ".82 from speeds, .52 from the first slot, .35 from time alone.",
        "The existence of a slot tells that the engine still runs: the records of the training "
        "files end with failure.",
        "NASA's own split is by file: engines of the test files are cut off before failure, so "
        "only 5 % of their slots are positive.",
        "Inlet temperature and pressure and the demanded speeds (s1, s5, s18, s19) follow from the "
        "settings and are left out.",
    ),
)
DATASETS = (Dataset(CARD, load),)
