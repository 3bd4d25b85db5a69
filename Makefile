# Everything a developer or a CI needs. Python 3.11 or later and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
FRAMEWORKS := $(VENV)/.frameworks
OLDEST := .venv-oldest
SHIPPED := .venv-shipped
EXTRAS := cli,http,mcp,onnx,postgres,project,server,watch

.PHONY: demo test test-all test-rest test-install test-oldest torture sbom lint house bench docs site dist clean
.DEFAULT_GOAL := test

# The demo needs the package and its command line, and none of the tests' tools. Compiling all modules would
# take longer than what the demo uses of them.
$(VENV)/.demo: pyproject.toml constraints.txt
	@echo "Installing germane and its command line into $(VENV): about 100 MB, once."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt -e '.[cli]'
	touch $@

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info[:2] < (3, 15) else "germane needs Python 3.11 to 3.14; set PYTHON=python3.12, for instance.")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt --group dev -e '.[cli,crypto,http,onnx,postgres,project,watch]'
	touch $@

# The frameworks of the adapters, and what builds the site and the packages.
$(FRAMEWORKS): $(STAMP)
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt --group frameworks --group docs --group package
	touch $@

demo: $(VENV)/.demo ## Load the demo memory, assemble three contexts, explain them.
	$(BIN)/germane demo --project .

test: $(FRAMEWORKS) ## The test suite, in random order, without what takes long.
	GERMANE_TESTS=quick $(BIN)/python -m pytest -n auto

test-all: test test-rest ## All tests.

test-rest: $(FRAMEWORKS) ## What takes long: killed processes, restarted servers, properties with all examples.
	GERMANE_TESTS=rest $(BIN)/python -m pytest -n auto

test-oldest: ## The quick tests with the oldest release that each range of the dependencies allows.
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check 'pip>=25.1'
	$(OLDEST)/bin/python tools/oldest.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check -c $(OLDEST)/oldest.txt --group test -e '.[$(EXTRAS)]'
	GERMANE_TESTS=quick $(OLDEST)/bin/python -m pytest -n auto --ignore tests/frameworks --ignore tests/house --ignore tests/docs

torture: $(FRAMEWORKS) ## The promises at scale, about an hour; SECONDS_EACH=10 makes it short.
	PYTHONPATH=tests $(BIN)/python -m torture --seconds $(or $(SECONDS_EACH),300)

sbom: $(FRAMEWORKS) ## What an installation with these extras consists of, as CycloneDX, and the licences.
	$(BIN)/python -m pip install -qq --disable-pip-version-check --group supply
	test -x $(SHIPPED)/bin/python || $(PYTHON) -m venv $(SHIPPED)
	$(SHIPPED)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt '.[$(EXTRAS)]'
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o dist/germane.cdx.json $(SHIPPED)
	$(BIN)/pip-licenses --python $(SHIPPED)/bin/python --from mixed --format markdown --output-file dist/licences.md

lint: $(FRAMEWORKS) ## Format, lint and types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MYPYPATH=bench $(BIN)/mypy bench

house: $(STAMP) ## The package's totals beside their limits.
	PYTHONPATH=tests $(BIN)/python -m house.totals

bench: $(STAMP) ## Speed, side by side with peers; nothing is asserted.
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/peers.py

docs: $(FRAMEWORKS) ## Write the generated pages of the reference anew.
	$(BIN)/python tools/api_reference.py
	$(BIN)/python tools/cli_reference.py
	$(BIN)/python tools/http_reference.py
	$(BIN)/python tools/decay_curve.py
	$(BIN)/python tools/context_picture.py

site: $(FRAMEWORKS) ## The documentation as a site in .site, with each broken link as an error.
	$(BIN)/python tools/build_site.py

dist: $(FRAMEWORKS) ## The wheel and the source archive in dist; ADDRESS=https://… is the public repository's.
	rm -rf dist
	GERMANE_ADDRESS=$(ADDRESS) SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m check_wheel_contents dist/*.whl

test-install: $(FRAMEWORKS) ## The wheel in empty environments: without extras, with each, and with all.
	$(BIN)/python tools/test_install.py

clean:
	rm -rf $(VENV) $(OLDEST) $(SHIPPED) .mypy_cache .ruff_cache .pytest_cache .hypothesis
