"""Reads the errors of model servers: the body of an HTTP error, or an error event in a stream with the status 200."""

import json
import re
from collections.abc import Mapping

from coral.native.llm.json_values import object_of, text_of
from coral.native.llm.request import Fault, Json, ModelError, fault_of

STATUSES = {  # of HTTP, which a type or a code stands for
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
}
LONGEST_TEXT = 2000  # characters


def error_text(body: str) -> str:
    """Return the error in the body of a refused request: its type, its code and its message."""
    plain = " ".join(body.split())[:500]
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        return plain
    if isinstance(error, Mapping):
        error = error.get("error") or error
    return _words(error) if isinstance(error, Mapping) else str(error)[:500]


def error_in_stream(error: object) -> ModelError:
    """Return the ModelError for the field `error` of an event in a stream that began well."""
    words = _words(error) if isinstance(error, Mapping) else text_of(error)
    status = _status(object_of(error))
    fault = fault_of(status) if status else Fault.TRANSIENT
    return ModelError(fault, words or "the server broke off with an error", status=status)


def _words(error: Json) -> str:
    """Return all that an error says. A gateway passes the error of the server behind it on as `raw`."""
    fields = [
        *(error.get(name) for name in ("type", "code", "message", "detail")),
        object_of(error.get("metadata")).get("raw"),
    ]
    words = [value if isinstance(value, str) else json.dumps(value) for value in fields if value is not None]
    return " ".join(dict.fromkeys(words))[:LONGEST_TEXT]


def _status(error: Json) -> int:
    """Return the HTTP status of an error: its code if that is one, else the status that its code or type corresponds
    to; 0 if none is known."""
    for value in (error.get("code"), error.get("status"), error.get("type")):
        if re.fullmatch("[45][0-9][0-9]", str(value)):
            return int(str(value))
        if status := STATUSES.get(text_of(value)):
            return status
    return 0
