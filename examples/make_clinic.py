"""Draw `clinic.csv`: the visits of an invented liver clinic, and one patient to plan for.

Run `python examples/make_clinic.py` to write the two CSV files again; the seed makes them the same
each time. Behind every patient runs a hidden severity that drifts faster with age and with
drinking. Blood values and the stiffness of the liver follow it with noise; the label is the
doctor's stage, cut from it. Visits come a little early or late, some never take place, some
patients leave, and cells are empty as they are in life.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

PLANNED = (0.0, 0.5, 1.0, 2.0, 3.0)  # years
STAGES = ("stable", "progressing", "decompensated")
SHARE_MISSING = {
    "bilirubin": 0.08,
    "albumin": 0.10,
    "platelets": 0.10,
    "stiffness": 0.25,
    "fatigue": 0.05,
    "stage": 0.10,
}


def draw_patient(number: int, rng: np.random.Generator) -> pd.DataFrame:
    """All visits of one patient."""
    age = int(rng.integers(32, 79))
    drinks = max(0.0, rng.normal(6, 7))  # per week
    drift = 0.25 + 0.012 * (age - 55) + 0.05 * (drinks - 6) + rng.normal(0, 0.25)
    n_planned = len(PLANNED) if rng.random() < 0.7 else int(rng.integers(1, len(PLANNED)))
    times = [0.0]
    times += [t + rng.normal(0, 0.07) for t in PLANNED[1:n_planned] if rng.random() < 0.92]
    years = np.array(times)
    severity = rng.normal(0, 1) + drift * years + rng.normal(0, 0.2, len(years))
    n = len(years)
    visits = pd.DataFrame(
        {
            "patient": f"P{number:03d}",
            "years": years.round(2),
            "age": age,
            "sex": rng.choice(["F", "M"]),
            "drinks_per_week": np.where(np.arange(n) == 0, round(drinks), np.nan),
            "fatigue": np.clip(np.rint(3 + 1.2 * severity + rng.normal(0, 1.8, n)), 0, 10),
            "bilirubin": np.exp(0.1 + 0.45 * severity + rng.normal(0, 0.35, n)).round(2),
            "albumin": (3.9 - 0.25 * severity + rng.normal(0, 0.25, n)).round(1),
            "platelets": (215 - 32 * severity + rng.normal(0, 35, n)).clip(20).round(),
            "stiffness": np.exp(2.1 + 0.42 * severity + rng.normal(0, 0.12, n)).round(1),
            "attenuation": (250 + 1.5 * drinks + rng.normal(0, 30, n)).round(),
            "stage": np.array(STAGES)[np.digitize(severity, [0.5, 1.7])],
        }
    )
    for column, share in SHARE_MISSING.items():
        visits.loc[rng.random(n) < share, column] = None
    visits.loc[visits["stiffness"].isna(), "attenuation"] = np.nan  # one scan gives both
    return visits


def draw_clinic(n_patients: int = 300, seed: int = 0) -> pd.DataFrame:
    """The visits of all patients, one row each."""
    rng = np.random.default_rng(seed)
    return pd.concat(
        [draw_patient(i + 1, rng) for i in range(n_patients)], ignore_index=True
    ).convert_dtypes()


def one_patient() -> pd.DataFrame:
    """A new patient after two visits: what was acquired, and one scan that could not be had."""
    return pd.DataFrame(
        {
            "patient": ["N001", "N001"],
            "years": [0.0, 0.52],
            "age": [64, 64],
            "sex": ["F", "F"],
            "drinks_per_week": [11, None],
            "fatigue": [4, 6],
            "bilirubin": [1.6, None],
            "albumin": [3.6, None],
            "platelets": [None, None],
            "stiffness": [None, "unavailable"],
            "attenuation": [None, "unavailable"],
        }
    ).convert_dtypes()


if __name__ == "__main__":
    folder = Path(__file__).parent
    draw_clinic().to_csv(folder / "clinic.csv", index=False)
    one_patient().to_csv(folder / "one-patient.csv", index=False)
