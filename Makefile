# The two commands of the README are `make lab` and `make test`. Every target can be run again.
SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTEST := $(BIN)/pytest -p no:cacheprovider
# Under sudo the engine and images that are in the caller's cache are used, not made again.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo env SUPERNODE_CACHE=$(or $(SUPERNODE_CACHE),$(HOME)/.cache/supernode))
STAGE := tools/stage

.PHONY: help setup engine lab lab-stop check test unit stacks wheel lab-test core operations kills lies qemu nccl owners bench clean

help:  ## say what the targets are
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup:  ## install what supernode needs (Debian packages, uv, the locked environment)
	@tools/setup

engine: setup  ## find, fetch or build the Pulumi engine
	@$(BIN)/supernode engine

lab: engine  ## bring up the lab environment end to end; prints where the report is
	@$(SUDO) $(BIN)/supernode lab up lab

lab-stop:  ## stop the lab; leaves nothing behind
	@$(SUDO) $(BIN)/supernode lab stop lab

check: setup  ## ruff, mypy, import rules, ansible-lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/ansible-lint --offline

unit: setup  ## unit, golden, error, role and rule tests: no root, no network
	@$(PYTEST) -q -n 4 --dist loadfile

stacks: engine  ## the Pulumi program with the real engine
	@$(PYTEST) -q -m engine -n 3

wheel: setup  ## the wheel in an empty folder: check, design, plan
	@tools/wheel-test

lab-test: engine  ## each kind of environment end to end in the lab, with faults; needs root
	@$(SUDO) $(PYTEST) -q -m lab --durations=12

core: engine  ## what the lab and the checks are made of, and a run that is killed or held up; needs root
	@$(SUDO) $(PYTEST) -q -m core --durations=12

operations: engine  ## the life of a cluster in the lab: exchange, lost state, survey, shares, every kill; needs root
	@$(SUDO) $(PYTEST) -q -m operations --durations=12

kills: engine  ## thirty kills of a run in the lab, each made whole by the next; needs root; the table is in kills.txt
	@$(SUDO) KILLS_TABLE=$(CURDIR)/kills.txt $(PYTEST) -q -s -m kills tests/lab/test_kills.py

lies: engine  ## a bring-up of twelve machines in the lab, each with a controller that lies in its own way; needs root
	@$(SUDO) $(PYTEST) -q -m lies tests/lab/test_bmc_lies.py

qemu: setup  ## the deploy ISO in a virtual machine with UEFI, from an empty disk to a login, and by HTTP boot
	@$(SUDO) $(PYTEST) -q -m qemu

nccl: setup  ## our NCCL files read by the real library, without a GPU; fetches 344 MB
	@.venv-uv/bin/uv run --frozen --extra nccl pytest -q -p no:cacheprovider tests/nccl

owners: setup  ## the exports read back by infragraph, pydot and Slurm; fetches 20 MB
	@$(PYTEST) -q -m owners tests/unit/design/test_exports_owners.py

bench: engine  ## ratios against named peers
	@$(SUDO) $(BIN)/python -m pytest -q -s -o python_files='*.py' tests/bench -m ''

test:  ## check + every test; prints the minutes of each stage
	@$(STAGE) --reset
	@$(STAGE) set-up $(MAKE) --no-print-directory engine
	@$(STAGE) static $(MAKE) --no-print-directory check
	@$(STAGE) unit $(MAKE) --no-print-directory unit
	@$(STAGE) wheel $(MAKE) --no-print-directory wheel
	@$(STAGE) owners $(MAKE) --no-print-directory owners
	@$(STAGE) stacks $(MAKE) --no-print-directory stacks
	@$(STAGE) lab $(MAKE) --no-print-directory lab-test
	@$(STAGE) core $(MAKE) --no-print-directory core
	@$(STAGE) qemu $(MAKE) --no-print-directory qemu
	@$(STAGE) --summary

clean:  ## remove what was built here (the lab's state stays until lab-stop)
	@rm -rf .venv .venv-uv dist .mypy_cache .ruff_cache .pytest_cache
