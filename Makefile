# `make help` lists what there is. The work is done by tools/*.sh and CMake; this names the steps.
SPEC ?= sweeps/quickstart.yaml
ARGS ?=
RESULTS ?= $(patsubst %/plan.json,%,$(wildcard results/*/*/plan.json data/recorded/*/*/plan.json))
CUDA ?= 1
ARCHS ?=
PREFIX ?= /usr/local
MATH_LIBS ?= 1
BUNDLE_TESTS ?= 0
SECONDS ?= 60
MINUTES ?= 25

# The shell gets SPEC as it was typed, whatever a file's name contains: it is not part of a recipe's
# text, and make does not expand a $ in it.
override SPEC := $(value SPEC)
export SPEC

comma := ,
options := -DLLOYD_CUDA=$(if $(filter 0,$(CUDA)),OFF,ON) "-DLLOYD_CUDA_ARCHITECTURES=$(ARCHS)"

.DEFAULT_GOAL := all
.PHONY: all setup run record peers test sanitize races fuzz report readme docs bundle dist install \
  format lint clean help system toolkit

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile | expand -t 18
	@echo "Variables: SPEC=file ARGS='options of run_experiment' RESULTS=dir[,dir]" \
	  "PREFIX=dir MATH_LIBS=0 BUNDLE_TESTS=1 SECONDS=60" \
	  "MINUTES=25 SPECS='names'"
	@echo "  CUDA=0 (build without), ARCHS='90' (CUDA architectures;" \
	  "'portable': all from Turing on), PYTHON=… JOBS=…"

all: setup ## set up what is missing, build build/run_experiment
	@tools/build.sh build run_experiment $(options)

run: all ## run SPEC and draw its figures
	@tools/run.sh "$$SPEC" $(ARGS)

record: all ## record all specs of data/recorded anew, or SPECS; stops after MINUTES, resumes
	@.venv/bin/python tools/record.py --minutes $(MINUTES) $(SPECS)

peers: ## the libraries that run beside our CPU versions, in .venv-peers
	@tools/peers.sh

test: setup ## every test that this machine can run
	@tools/test.sh $(options)

sanitize: setup ## every CUDA version under compute-sanitizer (needs a GPU)
	@tools/build.sh build kernels_tests $(options)
	@tools/sanitize.sh

races: ## the kernels' tests on the CPU under clang's ThreadSanitizer
	@tools/setup-system.sh fuzz
	@tools/races.sh

fuzz: ## the readers on generated input, SECONDS each, with clang's libFuzzer and sanitizers
	@tools/setup-system.sh fuzz
	@tools/fuzz.sh $(SECONDS)

report: .venv/.stamp ## report/index.html: your results and the recorded runs, or RESULTS
	@.venv/bin/python -m analysis report $(subst $(comma), ,$(RESULTS)) -o report

readme: all ## the tables and figures between markers in all pages, from runs and program
	@for file in $$(grep -lE '^<!-- (table|figure):BEGIN' *.md */*.md */*/*.md); do \
	  .venv/bin/python -m analysis readme $$file data/recorded --program build/run_experiment \
	    $(if $(CHECK),--check) || exit; \
	done

bundle: setup ## an archive in dist/ that runs on a GPU node without building
	@tools/setup-system.sh bundle
	@MATH_LIBS=$(MATH_LIBS) BUNDLE_TESTS=$(BUNDLE_TESTS) \
	  tools/bundle.sh -DLLOYD_CUDA=$(if $(filter 0,$(CUDA)),OFF,ON) \
	  "-DLLOYD_CUDA_ARCHITECTURES=$(or $(ARCHS),portable)"

docs: readme ## everything in the documentation that the program or recorded runs give
	@build/run_experiment --schema >experiments/sweeps/spec.schema.json
	@echo "The build has written the man page: build/share/man/man1/run_experiment.1"

dist: setup ## what a release publishes, in dist/: bundle, wheel, source, recorded runs, checksums
	@tools/setup-system.sh bundle
	@MATH_LIBS=$(MATH_LIBS) tools/dist.sh -DLLOYD_CUDA=$(if $(filter 0,$(CUDA)),OFF,ON) \
	  "-DLLOYD_CUDA_ARCHITECTURES=$(or $(ARCHS),portable)"

install: all ## install into PREFIX
	@cmake --install build --prefix "$(PREFIX)"

format: .venv/.stamp ## format the C++ and Python code
	@tools/lint.sh --fix

lint: setup ## check formats, and lint
	@tools/setup-system.sh lint
	@tools/lint.sh $(options)

clean: ## remove what was built (keeps .venv and results)
	rm -rf build build-* dist report

setup: system .venv/.stamp $(if $(filter 0,$(CUDA)),,toolkit)

system:
	@tools/setup-system.sh

.venv/.stamp: requirements.txt tools/setup-python.sh | system
	@PYTHON=$(PYTHON) tools/setup-python.sh

toolkit: .venv/.stamp
	@tools/setup-cuda.sh
