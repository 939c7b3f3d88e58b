# A broker that reads KAFKA_<NAME> variables as apache/kafka does, for clusters without a registry. The build context is the folder of jars that
# tools/kafka_broker.py resolved. For tests only.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
COPY --chmod=0644 *.jar /opt/kafka/libs/
COPY <<'SCRIPT' /opt/kafka/start.py
import os
import subprocess

names = (name for name in os.environ if name.startswith("KAFKA_") and name != "KAFKA_HEAP_OPTS")
lines = [f"{name[6:].lower().replace('_', '.')}={os.environ[name]}" for name in names]
with open("/tmp/server.properties", "w") as file:
    file.write("\n".join([*lines, "log4j.rootLogger=WARN"]) + "\n")
java = ["java", *os.environ.get("KAFKA_HEAP_OPTS", "-Xmx384m").split(), "-cp", "/opt/kafka/libs/*"]
format = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", "bmVwaGlsYS1kZXYta2Fma2E", "-c", "/tmp/server.properties"]
subprocess.run([*java, *format], check=True)
os.execvp("java", [*java, "kafka.Kafka", "/tmp/server.properties"])
SCRIPT
USER 1000
ENTRYPOINT ["python3", "/opt/kafka/start.py"]
