"""Starting the service: what is refused before it listens, and what is printed."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nocta.core.errors import ConfigError
from nocta.service.access import list_tokens
from nocta.service.app import LOOPBACK, Settings, create_app
from nocta.service.planner import ServedModel
from nocta.service.store import Store

#: Requests that are answered at once before others have to wait.
_BACKLOG = 2048


@dataclass(frozen=True)
class ServeRequest:
    """What `nocta serve` was asked for."""

    model: Path
    cost_weight: float
    store: Path
    host: str = "127.0.0.1"
    port: int = 8321
    read_only: bool = False
    names: tuple[str, ...] = ()  # names under which others reach it
    per_second: float = 50.0  # requests per second and person


def serve(request: ServeRequest, say: Callable[[str], None]) -> None:
    """Serve until interrupted. Everything that can be wrong is said before it listens."""
    import uvicorn

    loopback = is_loopback(request.host)
    served = ServedModel(request.model, request.cost_weight)
    store = Store(request.store, read_only=request.read_only)
    if not loopback and not any(row.state == "valid" for row in list_tokens(store)):
        raise ConfigError(
            f"'{request.host}' can be reached by others, and '{request.store}' has no valid token. "
            f"Make one first: nocta token {request.store} --name NAME"
        )
    listening = _listen(request.host, request.port)
    served.warm()
    key = secrets.token_urlsafe(18) if loopback else None
    hosts = (*LOOPBACK, request.host, *request.names)
    everywhere = request.host in ("0.0.0.0", "::") and not request.names
    hosts = ("*",) if everywhere else hosts
    app = create_app(served, store, Settings(key, request.per_second, hosts=hosts))
    _log_without_values()
    port = listening.getsockname()[1]
    host = f"[{request.host}]" if ":" in request.host else request.host
    opened = f"http://{host}:{port}/" + ("" if key is None else f"open?key={key}")
    say(f"Serving {request.model} with the cases in {request.store}.")
    say(f"Open {opened}")
    if key is not None:
        say("The key is valid until the service stops. Press Ctrl-C to stop.")
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        store.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # who comes before the model is ready waits
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}. Choose another "
            f"--port, or stop the other program."
        ) from None
    return listening


def _log_without_values() -> None:
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s", level=logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
