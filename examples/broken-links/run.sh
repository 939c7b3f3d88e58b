#!/bin/sh
# Broken links of a site as CSV; exit code 1 when there are any, so that a CI job fails.
# SITE: the site. NEPHILA_OPTIONS: further options of the crawl. Add --check-external for links that lead out.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
nephila crawl "${SITE:-https://example.org/}" --links --quiet --out "$out" ${NEPHILA_OPTIONS:-}
nephila export "$out" --broken-links -o "$out/broken.csv" ${EXPORT_OPTIONS:-}
broken=$(($(wc -l < "$out/broken.csv") - 1))
if [ "$broken" -gt 0 ]; then
    cat "$out/broken.csv"
    echo "$broken broken links" >&2
    exit 1
fi
echo "no broken link"
