"""`nocta serve`: the API and the page of the planner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from nocta.cli import running
from nocta.core.errors import MissingExtraError

StoreOption = Annotated[Path, Option("--store", help="SQLite file with the cases.")]


def serve(
    model: running.ModelArgument,
    host: Annotated[
        str,
        Option("--host", help="Address to listen on. Others can only reach it if it is not local."),
    ] = "127.0.0.1",
    port: Annotated[int, Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8321,
    store: StoreOption = Path("cases.db"),
    cost_weight: running.CostWeightOption = None,
    read_only: Annotated[
        bool, Option("--read-only", help="Show the cases of an existing store; change nothing.")
    ] = False,
    name: Annotated[
        list[str] | None,
        Option("--name", help="Name under which others reach the service, such as nocta.ward3."),
    ] = None,
    rate: Annotated[
        float, Option("--rate", min=0.1, help="Requests per second and person, on average.")
    ] = 50.0,
) -> None:
    """Serve the planner: a page to follow subjects from visit to visit, and a REST API.

    It listens on this machine only and prints the address to open. To let others in, make tokens
    with `nocta token`, give --host, and put a server that encrypts (HTTPS) in front of it.
    """
    check_extra()
    from nocta.model.persistence import load
    from nocta.service.serving import ServeRequest
    from nocta.service.serving import serve as run

    weight, _ = running.choose_cost_weight(load(model), cost_weight)
    names = tuple(name or ())
    run(ServeRequest(model, weight, store, host, port, read_only, names, rate), typer.echo)


def check_extra() -> None:
    """Raise if the packages of the service are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "The service needs more packages. Install them with: pip install 'nocta[service]'"
        ) from None
