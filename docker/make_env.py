"""Make ``.env`` from ``.env.example``, with a new secret for each empty value; leave an existing ``.env`` alone.

python3 docker/make_env.py
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def fill(template: str) -> str:
    """The template with a secret after each name that has no value."""
    return "".join(
        f"{line}{secret(line[:-1])}\n" if line.endswith("=") else f"{line}\n" for line in template.splitlines()
    )


def secret(name: str) -> str:
    """A new secret in the form that the name stands for."""
    if name.endswith("FERNET_KEY"):
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_hex(16 if name.endswith("PASSWORD") else 32)


def main(root: Path = ROOT) -> int:
    """Write ``.env``, readable by its owner only."""
    target = root / ".env"
    text = fill((root / ".env.example").read_text(encoding="utf-8"))
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(f"{target} exists already and stays as it is")
        return 0
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"made {target}; the password of Airflow's user admin is AIRFLOW_ADMIN_PASSWORD there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
