"""What can be acquired in the Osteoarthritis Initiative: 17 clinical features, 10 widths."""

from __future__ import annotations

from dataclasses import dataclass

from nocta.datasets._card import Measurement


@dataclass(frozen=True)
class Source:
    """A column in the files: lower case, `##` is the visit code, `{s}` the side, r or l."""

    column: str  # its name in the cohort
    first: str  # its name at the first visit
    later: str | None = None  # at later visits; `None` if asked once and then carried forward
    yearly: float = 0.0  # added per year since the first visit to what is carried forward (age)

    def name_at(self, visit: str, side: str) -> str | None:
        """The column's name in the files of a visit."""
        pattern = self.first if visit == "00" else self.later
        return pattern and pattern.replace("##", visit).replace("{s}", side)


@dataclass(frozen=True)
class Clinical:
    """A clinical feature: its cost and the columns it reveals."""

    measurement: Measurement
    sources: tuple[Source, ...]


def clinical_feature(
    name: str,
    about: str,
    cost: float,
    first: str,
    later: str | None = None,
    *,
    unit: str = "",
    yearly: float = 0.0,
) -> Clinical:
    """A clinical feature of one column."""
    return Clinical(Measurement(name, about, cost, unit), (Source(name, first, later, yearly),))


SIDE = "side"
_feature = clinical_feature
CLINICAL = (
    _feature("age", "age", 0.3, "v00age", unit="years", yearly=1.0),
    _feature("sex", "1 male, 2 female", 0.3, "p02sex"),
    _feature("race", "race, as coded", 0.3, "p02race"),
    _feature("ethnicity", "hispanic or latino", 0.3, "p02hisp"),
    _feature("education", "highest grade completed", 0.3, "v00edcv"),
    _feature("income", "yearly income, bracket", 0.3, "v00income"),
    _feature("marital_status", "marital status", 0.3, "v00maritst"),
    _feature("employment", "current employment", 0.3, "v00cemploy"),
    _feature("site", "clinical center, A to E as 1 to 5", 0.3, "v00site"),
    _feature("knee_side", "1 right, 2 left", 0.3, SIDE),
    _feature("injury", "knee injured: ever, then each year", 0.3, "p01inj{s}", "v##inj{s}12"),
    _feature("surgery", "knee operated: ever, then each year", 0.3, "p01ksurg{s}", "v##ksrg{s}12"),
    _feature("activity", "physical activity score (PASE)", 0.3, "v00pase", "v##pase"),
    Clinical(
        Measurement(
            "sf12", "SF-12: physical and mental summary", 0.3,
            columns=("sf12_physical", "sf12_mental"),
        ),
        (
            Source("sf12_physical", "v00hspss", "v##hspss"),
            Source("sf12_mental", "v00hsmss", "v##hsmss"),
        ),
    ),
    _feature("systolic", "systolic pressure", 0.5, "v00bpsys", "v##bpsys", unit="mmHg"),
    _feature("diastolic", "diastolic pressure", 0.5, "v00bpdias", "v##bpdias", unit="mmHg"),
    _feature("bmi", "body mass index", 0.5, "p01bmi", "v##bmi", unit="kg/m²"),
)  # fmt: skip
WIDTHS = {f"jsw_{x}": f"v##ljsw{x}" for x in range(700, 901, 25)} | {"jsw_min": "v##mcmjsw"}
JOINT_SPACE = tuple(
    Measurement("jsw_min", "minimum medial joint space width", 1.0, "mm", "radiograph")
    if name == "jsw_min"
    else Measurement(name, f"joint space width at x = .{name[-3:]}", 0.8, "mm", "radiograph")
    for name in WIDTHS
)
