"""A plain web on disk and a server for it: which URLs it has, nginx where there is one, else our own server; names in
/etc/hosts for the peers.
"""

import http.client
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measure
from benchmarks.web.connection import OWN_PATH

HOSTS_FILE = Path("/etc/hosts")
_NGINX = """worker_processes 1; daemon off; master_process off; pid {run}/nginx.pid; error_log {run}/error.log warn;
events {{ worker_connections 8192; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; keepalive_timeout 120;
 client_body_temp_path {run}/t1; proxy_temp_path {run}/t2; fastcgi_temp_path {run}/t3; uwsgi_temp_path {run}/t4;
 scgi_temp_path {run}/t5;
 open_file_cache max=20000 inactive=600s; default_type text/html; types {{ text/html html; }}
 server {{ listen 127.0.0.1:{port} backlog=4096; server_name ~^(?<h>[a-z0-9.]+)$; root {web}/$h;
  location = /robots.txt {{ return 404; }}
  location = {path} {{ return 200 {token}; }} }} }}
"""


@dataclass(frozen=True)
class PlainWeb:
    """A folder with <host>/p/<n>.html files whose links name one port."""

    folder: Path
    port: int
    files: tuple[str, ...]

    @property
    def urls(self) -> frozenset[str]:
        """Every URL of the web."""
        return frozenset(f"http://{name.split('/', 1)[0]}:{self.port}/{name.split('/', 1)[1]}" for name in self.files)

    @property
    def start(self) -> str:
        """The page from which all others can be reached."""
        return f"http://h0.bench.test:{self.port}/p/0.html"

    @property
    def hosts(self) -> list[str]:
        """The host names."""
        return sorted({name.split("/", 1)[0] for name in self.files})


def read(folder: Path) -> PlainWeb:
    """The web in *folder*; its port is read from the links of page 0."""
    files = tuple(sorted(str(path.relative_to(folder)) for path in folder.glob("*/p/*.html")))
    first = folder / "h0.bench.test" / "p" / "0.html"
    if not first.is_file():
        raise SystemExit(
            f"{folder}: no plain web (h0.bench.test/p/0.html is missing); "
            f"make one with: python -m benchmarks.web.plain {folder}"
        )
    port = re.search(rb"\.bench\.test:(\d+)/", first.read_bytes())
    if not port:
        raise SystemExit(f"{folder}: page 0 has no link into the web")
    return PlainWeb(folder, int(port[1]), files)


def missing_names(web: PlainWeb) -> list[str]:
    """The hosts that the hosts file does not name; peers have no host map of their own."""
    known = {word for line in HOSTS_FILE.read_text().splitlines() for word in line.split("#")[0].split()[1:]}
    return [host for host in web.hosts if host not in known]


def add_names(names: list[str]) -> None:
    """Append loopback lines to the hosts file."""
    with HOSTS_FILE.open("a") as file:
        file.writelines(f"127.0.0.1 {name}\n" for name in names)


def listening(port: int, address: str = "127.0.0.1") -> bool:
    """Whether something answers on loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


def is_own(port: int, token: str, address: str = "127.0.0.1") -> bool:
    """Whether the server on a port is the one that was started with this token."""
    try:
        with urllib.request.urlopen(f"http://{address}:{port}{OWN_PATH}", timeout=5) as answer:
            return bool(answer.read(len(token) + 1) == token.encode())
    except (OSError, http.client.HTTPException):
        return False


class Serving:
    """Serves a web for the length of a `with` block, on the first core. Refuses a server that is not its own: figures
    of another web, or of another server, would look like its own."""

    def __init__(self, web: PlainWeb, run: Path, log: Path | None = None) -> None:
        self.web, self.run, self.log = web, run, log
        self.kind = ""
        self._token = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that serves; 0 before the start."""
        return self._process.pid if self._process else 0

    def __enter__(self) -> "Serving":
        if listening(self.web.port):
            raise SystemExit(
                f"port {self.web.port} is taken by another program; end it, the bench starts its own server"
            )
        self.run.mkdir(parents=True, exist_ok=True)
        self._process = measure.start(self._command(), measure.cores()[0], log=self.run / "server.out")
        for _ in range(200):
            if listening(self.web.port):
                if is_own(self.web.port, self._token):
                    return self
                self.__exit__()
                raise SystemExit(f"the server on port {self.web.port} is not the one that the bench has started")
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        self.__exit__()
        raise SystemExit(f"the server did not start: {(self.run / 'server.out').read_text()[-500:]}")

    def __exit__(self, *_: object) -> None:
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(10)

    def _command(self) -> list[str]:
        nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin:/usr/local/sbin")
        if nginx is None or self.log is not None:
            self.kind = "benchmarks.web.serve"
            command = [sys.executable, "-m", "benchmarks.web.serve", str(self.web.folder), "--port", str(self.web.port)]
            command += ["--token", self._token]
            return command + (["--log", str(self.log)] if self.log else [])
        self.kind = "nginx"
        conf = self.run / "nginx.conf"
        conf.write_text(
            _NGINX.format(
                run=self.run.resolve(),
                web=self.web.folder.resolve(),
                port=self.web.port,
                path=OWN_PATH,
                token=self._token,
            )
        )
        return [nginx, "-e", str(self.run / "error.log"), "-c", str(conf.resolve())]
