# A broker that reads KAFKA_<NAME> variables as apache/kafka does, for clusters without a registry. The build context holds
# kafka_start.py and lib/ with the jars that tools/kafka_broker.py resolved (`make dev-images`). For tests only.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN apt-get update -qq && mkdir -p /usr/share/man/man1 && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
COPY lib /opt/kafka/libs
COPY --chmod=0644 kafka_start.py /opt/kafka/start.py
USER 1000
ENTRYPOINT ["python3", "/opt/kafka/start.py"]
