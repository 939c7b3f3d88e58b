"""Writes the broker's properties from KAFKA_<NAME> variables, formats its storage, and becomes the broker."""

import os
import subprocess
from pathlib import Path

PROPERTIES = Path("/var/lib/kafka/data/server.properties")
CLUSTER = "bmVwaGlsYS1kZXYta2Fma2E"

names = (name for name in os.environ if name.startswith("KAFKA_") and name != "KAFKA_HEAP_OPTS")
PROPERTIES.write_text("".join(f"{name[6:].lower().replace('_', '.')}={os.environ[name]}\n" for name in names))
java = ["java", *os.environ.get("KAFKA_HEAP_OPTS", "-Xmx384m").split(), "-cp", "/opt/kafka/libs/*"]
formatting = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", CLUSTER, "-c", str(PROPERTIES)]
subprocess.run([*java, *formatting], check=True)
os.execvp("java", [*java, "kafka.Kafka", str(PROPERTIES)])
