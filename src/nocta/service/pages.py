"""The page: its files, and the session that replaces a token in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Cookie, Query, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from nocta.service.access import SESSION_SECONDS
from nocta.service.caller import COOKIE, access_of, address_of
from nocta.service.problems import NotFound

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
router = APIRouter(include_in_schema=False)


class SignIn(BaseModel):
    """A token to open a session with."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(max_length=500)


@router.get("/")
def page() -> FileResponse:
    """The page; it asks for a token if there is no session."""
    return FileResponse(STATIC / "index.html", media_type=_TYPES[".html"])


@router.get("/static/{name}")
def asset(name: str) -> FileResponse:
    """A file of the page."""
    # Only names that are there: a path cannot be built from the request.
    files = {file.name: file for file in STATIC.iterdir() if file.suffix in _TYPES}
    if name not in files:
        raise NotFound(f"There is no file '{name[:60]}'.")
    return FileResponse(files[name], media_type=_TYPES[files[name].suffix])


@router.get("/open")
def open_with_key(request: Request, key: Annotated[str, Query(max_length=500)]) -> RedirectResponse:
    """Open the page with the key that was printed; the address then no longer holds it."""
    session = access_of(request).open_session(key, address_of(request))
    response = RedirectResponse("/", 303)
    _remember(request, response, session)
    return response


@router.post("/session", status_code=204)
def sign_in(request: Request, asked: SignIn) -> Response:
    """Open a session with a token."""
    session = access_of(request).open_session(asked.token, address_of(request))
    response = Response(status_code=204)
    _remember(request, response, session)
    return response


@router.delete("/session", status_code=204)
def sign_out(
    request: Request, session: Annotated[str | None, Cookie(alias=COOKIE)] = None
) -> Response:
    """End the session."""
    if session is not None:
        access_of(request).close_session(session)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE)
    return response


@router.get("/health")
def health() -> dict[str, str]:
    """Whether the service is up; says nothing else."""
    return {"status": "ok"}


def _remember(request: Request, response: Response, session: str) -> None:
    response.set_cookie(
        COOKIE,
        session,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
