"""Tokens for SASL with OAUTHBEARER: one that was given, or those that an identity provider gives for a client's secret.

No message here has a token or a secret, nor what the identity provider wrote beside its error code.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from rebalance_lib.errors import ClusterError, InvalidInputError

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
TIMEOUT_SECONDS = 10.0
RENEW_AFTER = 0.8  # of a token's life
LIFE_SECONDS = 300.0  # where the identity provider does not say


@dataclass(frozen=True, slots=True)
class GivenToken(AbstractTokenProvider):  # type: ignore[misc]
    """A token that somebody else looks after; it ends when it ends."""

    secret: str = field(repr=False)

    def token(self) -> str:
        """The token."""
        return self.secret


@dataclass(slots=True)
class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens from an identity provider by OAuth's client credentials grant, each used for most of its life.

    Args:
        endpoint: The identity provider's URL for tokens, http or https.
        client_id: Who asks.
        secret: The client secret, which proves it.
        scope: What the token is to be good for, where the identity provider wants to be told.
        ca_file: Certificates to trust for https, beside those of this machine.
    """

    endpoint: str
    client_id: str
    secret: str = field(repr=False)
    scope: str = ""
    ca_file: str | None = None
    _token: str = field(default="", init=False, repr=False, compare=False)
    _renew_at: float = field(default=0.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if urllib.parse.urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise InvalidInputError(f"{ENDPOINT} is not an address that begins with https:// or http://")

    def token(self) -> str:
        """The token, a new one if the last one's life is nearly over."""
        if time.monotonic() >= self._renew_at:
            answer = self._ask()
            self._token = str(answer["access_token"])
            self._renew_at = time.monotonic() + RENEW_AFTER * float(answer.get("expires_in") or LIFE_SECONDS)
        return self._token

    def _ask(self) -> dict[str, Any]:
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        names = (urllib.parse.quote(part, safe="") for part in (self.client_id, self.secret))
        basic = base64.b64encode(":".join(names).encode()).decode()
        headers = {"Authorization": f"Basic {basic}", "Accept": "application/json"}
        body = urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(self.endpoint, body, headers)  # noqa: S310 - http or https, as checked above
        where = f"{ENDPOINT} ({urllib.parse.urlsplit(self.endpoint).netloc.rpartition('@')[2]})"
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=TIMEOUT_SECONDS, context=self._trust()
            ) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise ClusterError(
                f"{where} gave no token: {error.code} {_code(error)}; check client id, client secret and scope"
            ) from None
        except (OSError, ValueError) as error:
            raise ClusterError(f"{where} gave no token: {type(error).__name__}: {error}") from None
        if not isinstance(found, dict) or not found.get("access_token"):
            raise ClusterError(f"{where} gave no token: its answer has no access_token; is it the right address?")
        return found

    def _trust(self) -> ssl.SSLContext | None:
        if not self.endpoint.startswith("https"):
            return None
        context = ssl.create_default_context()
        if self.ca_file:
            context.load_verify_locations(self.ca_file)
        return context


def _code(error: urllib.error.HTTPError) -> str:
    """OAuth's own word for what is wrong, such as ``invalid_client``."""
    try:
        code = json.load(error)["error"]
    except (OSError, ValueError, KeyError, TypeError):
        return error.reason
    return code if isinstance(code, str) and code.replace("_", "").isalnum() else error.reason
