"""Who sends a request, and how a repetition of it is recognized: dependencies of the routes."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import Depends, Header, Request

from nocta.service.access import Access, Person
from nocta.service.desk import Desk
from nocta.service.problems import Forbidden, ServiceError, Unauthorized
from nocta.service.store import Request as Asked

COOKIE = "nocta_session"
#: A page of another origin cannot send it, so a session alone cannot be misused to write.
PAGE_HEADER = "x-nocta-page"


def desk_of(request: Request) -> Desk:
    """The cases and the model."""
    desk: Desk = request.app.state.desk
    return desk


def access_of(request: Request) -> Access:
    """Who may do what."""
    access: Access = request.app.state.access
    return access


def address_of(request: Request) -> str:
    """The address of the caller."""
    return request.client.host if request.client else "unknown"


def person_of(request: Request) -> Person:
    """Who sends this request; refused without a token or a session."""
    access, address = access_of(request), address_of(request)
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if token and scheme.lower() == "bearer":
        person = access.of_token(token.strip(), address)
    elif COOKIE in request.cookies:
        person = access.of_session(request.cookies[COOKIE], address)
        if request.method not in ("GET", "HEAD") and PAGE_HEADER not in request.headers:
            raise Forbidden(f"Requests of the page carry the header '{PAGE_HEADER}'.")
    else:
        raise Unauthorized("Send a token: 'Authorization: Bearer ...'.")
    access.count(person)
    return person


async def hash_of_request(request: Request) -> str:
    """Hash of what is asked for, so that a key is never used for two different requests."""
    told = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return hashlib.sha256(told).hexdigest()


def writer_of(person: Annotated[Person, Depends(person_of)]) -> Person:
    """A person who may write."""
    person.require("write")
    return person


def change_of(
    request: Request,
    person: Annotated[Person, Depends(writer_of)],
    hashed: Annotated[str, Depends(hash_of_request)],
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=200,
            description="Any text; a repeated request with the same key changes nothing.",
        ),
    ] = None,
) -> Asked:
    """Who asks for a change, and how a repetition is recognized."""
    return Asked(person.name, desk_of(request).served.hash, idempotency_key, hashed)


def version_of(
    if_match: Annotated[
        str | None,
        Header(description="Version of the case looked at; refused if there is a later one."),
    ] = None,
) -> int | None:
    """The version of the case that the caller looked at."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ServiceError("If-Match: give the version of the case, a whole number.")
    return int(text)


TheDesk = Annotated[Desk, Depends(desk_of)]
Reader = Annotated[Person, Depends(person_of)]
Writer = Annotated[Person, Depends(writer_of)]
Change = Annotated[Asked, Depends(change_of)]
Version = Annotated[int | None, Depends(version_of)]
