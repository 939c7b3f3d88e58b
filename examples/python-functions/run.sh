#!/bin/sh
# Fields that Python computes: rules/kettles names functions of functions/kettles.py.
# SITE: the shop. NEPHILA_OPTIONS: further options.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
nephila rules lint rules --functions functions
nephila rules test rules --functions functions
nephila crawl "${SITE:-https://shop.example.org/}" --rules rules --rule-functions functions --max-pages 500 --quiet --out "$out" ${NEPHILA_OPTIONS:-}
nephila export --out "$out" --items --format csv -o "$out/kettles.csv"
