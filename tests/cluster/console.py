"""The console as a person and as a pod opens it: login with the token, then the first screen."""

from __future__ import annotations

import http.cookiejar
import json
import subprocess
import time
import urllib.parse
import urllib.request
from base64 import b64decode

from tests.cluster.release import Release
from tests.cluster.web import Web

IN_A_POD = """
import http.cookiejar, json, sys, urllib.parse, urllib.request
base, token = sys.argv[1:]
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
form = urllib.parse.urlencode({"token": token}).encode()
pages = [opener.open(base + "/login").read(), opener.open(base + "/login", form).read()]
print(json.dumps([page.decode() for page in pages]))
"""


def token(release: Release) -> str:
    """The token of the control API."""
    return b64decode(release.get(f"secret/{release.component('api')}", "{.data.token}")).decode()


def console(release: Release, web: Web) -> None:
    """By kubectl port-forward, and from a pod by the name of the Service."""
    release.install("api.replicas=2")
    web.open()
    command = ["kubectl", "-n", release.namespace, "port-forward", f"service/{release.component('api')}", "0:9100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        assert forward.stdout is not None
        try:
            port = forward.stdout.readline().split("->")[0].rpartition(":")[2].strip()
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
            began = time.monotonic()
            base = f"http://127.0.0.1:{port}/console"
            login = opener.open(f"{base}/login", timeout=20).read().decode()
            form = urllib.parse.urlencode({"token": token(release)}).encode()
            overview = opener.open(f"{base}/login", form, timeout=20).read().decode()
            release.step("console by kubectl port-forward: login and Overview", began)
        finally:
            forward.terminate()
    _check(release, "port-forward", login, overview)
    for name in (release.component("api"), f"{release.component('api')}.{release.namespace}.svc.cluster.local"):
        words = ["pod/site", "--", "python3", "-c", IN_A_POD, f"http://{name}:9100/console", token(release)]
        login, overview = json.loads(release.kubectl("exec", *words))
        _check(release, name, login, overview)


def _check(release: Release, way: str, login: str, overview: str) -> None:
    """A login page asks for the token; the first screen does not, and has the navigation."""
    release.rule(f"login page by {way}", float('name="token"' in login), 1)
    opened = 'name="token"' not in overview and "Overview" in overview
    release.rule(f"Overview by {way}", float(opened), 1)
