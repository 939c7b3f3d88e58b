# A PostgreSQL server that reads POSTGRES_* and PGDATA as the official image does, for clusters without a registry. For tests only.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN groupadd -g 70 postgres && useradd -u 70 -g 70 -d /var/lib/postgresql postgres && apt-get update -qq && \
    apt-get install -y -qq --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/* && ln -s /usr/lib/postgresql/*/bin /opt/postgresql
ENV PATH=/opt/postgresql:$PATH
COPY --chmod=0755 postgres_start.sh /start.sh
USER 70
ENTRYPOINT ["/start.sh"]
