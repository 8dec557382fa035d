"""What the service refuses, each with its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from nocta.core.errors import NoctaError


class ServiceError(NoctaError):
    """A request that is refused; the message says what to do."""

    status: ClassVar[int] = 422


class NotFound(ServiceError):
    """There is nothing by that name."""

    status = 404


class Conflict(ServiceError):
    """Somebody else changed the case meanwhile, or it cannot be changed any more."""

    status = 409


class Unauthorized(ServiceError):
    """No token, or one that is wrong, revoked or expired."""

    status = 401


class Forbidden(ServiceError):
    """A token that may not do this."""

    status = 403


class TooMany(ServiceError):
    """Too many requests in a short time."""

    status = 429


class StoreError(ServiceError):
    """The store cannot be read or written: locked, full, damaged or read-only."""

    status = 503
