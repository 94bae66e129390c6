"""Listeners that ask who a client is: SASL with PLAIN, SCRAM and OAUTHBEARER, and TLS with a client's certificate.

Brokers and controllers go on speaking to each other in the clear, and so does the sandbox itself. OAUTHBEARER takes
unsecured tokens, as Kafka does where nothing else is set: for trying things out, never for a cluster that matters.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

SECURE = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")  # listeners, each by the name of its security protocol
MODULES = "org.apache.kafka.common.security"
KNOWN_SECONDS = 30.0
SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


def security_config(users: Mapping[str, str], certificates: Path) -> dict[str, str]:
    """What a broker is told so that these users can sign in through the listeners in `SECURE`."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    logins = {
        "plain": f"{MODULES}.plain.PlainLoginModule required {known};",
        "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
    }
    config = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(logins).upper(),
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        config |= {f"listener.name.{listener}.{name}.sasl.jaas.config": login for name, login in logins.items()}
    return config


def add_scram_users(admin: KafkaAdminClient, users: Mapping[str, str]) -> None:
    """Give Kafka the users' SCRAM credentials, and wait until it knows them."""
    for mechanism in SCRAM:  # a request may name a user once
        wanted = [UserScramCredentialUpsertion(user, mechanism, password) for user, password in users.items()]
        refused = {user: error for user, error in admin.alter_user_scram_credentials(wanted).items() if error}
        if refused:
            raise RuntimeError(f"Kafka did not take the SCRAM credentials: {refused}")
    deadline = time.monotonic() + KNOWN_SECONDS
    while any(len(user["credential_infos"]) < len(SCRAM) for user in _described(admin, users)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"Kafka did not know the SCRAM credentials after {KNOWN_SECONDS:.0f} s")
        time.sleep(0.1)


def unsecured_token(user: str, seconds: int = 3600) -> str:
    """A token for OAUTHBEARER, signed by nobody, that says who it is for."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now, "exp": now + seconds})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def _described(admin: KafkaAdminClient, users: Mapping[str, str]) -> list[dict[str, Any]]:
    return list(admin.describe_user_scram_credentials(list(users)).values())
