#!/bin/sh
# Products of a shop, fetched again when they are due, and a webhook for each one that changed.
# SITE: the shop. HOOKS: file of webhooks (docs/harvest.md); without it changes are printed. NEPHILA_OPTIONS: further options.
# The first call crawls; each further one (from cron) fetches again what is due.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
if [ -e "$out/run.json" ]; then
    nephila crawl --refresh --quiet --out "$out" ${NEPHILA_REFRESH:-}
else
    nephila crawl "${SITE:-https://shop.example.org/}" --rules rules --max-pages 500 --quiet --out "$out" ${NEPHILA_OPTIONS:-}
fi
nephila rules status --out "$out"
nephila export --out "$out" --items --format csv -o "$out/products.csv"
if [ -n "${HOOKS:-}" ]; then
    nephila webhooks run -f "$HOOKS" --once --out "$out"
else
    nephila changes --out "$out" --json
fi
