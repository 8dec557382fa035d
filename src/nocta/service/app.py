"""The application: API, page and CDS Hooks in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from nocta.core.version import __version__
from nocta.service import hooks, pages, routes
from nocta.service.access import Access
from nocta.service.desk import Desk
from nocta.service.guard import SizeLimit, add_guards
from nocta.service.planner import ServedModel
from nocta.service.store import Store

#: Names of this machine to itself.
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


@dataclass(frozen=True)
class Settings:
    """How the service is run."""

    key: str | None = None  # of this start; opens the page without a token
    per_second: float = 50.0  # requests per second and person
    largest_body: int = 1_000_000  # bytes
    hosts: Sequence[str] = LOOPBACK  # names the service answers to; `*` for any


def create_app(served: ServedModel, store: Store, settings: Settings | None = None) -> FastAPI:
    """The service for one model and one store."""
    settings = settings or Settings()
    app = FastAPI(
        title="nocta",
        version=__version__,
        description="What to acquire next, when, and why, for one subject at a time.",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.desk = Desk(store, served)
    app.state.access = Access(store, settings.key, settings.per_second)
    app.include_router(routes.router)
    app.include_router(hooks.router)
    app.include_router(pages.router)
    add_guards(app)
    app.add_middleware(SizeLimit, most=settings.largest_body)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts))
    return app
