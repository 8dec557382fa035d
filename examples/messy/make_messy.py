"""Draw `visits.csv`, `today.csv` and `prices.csv`: a table as clinics export it.

Run `python examples/messy/make_messy.py` to write the three files again; the seed makes them the
same each time. 400 patients of five invented centers come at irregular dates. The files are what a
German spreadsheet saves: separated by `;`, in Windows-1252, with decimal commas, points between
thousands and dates as 10.01.2025. Some rows occur twice, some cells say NA, `none` is an answer
about pain, and the price list has currency signs, thousands and tests that the table lacks.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np

CENTERS = ("Köln", "München", "Düsseldorf", "Nürnberg", "Lübeck")
PLANNED = (0, 90, 180, 365)  # days
PAIN = ("none", "mild", "moderate", "severe")
OUTCOMES = ("remission", "active", "flare")
HEADER = "patient;date;age;sex;center;pain;crp;hemoglobin;platelets;calprotectin;wall thickness"
PRICES = """feature;cost;group
pain;€ 1,50;
crp;€ 6,00;blood
hemoglobin;€ 3,50;blood
platelets;€ 3,50;blood
calprotectin;€ 38,90;
wall thickness;€ 1.145,00;
colonoscopy;€ 2.380,00;
x-ray;€ 45,-;
x-ray;€ 45,-;
"""


def number(value: float, digits: int) -> str:
    """A number as a German spreadsheet writes it."""
    return f"{value:,.{digits}f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def draw_patient(index: int, rng: np.random.Generator) -> list[list[str]]:
    """The rows of one patient, as text."""
    center = int(rng.integers(len(CENTERS)))
    name = f"{CENTERS[center][:2]}-{index:03d}"
    free = [str(int(rng.integers(18, 76))), str(rng.choice(["F", "M"])), CENTERS[center]]
    start = date(2023, 1, 9) + timedelta(days=int(rng.integers(0, 500)))
    severity = rng.normal(0, 1)
    drift = rng.normal(0.15 * (center - 2), 0.6)
    rows = []
    for planned in PLANNED[: len(PLANNED) if rng.random() < 0.7 else int(rng.integers(2, 5))]:
        if planned and rng.random() < 0.07:
            continue  # the visit did not take place
        day = start + timedelta(days=planned + (int(rng.integers(-12, 13)) if planned else 0))
        now = severity + drift * planned / 180 + rng.normal(0, 0.25)
        cells = [
            PAIN[int(np.digitize(now + rng.normal(0, 0.8), [0.0, 0.9, 1.8]))],
            number(float(np.exp(1.2 + 0.6 * now + rng.normal(0, 0.5))), 1),
            number(float(13.4 - 0.5 * now + rng.normal(0, 0.9)), 1),
            number(1000 * round(max(90.0, 270 + 35 * now + rng.normal(0, 55))), 0),
            number(float(np.exp(5.0 + 0.75 * now + rng.normal(0, 0.45))), 0),
            number(float(3.2 + 0.8 * now + rng.normal(0, 0.6)), 2),
        ]
        for i, share in enumerate((0.05, 0.08, 0.08, 0.08, 0.2, 0.4)):
            if rng.random() < share:
                cells[i] = "NA" if rng.random() < 0.2 else ""
        outcome = OUTCOMES[int(np.digitize(now, [0.3, 1.5]))] if rng.random() < 0.93 else ""
        rows.append([name, f"{day:%d.%m.%Y}", *free, *cells, outcome])
    return rows


def main() -> None:
    """Write the files beside this one."""
    folder, rng = Path(__file__).parent, np.random.default_rng(7)
    patients = [draw_patient(i, rng) for i in range(1, 401)]
    lines = [";".join(row) for rows in patients for row in rows]
    for at in sorted(rng.choice(len(lines), size=23, replace=False), reverse=True):
        lines.insert(at, lines[at])  # exported twice
    # Thirty people who come next: what is known of them so far.
    people = [draw_patient(i, rng)[:2] for i in range(901, 931)]
    known = [";".join(row[:-1]) for rows in people for row in rows]
    files = {
        "visits.csv": "\n".join([f"{HEADER};outcome", *lines]) + "\n",
        "today.csv": "\n".join([HEADER, *known]) + "\n",
        "prices.csv": PRICES,
    }
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("cp1252"))


if __name__ == "__main__":
    main()
