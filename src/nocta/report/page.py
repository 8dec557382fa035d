"""HTML pages from templates, each in one file that loads nothing."""

from __future__ import annotations

from importlib import resources
from typing import Any


def render_page(template: str, **content: Any) -> str:
    """A template of `nocta.report`, with the style of all pages as `style`."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nocta.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("nocta.report").joinpath("templates/report.css").read_text("utf-8")
    return environment.get_template(template).render(style=style, **content)
