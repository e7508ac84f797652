# make demo   simulates travel planning, prints the report, draws figures into demo-figures/
# make test   runs the test suite; make test ARGS="-k rounds" a part of it
# make setup  only makes .venv and installs Duolog into it, for development
#
# All need Python 3.11 or later, with pip and venv; PYTHON=/path/to/python3.12 chooses which.

PYTHON ?= python3
ARGS ?=

VENV := .venv
# -P keeps this directory, whose packages are Duolog's own parts, off the import path.
RUN := $(VENV)/bin/python -P -m

# A stamp says what is installed. It is renewed when pyproject.toml changes, and its name tells
# where the checkout was, since an installation points at one directory.
HERE := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d ' ' -f 1)
WITH_PLOTS := $(VENV)/.duolog-plots-$(HERE)
WITH_DEV := $(VENV)/.duolog-dev-$(HERE)

.PHONY: help demo test setup
.NOTPARALLEL:

help:
	@sed -n 's/^# make /make /p' Makefile

demo: $(WITH_PLOTS)
	$(RUN) duolog run travel --agents auto,one-stage,two-stage,adaptive --users proactive \
	    --sessions 30 --seed 7 --concurrency 32 --log demo.db
	$(RUN) duolog report demo.db --figures demo-figures

test: $(WITH_DEV)
	$(RUN) pytest $(ARGS)

setup: $(WITH_DEV)

$(WITH_PLOTS): pyproject.toml | $(VENV)
	@echo "Installing Duolog and what it needs into $(VENV) ..."
	@$(RUN) pip install -qq --disable-pip-version-check --editable '.[plots]'
	@touch $@

$(WITH_DEV): pyproject.toml | $(VENV)
	@echo "Installing Duolog and what its tests need into $(VENV) ..."
	@$(RUN) pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(WITH_PLOTS)

# Not a file's rule: an environment that is there is checked too, before anything is installed.
.PHONY: $(VENV)
$(VENV):
	@sh .ci/venv '$(PYTHON)' '$(VENV)'
