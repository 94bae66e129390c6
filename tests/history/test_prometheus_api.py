"""A server that is no Prometheus, or a hostile one, costs a bounded wait and gets no secret out of us."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import pytest

from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import prometheus_api
from rebalance_lib.history.prometheus_api import Credentials, PrometheusApi, Range
from tests.history.conftest import serve

ASKED = Range(0, 10, 5)
HUNTER = "hunter2"


@pytest.fixture
def server():
    """Answers each request with what a test put into ``answer``: status, headers, body; notes the requests."""

    class Handler(BaseHTTPRequestHandler):
        answer: ClassVar = (200, {}, b"{}")
        requests: ClassVar = []
        drip: ClassVar = False

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.requests.append((self.path, self.headers.get("Authorization"), body))
            status, headers, answer = self.answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(answer)
                while type(self).drip:
                    self.wfile.write(b" ")
                    time.sleep(0.02)
            except OSError:
                pass

        def do_GET(self):
            self.requests.append((self.path, self.headers.get("Authorization"), None))

        def log_message(self, *_):
            pass

    running = serve(Handler)
    Handler.url = f"http://127.0.0.1:{running.server_port}"
    yield Handler
    Handler.drip = False
    running.shutdown()
    running.server_close()


def ask(server, credentials=None, timeout=5.0, path=""):
    return PrometheusApi(server.url + path, credentials or Credentials(), timeout).query_range("up > 0", ASKED)


def refusal(server, **options):
    with pytest.raises(RebalanceError) as raised:
        ask(server, **options)
    message = str(raised.value)
    assert len(message) < 600
    assert message.isprintable()
    return message


def test_a_query_is_a_form_below_the_base_url(server):
    server.answer = (200, {}, json.dumps({"status": "success", "data": {"x": 1}}).encode())
    assert ask(server, path="/prom/") == {"x": 1}
    assert server.requests == [("/prom/api/v1/query_range", None, "query=up+%3E+0&start=0&end=10&step=5")]


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        (Credentials(token=HUNTER), "Bearer hunter2"),
        (Credentials(user="me", password=HUNTER), "Basic bWU6aHVudGVyMg=="),
    ],
)
def test_credentials_are_sent_and_never_shown_even_if_the_server_repeats_them(server, credentials, header):
    server.answer = (403, {}, json.dumps({"errorType": "forbidden", "error": f"not for {header}\n"}).encode())
    message = refusal(server, credentials=credentials)
    assert server.requests[0][1] == header
    assert "answered 403 Forbidden: forbidden: not for" in message
    assert "hunter2" not in message + repr(credentials)
    assert "bWU6" not in message


def test_redirects_are_not_followed(server):
    server.answer = (302, {"Location": f"{server.url}/elsewhere"}, b"")
    assert "answered 302 Found" in refusal(server, credentials=Credentials(token=HUNTER))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "answered no JSON: is the URL that of a Prometheus?"),
        (b"[" * 100_000, "answered no JSON"),
        (b"[]", "refused the query up > 0: []"),
        (b'{"status": "error", "errorType": "timeout", "error": "too long"}', "refused the query up > 0: timeout: too"),
        (b'{"status": "\xff\x00"}', "answered no JSON"),
    ],
)
def test_what_is_no_answer_of_prometheus_is_refused(server, body, message):
    server.answer = (200, {}, body)
    assert message in refusal(server)


def test_an_answer_is_bounded_in_bytes(server, monkeypatch):
    monkeypatch.setattr(prometheus_api, "LARGEST_ANSWER", 1000)
    server.answer = (200, {}, b" " * 2000)
    assert "answered more than 1,000 bytes: add matchers to the query" in refusal(server)


def test_an_answer_that_only_drips_is_bounded_in_time(server):
    server.drip = True
    assert "did not answer within 0.3 s" in refusal(server, timeout=0.3)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(RebalanceError, match=r"Prometheus at http://127\.0\.0\.1:1 cannot be reached: .*refused"):
        PrometheusApi("http://127.0.0.1:1", Credentials(), 5).query_range("up", ASKED)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "prometheus:9090", "", "http://", "http://[", "http://a/?q=1"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidInputError, match="is not the URL of a Prometheus"):
        PrometheusApi(url, Credentials(), 5)


def test_a_password_in_the_address_is_refused_and_not_shown():
    with pytest.raises(InvalidInputError, match="holds a user") as raised:
        PrometheusApi("http://me:hunter2@prometheus:9090", Credentials(), 5)
    assert "hunter2" not in str(raised.value)


def test_credentials_come_from_the_environment_or_from_files(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("hunter2\n")
    assert Credentials.from_environment("P") == Credentials()
    monkeypatch.setenv("P_USER", "me")
    monkeypatch.setenv("P_PASSWORD_FILE", str(tmp_path / "secret"))
    assert Credentials.from_environment("P") == Credentials(user="me", password=HUNTER)
    monkeypatch.setenv("P_TOKEN", "abc")
    assert Credentials.from_environment("P").header() == "Bearer abc"
    monkeypatch.setenv("P_PASSWORD_FILE", str(tmp_path / "nothing"))
    with pytest.raises(InvalidInputError, match="nothing, named in P_PASSWORD_FILE, cannot be read: No such file"):
        Credentials.from_environment("P")
