# Two commands on a fresh machine with Python >= 3.11 and make: `make crawl URL=https://example.org/` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= crawl-out
WEB    ?= build/plain-web
# One process more than cores: many tests wait for Kafka, PostgreSQL or a process.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST ?= $(BIN)/python -m pytest
# Groups of pyproject.toml that install-dev installs. lint,test is enough for the tests of a folder (ARGS=tests/scheduler); the types of make check and all tests need dev.
DEV_GROUPS ?= dev
TRUTH  ?= ../shared/data
DOCS   ?= $(HOME)/.cache/nephila-bench/documentation
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
NATIVE := $(shell find services/nephila/native/core -name '*.rs' -o -name 'Cargo.*' 2>/dev/null)

BENCHES := $(shell sed -n "s/^\(bench[a-z-]*\):.*/\1/p" Makefile)
.PHONY: canary chart images lock test-cluster show-metrics show-firecrawl judge-scrapy site flips crawl install install-dev test test-full test-all test-long check proto schema format judge chaos clean help $(BENCHES)

help:            ## the targets that a newcomer needs
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*##/ -/'

help-all:        ## all targets: also benches, hostile runs, images and releases
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*##\+?/ -/'

$(STAMP): pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nephila needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing nephila into $(VENV): some 40 libraries, then the native core where Rust is present (1-2 minutes)"
	@command -v cargo > /dev/null || echo "no Rust here: without the native core pages are read many times slower, and their main text is simpler. Get it from https://rustup.rs, then: make clean install; or install a wheel, which has the core"
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[all]'
	@touch $@

$(DEV): $(STAMP)
	@echo "installing what checks and tests need"
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[$(DEV_GROUPS)]'
	@$(BIN)/python -m tools.kafka_broker install --optional
	@$(BIN)/python -m tools.helm install --optional
	@$(BIN)/python -m tools.prometheus install --optional
	@$(BIN)/python -m tools.axe install --optional
	@$(BIN)/python -m tools.replaywebpage install --optional
	@touch $@

install: $(STAMP)  ## build .venv with everything (.venv/bin/nephila)

install-dev: $(DEV)  ## the same and what checks and tests need (1.7 GB; DEV_GROUPS=lint,test: 0.65 GB)

crawl: $(STAMP)  ## make crawl URL=https://example.org/ [OUT=crawl-out] [ARGS='--max-pages 100']
	@test -n "$(URL)" || { echo "usage: make crawl URL=https://example.org/ [OUT=crawl-out] [ARGS='...']"; exit 2; }
	@$(BIN)/nephila crawl '$(URL)' --out '$(OUT)' $(ARGS)

test: $(DEV)  ## the tests that everybody runs: everything but the mark full (WORKERS=N processes, default: cores + 1)
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m 'not full' $(ARGS)

.PHONY: test-quick
test-quick: $(DEV)  ## a minute of tests of the folders that differ from main, changed test files first (ARGS='--base COMMIT --seconds 60')
	@$(BIN)/python -m tools.quick_tests --workers $(WORKERS) $(ARGS)

CORE := $(addprefix tests/,api cli downloader kernel native parser programs scheduler storage)
test-alone: $(DEV)  ##+ the tests of the core with no other package on the path
	@NEPHILA_CORE_ALONE=1 $(PYTEST) -n $(WORKERS) --dist worksteal -m 'not full' $(CORE) $(ARGS)

test-full: $(DEV)  ## the rest: whole programs, services over Kafka
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m full $(ARGS)

test-all: test test-full  ##+ both

.PHONY: test-core
test-core: $(DEV)  ## the Rust tests of the native core (a minute; needs Rust)
	@cd services/nephila/native/core && PYO3_PYTHON="$(CURDIR)/$(BIN)/python" \
	 LD_LIBRARY_PATH="$$($(CURDIR)/$(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')" \
	 cargo test --quiet --release --no-default-features --workspace

test-long: $(DEV)  ##+ the state machines at 100,000 operations each, and ten orders of growths, kills and moves
	@NEPHILA_LONG=1 $(BIN)/python -m pytest -n $(WORKERS) tests/native/test_trie_machine.py \
	 tests/scheduler/frontier/test_frontier_machine.py $(wildcard tests/cluster/scheduler/test_orders_of_growth*.py)

.PHONY: mutants
mutants: $(DEV)  ##+ faults put into chosen modules, one at a time: which tests notice (ARGS='scheduler/frontier --count 40 --seed 2'; some 10 s each)
	@$(BIN)/python -m tools.mutants $(ARGS)

CORE_FILES ?= src/robots/*.rs
CORE_TESTS ?= tests/native
.PHONY: mutants-core
mutants-core: $(DEV)  ##+ the same for the native core, with cargo-mutants, its unit tests and CORE_TESTS='tests/native' (CORE_FILES='src/robots/*.rs' ARGS='--shard 0/20 --sharding round-robin')
	@cargo mutants --version > /dev/null || { echo "install cargo-mutants: cargo install cargo-mutants --locked"; exit 2; }
	@rm -rf build/mutants-core && mkdir -p build && cp -r services/nephila/native build/mutants-core
	@NEPHILA_CHECKOUT="$(CURDIR)" NEPHILA_TESTS="$(CORE_TESTS)" PYO3_PYTHON="$(CURDIR)/$(BIN)/python" \
	 LD_LIBRARY_PATH="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')" \
	 cargo mutants -d build/mutants-core/core --in-place --profile mutants --no-default-features \
	 --minimum-test-timeout 120 -f '$(CORE_FILES)' $(ARGS) -- --tests

FUZZ_S ?= 1800
.PHONY: fuzz
fuzz: $(DEV)     ##+ libFuzzer over responses and pages, FUZZ_S=1800 seconds each (ARGS='page --keep'; needs a nightly Rust and cargo-fuzz)
	@$(BIN)/python -m tools.fuzz --seconds $(FUZZ_S) $(ARGS)

bench-search: $(DEV)  ##+ searches over 10^6 generated pages, pairs of characters beside trigrams (some 15 minutes, 5 GB; ARGS='--rows 100000')
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_search $(ARGS)

bench-seen: $(DEV)  ##+ the seen test beside its rivals, 1 and 20 million keys (about a quarter of an hour, 4 GB)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_seen $(ARGS)

images: $(DEV)  ## build the images of all services from dist/ (ARGS='--dev --load COMMAND', see python -m tools.images --help)
	@$(BIN)/python -m tools.images $(ARGS)

.PHONY: reproduce
reproduce: $(DEV)  ##+ build images twice without a cache and compare their layers (ARGS='scheduler cli'; some minutes)
	@$(BIN)/python -m tools.reproduce $(ARGS)

.PHONY: axe
axe: $(DEV)  ##+ axe over every screen of the console in Chromium, light and dark, wide and narrow: no serious finding (a minute)
	@$(BIN)/python -m tools.axe install
	@NEPHILA_REQUIRE_ALL=1 $(PYTEST) tests/console/test_accessibility_in_chromium.py $(ARGS)

.PHONY: sbom
sbom: $(DEV)  ##+ write dist/sbom/*.cdx.json: what each image contains (ARGS=--images: with the Debian packages of the built images)
	@$(BIN)/python -m tools.sbom $(ARGS)

lock: $(DEV)  ##+ write docker/lock/*.txt: libraries of the images with versions and hashes
	@$(BIN)/python -m tools.lock $(ARGS)

test-cluster: $(DEV)  ##+ the chart on the cluster of the kubeconfig: install, crawl, scale, kill, upgrade, judge (about 15 minutes)
	@PYTHONPATH=services:. $(BIN)/python -m tests.cluster.show $(ARGS)

kube-score: $(DEV)  ##+ findings of kube-score over the chart's examples, exit 1 with a new one (docs/kubernetes.md explains those that stay)
	@$(BIN)/python -m tools.kube_score install && $(BIN)/python -m tools.kube_score

show-metrics: $(DEV)  ##+ every dashboard query answered by a real Prometheus over a live crawl; pictures into docs/ (10 minutes)
	@PYTHONPATH=services:. $(BIN)/python -m tests.metrics.show $(ARGS)

site: $(DEV)  ## the documentation site in build/site/html (ARGS=--serve shows it; ARGS='--into DIR' adds it to a directory of versions)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m tools.site $(ARGS)

judge-scrapy: $(DEV)  ##+ the tests of Scrapy for schedulers and duplicate filters, unchanged, over ours (1 minute; downloads its sources)
	@PYTHONPATH=services:. $(BIN)/python -m tools.scrapy_suite

.PHONY: show-first-page
show-first-page: $(DEV)  ##+ bare containers from nothing to the first Markdown page by pip, pipx and uvx, timed (after make wheels; needs Docker. ARGS=--here: in a virtual environment)
	@$(BIN)/python -m tools.first_page dist/nephila-*-cp311-abi3-*.whl $(ARGS)

show-core: $(DEV)  ##+ the core alone in a fresh environment with its libraries: crawl, resume, export (after make wheels)
	@$(BIN)/python -m tools.core_wheel dist/nephila-*-cp311-abi3-*.whl

show-firecrawl: $(DEV)  ##+ the official JavaScript client of Firecrawl against this program (1 minute; needs Node)
	@PYTHONPATH=services:. $(BIN)/python -m tools.firecrawl_js

judge: $(DEV)  ## the hostile web in its full size, crawled and judged from the server's log (some minutes)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_judge $(ARGS)

chaos: $(DEV)    ##+ a crawl over Kafka to which everything happens, judged from the server's log (up to 30 minutes)
	@PYTHONPATH=services:. $(BIN)/python -m tests.chaos.chaos $(ARGS)

canary: $(DEV)   ##+ 1,000 attempts to reach a private address through crawler and browser: a table of hits per channel
	@$(BIN)/python -m tools.chromium install
	@PYTHONPATH=services:. $(BIN)/python -m tests.canary.canary $(ARGS)

flips: $(DEV)    ##+ a killed crawl with one bit of a file flipped, resumed: 200 places of every file (about 15 minutes)
	@PYTHONPATH=services:. $(BIN)/python -m tests.e2e.flips $(ARGS)

bench-services: $(DEV)  ##+ CPU per page of each service over Kafka and PostgreSQL, broker and database beside it (WEB=DIR)
	@test -d $(WEB) || PYTHONPATH=services:. $(BIN)/python -m benchmarks.web.plain $(WEB)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_services --web $(WEB) $(ARGS)

bench-shapes: $(DEV)  ##+ CPU per page on webs of other shapes; ARGS="growing --against DIR" runs another checkout in turn
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_shapes $(ARGS)

bench-frontier: $(DEV)  ##+ the frontier at 10^5 to 10^7 queued URLs, its restart and its extremes (about ten minutes, 5 GB)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_frontier $(ARGS)

bench-hosts: $(DEV)  ##+ memory, disk and restart of 10^5 and 10^6 idle hosts by their state (a quarter of an hour, 1 GB)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_hosts $(ARGS)

bench-seeds: $(DEV)  ##+ a file of 10^6 seeds: the first request, all admitted (a minute, 1 GB)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_seeds $(ARGS)

.PHONY: plot-scale
plot-scale: $(DEV)  ##+ the plots of docs/scale.md from the raw results that are there
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.plot_scale $(ARGS)

bench-browser: $(DEV)  ##+ 500 rendered pages; render auto beside always (some 8 minutes)
	@$(BIN)/python -m tools.chromium install
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_browser $(ARGS)

bench-simulation: $(DEV)  ##+ 100, 1,000 and 10,000 members on a virtual clock: joins, deaths, a region gone; link farms by members (half an hour, 3 GB)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_simulation --plot docs/simulation.svg $(ARGS)

bench-farm: $(DEV)  ##+ a broad crawl beside a link farm on a virtual clock, four webs, with and without budgets of domains (two minutes)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_farm $(ARGS)

bench-dns: $(DEV)  ##+ the DNS cache at 10^6 names beside a dict and aiohttp's; a crawl of 5,000 hosts with and without it
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_dns $(ARGS)

bench-workers: $(DEV)  ##+ CPU per page and pages/s with 0, 1 and 2 worker processes (WEB=DIR: a plain web, made when absent)
	@test -d $(WEB) || PYTHONPATH=services:. $(BIN)/python -m benchmarks.web.plain $(WEB)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_workers --web $(WEB) $(ARGS)

RIVALS := build/rivals/bin/python
$(RIVALS): $(DEV)
	@$(BIN)/python -m venv build/rivals && $(RIVALS) -m pip install -q -U pip && \
		$(RIVALS) -m pip install -q trafilatura resiliparse readability-lxml html-text lxml_html_clean

bench-quality: $(RIVALS)  ##+ main text on four sets of pages with a truth, beside trafilatura, resiliparse, readability-lxml and html-text (TRUTH=DIR, ARGS="--types --facts"; some minutes)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_quality $(TRUTH) --rivals $(RIVALS) $(ARGS)

show-pages: $(RIVALS)  ##+ twenty pages of the web, truth, ours and trafilatura's beside each other, into docs/quality-pages.md (TRUTH=DIR)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.quality_pages $(TRUTH) --rivals $(RIVALS)

bench-markdown: $(DEV)  ##+ Markdown of whole documentation sets of generators, downloaded into DOCS: headings, code, paragraphs, cells, links kept, boilerplate (ARGS="--rivals")
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_markdown $(DOCS) $(ARGS)

show-quality: $(DEV)  ##+ twenty documentation pages as Chromium shows them beside our Markdown and trafilatura's, into docs/quality (DOCS=CACHE)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.quality_pictures $(DOCS) $(ARGS)

CHECKS := style types layers proto drift
.PHONY: $(addprefix check-,$(CHECKS))
check: $(DEV)  ## ruff, mypy --strict, import-linter, proto lint and breaking changes, drift of what is generated (half a minute; every fault is printed)
	@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync=target $(addprefix check-,$(CHECKS))

check-types:
	@$(BIN)/mypy

check-style:
	@$(BIN)/ruff format --check services tests benchmarks tools
	@$(BIN)/ruff check services tests benchmarks tools
	@$(BIN)/hadolint --config .hadolint.yaml docker/Dockerfile docker/Dockerfile.browser docker/dev/*.Dockerfile

check-layers:
	@PYTHONPATH=services $(BIN)/lint-imports

check-proto:
	@$(BIN)/buf lint
	@$(BIN)/buf breaking --against proto/baseline.binpb

# Files that tools write from the sources: each states how to write it again.
GENERATED := protogen schemas openapi configuration chart_values dashboards metrics_reference reasons_reference man_page site crds package_graph
check-drift:
	@for tool in $(GENERATED); do PYTHONPATH=services:. $(BIN)/python -m tools.$$tool --check || failed="$$failed $$tool"; done; test -z "$$failed" || { echo "not as generated:$$failed"; exit 1; }

bench-parser: $(DEV)  ##+ a page without and with a tree beside rivals (a minute)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_parser $(ARGS)

bench-admission: $(DEV)  ##+ floods of pages of 10 KB to 20 MB in cgroups of 256 MB to 2 GB (as root; half an hour)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_admission $(ARGS)

bench-callbacks: $(DEV)  ##+ the longest callback while a crawl meets hostile servers and pages (about two minutes)
	@PYTHONPATH=services:. $(BIN)/python -m benchmarks.bench_callbacks $(ARGS)

proto: $(DEV)  ## generate kernel/messages from proto/
	@$(BIN)/python tools/protogen.py

.PHONY: wheels
wheels: $(STAMP)  ## the wheel with the native core for CPython 3.11 and later (abi3), in dist/; needs Rust. PGO=1: the core is trained on a crawl first, PGO=auto: where that can be done (docs/adr/0002)
	@rm -rf build dist/nephila-*.whl
	@$(if $(PGO),$(BIN)/python -m tools.profile_core build/core.profdata $(if $(filter auto,$(PGO)),--optional))
	@! test -f build/core.profdata || export RUSTFLAGS="-Cprofile-use=$(CURDIR)/build/core.profdata"; $(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --wheel-dir dist --config-settings=--build-option=--py-limited-api=cp311 .
	@$(BIN)/python -m zipfile -l dist/nephila-*-cp311-abi3-*.whl | grep 'native/_core.abi3.so' > /dev/null || { echo "the native core was not built: install Rust (https://rustup.rs)"; exit 1; }
	@du -h dist/nephila-*-cp311-abi3-*.whl

.PHONY: wheels-portable
wheels-portable: $(STAMP)  ##+ wheels for other Linux machines, in dist/portable/, linked by zig for glibc 2.28 (ARGS='aarch64 x86_64'; needs rustup target add; --run ROOT: tried by qemu-user)
	@$(BIN)/python -m tools.portable_wheels $(or $(ARGS),aarch64 x86_64)

.PHONY: chart-packages
chart-packages: $(DEV)  ##+ package both charts into dist/ as .tgz and .oci.tar, signed with the gpg key that NEPHILA_SIGNING_KEY names
	@$(BIN)/python -m tools.release --charts $(ARGS)

.PHONY: release
release: $(DEV)  ## make release VERSION=1.2.3: the number in all places, wheel, chart, SBOM and checksums in dist/, a commit and a tag; pushes nothing
	@$(BIN)/python -m tools.release '$(VERSION)' $(ARGS)

.PHONY: samples
samples: $(DEV)  ##+ write the frozen sample of every format again: only when a format number rises (docs/formats.md)
	@PYTHONPATH=$(CURDIR)/services:. $(BIN)/python -m tests.formats.samples
	@$(BIN)/buf build --exclude-source-info -o proto/baseline.binpb

.PHONY: schema
schema: $(DEV)  ## write docs/*.schema.json, docs/openapi.json, docs/configuration.md, docs/metrics.md and the reasons in docs/explain.md
	@$(BIN)/python tools/schemas.py
	@$(BIN)/python tools/openapi.py
	@$(BIN)/python tools/configuration.py
	@$(BIN)/python -m tools.metrics_reference
	@$(BIN)/python -m tools.reasons_reference
	@PYTHONPATH=services:. $(BIN)/python -m tools.man_page
	@$(BIN)/python -m tools.state_diagrams
	@PYTHONPATH=services:. $(BIN)/python -m tools.package_graph

chart: $(DEV)  ## write what charts/nephila generates: schema and table of its values, dashboards, CRDs
	@$(BIN)/python -m tools.chart_values
	@$(BIN)/python -m tools.dashboards
	@PYTHONPATH=services $(BIN)/python -m tools.crds

format: $(DEV)  ## ruff format, and the faults that ruff repairs itself
	@$(BIN)/ruff format services tests benchmarks tools
	@$(BIN)/ruff check --fix services tests benchmarks tools

clean:           ## remove what was built here
	rm -rf $(VENV) build dist *.egg-info services/*.egg-info services/nephila/native/core/target
