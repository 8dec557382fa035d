# Fresh clone to result: `make demo`. Fresh clone to green: `make test`. Each sets everything up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Small networks run fastest on one thread; the tests use two processes instead.
export OMP_NUM_THREADS ?= 1

# The results of record; `make -k results` continues after a part that fails.
ABLATIONS := table-embedding table-candidates table-neighbors table-kappa table-beta table-gamma
RESULTS := results-synthetic results-synthetic-paper results-pbc-event results-pbc-stage \
	results-physionet2012 results-direct results-full-history results-few-subjects results-guarantee results-ras-fidelity results-variants results-ablations results-paper

.PHONY: install demo chromium test soak soak-service screenshots test-quick test-slow bench bench-quick bench-large lint types format clean results forget-results $(RESULTS)

install: $(STAMP)

# torch first, with an exact version: a range would install a build for graphics cards.
$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): downloads about 2 GB, takes some minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[data,cde,tune,dask,faiss,service,dev]'
	touch $(STAMP)

demo: install
	$(BIN)/nocta demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

# The page is tested in a real browser where there is one, or where it may be installed.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing chromium for the tests of the page."; \
	    (apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 || \
	      echo "It could not be installed; the tests of the page are skipped."; \
	  else \
	    echo "No chromium; the tests of the page are skipped."; \
	  fi

test: lint types chromium
	$(BIN)/pytest -q -n 2 --durations=15

# Under a minute: no lint, no types, and none of the tests that tests/conftest.py calls medium.
test-quick: install
	$(BIN)/pytest -q -n 2 -m "not slow and not medium" tests src/nocta/core src/nocta/tables

test-slow: install
	$(BIN)/pytest -q -n 2 -m slow

# The long form of the service's fault, load and bad-input tests; writes results/service.md.
soak-service: install chromium
	$(BIN)/python benchmarks/soak_service.py --out results/service.md

# The pictures of the page in the docs, made by the same browser as the tests.
screenshots: install chromium
	$(BIN)/python docs/take_screenshots.py

# Each part continues where it stopped and makes its tables and reports from the finished jobs;
# results/README.md describes the parts. `make forget-results results` runs everything again.
results: $(RESULTS)

forget-results:
	rm -rf results/*/jobs results/direct/*/jobs results/ablations/runs results/paper/runs results/variants/runs results/variants/variants.csv

REFERENCES := static,random,periodic,first-visit,nothing,everything

results-synthetic: install
	$(BIN)/nocta compare synthetic --seeds 5 --points 12 \
	  --methods nocta-amortized,nocta-contrastive,dime,asac,difa,ras,as,static,random \
	  --cost-weights 0.92,0.86,0.82,0.76,0.70,0.62,0.54,0.46,0.40 --out results/synthetic

results-synthetic-paper: install
	$(BIN)/nocta compare synthetic --preset paper --seeds 5 \
	  --methods nocta-amortized,nocta-contrastive,dime,asac,difa,ras,as,static,random \
	  --cost-weights 0.57,0.42,0.34,0.23 --out results/synthetic-paper

results-pbc-event: install
	$(BIN)/nocta compare pbc-event --methods nocta-amortized,nocta-contrastive,$(REFERENCES),dime,asac --seeds 10 --out results/pbc-event
	$(BIN)/nocta compare pbc-event --methods difa,ras,as --seeds 4 --out results/pbc-event-more
	$(BIN)/nocta compare pbc-event --methods static -o static.choose_on=training --seeds 10 --out results/pbc-event-static
	for other in more static; do $(BIN)/python benchmarks/across.py results/pbc-event results/pbc-event-$$other || exit 1; done

results-pbc-stage: install
	$(BIN)/nocta compare pbc-stage --methods nocta-amortized,nocta-contrastive,$(REFERENCES),dime,asac --seeds 10 --out results/pbc-stage
	$(BIN)/nocta compare pbc-stage --methods difa,ras,as --seeds 4 --out results/pbc-stage-more
	$(BIN)/nocta compare pbc-stage --methods static -o static.choose_on=training --seeds 10 --out results/pbc-stage-static
	for other in more static; do $(BIN)/python benchmarks/across.py results/pbc-stage results/pbc-stage-$$other || exit 1; done

# Needs files that you download: docs/how-to/public-data.md.
results-physionet2012: install
	$(BIN)/nocta compare physionet2012 --methods nocta-amortized,$(REFERENCES),dime,asac,ras,as --seeds 5 --out results/physionet2012

# NOCT-Direct against fixed schedules and ASAC; files that you download.
results-direct: install
	for name in physionet2012 cmapss; do \
	  $(BIN)/nocta compare $$name --methods nocta-direct,asac,static,static+adapt --seeds 5 --out results/direct/$$name || exit 1; done
	$(BIN)/python benchmarks/direct_steps.py physionet2012 cmapss

results-ras-fidelity: install
	$(BIN)/python benchmarks/ras_fidelity.py --seeds 1 --methods ras

# Uses the predictors that the comparisons above kept, if they exist.
results-full-history: install
	for name in pbc-event pbc-stage; do \
	  $(BIN)/python benchmarks/full_history.py $$name --seeds 10 --kept results/$$name || exit 1; done
	$(BIN)/python benchmarks/full_history.py physionet2012 --seeds 5 --kept results/physionet2012

results-few-subjects: install
	$(BIN)/python benchmarks/few_subjects.py pbc-event pbc-stage --seeds 10

# Is the promise of `nocta choose --risk` kept? 500 repetitions with a known true risk.
results-guarantee: install
	$(BIN)/python benchmarks/guarantee.py

results-variants: install
	$(BIN)/python benchmarks/variants.py --exact
	$(BIN)/python benchmarks/variants.py

# Tables that share jobs have one folder; |O| = 10,000 takes longest.
results-ablations: install
	for name in $(ABLATIONS); do $(BIN)/nocta reproduce $$name --seeds 3 --out results/ablations || exit 1; done

# Read from the folders above, or done within minutes.
results-paper: install
	$(BIN)/nocta reproduce table-synthetic --from results/synthetic --out results/paper
	$(BIN)/nocta reproduce figure-performance --from results/synthetic --out results/paper
	$(BIN)/nocta reproduce figure-dynamics --from results/pbc-event --out results/paper
	$(BIN)/nocta reproduce theory --out results/paper
	$(BIN)/nocta reproduce table-complexity --out results/paper

# Speed and scale: a table of ratios, results/bench/ and docs/explanation/scaling.md. Measurements
# are kept; `$(BIN)/python benchmarks/bench.py --again` repeats them.
bench: install
	$(BIN)/python benchmarks/bench.py

bench-quick: install
	$(BIN)/python benchmarks/bench.py --quick

# Kills at random moments and many decisions, for some hours; writes results/reliability.md. With
# `DISK=/mnt/small`, a mounted file system of about 1 MB, full disks too.
soak: install
	$(BIN)/python benchmarks/soak.py --kills 30 $(if $(DISK),--disk $(DISK)) --out results/reliability.md

# Cohorts of up to a million subjects take hours. Rows in results/bench/large.csv are kept.
bench-large: install
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/bench.py --table

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python docs/draw_imports.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
