# Each target calls one tool; `make` alone lists them.

PYTHON = $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
PY := .venv/bin/python
# The scripts and links of .venv hold the path of this folder: after a move it is made again.
MOVED := $(shell test ! -L .venv && grep -qsvxF "$$(pwd -P)" .venv/ready && echo moved)
# figures 6 and 7 need a GPU: experiments/README.md
F ?= fig3 fig4 fig5 fig8 fig9 beyond recorded

# what students handed in, and their marks
CLASS := class submitted autograded feedback exchange gradebook.db archive

.DEFAULT_GOAL := help
.PHONY: moved help course test test-all cover book pdf cards lab release handout class extend collect grade report feedback grades figures wasm lint clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

.venv/ready: requirements.txt pyproject.toml $(wildcard src/*/pyproject.toml) $(MOVED)
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or later was found. Install one (python.org, or your system's package manager), then run make again."; exit 1; }
	@$(if $(MOVED),rm -rf .venv)
	@$(PYTHON) -P tools/install.py
	@pwd -P >$@

.venv/dev: requirements-dev.txt .venv/ready
	@$(PYTHON) -P tools/install.py --dev
	@touch $@

course: .venv/ready ## build the site, release, grade a sample class, print the gradebook
	@$(PY) -m tools.course

test: .venv/dev ## run the tests, the strict book build among them
	@$(PY) -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not slow"

test-all: .venv/dev ## run the slow tests, too, as before a release (wheels, hub, hostile class)
	@$(PY) -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

cover: .venv/dev ## the same, and count which lines of optdl were run (slower)
	@$(PY) -m pytest -n 2 --dist loadgroup --no-loadscope-reorder --cov

book: .venv/ready ## build the site
	@$(PY) -m tools.site.book

pdf: .venv/ready ## print the whole book as one PDF (needs Chromium or Chrome)
	@$(PY) -m tools.site.pdf

cards: .venv/ready ## write the cards of all lessons as a file for Anki
	@$(PY) -m tools.site.cards

lab: .venv/ready ## open JupyterLab with nbgrader on the released notebooks
	@$(PY) -m tools.classroom.lab

release: .venv/ready ## make exercises/ from solutions/ (A=erm for one, DUE="2027-03-01 23:59")
	@$(PY) -m tools.classroom.release $(A) $(if $(DUE),--due "$(DUE)")

handout: .venv/ready ## pack a copy for students (HOW=upload, exchange or hub to hand in)
	@$(PY) -m tools.classroom.handout $(if $(HOW),--how "$(HOW)") $(if $(ID),--id "$(ID)")

class: .venv/ready ## enter a class list (LIST=class.csv)
	@$(PY) -m tools.classroom.roster "$(LIST)" $(if $(ID),--id "$(ID)")

extend: .venv/ready ## give a student more time (A=erm STUDENT=ada UNTIL="2027-03-08 23:59")
	@$(PY) -m tools.classroom.release "$(A)" --student "$(STUDENT)" --due "$(UNTIL)"

collect: .venv/ready ## take in a zip of Moodle's or Canvas's (A=erm ZIP=submissions.zip)
	@$(PY) -m tools.classroom.collect "$(A)" "$(ZIP)" $(if $(SHEET),--sheet "$(SHEET)") $(if $(WHO),--who "$(WHO)")

grade: .venv/ready ## grade what was handed in for one assignment (A=erm)
	@$(PY) -m tools.classroom.grade $(A)

report: .venv/ready ## tell how the class did, and write the page about it (A=erm for one)
	@$(PY) -m tools.classroom.gradebook $(A)

feedback: .venv/ready ## give graded pages back to the students (A=erm)
	@$(PY) -m tools.classroom.feedback $(A)

grades: .venv/ready ## write a file of grades (INTO=file of Moodle's or Canvas's to fill it)
	@$(PY) -m tools.classroom.grades $(A) $(if $(INTO),--into "$(INTO)") $(if $(COLUMN),--column "$(COLUMN)")

figures: .venv/ready ## run what the figures of experiments/ lack, and draw them (F=fig3 for one)
	@for figure in $(F); do $(PY) experiments/$$figure.py || exit $$?; done

wasm: .venv/ready ## build the wheel of gradebox-wasm, Python as WebAssembly, in dist
	@$(PY) -m tools.site.wasm_wheel
	@rm -rf src/gradebox_wasm/build
	@$(PY) -m pip wheel -q --no-deps --no-build-isolation -w dist ./src/gradebox_wasm
	@rm -rf src/gradebox_wasm/build

lint: .venv/dev ## style, types, spelling, workflows
	@code=0; for tool in "ruff check ." "ruff format --check ." mypy codespell_lib; do $(PY) -m $$tool || code=1; done; \
	.venv/bin/actionlint .github/workflows/*.yml || code=1; exit $$code

clean: ## remove all that was built; .venv, work/ and what a class handed in stay
	rm -rf _build dist .hypothesis .mypy_cache .ruff_cache .pytest_cache .benchmarks .coverage*
	@test ! -d build || find build -mindepth 1 -maxdepth 1 $(CLASS:%=! -name %) ! -name gradebox -exec rm -rf {} +
	@test ! -d build/gradebox || find build/gradebox -mindepth 1 -maxdepth 1 ! -name releases -exec rm -rf {} +
	@kept=$$(cd build 2>/dev/null && ls -d $(CLASS) 2>/dev/null | tr '\n' ' '); test -z "$$kept" || echo "Kept in build/: $$kept(remove by hand what you no longer need)"
	find book src tests tools solutions exercises -name __pycache__ -prune -exec rm -rf {} +

Makefile requirements.txt requirements-dev.txt pyproject.toml: ;

.DEFAULT:
	@echo "There is no target '$@'. The targets are:"; $(MAKE) -s help; exit 2
