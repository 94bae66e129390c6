"""Client settings under the names that Kafka's own clients use, as kafka-python takes them.

One mapping for the command line (``--command-config``, a Java properties file) and for Airflow's connections, which
also know librdkafka's names (``ssl.ca.location``, ``sasl.username``). What concerns security and cannot be carried over
is refused, because to leave it out would connect in another way than was asked for; other settings that have no
counterpart only tune a client, and are passed over, as Kafka's tools pass over what they do not know.

No message here ever has the value of a setting that may be a secret.

With OAUTHBEARER, username and password are the id and the secret of a client that the identity provider knows; without
a ``sasl.oauthbearer.token.endpoint.url``, the password is the token itself.

Example: ``security.protocol=SASL_SSL``, ``sasl.mechanism=PLAIN`` and a ``sasl.jaas.config`` with username and password
give ``security_protocol``, ``sasl_mechanism``, ``sasl_plain_username`` and ``sasl_plain_password``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rebalance_lib.cluster.oauth import ENDPOINT, ClientCredentials, GivenToken
from rebalance_lib.errors import InvalidInputError

NAMES: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "client.id": "client_id",
}
NUMBERS: Final = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "default.api.timeout.ms": "bootstrap_timeout_ms",  # what is waited in all until the cluster is reached
    "metadata.max.age.ms": "metadata_max_age_ms",
    "receive.buffer.bytes": "receive_buffer_bytes",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "send.buffer.bytes": "send_buffer_bytes",
}
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTH: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTH)
# Kafka's names of what OAuth calls client id, client secret and scope: as settings, and in a login module.
CLIENT_ID: Final = ("sasl.oauthbearer.client.credentials.client.id", "clientId")
CLIENT_SECRET: Final = ("sasl.oauthbearer.client.credentials.client.secret", "clientSecret")
SCOPE: Final = ("sasl.oauthbearer.scope", "scope")
LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"  # Kafka's own for OAuth does what is done here
STORES: Final = {
    "truststore": ("ssl_cafile",),
    "keystore": ("ssl_certfile", "ssl_keyfile"),  # Kafka's PEM key store is one file with the key and its certificates
}
SECURITY = re.compile(r"(sasl|ssl|security)\.")
_JAAS_MODULE = re.compile(
    r"(?:[\w.]+\.)?(?:Plain|Scram|OAuthBearer)LoginModule\s+(?:required|requisite|sufficient|optional)\b"
)
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""")


def client_settings(properties: Mapping[str, Any]) -> dict[str, Any]:
    """What kafka-python's clients take for these properties, secrets included: never to be shown or kept.

    Raises:
        InvalidInputError: A security setting has no counterpart in kafka-python, or a value is not acceptable.
    """
    given = {key: str(value).strip() for key, value in properties.items() if value is not None}
    settings: dict[str, Any] = {name: given[key] for key, name in NAMES.items() if given.get(key)}
    settings |= {name: _number(key, given[key]) for key, name in NUMBERS.items() if given.get(key)}
    handled = {*NAMES, *NUMBERS, ENDPOINT, CLIENT_ID[0], CLIENT_SECRET[0], SCOPE[0]}
    options = _login(given["sasl.jaas.config"]) if given.get("sasl.jaas.config") else {}
    settings |= {f"sasl_plain_{name}": options[name] for name in ("username", "password") if name in options}
    if given.get(LOGIN_HANDLER, "").endswith(".OAuthBearerLoginCallbackHandler"):
        handled.add(LOGIN_HANDLER)
    for store, names in STORES.items():
        settings |= _store(store, names, given)
        handled |= {f"ssl.{store}.{end}" for end in ("location", "type", "password")}
    if "ssl.endpoint.identification.algorithm" in given:
        settings["ssl_check_hostname"] = given["ssl.endpoint.identification.algorithm"].lower() not in ("", "none")
    handled |= {"sasl.jaas.config", "ssl.endpoint.identification.algorithm"}
    if unknown := sorted(key for key in given if SECURITY.match(key) and key not in handled):
        raise InvalidInputError(
            f"{', '.join(unknown)}: this client has no such setting; known are SASL with {', '.join(MECHANISMS)} "
            "and TLS with PEM files; remove it, or connect through another listener"
        )
    return _with_token(_checked(settings), {**options, **given})


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse at once what kafka-python would only show as a cluster that cannot be reached.

    Raises:
        InvalidInputError: A file of certificates is not there, or SASL has no user or password.
    """
    for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        if settings.get(name) and not Path(settings[name]).is_file():
            raise InvalidInputError(f"{settings[name]}, named in the client settings, is not a file that can be read")
    sasl = str(settings.get("security_protocol", "")).startswith("SASL")
    if sasl and settings.get("sasl_mechanism") == OAUTH:
        if "sasl_oauth_token_provider" not in settings:
            raise InvalidInputError(
                f"{OAUTH} needs a token: set {ENDPOINT} with a client id and secret, or a token as sasl.password"
            )
    elif sasl and settings.get("sasl_mechanism") in MECHANISMS:
        for name in ("username", "password"):
            if not settings.get(f"sasl_plain_{name}"):
                raise InvalidInputError(f"SASL needs a {name}: set sasl.jaas.config, or sasl.{name}")


def secrets(settings: Mapping[str, Any]) -> list[str]:
    """What in these settings must not be seen: passwords, and what gets tokens or is one."""
    provider = settings.get("sasl_oauth_token_provider")
    found = (settings.get("sasl_plain_password"), settings.get("ssl_password"), getattr(provider, "secret", None))
    return [str(secret) for secret in found if secret]


def read_properties(text: str) -> dict[str, str]:
    r"""The entries of a Java properties file: ``#`` and ``!`` begin comments, ``\`` escapes and joins lines."""
    return dict(_entry(line) for line in _logical_lines(text))


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    protocol = str(settings.get("security_protocol", "PLAINTEXT")).upper()
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"security.protocol is {protocol}; it is one of {', '.join(PROTOCOLS)}")
    if "security_protocol" in settings:
        settings["security_protocol"] = protocol
    if not protocol.startswith("SASL"):
        return settings
    mechanism = settings.get("sasl_mechanism", "GSSAPI")  # Kafka's own default
    if mechanism not in MECHANISMS:
        raise InvalidInputError(f"sasl.mechanism is {mechanism}; this client has {', '.join(MECHANISMS)}: set one")
    return settings


def _number(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise InvalidInputError(f"{key} is {value!r}, not a whole number") from error


def _with_token(settings: dict[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The settings, and for OAUTHBEARER what gets its tokens in place of username and password."""
    if settings.get("sasl_mechanism") != OAUTH:
        return settings
    username, password = (settings.pop(f"sasl_plain_{name}", "") for name in ("username", "password"))
    if given.get(ENDPOINT):
        client = next((given[name] for name in CLIENT_ID if given.get(name)), username)
        secret = next((given[name] for name in CLIENT_SECRET if given.get(name)), password)
        if not client or not secret:
            raise InvalidInputError(
                f"{ENDPOINT} needs a client id and secret: set {CLIENT_ID[0]} and {CLIENT_SECRET[0]}"
            )
        scope = next((given[name] for name in SCOPE if given.get(name)), "")
        settings["sasl_oauth_token_provider"] = ClientCredentials(
            given[ENDPOINT], client, secret, scope, settings.get("ssl_cafile")
        )
    elif password:
        settings["sasl_oauth_token_provider"] = GivenToken(password)
    return settings


def _login(jaas: str) -> dict[str, str]:
    module = _JAAS_MODULE.match(jaas)
    if not module:
        raise InvalidInputError(
            "sasl.jaas.config: this client reads PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule, "
            "followed by required; give one of these with username and password, or clientId and clientSecret"
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) or bare
        for name, double, single, bare in _JAAS_OPTION.findall(jaas)
    }
    needed = () if "OAuthBearer" in module[0] else ("username", "password")
    if missing := [name for name in needed if name not in options]:
        raise InvalidInputError(f'sasl.jaas.config has no {" and no ".join(missing)}; write {missing[0]}="..."')
    return options


def _store(store: str, names: tuple[str, ...], given: Mapping[str, str]) -> dict[str, str]:
    location = given.get(f"ssl.{store}.location")
    if not location:
        return {}
    kind = given.get(f"ssl.{store}.type", "JKS").upper()
    if kind != "PEM":
        raise InvalidInputError(
            f"ssl.{store}.location: this client reads PEM files, not {kind}; convert the {store}, for example with "
            f"`keytool -importkeystore` and `openssl pkcs12`, and set ssl.{store}.type=PEM"
        )
    return dict.fromkeys(names, location)


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _entry(line: str) -> tuple[str, str]:
    place = 0
    while place < len(line) and line[place] not in "=: \t\f":
        place += 2 if line[place] == "\\" else 1
    rest = line[place:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescaped(line[:place]), _unescaped(rest)


def _unescaped(text: str) -> str:
    controls = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def character(match: re.Match[str]) -> str:
        unit = match[1]
        return chr(int(unit[1:], 16)) if len(unit) == 5 else controls.get(unit, unit)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text)
