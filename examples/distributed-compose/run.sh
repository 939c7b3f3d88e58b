#!/bin/sh
# The services over Kafka and PostgreSQL with three downloaders, and one crawl. Needs Docker with the compose plugin.
# SITE: where the crawl begins. Pages are rows of the database; `docker compose down` ends all, -v deletes the data.
set -eu
cd "$(dirname "$0")/../.."
make wheels
docker compose -f compose.yaml -f examples/distributed-compose/three-downloaders.yaml up --build --wait
docker compose run --rm crawl "${SITE:-https://example.org/}"
docker compose exec postgres psql -U nephila -c 'select outcome, reason, count(*) from pages group by 1, 2'
