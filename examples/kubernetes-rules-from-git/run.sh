#!/bin/sh
# The chart with rules from git, a job, and its state. Needs kubectl and helm with a cluster; set the repository in values.yaml.
set -eu
cd "$(dirname "$0")"
helm upgrade --install nephila ../../charts/nephila --namespace crawl --create-namespace -f values.yaml --wait
kubectl -n crawl apply -f crawljob.yaml
kubectl -n crawl wait --for=condition=Ready crawljob/shop --timeout=120s
kubectl -n crawl get crawljobs,parserules
