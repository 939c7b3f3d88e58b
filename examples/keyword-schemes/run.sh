#!/bin/sh
# Searches keywords on a platform until all searches have ended, and lists the records.
# Set the platform's address in schemes.yaml. NEPHILA_OPTIONS: further options of the program.
set -eu
cd "$(dirname "$0")"
out=${OUT:-out}
nephila schemes plan -f schemes.yaml
nephila up --out "$out" --quiet ${NEPHILA_OPTIONS:-} &
program=$!
trap 'kill $program; wait $program || true' EXIT
until nephila status --out "$out" > /dev/null 2>&1; do kill -0 $program; done
nephila schemes apply -f schemes.yaml --out "$out"
until nephila schemes list --out "$out" --json | grep -q '"teas": *"finished"'; do kill -0 $program; done
nephila schemes list --out "$out"
nephila export --out "$out" --items --format jsonl -o "$out/records.jsonl"
