# Every target works on a fresh checkout: it creates .venv/ and installs the dependencies.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo play test test-all test-loaded attack package bench lint docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      a CartPole experiment: table, picture, page (minutes)"
	@echo "make play      the playground: a frozen and an adapting agent side by side in the browser"
	@echo "make test      linters, types, import rules and all tests"
	@echo "make test-all  the same, with the slow tests and the attack"
	@echo "make test-loaded  the tests beside eight busy processes"
	@echo "make attack    kills, mutated files, hostile frames, poisoned numbers (15 minutes)"
	@echo "make package   wheel and sdist, tried in new environments without extras (minutes)"
	@echo "make bench     the engine compared with the loop a user would write"
	@echo "make lint      linters, types and import rules only"
	@echo "make docs      build the documentation into site/"

$(READY): pyproject.toml constraints.txt
	@echo "installing into .venv (a few minutes, about 2 GB with torch) ..."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(READY)

demo: $(READY)
	rm -rf demo
	@for agent in ppo dqn; do for method in frozen napping; do \
	  echo "running $$agent with $$method ..."; \
	  $(BIN)/napping run cartpole --agent $$agent --method $$method --trials 256 --seed 1 --out demo/$$agent-$$method > /dev/null || exit 1; \
	done; done
	$(BIN)/napping report demo/ppo-frozen demo/ppo-napping demo/dqn-frozen demo/dqn-napping --out demo

play: $(READY)
	$(BIN)/napping play

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs README.md CONTRIBUTING.md CHANGELOG.md

test: lint
	$(BIN)/pytest -n 2 -m "not slow"

test-all: lint
	$(BIN)/pytest -n 2
	$(BIN)/python -m tests.attack

test-loaded: $(READY)
	$(BIN)/python tests/under_load.py

attack: $(READY)
	$(BIN)/python -m tests.attack

package: $(READY)
	$(BIN)/python tests/fresh_install.py

bench: $(READY)
	$(BIN)/napping bench

docs: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@for domain in cartpole mountaincar crossroad angrybirds; do \
	  echo "writing the report page of $$domain ..."; \
	  $(BIN)/napping report docs/paper/$$domain.parquet --out docs/paper/$$domain > /dev/null || exit 1; \
	done
	$(BIN)/zensical build --clean

clean:
	rm -rf .venv demo site .numba_cache
