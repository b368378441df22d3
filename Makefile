# Every target sets up what it needs in .venv; nothing outside this folder is touched.
PYTHON ?= python3
BIN := .venv/bin
DEMO ?= examples/circle_packing agents.count=4 budget.hours=0.025
# Images of containers often set it: then every worker of the tests and every `coral` that they start compiles all source anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: test-slow demo unit test test-agents test-browser test-cluster check lint docs picture pictures bench bench-packing bench-dashboard mutants clean

demo: .venv/.ready
	$(BIN)/coral start --ui $(DEMO)

# No process and no git: seconds.
unit: .venv/.ready
	$(BIN)/python -m pytest -n 2 -m "not slow" tests/unit

# Minutes: all but what is marked slow. More workers than most machines have cores: a test waits for processes half of its time.
test: .venv/.ready
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not slow"

# The slow ones: whole weeks of decisions, a hundred deaths, full disks, every example, every page.
test-slow: .venv/.ready
	$(BIN)/python -m pytest -n 4 --dist worksteal --durations 20 -m slow

# The real agent programs, against a scripted model on loopback; npm installs them into .programs, once.
test-agents: .venv/.ready
	$(BIN)/python tests/support/agent_programs.py
	$(BIN)/python -m pytest -n 4 --maxschedchunk 1 --durations 20 -rfE tests/agents

# The dashboard in Debian's Chromium; pictures of its pages go to build/screenshots. npm installs axe-core into .programs, once.
test-browser: .venv/.browser
	$(BIN)/python tests/support/browser_setup.py
	$(BIN)/python -m pytest -rs tests/browser

# Grades on a real Ray cluster of a head and three nodes, and on a real Slurm, both on loopback.
test-cluster: .venv/.cluster
	$(BIN)/python -m pytest -n 0 --durations 20 -rs tests/cluster

check: lint mutants

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

# The documentation site, in build/site. A dead link, a dead anchor and a page that nothing leads to are errors.
docs: .venv/.docs
	$(BIN)/python docs/site/prepare.py build
	$(BIN)/zensical build --clean --strict --config-file build/zensical.toml

# The pictures in README.md and docs/dashboard.md, each of a real run.
picture: .venv/.ready
	$(BIN)/python docs/site/picture.py

pictures: .venv/.browser
	$(BIN)/python tests/support/browser_setup.py
	PICTURES=write $(BIN)/python -m pytest -n 0 tests/browser/test_documentation.py

bench: .venv/.ready
	$(BIN)/python -m benchmarks

bench-packing: .venv/.ready
	$(BIN)/python -m benchmarks packing

# Needs Chromium. Its tabs are open for an hour: `python -m benchmarks tabs --minutes 5` tries it.
bench-dashboard: .venv/.browser
	$(BIN)/python -m benchmarks dashboard tabs

mutants: .venv/.ready
	nice -n 19 $(BIN)/python tests/mutants.py

clean:
	rm -rf .venv .programs .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

# The stamp is newer than pyproject.toml when the environment has what it names.
.venv/.ready: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: no $(PYTHON) found; make PYTHON=/path/to/python3.11 names one" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "make: $(PYTHON) is not Python 3.11 or later; make PYTHON=python3.12 names another" >&2; exit 1; }
	@command -v git >/dev/null || { echo "make: no git found; install it (apt-get install git)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot make environments; install its venv module (apt-get install python3-venv)" >&2; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

.venv/.browser: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[browser]'
	@touch $@

# virtualenv and uv: without them Ray makes no environment of a grade.
.venv/.cluster: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ray]' virtualenv uv
	@touch $@

.venv/.docs: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@
