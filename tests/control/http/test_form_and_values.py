"""The HTTP server over one program: 400 for requests of another form, 409 for values that cannot be used."""

from __future__ import annotations

import asyncio
import json

import pytest
from nephila_control.http.application import application

from tests.control.documents import document
from tests.control.http.asgi import Answer, AsgiClient
from tests.control.local.test_local_control import Desk
from tests.scheduler.world import World, site


class Client(AsgiClient):
    """Calls of the clock are made while a request is answered."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(application(desk.control))
        self._clock = desk.world.clock

    async def ask(self, method: str, path: str, body: object = None) -> Answer:
        """A request with a JSON body, if there is one."""
        content = b"" if body is None else json.dumps(body)
        task = asyncio.ensure_future(self._request(method, f"/api/v1{path}", content, {}))
        while not task.done():
            self._clock.run_due()
            await asyncio.sleep(0)
        return task.result()


@pytest.fixture
async def client(tmp_path):
    """A program with the job j."""
    made = Client(Desk(await World(tmp_path / "frontier", site({"/": []})).start(), tmp_path))
    assert (await made.ask("POST", "/jobs", {"job": document("j")})).status_code == 200
    return made


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "says"),
    [
        ("GET", "/changes?since=2026-02-31", None, "wrong_value", "since '2026-02-31' is no time"),
        ("GET", "/changes/feed/rss?since=0001-01-01T00:00:00%2B23:00", None, "wrong_value", "since"),
        ("GET", "/changes?since=soon", None, "invalid", "$.since"),
        ("GET", f"/changes/feed/atom?since={'9' * 30}", None, "invalid", "$.since"),
        ("GET", "/explain?url=0", None, "wrong_value", "'0' is not a URL"),
        ("POST", "/jobs/j/forget", {"urls": ["http://a.test/", "0"]}, "wrong_value", "urls[1]: '0' is not a URL"),
        ("POST", "/jobs/j/forget", {"match": "("}, "wrong_value", "--match '('"),
        (
            "POST",
            "/jobs/j/seeds",
            {"urls": ["http://a.test/"], "contexts": [{}, {}]},
            "wrong_value",
            "contexts: 1 URLs",
        ),
        ("POST", "/jobs", {"job": {}}, "invalid", "job: the document lacks the key"),
        ("POST", "/jobs", {"job": document("j", tenant=5)}, "invalid", "spec.tenant: 5 has no quotes"),
        ("POST", "/jobs", {"job": document("j", tenant="a\0b")}, "invalid", "tenant"),
        ("POST", "/jobs", {"job": document("j", weight=1e300)}, "invalid", "spec.weight"),
        ("POST", "/jobs", {"job": document("j", scope={"include": ["("]})}, "wrong_value", "spec.scope.include[0]"),
        ("POST", "/rules", {"rules": [{}]}, "invalid", "rules[0]: the document lacks the key"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_form_and_values_are_told_apart(client, method, path, body, code, says):
    """400 for what the OpenAPI document does not state, 409 for values that cannot be used; place and remedy in one
    line."""
    answer = await client.ask(method, path, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == ({"invalid": 400, "wrong_value": 409}[code], code), error
    assert says in f"{error['message']} {error['where']}"
    assert "\n" not in error["message"]


async def test_a_whole_number_may_be_written_with_a_point(client):
    """As JSON Schema has it; also in documents."""
    assert (await client.ask("POST", "/jobs", {"job": document("k", scope={"maxDepth": 2.0})})).status_code == 200
    assert (await client.ask("POST", "/dead-letters/replay", {"limit": 22.0, "all": True})).status_code == 200
    assert (await client.ask("POST", "/dead-letters/replay", {"limit": 22.5, "all": True})).status_code == 400
