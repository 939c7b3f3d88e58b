"""The HTTP server of the control API: its owner only, bounded bodies and clients, no request ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
from unittest.mock import Mock
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control import api, job_types, system_types
from nephila_control.access.authority import Authority, administrator
from nephila_control.api import OPERATIONS
from nephila_control.http import application
from nephila_control.http import server as http_server
from nephila_control.http.application import MAX_BODY
from nephila_control.http.change_feeds import FORMATS
from nephila_control.http.client import at_directory, at_url
from nephila_control.http.server import tcp_server, unix_server
from nephila_control.http.tokens import host_and_port, read_token
from nephila_control.http.unix_socket import NAME, connect

from tests.control.http.asgi import AsgiClient

TOKEN = "0123456789abcdef"  # noqa: S105


def administered(control):
    """Who has the token may do everything."""
    return Authority(control, administrator(TOKEN))


class Echo:
    """An implementation that answers each pause with the name of the job."""

    async def pause_job(self, request):
        """Names that mean an error raise it."""
        if request.name == "unexpected":
            raise RuntimeError("not\nexpected")
        if request.name == "refused":
            raise UserError("the present state refuses this")
        return job_types.JobChanged(name=request.name, verdict="paused", generation=1)

    def __getattr__(self, name):
        async def nothing(request):
            raise UserError(f"{name} {request}")

        return nothing


@pytest.fixture
async def server(tmp_path):
    """On the socket of a directory."""
    server = unix_server(application.application(Echo()), tmp_path)
    await server.open()
    yield server
    await server.close()


def request(name="a", body=b"", method="POST", path=None, head=""):
    """The bytes of a request."""
    path = path or f"/api/v1/jobs/{name}/pause"
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


class Changes(Echo):
    """Has one change, and keeps the last request."""

    async def list_changes(self, request):
        """The same change each time."""
        self.request = request
        one = system_types.Change(
            seq=1,
            id="a" * 32,
            at="2026-11-22T10:00:00.000Z",
            job="news",
            url="https://news.test/1",
            url_key="k",
            fetch_no=1,
            change="new",
            title="A page",
            fetched_at="2026-11-22T09:59:00.000Z",
            old_hash="",
            text_hash="",
            diff="",
        )
        return system_types.ChangeList(changes=[one], next="")


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, (_, kind) in FORMATS.items()])
def test_a_feed_has_the_newest_changes(name, kind):
    """With the parameters of the list of changes, the type of its format and the token; an unknown format is 404."""
    control = Changes()
    client = AsgiClient(application.application(control, authority=administered(control)))
    authorized = {"authorization": f"Bearer {TOKEN}"}
    path = f"/api/v1/changes/feed/{name}"
    answer = client.get(f"{path}?job=news&limit=5", authorized)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert "https://news.test/1" in answer.text
    assert (control.request.job, control.request.limit, control.request.newest) == ("news", 5, True)
    assert client.get(path).status_code == 401
    assert client.get(f"{path}?limit=0", authorized).status_code == 400
    assert client.get(f"{path}?change=other", authorized).json()["error"]["where"] == "$.change"
    assert client.get("/api/v1/changes/feed/other", authorized).status_code == 404


async def ask(directory, data):
    """(status, body) of one request on a connection of its own."""
    reader, writer = await asyncio.open_unix_connection(directory / NAME)
    try:
        return await exchange(reader, writer, data)
    finally:
        writer.close()


async def exchange(reader, writer, data):
    """(status, body) of one request."""
    writer.write(data)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def test_requests_of_one_connection_are_answered_in_order(server, tmp_path):
    """Each with the job it names."""
    reader, writer = await asyncio.open_unix_connection(tmp_path / NAME)
    for name in ("a", "b"):
        status, body = await exchange(reader, writer, request(name))
        assert (status, json.loads(body)["name"]) == (200, name)
    writer.close()


async def test_only_the_owner_may_connect(server, tmp_path):
    """Mode 0600, and gone when it is closed."""
    mode = (tmp_path / NAME).stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    await server.close()
    assert not (tmp_path / NAME).exists()
    assert connect(tmp_path, 1.0) is None


async def test_a_body_that_is_too_large_is_refused(server, tmp_path):
    """Not read into memory; the others are served."""
    big = b'{"job": "' + b"x" * (MAX_BODY + 1) + b'"}'
    status, body = await ask(tmp_path, request(body=big, path="/api/v1/jobs"))
    assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")
    assert (await ask(tmp_path, request()))[0] == 200


async def test_the_largest_body_is_taken(server, tmp_path):
    """Exactly as long as allowed: it is the implementation that refuses."""
    body = b'{"job": {"a": "' + b"x" * (MAX_BODY - 18) + b'"}}'
    assert len(body) == MAX_BODY
    status, answer = await ask(tmp_path, request(body=body, path="/api/v1/jobs"))
    assert (status, json.loads(answer)["error"]["code"]) == (409, "refused")


async def test_a_body_that_does_not_come_is_refused(server, tmp_path, monkeypatch):
    """After BODY_S."""
    monkeypatch.setattr(application, "BODY_S", 0.01)
    data = b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    status, body = await ask(tmp_path, data)
    assert (status, json.loads(body)["error"]["code"]) == (408, "timeout")


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (b"GET /api/v1/jobs?after=" + b"3" * 2 * http_server.MAX_HEAD, "longer than 65536 bytes"),
        (b"GET /api/v1/jobs HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "not a request of HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00", "not a request of HTTP/1.1"),
    ],
)
async def test_a_head_that_cannot_be_read(server, tmp_path, head, word):
    """Answered in the form of every error."""
    status, body = await ask(tmp_path, head)
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (400, "invalid")
    assert word in error["message"]


async def test_a_head_that_does_not_come_ends_the_connection(tmp_path, monkeypatch):
    """As does a connection that sends nothing any more."""
    monkeypatch.setattr(http_server, "HEAD_S", 0.02)
    server = unix_server(application.application(Echo()), tmp_path)
    await server.open()
    reader, writer = await asyncio.open_unix_connection(tmp_path / NAME)
    writer.write(b"GET /healthz HT")
    assert await reader.read() == b""
    writer.close()
    await server.close()


def test_a_connection_that_was_just_used_is_kept():
    """A client that sends its next request 10 s after it connected does not lose it."""
    loop, transport = Mock(), Mock()
    transport.is_closing.return_value = False
    connection = object.__new__(http_server._Protocol)
    connection.loop, connection.transport, connection.cycle, connection._waiting = loop, transport, None, {}
    loop.time.return_value = 9.0  # its answer is complete
    connection._note()
    loop.time.return_value = http_server.HEAD_S
    connection._check()
    assert not transport.close.called
    (left, again), _ = loop.call_later.call_args
    loop.time.return_value += left
    again()
    assert transport.close.called


async def test_a_fault_of_an_implementation_is_one_json_answer(server, tmp_path, caplog):
    """And the server goes on."""
    status, body = await ask(tmp_path, request("unexpected"))
    assert (status, json.loads(body)["error"]["message"]) == (500, r"RuntimeError: not\nexpected")
    assert (await ask(tmp_path, request()))[0] == 200


async def test_more_requests_than_allowed(server, tmp_path):
    """Refused; there is room again when one has ended. A probe is answered meanwhile."""
    half = request(path="/api/v1/jobs", body=b"{}")[:-1]
    clients = [await asyncio.open_unix_connection(tmp_path / NAME) for _ in range(application.MAX_REQUESTS)]
    for _, writer in clients:
        writer.write(half)
    for _ in range(1000):
        answer = await ask(tmp_path, request())
        if answer[0] == 503:
            break
    assert json.loads(answer[1])["error"]["code"] == "unavailable"
    with pytest.raises(NotReadyError, match="64 requests are under way"):
        await at_directory(tmp_path).pause_job(job_types.JobName(name="a"))
    for probe in ("/healthz", "/readyz"):
        assert (await ask(tmp_path, request(method="GET", path=probe)))[0] == 200
    for _, writer in clients:
        writer.close()
    while (await ask(tmp_path, request()))[0] == 503:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_as_many_requests_as_allowed_are_under_way(monkeypatch):
    """One more is refused; one that has ended makes room."""
    monkeypatch.setattr(application, "MAX_REQUESTS", 2)
    begun, ended = asyncio.Semaphore(0), asyncio.Semaphore(0)

    class Slow(Echo):
        async def pause_job(self, request):
            begun.release()
            await ended.acquire()
            return await super().pause_job(request)

    app = application.application(Slow())

    async def post():
        sent = []

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            sent.append(message)

        path = "/api/v1/jobs/a/pause"
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
        await app(scope, receive, send)
        return sent[0]["status"]

    running = [asyncio.ensure_future(post()) for _ in range(2)]
    for _ in running:
        await asyncio.wait_for(begun.acquire(), 10)
    assert await post() == 503
    ended.release()
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    running.append(asyncio.ensure_future(post()))
    await asyncio.wait_for(begun.acquire(), 10)
    ended.release()
    ended.release()
    assert await asyncio.gather(*running) == [200, 200, 200]


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT"])
async def test_incomplete_requests_refuse_no_probe(tmp_path, monkeypatch, sent):
    """A further connection closes the one that waits longest, also one that was kept after an answer."""
    monkeypatch.setattr(http_server, "MAX_WAITING", 10)
    monkeypatch.setattr(http_server, "HEAD_S", 3600.0)
    server = unix_server(application.application(Echo()), tmp_path)
    await server.open()
    kept = await asyncio.open_unix_connection(tmp_path / NAME)
    assert (await exchange(*kept, request()))[0] == 200
    clients = []
    for _ in range(70):
        clients.append(await asyncio.open_unix_connection(tmp_path / NAME))
        clients[-1][1].write(sent)
    assert (await ask(tmp_path, request(method="GET", path="/healthz")))[0] == 200
    assert (await ask(tmp_path, request()))[0] == 200
    assert await asyncio.wait_for(kept[0].read(), 20) == b""
    for reader, _ in clients[:40]:
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
    for _, writer in (kept, *clients):
        writer.close()
    await server.close()


async def test_a_dead_programs_socket_is_replaced(tmp_path):
    """One that was killed leaves it behind."""
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / NAME))
    dead.close()
    assert connect(tmp_path, 1.0) is None
    server = unix_server(application.application(Echo()), tmp_path)
    await server.open()
    assert (await ask(tmp_path, request()))[0] == 200
    await server.close()


async def test_a_file_in_its_place_is_not_removed(tmp_path):
    """Whatever it is, it is not ours."""
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(UserError, match="is no socket; move it away"):
        await unix_server(application.application(Echo()), tmp_path).open()
    assert (tmp_path / NAME).read_text() == "mine"


async def test_a_socket_of_another_kind_is_one_line(tmp_path):
    """A program that takes no connections has bound it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(tmp_path / NAME))
        with pytest.raises(UserError, match=f"cannot connect to {tmp_path / NAME}: .*wrong type"):
            connect(tmp_path, 1.0)


async def test_a_server_that_is_closed_twice_leaves_the_socket_of_the_next_program(tmp_path):
    """The second close does nothing."""
    first, second = (unix_server(application.application(Echo()), tmp_path) for _ in range(2))
    await first.open()
    await first.close()
    await second.open()
    await first.close()
    assert (await ask(tmp_path, request()))[0] == 200
    await second.close()


async def test_a_directory_with_a_long_name(tmp_path):
    """Longer than the address of a socket may be."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    server = unix_server(application.application(Echo()), deep)
    await server.open()
    assert stat.S_IMODE((deep / NAME).stat().st_mode) == 0o600
    assert (await at_directory(deep).pause_job(job_types.JobName(name="a"))).name == "a"
    await server.close()
    assert not (deep / NAME).exists()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


# ---- TCP and its token


@pytest.fixture
async def tcp():
    """On a free port of this machine."""
    server = tcp_server(application.application(Echo(), authority=administered(Echo())), "127.0.0.1", 0, "--api")
    await server.open()
    yield f"http://127.0.0.1:{server.port}"
    await server.close()


async def test_a_port_takes_its_token_only(tcp):
    """Without it, or with another, the answer is 401 and nothing is done."""
    assert (await at_url(tcp, TOKEN).pause_job(job_types.JobName(name="a"))).verdict == "paused"
    for token in ("", TOKEN[:-1], TOKEN + "x", "x"):
        with pytest.raises(UserError, match="refuses the token"):
            await at_url(tcp, token).pause_job(job_types.JobName(name="a"))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"jobs": 1}', b'{"jobs": "\xff"}', b"[" * 100_000, b"<html>\x1b]0;x\x07"]
)
@pytest.mark.parametrize("status", [200, 404])
async def test_a_server_that_is_no_nephila_is_one_line(body, status):
    """Whatever JSON it answers with."""

    async def answer(scope, receive, send):
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(body))]}
        )
        await send({"type": "http.response.body", "body": body})

    server = tcp_server(answer, "127.0.0.1", 0, "--api")
    await server.open()
    with pytest.raises(NotReadyError, match=r"is not a nephila.*check the URL") as caught:
        await at_url(f"http://127.0.0.1:{server.port}", TOKEN).list_jobs(job_types.ListJobs())
    assert "\n" not in str(caught.value)
    await server.close()


def test_probes_need_no_token():
    """They are no secrets; the document of the API is behind it."""

    async def metrics():
        return b"nephila_jobs 1\n", "text/plain"

    app = application.application(Echo(), authority=administered(Echo()), metrics=metrics, unready=lambda: "no broker")
    client = AsgiClient(app)
    assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "alive\n")
    assert (client.get("/readyz").status_code, client.get("/readyz").text) == (503, "no broker\n")
    assert client.get("/metrics").text == "nephila_jobs 1\n"
    assert client.request("HEAD", "/healthz").status_code == 200
    assert client.get("/api/v1/openapi.json").status_code == 401
    headers = {"Authorization": f"bearer {TOKEN}"}
    assert client.get("/api/v1/openapi.json", headers).json()["openapi"] == "3.1.0"
    answer = client.get("/api/v1/jobs", headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "no broker")


def test_a_server_without_an_implementation_has_no_api():
    """As those of services."""
    client = AsgiClient(application.application(None))
    assert client.get("/api/v1/jobs").status_code == 404
    assert client.get("/metrics").status_code == 404
    assert client.get("/readyz").text == "ready\n"


async def test_errors_come_back_as_the_errors_they_were(tcp):
    """Over there and here."""
    control = at_url(tcp, TOKEN)
    with pytest.raises(UserError, match="the present state refuses this") as error:
        await control.pause_job(job_types.JobName(name="refused"))
    assert not isinstance(error.value, UsageError | api.NotFound | NotReadyError)
    with pytest.raises(UsageError, match=r"length.* \(\$\.name\)"):
        await control.pause_job(job_types.JobName(name="x" * 2000))


async def test_a_server_that_is_not_there_is_one_line():
    """With its URL."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UserError, match=f"http://127.0.0.1:{port} cannot be reached"):
        await at_url(f"http://127.0.0.1:{port}").pause_job(job_types.JobName(name="a"))


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a/b", "http://a:x", "http://u:p@a", "http://[1"])
def test_a_url_that_is_none(url):
    """One line."""
    with pytest.raises(UsageError, match="is not a URL like"):
        at_url(url)


def test_a_token_is_one_word_of_a_file(tmp_path):
    """Refused before anything listens."""
    file = tmp_path / "token"
    with pytest.raises(UsageError, match="a TCP port needs a token"):
        read_token("", "--api-token-file")
    with pytest.raises(UsageError, match="No such file"):
        read_token(str(file), "--api-token-file")
    for text in ("short", "two words of a token", "é" * 20, ""):
        file.write_text(text)
        with pytest.raises(UsageError, match="token"):
            read_token(str(file), "--api-token-file")
    file.write_text(f"{TOKEN}\n")
    assert read_token(str(file), "--api-token-file") == TOKEN


def test_an_address_is_host_and_port():
    """Or one line."""
    assert host_and_port("127.0.0.1:80", "--api") == ("127.0.0.1", 80)
    assert host_and_port("[::1]:80", "--api") == ("::1", 80)
    assert host_and_port(":80", "--api") == ("", 80)
    for text in ("", "a", "a:b", "a:99999", "::1:80"):
        with pytest.raises(UsageError, match="is not HOST:PORT"):
            host_and_port(text, "--api")


# ---- hostile requests


@pytest.fixture(scope="module")
def client():
    """Without a socket."""
    return AsgiClient(application.application(Echo()))


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/jobs", b"", "job"),
        ("/jobs", b"[]", "has to be a JSON object"),
        ("/jobs", b"\xff\xfe", "is not JSON"),
        ("/jobs", b'{"job": ' + b"[" * 100_000, "is not JSON"),
        ("/jobs", b'{"job": 5}', "Expected `object`"),
        ("/jobs", b'{"job": {}, "nmae": 1}', "nmae"),
        ("/jobs?x=1", b'{"job": {}}', "no query parameters"),
        ("/jobs/a/forget", b'{"urls": ["' + b"u" * 200_000 + b'"]}', "length"),
        ("/jobs/a/seeds", b'{"urls": ' + json.dumps(["u"] * 1001).encode() + b"}", "length"),
        ("/jobs/a/seeds", b'{"name": "b"}', "part of the path"),
        ("/jobs/" + "x" * 2000 + "/pause", b"", "length"),
        ("/jobs/a%00b/pause", b"", "match"),
        ("/dead-letters/replay", b'{"limit": 0}', "limit"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_requests_are_one_line(client, path, body, says):
    """Status 400, the one shape of errors, and where it is wrong."""
    answer = client.request("POST", f"/api/v1{path}", body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], "\n" in error["message"]) == ("invalid", False)
    assert says in error["message"] + error["where"]


@pytest.mark.parametrize("path", ["/api/v1/jobs/", "/api/v1/status/", "/healthz/", "/api/v1/jobs/%2F"])
def test_a_further_slash_is_another_path(client, path):
    """404 in the one shape of errors; no redirect."""
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    route=st.sampled_from(list(OPERATIONS.values())),
    name=st.text(min_size=1, max_size=20),
    body=st.one_of(
        st.binary(max_size=60), st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps)
    ),
)
def test_any_request_is_answered(client, route, name, body):
    """With an error of the request, whatever the bytes: never 500."""
    path = route.path.replace("{name}", quote(name, safe=""))
    answer = client.request(route.method, f"/api/v1{path}", body)
    assert answer.status_code in (200, 400, 404, 405, 409)
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"code", "message", "where"}


def test_another_path_and_another_method(client):
    """The same shape."""
    assert client.get("/api/v1/nothing").json()["error"]["code"] == "not_found"
    answer = client.request("PUT", "/api/v1/jobs")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]
