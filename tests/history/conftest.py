"""A real Prometheus, with a password, that scrapes two brokers' metrics from a server in this process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from sandbox.ports import free_port
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
USER, PASSWORD = "admin", "test"
# bcrypt of the password, as in Prometheus' own guide to basic auth
HASH = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"


@dataclass
class Exporters:
    """What the brokers' exporters show: by path, the lines of the page."""

    port: int
    pages: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Server:
    """A Prometheus and what it scrapes."""

    url: str
    exporters: Exporters


def serve(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


@pytest.fixture(scope="session")
def exporters() -> Iterator[Exporters]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = "".join(f"{line}\n" for line in found.pages.get(self.path, [])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = serve(Handler)
    found = Exporters(server.server_port)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def prometheus(exporters: Exporters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = subprocess.run([ROOT / "tools" / "prometheus.sh"], capture_output=True, text=True, check=False, timeout=200)
    if found.returncode != 0:
        pytest.fail(found.stderr)
    directory, port = tmp_path_factory.mktemp("prometheus"), free_port()
    (directory / "web.yml").write_text(f"basic_auth_users: {{{USER}: {HASH}}}\n")
    (directory / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        "scrape_configs:\n"
        + "".join(
            f"- {{job_name: broker-{n}, metrics_path: /{n}, static_configs: "
            f"[{{targets: ['127.0.0.1:{exporters.port}'], labels: {{instance: 'kafka-{n}:7071'}}}}]}}\n"
            for n in (1, 2)
        )
    )
    command = [
        found.stdout.strip(),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--web.config.file={directory / 'web.yml'}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--storage.tsdb.path={directory / 'data'}",
        "--log.level=warn",
    ]
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_until_ready(process, port, directory / "log")
            yield Server(f"http://127.0.0.1:{port}", exporters)
        finally:
            process.terminate()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import socket

    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(listens, tell=log.read_text)
