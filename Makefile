# kiln: one non-recursive Makefile.
#
#   make                 build build/release/{kiln,train,libkiln.a,libkiln.so}
#   make VARIANT=asan    another variant: debug release asan tsan cov clang fuzz
#   make demo            install what is missing, build, train the default config
#   make check           install what the tests need, build and run them all
#   make check-arm64     build for ARM64 and run units and short training in emulation
#   make bench           measure against PyTorch (PEER=python with torch; BENCH="mlp gpt")
#   make bench-infer     inference of one sample (PEER=python with torch, onnxruntime)
#   make bench-loop      the loop's cost per step, launch to first step (PEER=python with lightning, hydra-core)
#   make bench-config    time composing and sweeps (PEER=python with hydra-core)
#   make manual          build/manual/html, a site that needs no server
#   make man             man pages, which `make install` then installs
#   make install         PREFIX=/usr/local LIBDIR=$(PREFIX)/lib DESTDIR=
#   make wheel           the Python package with the library inside
#   make deb | dist | sbom   Debian packages, a source tarball, the list of libraries: docs/install.md
#   make help            the other goals

VARIANT ?= release
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
CC ?= cc
B := build/$(VARIANT)
# V=1 shows whole commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1) $@')

OPT_debug := -O1 -g
OPT_release := -O3 -g
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan := -O1 -g -Wno-pass-failed -fsanitize=thread
OPT_cov := -O0 -g --coverage
OPT_clang := -O2 -g -Wno-pass-failed
OPT_fuzz := -O1 -g -Wno-pass-failed -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT := $(OPT_$(VARIANT))
# With a sanitizer's checks at -O1, training takes thirty times as long; with the loops at -O2, ten.
OPT_ISA_asan := -O2
ifeq ($(OPT),)
$(error VARIANT=$(VARIANT) is not one of debug release asan tsan cov clang fuzz)
endif
# libomp reports its synchronization to ThreadSanitizer; with gcc's OpenMP everything looks like a race.
ifneq ($(filter clang tsan fuzz,$(VARIANT)),)
CC := clang
endif

# ARCH=arm64 cross-builds for ARM64 with the libraries in a root folder: tests/arm64.sh makes it.
ifeq ($(ARCH),arm64)
B := build/arm64/$(VARIANT)
ROOT := build/arm64/root
CC := aarch64-linux-gnu-gcc --sysroot=$(ROOT)
AR := aarch64-linux-gnu-ar
PKG_CONFIG := PKG_CONFIG_SYSROOT_DIR=$(ROOT) \
	PKG_CONFIG_LIBDIR=$(ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(ROOT)/usr/share/pkgconfig pkg-config
endif
PKG_CONFIG ?= pkg-config
# The processor that the compiler compiles for: x86_64, aarch64.
TARGET := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
# gcc 12.2 crashes for ARM64 where it vectorizes fmax over a loop; the loops of isa/ have none.
NO_VECTORS := $(if $(filter aarch64,$(TARGET)),$(if $(filter 12.1.% 12.2.%,$(shell $(CC) -dumpfullversion 2>/dev/null)),\
	-fno-tree-loop-vectorize))

# No path of this folder in what is built: the same bytes wherever it is. Like warnings, not part of CFLAGS, so that a
# moved folder recompiles nothing.
MAP := $(if $(filter release,$(VARIANT)),-ffile-prefix-map=$(CURDIR)=.)
# Not part of CFLAGS: changed warnings recompile nothing.
WARN := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wundef
ifdef WERROR
WARN += -Werror
endif

# On a fresh machine pkg-config finds nothing yet; `make demo` and `make check` install the packages
# first and then build in a second make.
PACKAGES := yaml-0.1 libcyaml libpng libjpeg jansson libxxhash libdeflate libmd libutf8proc libpcre2-8 zlib libzstd
# Features of a missing library are not built; using one is an error that names the library.
# WITHOUT=cairo,protobuf-c,sqlite3,webp,xgboost,curl,parquet omits them even if installed.
comma := ,
left_out := $(subst $(comma), ,$(WITHOUT))
optional = $(if $(filter $(1),$(left_out)),,$(shell $(PKG_CONFIG) --exists $(2) 2>/dev/null && echo $(2)))
# fontconfig is what cairo finds fonts by.
CAIRO := $(call optional,cairo,cairo fontconfig)
PROTOBUF := $(if $(shell command -v protoc-c),$(call optional,protobuf-c,libprotobuf-c))
SQLITE := $(call optional,sqlite3,sqlite3)
WEBP := $(call optional,webp,libwebp)
# Only their headers: the libraries are loaded when they are first used.
XGBOOST := $(call optional,xgboost,xgboost)
CURL := $(call optional,curl,libcurl)
# Arrow, for Parquet: found by pkg-config, or in ARROW_DIR, a folder with include/ and the libraries, such
# as that of the Python package pyarrow.
ARROW_DIR ?=
ARROW_LIB = $(firstword $(wildcard $(foreach dir,$(ARROW_DIR)/lib $(ARROW_DIR),$(dir)/lib$(1).so $(dir)/lib$(1).so.*)))
PARQUET := $(if $(filter parquet,$(left_out)),,$(if $(ARROW_DIR),$(ARROW_DIR)/include,$(call optional,parquet,parquet)))
PARQUET_FLAGS = -isystem $(if $(ARROW_DIR),$(ARROW_DIR)/include,$(shell $(PKG_CONFIG) --variable=includedir parquet))
PARQUET_LIBS = $(if $(ARROW_DIR),$(call ARROW_LIB,parquet) $(call ARROW_LIB,arrow) \
	-Wl$(comma)-rpath$(comma)$(dir $(abspath $(call ARROW_LIB,arrow))),$(shell $(PKG_CONFIG) --libs parquet))
# Where the program and its library look for libkiln-parquet.so.
RUN_PATH := $(if $(PARQUET),-Wl$(comma)-rpath$(comma)\$$ORIGIN:\$$ORIGIN/../lib)
OPTIONAL := $(CAIRO) $(PROTOBUF) $(SQLITE) $(WEBP)
OPTIONAL_FLAGS = $(if $(CAIRO),-DKILN_WITH_CAIRO) $(if $(PROTOBUF),-DKILN_WITH_PROTOBUF -I$(B)/gen) \
	$(if $(SQLITE),-DKILN_WITH_SQLITE) $(if $(WEBP),-DKILN_WITH_WEBP) \
	$(if $(XGBOOST),-DKILN_WITH_XGBOOST $(shell $(PKG_CONFIG) --cflags-only-I xgboost)) \
	$(if $(PARQUET),-DKILN_WITH_PARQUET) \
	$(if $(CURL),-DKILN_WITH_CURL $(shell $(PKG_CONFIG) --cflags-only-I libcurl)) \
	$(if $(OPTIONAL),$(shell $(PKG_CONFIG) --cflags $(OPTIONAL)))
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)

CPPFLAGS += -Isrc -I. -D_POSIX_C_SOURCE=200809L -MMD -MP $(PKG_CFLAGS)
CFLAGS += -std=c17 $(OPT) $(NO_VECTORS) -fPIC -fvisibility=hidden -ffp-contract=off -fopenmp
LDFLAGS += $(filter -fsanitize% --coverage,$(OPT)) -fopenmp
LDLIBS += $(PKG_LIBS) $(if $(OPTIONAL),$(shell $(PKG_CONFIG) --libs $(OPTIONAL))) -ldnnl -lm -ldl -lpthread

VERSION := $(shell sed -n 's/.*KILN_VERSION "\(.*\)"/\1/p' src/kiln/base.h)
COMPONENTS := $(sort $(wildcard callbacks/*.c callbacks/*/*.c datamodules/*.c datamodules/*/*.c \
	tasks/*/*.c src/nn/optimizers/*.c src/nn/schedulers/*.c \
	src/sweep/sweepers/*.c src/sweep/pruners/*.c src/sweep/launchers/*.c src/train/strategies/*.c \
	src/text/tokenizers/*.c))
CONF := $(sort $(shell find conf -name '*.yaml'))
INIT := $(sort $(shell find src/cli/init -type f))
# What Python processes run, inside the program (src/python).
PYTHON_HOST := $(sort $(wildcard python/kiln_host/*.py))
# Compiled once per instruction set; the program selects one at run time.
ISA_SRC := $(sort $(wildcard src/backend/cpu/isa/*.c src/backend/cpu/isa/*/*.c))
ISAS := base $(if $(filter x86_64,$(TARGET)),avx2 avx512)
# With errno, sqrtf in a loop is a call and the loop is not vectorized; with traps, a choice between
# two values (x > 0 ? 1 - y : y) is a branch, which only AVX-512 vectorizes. The calling convention of
# vectors differs between instruction sets (-Wpsabi), but only inlined functions take them.
ISA_FLAGS := $(OPT_ISA_$(VARIANT)) -fno-math-errno -fno-trapping-math -Wno-psabi $(if $(NO_VECTORS),-ftree-loop-vectorize)
ISA_FLAGS_base := $(ISA_FLAGS)
ISA_FLAGS_avx2 := $(ISA_FLAGS) -mavx2 -mfma
ISA_FLAGS_avx512 := $(ISA_FLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512

LIB_SRC := $(filter-out src/cli/% src/nn/optimizers/% src/nn/schedulers/% src/sweep/sweepers/% \
	src/sweep/pruners/% src/sweep/launchers/% src/train/strategies/% src/text/tokenizers/% $(ISA_SRC), \
	$(sort $(wildcard src/*/*.c src/*/*/*.c src/*/*/*/*.c))) $(COMPONENTS)
CLI_SRC := $(sort $(wildcard src/cli/*.c src/cli/*/*.c))
# The manual's components, which `kiln plugin new` copies.
COMPONENT_PAGES := docs/components.md $(sort $(wildcard docs/components/*.md))
# Completion scripts, installed where each shell finds them.
SCRIPTS := $(sort $(wildcard tools/completion/*))
GEN_OBJ := $(B)/gen/builtin.o $(B)/gen/conf.o $(B)/gen/python_host.o $(if $(PROTOBUF),$(B)/gen/events.pb-c.o)
ISA_OBJ := $(foreach isa,$(ISAS),$(ISA_SRC:%.c=$(B)/%.$(isa).o))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o) $(GEN_OBJ) $(ISA_OBJ)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o) $(B)/gen/init.o $(B)/gen/scripts.o $(B)/gen/components.o
UNIT_SRC := $(sort $(shell find tests/unit -name 'test_*.c'))
UNITS := $(UNIT_SRC:%.c=$(B)/%)
# What tests share: linked into each unit test, and the networks into the benchmarks.
SUPPORT_SRC := $(sort $(wildcard tests/support/*.c tests/support/*/*.c tests/nets/*.c))
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(B)/%.o)
PLUGINS := $(patsubst %.c,$(B)/%.so,$(wildcard examples/plugin/*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZERS := $(FUZZ_SRC:%.c=$(B)/%)
GRAPHS_SRC := $(sort $(wildcard tests/fuzz/graphs/*.c tests/fuzz/graphs/rows/*.c))
GRAPHS_OBJ := $(GRAPHS_SRC:%.c=$(B)/%.o)
FUZZ_GRAPHS := $(B)/tests/fuzz/graphs/fuzz_graphs

.PHONY: all objects demo check check-arm64 check-peers verify-resume power-cut faults bench bench-infer bench-loop bench-config install wheel format lint check-format check-layers check-pointers check-headers units \
	plugins fuzz fuzzers fuzz-graphs emulated-amx deps deps-check dist deb deb-deps sbom manual man help clean FORCE

all: $(B)/kiln $(B)/train $(B)/libkiln.a $(B)/libkiln.so $(if $(PARQUET),$(B)/libkiln-parquet.so)
# All files compiled, nothing linked.
objects: $(LIB_OBJ) $(CLI_OBJ)

# ---- Building -----------------------------------------------------------------

building := $(if $(filter help clean format deps% deb deb-deps dist demo check check-arm64,$(MAKECMDGOALS)),,yes)
without = $(if $(building),$(if $(1),,$(info without $(2) (install $(3)))))
$(call without,$(CAIRO),cairo: no plots,libcairo2-dev)
$(call without,$(PROTOBUF),libprotobuf-c: no logger tensorboard,libprotobuf-c-dev protobuf-c-compiler)
$(call without,$(SQLITE),sqlite3: no tables from SQL queries,libsqlite3-dev)
$(call without,$(WEBP),libwebp: no WebP images,libwebp-dev)
$(call without,$(XGBOOST),xgboost: no task trees,libxgboost-dev)
$(call without,$(CURL),libcurl: no downloads,libcurl4-openssl-dev)
$(call without,$(PARQUET),Arrow: no Parquet files,libparquet-dev of Apache's archive: https://arrow.apache.org/install)

missing = $(if $(PKG_LIBS),,$(foreach name,$(PACKAGES),$(shell $(PKG_CONFIG) --exists $(name) 2>/dev/null || echo $(name))))
# The stamp changes only when the flags change; then all objects are rebuilt.
$(B)/.flags: FORCE
	@$(if $(missing),echo 'missing libraries: $(strip $(missing)); `make deps` installs them' >&2; exit 1)
	@mkdir -p $(@D); echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' >$@

$(B)/%.o: %.c $(B)/.flags
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(MAP) $(CPPFLAGS) $(CFLAGS) $(WARN) -c -o $@ $<

# Each instruction set has its own stamp, so that changed flags rebuild only its objects.
$(B)/.flags.%: FORCE
	@mkdir -p $(@D); echo '$(ISA_FLAGS_$*)' | cmp -s - $@ || echo '$(ISA_FLAGS_$*)' >$@

define ISA_RULE
$(ISA_SRC:%.c=$(B)/%.$(1).o): $(B)/%.$(1).o: %.c $(B)/.flags $(B)/.flags.$(1)
	@mkdir -p $$(@D)
	$$(call say,CC  )
	$$(Q)$$(CC) $$(MAP) $$(CPPFLAGS) $$(CFLAGS) $$(WARN) $$(ISA_FLAGS_$(1)) -DKILN_ISA=$(1) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call ISA_RULE,$(isa))))

# The lists of files that sources are generated from, rewritten only when they change: adding or deleting a
# component or a config file regenerates them.
$(B)/gen/lists: FORCE
	@mkdir -p $(@D); echo '$(COMPONENTS) $(CONF) $(INIT) $(SCRIPTS) $(PYTHON_HOST)' | cmp -s - $@ || \
		echo '$(COMPONENTS) $(CONF) $(INIT) $(SCRIPTS) $(PYTHON_HOST)' >$@

$(B)/gen/builtin.c: tools/gen_builtin.sh $(COMPONENTS) $(B)/gen/lists
	$(call say,GEN )
	$(Q)sh tools/gen_builtin.sh $(COMPONENTS) >$@.tmp && mv $@.tmp $@

$(B)/gen/conf.c: tools/gen_files.sh $(CONF) $(B)/gen/lists
	$(call say,GEN )
	$(Q)sh tools/gen_files.sh kiln_shipped_conf conf $(CONF) >$@.tmp && mv $@.tmp $@

$(B)/gen/python_host.c: tools/gen_files.sh $(PYTHON_HOST) $(B)/gen/lists
	$(call say,GEN )
	$(Q)sh tools/gen_files.sh kiln_python_files python/kiln_host $(PYTHON_HOST) >$@.tmp && mv $@.tmp $@

$(B)/gen/init.c: tools/gen_files.sh $(INIT) $(B)/gen/lists
	$(call say,GEN )
	$(Q)sh tools/gen_files.sh kiln_init_files src/cli/init $(INIT) >$@.tmp && mv $@.tmp $@

$(B)/gen/scripts.c: tools/gen_files.sh $(SCRIPTS) $(B)/gen/lists
	$(call say,GEN )
	$(Q)sh tools/gen_files.sh kiln_shell_scripts tools/completion $(SCRIPTS) >$@.tmp && mv $@.tmp $@

$(B)/gen/components.c: tools/gen_components.sh tools/gen_files.sh $(COMPONENT_PAGES)
	$(call say,GEN )
	$(Q)sh tools/gen_components.sh $(B)/gen/components $(COMPONENT_PAGES)
	$(Q)sh tools/gen_files.sh kiln_component_templates $(B)/gen/components $$(find $(B)/gen/components -type f) \
		>$@.tmp && mv $@.tmp $@

# Generated from src/events/events.proto by protoc-c; compiled without warnings.
$(B)/gen/events.pb-c.c: src/events/events.proto
	@mkdir -p $(@D)
	$(call say,GEN )
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $<
$(B)/gen/events.pb-c.o: $(B)/gen/events.pb-c.c $(B)/.flags
	$(call say,CC  )
	$(Q)$(CC) $(MAP) $(CPPFLAGS) $(OPTIONAL_FLAGS) $(CFLAGS) -w -c -o $@ $<
# The only files that use the optional libraries; rebuilt when one is installed or removed.
$(B)/.flags.optional: FORCE
	@mkdir -p $(@D); echo '$(OPTIONAL_FLAGS)' | cmp -s - $@ || echo '$(OPTIONAL_FLAGS)' >$@
OPTIONAL_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard src/events/*.c src/plot/*.c src/boost/*.c src/download/*.c) src/data/table/query.c src/data/records/parquet.c \
	src/image/decode/webp.c)
$(OPTIONAL_OBJ): private CPPFLAGS += $(OPTIONAL_FLAGS)
$(OPTIONAL_OBJ): $(B)/.flags.optional $(if $(PROTOBUF),$(B)/gen/events.pb-c.c)

$(B)/gen/%.o: $(B)/gen/%.c $(B)/.flags
	$(call say,CC  )
	$(Q)$(CC) $(MAP) $(CPPFLAGS) $(CFLAGS) $(WARN) -c -o $@ $<

# ar replaces members but never removes them: start from an empty archive.
$(B)/libkiln.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcsD $@ $^

# Raised together with the version in tools/libkiln.map.
SONAME := libkiln.so.0
$(B)/libkiln.so: $(LIB_OBJ) tools/libkiln.map
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUN_PATH) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,tools/libkiln.map -o $@ $(LIB_OBJ) $(LDLIBS)
	$(Q)ln -sf $(@F) $(@D)/$(SONAME)

# Arrow's headers need C++20. Loaded when a Parquet file is read.
$(B)/libkiln-parquet.so: src/data/records/parquet_arrow.cc src/data/records/arrow.h $(B)/.flags.optional
	$(call say,CXX )
	$(Q)$(CXX) $(MAP) -std=c++20 -O2 -fPIC -fvisibility=hidden -Isrc $(PARQUET_FLAGS) -Wall -Wextra -Wshadow \
		$(if $(WERROR),-Werror) -shared -o $@ $< $(PARQUET_LIBS)

# From objects, not from the archive, and with -rdynamic: plugins may call functions that the program
# does not.
$(B)/kiln: $(CLI_OBJ) $(LIB_OBJ)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUN_PATH) -rdynamic -o $@ $^ $(LDLIBS)

$(B)/train: $(B)/kiln
	$(Q)ln -sf kiln $@

$(B)/tests/libtestsupport.a: $(SUPPORT_OBJ)
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcsD $@ $^
define LINK_UNIT
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(LDFLAGS_$(notdir $@)) -rdynamic -o $@ $< $(B)/tests/libtestsupport.a \
		-Wl,--whole-archive $(filter %/libkiln.a,$^) -Wl,--no-whole-archive $(LDLIBS) -lcmocka
endef
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(B)/tests/libtestsupport.a $(B)/libkiln.a
	$(LINK_UNIT)
# Counts the allocations that kiln's own code makes.
LDFLAGS_test_alloc := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
LDFLAGS_test_save_nomem := $(LDFLAGS_test_alloc)
LDFLAGS_test_predict_nomem := $(LDFLAGS_test_alloc)

$(B)/examples/plugin/%.so: examples/plugin/%.c $(B)/.flags
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) $(LDFLAGS) -DKILN_BUILD_PLUGIN -shared -o $@ $<

units: $(UNITS) $(FUZZ_GRAPHS)
# Tests build the plugins of tests/plugins as a user would; this only compiles them, to find those that a changed header breaks.
plugins: $(PLUGINS)
	@for p in $(sort $(wildcard tests/plugins/*.c)); do \
		$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(CFLAGS) $(WARN) -fsyntax-only $$p || exit 1; done

# libFuzzer has its own main; build the targets with VARIANT=fuzz only.
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/tree.o $(B)/libkiln.a
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)
fuzzers: $(FUZZERS)

define LINK_GRAPHS
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(GRAPHS_OBJ) -Wl,--whole-archive $(filter %/libkiln.a,$^) -Wl,--no-whole-archive $(LDLIBS)
endef
$(FUZZ_GRAPHS): $(GRAPHS_OBJ) $(B)/libkiln.a
	$(LINK_GRAPHS)

# The random graphs and the unit tests TESTS with AMX's tiles computed by AVX-512: they run at KILN_ISA=amx on processors that
# have avx512_bf16 alone.
AMX := $(B)/emulated_amx
AMX_SRC := tests/amx/emulated_tiles.c
AMX_OBJ := $(AMX_SRC:%.c=$(B)/%.o)
emulated-amx: $(AMX)/tests/fuzz/graphs/fuzz_graphs $(patsubst $(B)/%,$(AMX)/%,$(filter $(addprefix %/,$(TESTS)),$(UNITS)))
$(AMX)/libkiln.a: $(filter-out %/tiles_amx.o,$(LIB_OBJ)) $(AMX_OBJ)
	@mkdir -p $(@D); rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcsD $@ $^
$(AMX)/tests/unit/%: $(B)/tests/unit/%.o $(B)/tests/libtestsupport.a $(AMX)/libkiln.a
	$(LINK_UNIT)
$(AMX)/tests/fuzz/graphs/fuzz_graphs: $(GRAPHS_OBJ) $(AMX)/libkiln.a
	$(LINK_GRAPHS)

# ---- Using ----------------------------------------------------------------------

deps:
	@sh tools/deps.sh build
deps-check:
	@sh tools/deps.sh build check

# A second make, for the first one looked for the libraries before they were there.
demo: deps
	@$(MAKE) --no-print-directory -j$(shell nproc) all
	$(B)/train

check: deps-check
	@sh tests/run.sh

check-arm64:
	@sh tests/arm64.sh

# Reads a run with tensorboard, pandas, torch and safetensors, and a sweep with Optuna; PEER is a Python that has them.
check-peers: all
	@$(if $(PEER),$(PEER) tests/peers/test_peers.py $(B) && $(PEER) tests/peers/test_lightning_names.py && \
	    $(PEER) tests/peers/test_image_nets.py $(B) && $(PEER) tests/peers/test_hydra_classes.py $(B) && \
	    $(PEER) tests/peers/test_sbom.py $(B) && $(PEER) tests/peers/test_optuna.py $(B),\
	    echo "skip: check-peers needs PEER=a python with tensorboard, pandas, torch, torchvision, torchmetrics, safetensors, lightning and hydra-core; cyclonedx-python-lib[json-validation]; optuna, optuna-dashboard")

# Kills an MLP, a ResNet-18 and an LSTM, KILLS times in all: each resumed run produces identical bytes.
verify-resume: all
	@python3 tests/verify_resume.py $(B) $(or $(KILLS),200)

# Simulates CUTS power cuts of a run and as many of a sweep, as root; each resumes to identical bytes.
power-cut: all
	@KILN_CUTS=$(or $(CUTS),50) python3 tests/cli/faults/test_power_cut.py $(B)

# Fails each allocation of a save and each system call of a small run with each possible error, and kills a starting run at
# each of its system calls, sweeps at 300 random moments, and sweeps on Slurm with its daemons at 100 (as root, where Slurm is
# installed). They must resume or start again. Takes an hour.
faults: all $(B)/tests/unit/train/checkpoint/test_save_nomem
	@KILN_FAULTS=all $(B)/tests/unit/train/checkpoint/test_save_nomem
	@KILN_FAULTS=all python3 tests/cli/faults/test_kill_at_start.py $(B)
	@KILN_FAULTS=all python3 tests/cli/faults/test_failing_syscalls.py $(B)
	@KILN_FAULTS=all python3 tests/cli/sweep/test_sweep_kill.py $(B)
	@KILN_FAULTS=all python3 tests/cli/sweep/test_slurm_kill.py $(B)

# SECONDS each; FUZZ=yaml,override only these.
fuzz:
	@$(MAKE) --no-print-directory VARIANT=fuzz WERROR=$(WERROR) fuzzers
	@sh tests/fuzz/run.sh "$(or $(SECONDS),60)" "$(FUZZ)"
	@$(if $(FUZZ),,$(MAKE) --no-print-directory fuzz-graphs)
# Random graphs against the reference backend, SECONDS at each processor level.
fuzz-graphs: all $(FUZZ_GRAPHS)
	@sh tests/fuzz/graphs/run.sh $(B) "$(or $(SECONDS),60)"

bench: all $(B)/bench/kernels_resnet $(B)/bench/mlp $(B)/bench/gpt $(B)/bench/lstm $(B)/bench/unet $(B)/bench/plan
	@python3 bench/run.py $(BENCH)
bench-infer: all $(B)/bench/infer
	@python3 bench/infer.py $(BENCH)
bench-loop: all
	@python3 bench/loop/loop.py
	@python3 bench/loop/launch.py
bench-config: all $(B)/bench/config/compose $(B)/bench/config/sweep_inside
	@python3 bench/config/compose.py
	@python3 bench/config/sweep.py
# They build components as tests do.
$(B)/bench/images/load $(B)/bench/search/search $(B)/bench/search/trials $(B)/bench/search/recording: LDLIBS += -lcmocka
$(B)/bench/%: bench/%.c $(B)/tests/libtestsupport.a $(B)/libkiln.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) $(LDFLAGS) -o $@ $< $(B)/tests/libtestsupport.a \
		-Wl,--whole-archive $(B)/libkiln.a -Wl,--no-whole-archive $(LDLIBS)

# Python's package (docs/python.md), in $(B).
wheel: $(B)/libkiln.so $(if $(PARQUET),$(B)/libkiln-parquet.so)
	@python3 python/build_wheel.py $(B)

# Installs Sphinx if it is missing.
manual: all
	@sh tools/deps.sh manual
	@sh tools/manual/build.sh $(B)/kiln build/manual
	@echo 'manual: open build/manual/html/index.html'
man: $(B)/man/kiln.1
# All pages, with a date that SOURCE_DATE_EPOCH sets.
$(B)/man/kiln.1: $(B)/kiln tools/manual/man.py
	@sh tools/deps.sh man
	@rm -rf $(B)/man
	@python3 tools/manual/man.py $(B)/kiln $(B)/man

# Programs find the library in /usr/lib by default and elsewhere by a run path.
kiln.pc = sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR)),' \
	-e 's|@LIBRARIES@|$(strip $(LDLIBS))|' -e 's,@VERSION@,$(VERSION),' \
	-e 's|@RUNPATH@|$(if $(filter /usr,$(PREFIX)),, -Wl$(comma)-rpath$(comma)$${libdir})|' tools/kiln.pc.in
EXAMPLES := $(patsubst %/,%,$(sort $(wildcard examples/*/)))
# Of a finished build it only reads.
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(addprefix $(DESTDIR)$(PREFIX)/include/kiln/,embed files flat images ops search slurm tools) \
		$(DESTDIR)$(PREFIX)/share/kiln
	install -m 755 $(B)/kiln $(DESTDIR)$(PREFIX)/bin/kiln
	ln -sf kiln $(DESTDIR)$(PREFIX)/bin/train
	install -m 644 $(B)/libkiln.a $(DESTDIR)$(LIBDIR)/libkiln.a
	install -m 755 $(B)/libkiln.so $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libkiln.so
	$(if $(PARQUET),install -m 755 $(B)/libkiln-parquet.so $(DESTDIR)$(LIBDIR)/libkiln-parquet.so)
	$(kiln.pc) >$(DESTDIR)$(LIBDIR)/pkgconfig/kiln.pc
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/kiln.pc
	install -m 644 src/kiln.h src/kiln_embed.h $(DESTDIR)$(PREFIX)/include
	install -m 644 src/kiln/*.h $(DESTDIR)$(PREFIX)/include/kiln/
	for room in embed files flat images ops search slurm tools; do \
		install -m 644 src/kiln/$$room/*.h $(DESTDIR)$(PREFIX)/include/kiln/$$room/; \
	done
	cp -R conf $(DESTDIR)$(PREFIX)/share/kiln/
	install -d $(DESTDIR)$(PREFIX)/share/doc/kiln/docs/components $(addprefix $(DESTDIR)$(PREFIX)/share/doc/kiln/,$(EXAMPLES))
	install -m 644 README.md CHANGELOG.md LICENSE $(DESTDIR)$(PREFIX)/share/doc/kiln/
	install -m 644 docs/*.md $(DESTDIR)$(PREFIX)/share/doc/kiln/docs/
	install -m 644 docs/components/*.md $(DESTDIR)$(PREFIX)/share/doc/kiln/docs/components/
	install -D -m 644 bench/README.md $(DESTDIR)$(PREFIX)/share/doc/kiln/bench/README.md
	install -D -m 644 tests/README.md $(DESTDIR)$(PREFIX)/share/doc/kiln/tests/README.md
	for dir in $(EXAMPLES); do \
		install -m 644 $$(find $$dir -maxdepth 1 -type f) $(DESTDIR)$(PREFIX)/share/doc/kiln/$$dir/ || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 tools/completion/kiln.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kiln
	ln -sf kiln $(DESTDIR)$(PREFIX)/share/bash-completion/completions/train
	install -m 644 tools/completion/_kiln $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kiln
	install -m 644 tools/completion/kiln.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/kiln.fish
	ln -sf kiln.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/train.fish
	if [ -d $(B)/man ]; then install -d $(DESTDIR)$(PREFIX)/share/man/man1 && \
		install -m 644 $(B)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/; fi
	@if [ -z '$(DESTDIR)' ] && [ '$(PREFIX)' = /usr ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

# ---- Packages -------------------------------------------------------------------------

# Both need no network. SOURCE_DATE_EPOCH sets the date in them: by default that of the last commit, in an unpacked tarball that of its files.
dist:
	@mkdir -p build
	@sh tools/package/dist.sh $(VERSION) build/kiln-$(VERSION).tar.gz
	@echo build/kiln-$(VERSION).tar.gz
deb: deb-deps
	@$(MAKE) --no-print-directory WITHOUT=parquet all build/release/man/kiln.1
	@sh tools/package/deb.sh build/deb
deb-deps:
	@sh tools/deps.sh build deb
# CycloneDX, of what the program and its library link to and load.
sbom: all
	@python3 tools/package/sbom.py $(VERSION) $(B)/kiln $(B)/libkiln.so >build/kiln-$(VERSION).cdx.json
	@echo build/kiln-$(VERSION).cdx.json

# ---- Keeping clean ----------------------------------------------------------------

SOURCES := $(LIB_SRC) $(CLI_SRC) $(ISA_SRC) $(UNIT_SRC) $(SUPPORT_SRC) $(wildcard examples/*/*.c tests/fuzz/*.c) $(GRAPHS_SRC) $(AMX_SRC)
HEADERS := $(sort $(shell find src tests/support tests/nets tests/fuzz -name '*.h'))

format:
	@clang-format -i $(SOURCES) $(HEADERS)
check-format:
	@clang-format --dry-run --Werror $(SOURCES) $(HEADERS)
lint: $(B)/gen/components.c
	@cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppressions-list=tools/cppcheck.txt \
		--enable=warning,performance,portability -Isrc -I. -D_POSIX_C_SOURCE=200809L \
		-DKILN_ISA=base -D__x86_64__ -j$(shell nproc) src callbacks datamodules tasks examples $(B)/gen/components
check-layers:
	@sh tools/check_layers.sh
	@python3 tools/check_names.py
check-pointers:
	@python3 tools/check_pointers.py
check-headers:
	@for h in $(filter-out $(if $(CAIRO),,src/plot/canvas.h),$(HEADERS)); do \
		$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(OPTIONAL_FLAGS) -std=c17 -fopenmp -Wall -Wextra -Wno-psabi -Werror -fsyntax-only -x c $$h || exit 1; \
	done
	@for h in $(filter src/kiln%,$(HEADERS)); do \
		$(CXX) -std=c++17 -Isrc -Wall -Wextra -Wshadow -Werror -fsyntax-only -x c++ $$h || exit 1; \
	done; echo "headers: $(words $(HEADERS)) compile alone, the public ones in C++, too"

clean:
	rm -rf build

help:
	@echo 'make [all | units | plugins] [VARIANT=debug|release|asan|tsan|cov|clang|fuzz] [WERROR=1]   build'
	@echo 'make demo | check | check-arm64 | check-peers PEER=python | bench | bench-infer | bench-loop | bench-config | manual | man | install PREFIX= DESTDIR= | wheel     use'
	@echo 'make deb | dist | sbom                                     Debian packages, source tarball, list of libraries'
	@echo 'make verify-resume [KILLS=200] | power-cut [CUTS=50] | faults   kills, power cuts, failing system calls'
	@echo 'make fuzz [SECONDS=60] [FUZZ=yaml,compose]                 look for crashes, then for wrong numbers:'
	@echo 'make fuzz-graphs [SECONDS=60] [KILN_ISA=avx2]              random graphs against the reference backend'
	@echo 'make emulated-amx [TESTS="test_ops_bf16"]                  tests that run at KILN_ISA=amx on processors without AMX'
	@echo 'make format | check-format | lint | check-layers | check-pointers | check-headers | clean'

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(UNITS:=.d) $(SUPPORT_OBJ:.o=.d) $(ISA_OBJ:.o=.d) $(FUZZERS:=.d) $(GRAPHS_OBJ:.o=.d) $(AMX_OBJ:.o=.d) $(PLUGINS:.so=.d)
