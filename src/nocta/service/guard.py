"""What every request passes: size limit, security headers, a log without values, errors."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nocta.core.errors import NoctaError
from nocta.service.problems import ServiceError

LOG = logging.getLogger("nocta.service")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SizeLimit:
    """Refuses bodies above a size, also those that do not say how large they are."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self.most:
            await self._refuse(scope, receive, send)
            return
        read: list[Message] = []
        size = 0
        while True:
            message = await receive()
            read.append(message)
            size += len(message.get("body", b""))
            if size > self.most:
                await self._refuse(scope, receive, send)
                return
            if message["type"] != "http.request" or not message.get("more_body"):
                break

        async def replay() -> Message:
            return read.pop(0) if read else await receive()

        await self.app(scope, replay, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = f"The request is larger than {self.most:,} bytes."
        await JSONResponse({"error": said}, 413)(scope, receive, send)


def add_guards(app: FastAPI) -> None:
    """Add headers, the log, and errors as sentences."""

    @app.middleware("http")
    async def around(
        request: Request, answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        begun = time.perf_counter()
        try:
            response = await answer(request)
        except Exception as error:
            # Places in the code, without the message: it could hold a patient's value.
            places = "".join(traceback.format_tb(error.__traceback__))
            LOG.error("unexpected %s at\n%s", type(error).__name__, places)
            response = JSONResponse({"error": "Unexpected error; see the log."}, 500)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.url.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        route = request.scope.get("route")
        took = 1000 * (time.perf_counter() - begun)
        where = getattr(route, "path", "(no such address)")
        LOG.info("%s %s %d %.0f ms", request.method, where, response.status_code, took)
        return response

    @app.exception_handler(NoctaError)
    async def refused(request: Request, error: NoctaError) -> JSONResponse:
        status = error.status if isinstance(error, ServiceError) else 422
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"error": str(error)}, status, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": " ".join(map(_sentence, error.errors()[:5]))}, 422)


def _sentence(problem: dict[str, Any]) -> str:
    """One problem of a body, without the value."""
    place = ".".join(str(part)[:60] for part in problem["loc"] if part != "body")
    return f"{place or 'The body'}: {problem['msg']}."
