#!/bin/sh
# install-libraries LOCK [DIFFERENCE]      the libraries of a lock file into /opt/nephila; hashes are checked, so a build has no choice of versions
# install-libraries --wheel WHEEL DIFFERENCE
# With DIFFERENCE only the new files are kept, as DIFFERENCE/opt/nephila/...: a layer above the one that was there.
set -eu
kind=lock
if [ "$1" = --wheel ]; then kind=wheel; shift; fi
source=$1 difference=${2:-} home=/opt/nephila
pip() { python3 -m pip --python $home/bin/python install --no-cache-dir --no-compile --no-deps "$@"; }
[ -d $home ] || python3 -m venv --without-pip $home
find $home ! -type d | LC_ALL=C sort > /tmp/before
if [ $kind = wheel ]; then pip "$source"; else pip --require-hashes --only-binary=:all: -r "$source"; fi
find $home ! -type d | LC_ALL=C sort | LC_ALL=C comm -13 /tmp/before - > /tmp/new
if [ $kind = lock ]; then
  # Debug symbols, sources and tests are a third of the libraries.
  grep -E '/tests/|\.(c|h|cpp|pyx|pxd|pyi)$' /tmp/new | xargs -r -d '\n' rm -f
  find $home -type d -empty -delete
  grep -E '\.so(\.[0-9]+)*$' /tmp/new | while read -r file; do if [ -f "$file" ]; then strip --strip-unneeded "$file"; fi; done
fi
# One process, sorted names: what byte code shares depends on what was compiled before.
python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash $home/lib
if [ -n "$difference" ]; then
  mkdir -p "$difference"
  find $home ! -type d | LC_ALL=C sort | LC_ALL=C comm -13 /tmp/before - | tar -cf - -T - 2>/dev/null | tar -xf - -C "$difference"
  find "$difference" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
fi
find /opt -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
