# A PostgreSQL server that reads POSTGRES_* and PGDATA as the official image does, for clusters without a registry. For tests only.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN groupadd -g 70 postgres && useradd -u 70 -g 70 -d /var/lib/postgresql postgres && apt-get update -qq && \
    apt-get install -y -qq --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/* && ln -s /usr/lib/postgresql/*/bin /opt/postgresql
ENV PATH=/opt/postgresql:$PATH
COPY --chmod=0755 <<'SCRIPT' /start.sh
#!/bin/sh
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  initdb -D "$PGDATA" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  echo "create database \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
SCRIPT
USER 70
ENTRYPOINT ["/start.sh"]
