## flashsteps: FlashAttention in eight numbered steps
##
##   make run                     install what is missing, build, run the eight steps in order, on the CPU and with their
##                                CUDA kernels executed on the CPU, print the ladder
##   make test                    install what is missing, build, run all tests
##
##   make build                   build the eight programs
##   make step01 ... step08       build and run one step; ARGS='--help' passes arguments
##   make diff FROM=04 TO=05      what changes from one step to another; KERNELS=1 adds the .cu files
##   make docs                    make the site: build/docs/html/index.html, which needs no network
##   make site                    make it, and test it in a Chromium without a window
##   make ptxas                   compile every kernel with nvcc: no spills, no warnings, the tensor-core instructions
##   make gpu                     on a GPU: run the kernel tests and time the kernels; build/gpu.md, build/gpu.json
##   make gpu-check               on a GPU: the kernel tests under compute-sanitizer
##   make bench                   time all steps, forward and backward, and 05 and 07 beside plain Eigen, in about ten minutes;
##                                FULL=1 skips nothing that fits; ARGS='--d 64' passes arguments; build/bench.json, build/bench.svg
##   make compare                 time steps 05 to 08 beside PyTorch's attention on the CPU, with PYTHON=... that has torch
##                                (default: python3); ARGS='--quick' passes arguments; build/compare.md, build/compare.json
##   make starter A=... DIR=...   make the starter of an assignment (docs/assignments); V=... makes a variant's
##   make grade A=... SUBMISSION=...  grade a zip, a folder, or a folder of them (a table); SEED=2 FORMAT=text|json|gradescope|classroom
##                                OUT=file T=2.1 CASE='...' V=variant
##   make hint A=... T=2.1        a hint for a task, as in a starter; LEVEL=1 to 3
##   make submit A=... DIR=...    pack what a student hands in from a starter
##   make kits A=... DIR=...      what GitHub Classroom and Gradescope need
##   make check-assignments       check that the assignments are graded as they should be
##   make ladder                  build, and write the ladder table into README.md
##   make format                  clang-format over the runner, the programs and the tests
##   make clean                   remove what was built
##
##   NO_INSTALL=1 make run        install nothing: list what is missing
##   JOBS=4 make test             compile with 4 processes (default: one for each core)

# Every command of CMake is printed before it runs: each can be typed by hand.

# The targets run one after the other, and each command as if it were typed: the make that CMake starts does not see
# that there is a make above it, and works with the number of processes that -j names.
.NOTPARALLEL:
SHELL := /usr/bin/env
.SHELLFLAGS := -u MAKEFLAGS -u MFLAGS -u MAKELEVEL bash -c

JOBS ?= $(shell nproc)

# The steps are the folders: 01_safe_softmax_3pass, 02_online_softmax_2pass, ...
steps := $(notdir $(wildcard steps/[0-9][0-9]_*))
numbers := $(foreach step,$(steps),$(firstword $(subst _, ,$(step))))
folder = $(notdir $(wildcard steps/$(1)_*))

.PHONY: help run build test docs site ptxas gpu gpu-check bench compare starter grade hint submit kits check-assignments ladder diff format clean
help:
	@sed -n 's/^## \{0,1\}//p' Makefile

run: build $(steps:%=run-%)
	build/ladder

.PHONY: $(steps:%=run-%)
$(steps:%=run-%): run-%: build
	build/$*
	build/$* --device cuda-on-cpu

build:
	@bash .ci/packages run
	cmake --preset cpu
	cmake --build --preset cpu -j $(JOBS)

test:
	@bash .ci/packages test
	cmake --preset test
	cmake --build --preset test -j $(JOBS)
	ctest --preset test

docs:
	@bash .ci/packages docs
	cmake --preset test
	cmake --build --preset docs -j $(JOBS)

site: docs
	@bash .ci/packages site || echo "Without Chromium the tests of the site are skipped." >&2
	ctest --preset site

ptxas:
	@bash .ci/packages test
	cmake --preset test
	cmake --build --preset test -j $(JOBS) --target compiled_shapes
	ctest --preset ptxas

# Without a GPU these two say so and build nothing: Error 77
gpu:
	@bash .ci/gpu
	@bash .ci/packages test
	cmake --preset cuda
	cmake --build --preset cuda -j $(JOBS)
	ctest --preset cuda; tested=$$?; python3 tests/benchmarks/gpu.py build && exit $$tested

gpu-check:
	@bash .ci/gpu sanitizer
	@bash .ci/packages test
	cmake --preset cuda
	cmake --build --preset cuda -j $(JOBS) --target test_kernels_cuda
	python3 tests/gpu.py check build test_kernels_cuda '*every order and landing*'

bench:
	@bash .ci/packages bench
	cmake --preset test
	cmake --build --preset test -j $(JOBS) --target bench against_eigen against_eigen_tuned
	build/tests/bench --out build $(if $(filter-out 0,$(FULL)),--full --double) $(ARGS)
	build/tests/against_eigen
	build/tests/against_eigen_tuned

# A python3 without torch or NumPy says so, and nothing is built: Error 77. Where there is AVX-512 the steps are also held to AVX2
PYTHON ?= python3
avx2 := $(if $(wildcard /proc/cpuinfo),$(shell grep -qw avx512f /proc/cpuinfo && echo compare_binding_avx2))
compare:
	@$(PYTHON) tests/benchmarks/compare.py --check
	@bash .ci/packages test
	cmake --preset test
	cmake --build --preset test -j $(JOBS) --target compare_binding $(avx2)
	$(PYTHON) tests/benchmarks/compare.py build/tests/libcompare_binding.so $(if $(avx2),--avx2 build/tests/lib$(avx2).so) --json build/compare.json --markdown build/compare.md $(ARGS)

# Assignments. In a recipe $(Q) makes one word of a variable, whatever stands in it
Q = '$(subst ','\'',$(1))'
option = $(if $($(1)),$(2) $(call Q,$($(1))))
starter:
	@[ -n $(call Q,$(A)) ] && [ -n $(call Q,$(DIR)) ] || { echo "make starter A=$(firstword $(assignments)) DIR=../starter: A is one of $(assignments)" >&2; exit 2; }
	@bash .ci/packages assignments
	python3 tests/assignments/starter.py $(call Q,$(A)) $(call Q,$(DIR)) $(call option,V,--variant) $(call option,SEED,--seed)

assignments := $(notdir $(patsubst %/assignment.json,%,$(wildcard docs/assignments/*/assignment.json)))
grade:
	@[ -n $(call Q,$(A)) ] && [ -n $(call Q,$(SUBMISSION)) ] || { echo "make grade A=$(firstword $(assignments)) SUBMISSION=zip, folder or folder of them: A is one of $(assignments)" >&2; exit 2; }
	@bash .ci/packages assignments
	@python3 tests/assignments/grade.py $(call Q,$(A)) $(call Q,$(SUBMISSION)) $(call option,V,--variant) $(call option,SEED,--seed) $(call option,T,--task) $(call option,CASE,--case) $(call option,FORMAT,--format) $(call option,OUT,--out)

hint:
	@[ -n $(call Q,$(A)) ] || { echo "make hint A=$(firstword $(assignments)) T=2.1: A is one of $(assignments)" >&2; exit 2; }
	@python3 tests/assignments/hint.py --assignment $(call Q,$(A)) $(call option,V,--variant) $(call Q,$(T)) $(LEVEL)

submit:
	@[ -n $(call Q,$(DIR)) ] || { echo "make submit A=$(firstword $(assignments)) DIR=starter: the folder of a starter" >&2; exit 2; }
	@bash .ci/packages assignments
	@python3 tests/assignments/submit.py $(call Q,$(DIR)) $(call option,OUT,--out)

kits:
	@[ -n $(call Q,$(A)) ] && [ -n $(call Q,$(DIR)) ] || { echo "make kits A=$(firstword $(assignments)) DIR=../kits: A is one of $(assignments)" >&2; exit 2; }
	@bash .ci/packages assignments
	python3 tests/assignments/kits.py $(call Q,$(A)) $(call Q,$(DIR)) $(call option,V,--variant) $(call option,SEED,--seed)

check-assignments:
	@bash .ci/packages test
	@bash .ci/packages assignments
	cmake --preset test
	ctest --preset assignments

ladder: build
	build/ladder --update README.md

.PHONY: $(numbers:%=step%)
$(numbers:%=step%): step%:
	@bash .ci/packages run
	cmake --preset cpu
	cmake --build --preset cpu -j $(JOBS) --target $(call folder,$*)
	build/$(call folder,$*) $(ARGS)

# The algorithm files that two steps have in common, side by side
from := $(if $(FROM),$(call folder,$(FROM)))
to := $(if $(TO),$(call folder,$(TO)))
common_files := $(strip $(foreach file,forward.hpp backward.hpp $(if $(KERNELS),forward.cu backward.cu forward_tensor_core.cu),$(if $(and $(wildcard steps/$(from)/$(file)),$(wildcard steps/$(to)/$(file))),$(file))))
one_diff = diff -u steps/$(from)/$(1) steps/$(to)/$(1) || [ $$? -eq 1 ]
define newline


endef

diff:
	@[ -n "$(from)" ] && [ -n "$(to)" ] || { echo "make diff FROM=04 TO=05: FROM and TO are two of $(numbers)" >&2; exit 2; }
	@[ -n "$(common_files)" ] || { echo "Steps $(FROM) and $(TO) have no algorithm file in common" >&2; exit 2; }
	$(foreach file,$(common_files),$(call one_diff,$(file))$(newline)	)

# Not the pages (forward.hpp, backward.hpp) and the tiles under them: their columns of shapes are set by hand
format:
	find common/runner steps tests docs/figures -name '*.[hc]pp' ! -name forward.hpp ! -name backward.hpp -exec clang-format -i {} +

clean:
	rm -rf build build-asan
