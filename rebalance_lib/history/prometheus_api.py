"""Range queries over Prometheus' HTTP API: bounded in time and in bytes, no redirects, no secret in any message."""

from __future__ import annotations

import base64
import http.client
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rebalance_lib.errors import InvalidInputError, RebalanceError

LARGEST_ANSWER = 512 * 1024 * 1024
CHUNK = 1024 * 1024


class Range(NamedTuple):
    """Instants from the first to the last, both included, in seconds since 1970."""

    first: int
    last: int
    step: int


@dataclass(frozen=True, slots=True)
class Credentials:
    """A bearer token, or a user and a password; none of them is ever printed."""

    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, prefix: str = "PROMETHEUS") -> Credentials:
        """``PREFIX_TOKEN``, or ``PREFIX_USER`` and ``PREFIX_PASSWORD``.

        ``PREFIX_TOKEN_FILE`` and ``PREFIX_PASSWORD_FILE`` name files that hold them instead.
        """
        return cls(
            token=_secret(f"{prefix}_TOKEN"),
            user=os.environ.get(f"{prefix}_USER", ""),
            password=_secret(f"{prefix}_PASSWORD"),
        )

    def header(self) -> str | None:
        """The value of the request's ``Authorization``; None for nobody."""
        if self.token:
            return f"Bearer {self.token}"
        if self.user:
            return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return None

    def hide(self, text: str) -> str:
        """The text without the secrets, should a server send them back."""
        for secret in (self.token, self.password, (self.header() or "").partition(" ")[2]):
            if secret:
                text = text.replace(secret, "***")
        return text


class PrometheusApi:
    """One Prometheus.

    Args:
        url: Its base URL, without ``/api/v1``.
        credentials: Who asks.
        timeout: Seconds that one request may take in all.
    """

    def __init__(self, url: str, credentials: Credentials, timeout: float) -> None:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
            secret = parts.username is not None or parts.password is not None
        except ValueError:
            usable, secret = False, True
        if secret and "@" in url:
            raise InvalidInputError("the URL of Prometheus holds a user: give user and password apart from it")
        if not usable:
            raise InvalidInputError(f"{url!r} is not the URL of a Prometheus: it is like http://prometheus:9090")
        self._url, self._credentials, self._timeout = url.rstrip("/"), credentials, timeout
        self._opener = build_opener(_NoRedirects)

    def query_range(self, query: str, asked: Range) -> Any:
        """The ``data`` of the answer to a range query."""
        form = {"query": query, "start": asked.first, "end": asked.last, "step": asked.step}
        answer = self._post("/api/v1/query_range", urlencode(form).encode())
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError) as error:
            self._fail("answered no JSON: is the URL that of a Prometheus?", error)
        if not isinstance(document, dict) or document.get("status") != "success":
            self._fail(f"refused the query {query}: {_reason(answer)}")
        return document.get("data")

    def _post(self, path: str, body: bytes) -> bytes:
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if (header := self._credentials.header()) is not None:
            headers["Authorization"] = header
        deadline = time.monotonic() + self._timeout
        try:
            request = Request(f"{self._url}{path}", data=body, headers=headers)  # noqa: S310 - http or https: checked
            with self._opener.open(request, timeout=self._timeout) as response:
                return self._read(response, deadline)
        except HTTPError as error:
            with error:
                said = _reason(error.read(CHUNK))
            self._fail(f"answered {error.code} {error.reason}: {said}", error)
        except URLError as error:
            self._fail(f"cannot be reached: {error.reason}", error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._fail(f"did not answer: {type(error).__name__}: {error}", error)

    def _read(self, response: Any, deadline: float) -> bytes:
        read = bytearray()
        while chunk := response.read1(CHUNK):
            read += chunk
            if len(read) > LARGEST_ANSWER:
                self._fail(f"answered more than {LARGEST_ANSWER:,} bytes: add matchers to the query")
            if time.monotonic() > deadline:
                self._fail(f"did not answer within {self._timeout:g} s: add matchers to the query, or allow more")
        return bytes(read)

    def _fail(self, what: str, cause: Exception | None = None) -> NoReturn:
        said = "".join(c if c.isprintable() else " " for c in self._credentials.hide(f"{self._url} {what}"))
        # The cause may hold the request's headers, so that it stays out of the traceback.
        raise RebalanceError(f"Prometheus at {said}") from (None if self._credentials.header() else cause)


class _NoRedirects(HTTPRedirectHandler):
    """A redirect is an error, as if there were no handler."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def _reason(answer: bytes) -> str:
    """The error as Prometheus words it, or the beginning of what came instead."""
    try:
        document = json.loads(answer)
        return f"{document['errorType']}: {document['error']}"[:300]
    except (ValueError, RecursionError, TypeError, LookupError):
        return answer[:100].decode(errors="replace")


def _secret(name: str) -> str:
    if (value := os.environ.get(name)) is not None:
        return value
    if (path := os.environ.get(f"{name}_FILE")) is None:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInputError(f"{path}, named in {name}_FILE, cannot be read: {reason}") from error
