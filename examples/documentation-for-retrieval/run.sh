#!/bin/sh
# Documentation to Markdown and chunks for retrieval, then a question to them.
# SITE: where the documentation begins. QUESTION: words to look for. NEPHILA_OPTIONS: further options of the crawl.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
nephila crawl "${SITE:-https://docs.example.org/}" --scope prefix --max-pages 500 --format markdown,chunks --quiet --out "$out" ${NEPHILA_OPTIONS:-}
nephila export --out "$out" --format chunks --chunk-chars 1500 -o "$out/chunks-1500.jsonl"
python3 ask.py "$out/chunks-1500.jsonl" "${QUESTION:-install}"
