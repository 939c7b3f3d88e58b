#!/bin/sh
# The articles of a feed, and a feed of those that are new or changed. Call it from cron.
# FEED: an RSS or Atom feed. NEPHILA_OPTIONS: further options of the first crawl.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
if [ -e "$out/run.json" ]; then
    nephila crawl --refresh --quiet --out "$out"
else
    nephila crawl "${FEED:-https://news.example.org/feed.xml}" --max-depth 0 --quiet --out "$out" ${NEPHILA_OPTIONS:-}
fi
nephila changes --out "$out" --format atom > "$out/changes.xml"
nephila export --out "$out" --format jsonl -o "$out/articles.jsonl"
