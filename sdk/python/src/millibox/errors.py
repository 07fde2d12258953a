# Made by sdk/python/generate.py from lib/base/error_codes.def; do not edit.
# SPDX-License-Identifier: Apache-2.0
"""One exception for each error code of the daemon."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Type

from ._base_errors import ApiError as ApiError


class NotFoundError(ApiError):
    """Not found."""

    code = "Sandbox.NotFound"


class InvalidParameterError(ApiError):
    """A field has an invalid value."""

    code = "Sandbox.InvalidParameter"


class InvalidJsonError(ApiError):
    """The body is not valid JSON."""

    code = "Sandbox.InvalidJson"


class UnknownFieldError(ApiError):
    """The request has an unknown field."""

    code = "Sandbox.UnknownField"


class UnsupportedMediaTypeError(ApiError):
    """Unsupported media type."""

    code = "Sandbox.UnsupportedMediaType"


class PayloadTooLargeError(ApiError):
    """The request is too large."""

    code = "Sandbox.PayloadTooLarge"


class MethodNotAllowedError(ApiError):
    """The path does not support this method."""

    code = "Sandbox.MethodNotAllowed"


class StateConflictError(ApiError):
    """The current state does not allow this."""

    code = "Sandbox.StateConflict"


class UnauthorizedError(ApiError):
    """No valid API key."""

    code = "Internal.Unauthorized"


class ForbiddenError(ApiError):
    """The Host or Origin is not allowed."""

    code = "Sandbox.Forbidden"


class PolicyDeniedError(ApiError):
    """Denied by policy."""

    code = "Sandbox.PolicyDenied"


class TooManyRequestsError(ApiError):
    """Too many requests at a time."""

    code = "Sandbox.TooManyRequests"


class RequestTimeoutError(ApiError):
    """The request timed out."""

    code = "Sandbox.RequestTimeout"


class SessionNotFoundError(NotFoundError):
    """Session not found."""

    code = "Sandbox.SessionNotFound"


class ExecutionNotFoundError(NotFoundError):
    """Execution not found."""

    code = "Sandbox.ExecutionNotFound"


class ExecTimeoutError(ApiError):
    """The execution did not end within the wait time."""

    code = "Sandbox.ExecTimeout"


class QuotaExceededError(ApiError):
    """Quota exceeded."""

    code = "Sandbox.QuotaExceeded"


class ScopeMissingError(ApiError):
    """The key lacks the required scope."""

    code = "Sandbox.ScopeMissing"


class KeyNotFoundError(NotFoundError):
    """Key not found."""

    code = "Sandbox.KeyNotFound"


class TenantNotFoundError(NotFoundError):
    """Tenant not found."""

    code = "Sandbox.TenantNotFound"


class FileNotFoundError(NotFoundError):
    """File not found."""

    code = "Sandbox.FileNotFound"


class RangeNotSatisfiableError(ApiError):
    """The range is outside the file."""

    code = "Sandbox.RangeNotSatisfiable"


class InsufficientStorageError(ApiError):
    """The disk of the box is full."""

    code = "Sandbox.InsufficientStorage"


class TemplateNotFoundError(NotFoundError):
    """Template not found."""

    code = "Sandbox.TemplateNotFound"


class TemplateInUseError(ApiError):
    """The template is in use."""

    code = "Sandbox.TemplateInUse"


class ImportNotFoundError(NotFoundError):
    """Import not found."""

    code = "Sandbox.ImportNotFound"


class SecretNotFoundError(NotFoundError):
    """Secret not found."""

    code = "Sandbox.SecretNotFound"


class LanguageNotInstalledError(ApiError):
    """The language is not installed."""

    code = "Sandbox.LanguageNotInstalled"


class UnavailableError(ApiError):
    """The service is unavailable."""

    code = "Sandbox.Unavailable"


class ExecExceptionError(ApiError):
    """Could not create the box."""

    code = "Sandbox.ExecException"


class AgentLostError(ApiError):
    """The box ended before it answered."""

    code = "Sandbox.AgentLost"


class InstallFailedError(ApiError):
    """The packages could not be installed."""

    code = "Sandbox.InstallFailed"


class UntrustedError(ApiError):
    """The peer's identity could not be verified."""

    code = "Sandbox.Untrusted"


class ProtocolError(ApiError):
    """Two parts of Millibox disagree."""

    code = "Sandbox.ProtocolError"


class ConfigError(ApiError):
    """The server is not configured for this."""

    code = "Sandbox.ConfigError"


class InternalError(ApiError):
    """Internal error."""

    code = "Sandbox.InternalError"


class StorageFailedError(ApiError):
    """Could not persist the change."""

    code = "Sandbox.StorageFailed"


#: The class of each code.
CLASSES: Dict[str, Type[ApiError]] = {
    "Sandbox.NotFound": NotFoundError,
    "Sandbox.InvalidParameter": InvalidParameterError,
    "Sandbox.InvalidJson": InvalidJsonError,
    "Sandbox.UnknownField": UnknownFieldError,
    "Sandbox.UnsupportedMediaType": UnsupportedMediaTypeError,
    "Sandbox.PayloadTooLarge": PayloadTooLargeError,
    "Sandbox.MethodNotAllowed": MethodNotAllowedError,
    "Sandbox.StateConflict": StateConflictError,
    "Internal.Unauthorized": UnauthorizedError,
    "Sandbox.Forbidden": ForbiddenError,
    "Sandbox.PolicyDenied": PolicyDeniedError,
    "Sandbox.TooManyRequests": TooManyRequestsError,
    "Sandbox.RequestTimeout": RequestTimeoutError,
    "Sandbox.SessionNotFound": SessionNotFoundError,
    "Sandbox.ExecutionNotFound": ExecutionNotFoundError,
    "Sandbox.ExecTimeout": ExecTimeoutError,
    "Sandbox.QuotaExceeded": QuotaExceededError,
    "Sandbox.ScopeMissing": ScopeMissingError,
    "Sandbox.KeyNotFound": KeyNotFoundError,
    "Sandbox.TenantNotFound": TenantNotFoundError,
    "Sandbox.FileNotFound": FileNotFoundError,
    "Sandbox.RangeNotSatisfiable": RangeNotSatisfiableError,
    "Sandbox.InsufficientStorage": InsufficientStorageError,
    "Sandbox.TemplateNotFound": TemplateNotFoundError,
    "Sandbox.TemplateInUse": TemplateInUseError,
    "Sandbox.ImportNotFound": ImportNotFoundError,
    "Sandbox.SecretNotFound": SecretNotFoundError,
    "Sandbox.LanguageNotInstalled": LanguageNotInstalledError,
    "Sandbox.Unavailable": UnavailableError,
    "Sandbox.ExecException": ExecExceptionError,
    "Sandbox.AgentLost": AgentLostError,
    "Sandbox.InstallFailed": InstallFailedError,
    "Sandbox.Untrusted": UntrustedError,
    "Sandbox.ProtocolError": ProtocolError,
    "Sandbox.ConfigError": ConfigError,
    "Sandbox.InternalError": InternalError,
    "Sandbox.StorageFailed": StorageFailedError,
}

#: The HTTP status of each code.
STATUS: Dict[str, int] = {
    "Sandbox.NotFound": 404,
    "Sandbox.InvalidParameter": 400,
    "Sandbox.InvalidJson": 400,
    "Sandbox.UnknownField": 400,
    "Sandbox.UnsupportedMediaType": 415,
    "Sandbox.PayloadTooLarge": 413,
    "Sandbox.MethodNotAllowed": 405,
    "Sandbox.StateConflict": 409,
    "Internal.Unauthorized": 401,
    "Sandbox.Forbidden": 403,
    "Sandbox.PolicyDenied": 403,
    "Sandbox.TooManyRequests": 429,
    "Sandbox.RequestTimeout": 408,
    "Sandbox.SessionNotFound": 404,
    "Sandbox.ExecutionNotFound": 404,
    "Sandbox.ExecTimeout": 408,
    "Sandbox.QuotaExceeded": 429,
    "Sandbox.ScopeMissing": 403,
    "Sandbox.KeyNotFound": 404,
    "Sandbox.TenantNotFound": 404,
    "Sandbox.FileNotFound": 404,
    "Sandbox.RangeNotSatisfiable": 416,
    "Sandbox.InsufficientStorage": 507,
    "Sandbox.TemplateNotFound": 404,
    "Sandbox.TemplateInUse": 400,
    "Sandbox.ImportNotFound": 404,
    "Sandbox.SecretNotFound": 404,
    "Sandbox.LanguageNotInstalled": 400,
    "Sandbox.Unavailable": 503,
    "Sandbox.ExecException": 503,
    "Sandbox.AgentLost": 503,
    "Sandbox.InstallFailed": 422,
    "Sandbox.Untrusted": 503,
    "Sandbox.ProtocolError": 500,
    "Sandbox.ConfigError": 500,
    "Sandbox.InternalError": 500,
    "Sandbox.StorageFailed": 507,
}


def from_answer(status: int, body: Mapping[str, Any], retry_after: Optional[float] = None) -> ApiError:
    """The exception for an error body. A code that this version does not know is an `ApiError`."""
    return CLASSES.get(str(body.get("error_code")), ApiError)(status, body, retry_after)


def read_body(body: bytes) -> Dict[str, Any]:
    """An error body; one that is none, such as a proxy's page, becomes the detail of an error without a code."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error_detail": body[:500].decode(errors="replace").strip()}
