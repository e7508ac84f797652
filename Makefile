# make demo   simulates travel planning and tutoring, prints reports, draws figures into demo-figures/
# make demo-postgres  plays tutoring from two processes on a PostgreSQL server of its own, and reports
# make workbench  shows the log of make demo, or one made like it, in the browser; PORT=8730
# make check  format, lint, types (both also of the pages' scripts), directions of import
# make fast   the tests that start no programs: less than a minute
# make test   all tests, after it has installed what they need; make test ARGS="-k rounds" a part of them,
#             ARGS="--cpu 20" lists the tests that used most CPU
# make science  plays the study of agents on held-out instances, and writes docs/science.md and the tables
#             of docs/agents.md and docs/gallery: some 18 minutes of one core; ARGS=--tiny a few sessions
# make soak   the long tests: hundreds of kills, many sessions, fresh seeds; SEED=7 repeats a run;
#             make soak N=1000000 runs the simulator only, that many times, on all cores
# make mutants   breaks the engine in known ways, and says how soon the simulator notices each;
#             make mutants SAMPLE=200 draws mutants from all that there are, ARGS=--tests runs the tests too
# make adapters  plays 100 episodes each through Gymnasium, verifiers and TRL, which it installs into .venv-adapters/: 6 GB
# make bench  speeds, as ratios to the least that the same work can cost; in half an hour; QUICK=1 a tenth to a third of the work
# make bench-check   the same, compared with figures that are kept: fails on more than 10 % less
# make release-check   make bench-check, then builds wheel and sdist, checks them, and installs the wheel
# make pictures  records the terminal and the workbench anew, for README and pages
# make docs   builds the documentation into build/site/
# make setup  only makes .venv and installs Duolog into it, for development
#
# All need Python 3.11 or later, with pip and venv; PYTHON=/path/to/python3.12 chooses which.

PYTHON ?= python3
ARGS ?=
SEED ?=
PORT ?= 8730
# Tests run in this many processes: more than there are cores, since some wait for programs and browsers
# that they start, of which quick ones need none; make test WORKERS=0 runs them in one, for a debugger.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + $(MORE))
MORE := 2
fast: MORE := 1

VENV := .venv
RUN := $(VENV)/bin/python -m

# A stamp says what is installed. It is renewed when pyproject.toml changes, and its name tells
# where the checkout was, since an installation points at one directory.
HERE := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d ' ' -f 1)
WITH_PLOTS := $(VENV)/.duolog-plots-$(HERE)
WITH_DEV := $(VENV)/.duolog-dev-$(HERE)

# Else each program that a test starts compiles all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for the disk at each append, so their files are in memory where there is room for them.
MEMORY := /dev/shm
ROOM := $(shell test -w $(MEMORY) && df -Pk $(MEMORY) | awk 'NR == 2 && $$4 > 4000000 { print "enough" }')

PYTEST = $(if $(ROOM),TMPDIR=$(MEMORY) )$(RUN) pytest -n $(WORKERS) --dist worksteal -o tmp_path_retention_policy=failed

# Who plays in the demo: the baselines of the agent alone and the human alone, and three agents.
PLAYERS := auto,human-alone,one-stage,two-stage,adaptive

.PHONY: scripts help demo demo-postgres workbench check format lint types imports fast test science soak mutants bench bench-check
.PHONY: release-check pictures docs setup adapters
.NOTPARALLEL:

help:
	@sed -n 's/^# make /make /p' Makefile

demo: $(WITH_PLOTS)
	$(RUN) duolog run travel --agents $(PLAYERS) --users proactive \
	    --sessions 30 --seed 7 --concurrency 32 --log demo.db
	$(RUN) duolog run tutoring --agents $(PLAYERS) --users proactive \
	    --sessions 30 --seed 7 --concurrency 32 --log demo-tutoring.db
	$(RUN) duolog report demo-tutoring.db --compare one-stage,two-stage,adaptive
	@$(RUN) duolog report demo.db --figures demo-figures/travel --force > /dev/null
	@$(RUN) duolog report demo-tutoring.db --figures demo-figures/tutoring --force > /dev/null
	@echo
	@echo "Above: travel, tutoring, and the agents in tutoring compared, instance by instance."
	@echo "The logs are demo.db and demo-tutoring.db, the figures are in demo-figures/. To go on:"
	@echo "    . $(VENV)/bin/activate"
	@echo "    duolog tour"
	@echo "    duolog show demo.db travel-3-one-stage"

# Each process does what the other has not begun.
demo-postgres: $(WITH_DEV)
	@$(RUN) duolog.testing.postgres_server sh -c '\
	    play() { $(RUN) duolog run tutoring --agents one-stage,two-stage,adaptive --users proactive \
	        --sessions 10 --seed 7 --log "$$DUOLOG_POSTGRES"; }; \
	    play & other=$$!; play && wait $$other && $(RUN) duolog report "$$DUOLOG_POSTGRES"'

workbench: $(WITH_DEV) | demo.db
	$(RUN) duolog workbench demo.db --port $(PORT)

demo.db: | $(WITH_DEV)
	$(RUN) duolog run travel --agents one-stage,two-stage,adaptive --users proactive,lazy \
	    --patience 2 --sessions 20 --seed 7 --concurrency 32 --log demo.db

check: format lint types scripts imports

format: $(WITH_DEV)
	$(RUN) ruff format --check .

# The types of the pages' scripts, which TypeScript reads in their comments, and their format, by Prettier.
scripts:
	.ci/scripts/check

lint: $(WITH_DEV)
	$(RUN) ruff check --output-format concise .

# In one run: two would each read what the package and its libraries say of their types.
types: $(WITH_DEV)
	$(RUN) mypy $(CURDIR)/build/editable/duolog tests benchmarks .ci

imports: $(WITH_DEV)
	$(VENV)/bin/lint-imports --no-cache

fast: $(WITH_DEV)
	$(PYTEST) -m 'not slow' $(ARGS)

test: $(WITH_DEV)
	@sh .ci/programs
	$(PYTEST) $(ARGS)

science: $(WITH_DEV)
	$(RUN) duolog.benchmarks.science $(ARGS)

# In one process, so that nothing else disturbs who is killed when, and each failure is shown at once.
soak: $(WITH_DEV)
ifdef N
	$(RUN) duolog.benchmarks.campaign --runs $(N) --processes $$(nproc) $(if $(SEED),--first $(SEED))
else
	$(RUN) pytest -m 'soak or hypothesis' $(if $(SEED),--seed $(SEED)) $(ARGS)
endif

mutants: $(WITH_DEV)
ifdef SAMPLE
	$(RUN) duolog.benchmarks.mutation --sample $(SAMPLE) $(if $(SEED),--seed $(SEED)) --processes $$(nproc) $(ARGS)
else
	$(RUN) duolog.benchmarks.mutant_hunt --processes $$(nproc) $(ARGS)
endif

# inspect_ai and eventsourcing, which it compares with, are measured where they are installed.
bench: $(WITH_DEV)
	$(RUN) duolog.benchmarks.table $(if $(QUICK),--quick) $(ARGS)

bench-check: $(WITH_DEV)
	$(RUN) duolog.benchmarks.table --check $(if $(QUICK),--quick) $(ARGS)

# Apart from .venv and from each other, since the frameworks bring gigabytes, and versions of their own.
ADAPTERS := gymnasium verifiers trl
adapters: $(ADAPTERS:%=adapters-%)

adapters-%:
	@sh .ci/venv '$(PYTHON)' .venv-adapters/$*
	.venv-adapters/$*/bin/python -m pip install -qq --disable-pip-version-check --editable '.[$*]'
	.venv-adapters/$*/bin/python -P -m duolog.benchmarks.adapters $* $(ARGS)

release-check: $(WITH_DEV)
	$(MAKE) --no-print-directory bench-check ARGS=
	$(RUN) pytest -m release $(ARGS)

pictures: $(WITH_DEV)
	$(RUN) duolog.benchmarks.recordings

docs: $(WITH_DEV)
	$(RUN) duolog.benchmarks.reference
	$(RUN) sphinx --fail-on-warning --keep-going --quiet -b html -d build/doctrees docs build/site
	@echo "The documentation is in build/site/index.html"

setup: $(WITH_DEV)

$(WITH_PLOTS): pyproject.toml | $(VENV)
	@echo "Installing Duolog and what it needs into $(VENV) ..."
	@sh .ci/install $(VENV) plots
	@touch $@

$(WITH_DEV): pyproject.toml | $(VENV)
	@echo "Installing Duolog and what its tests need into $(VENV) ..."
	@sh .ci/install $(VENV) dev
	@touch $@ $(WITH_PLOTS)

# Not a file's rule: an environment that is there is checked too, before anything is installed.
.PHONY: $(VENV)
$(VENV):
	@sh .ci/venv '$(PYTHON)' '$(VENV)'
