#!/bin/sh
# An archive of a site that can be shown again: WARC with styles and pictures, an index, and one WACZ file.
# SITE: what is archived. NEPHILA_OPTIONS: further options of the crawl. Open site.wacz at replayweb.page, or with pywb.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
nephila crawl "${SITE:-https://example.org/}" --format warc --page-requisites --max-pages 200 --quiet --out "$out" ${NEPHILA_OPTIONS:-}
nephila export --out "$out" --format cdxj -o "$out/index.cdxj"
nephila export --out "$out" --format wacz -o "$out/site.wacz"
