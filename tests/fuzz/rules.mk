# make fuzz: every parser of hostile input under libFuzzer (tests/README.md).
#
#   make fuzz RUNS=10000000 J=2      so many executions of each target
#   make fuzz T=common/msg           one of them
#   make fuzz-check                  about a minute, from the corpora alone
#
# A file tests/fuzz/PROGRAM/TARGET.c is a target; it has the library and the
# objects of that program without its main.
FUZZERS  := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/*/*.c)))
FUZZ_SAN := fuzzer-no-link,address,undefined
RUNS     ?= 1000000
J        ?= 2

# Objects of a program in whose place a target has its own.
FUZZ_WITHOUT_deliver-smtp/lookup := %/deliver-smtp/reach/resolve.o

define fuzzer
$(B)/fuzz/$(1): $(B)/tests/fuzz/$(1).o $(B)/tests/fuzz/fuzz.o \
    $(filter-out $(FUZZ_WITHOUT_$(1)),$(call logic_o,$(patsubst \
	%/,%,$(dir $(1))))) $(LIB)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) -fsanitize=fuzzer -o $$@ $$^ $$(LDLIBS) \
	    $$(LDLIBS_$(patsubst %/,%,$(dir $(1))))
endef
$(foreach t,$(FUZZERS),$(eval $(call fuzzer,$(t))))

.PHONY: fuzz fuzz-check fuzzers
fuzzers: $(FUZZERS:%=$(B)/fuzz/%)
fuzz:
	@$(MAKE) --no-print-directory CC=clang SAN=$(FUZZ_SAN) \
	    $(if $(T),build/clang-$(subst $(comma),-,$(FUZZ_SAN))/fuzz/$(T),fuzzers)
	@$(PYTHON) -B tests/fuzz/run.py --runs $(RUNS) --jobs $(J) $(T)
fuzz-check:
	@$(MAKE) --no-print-directory CC=clang SAN=$(FUZZ_SAN) fuzzers
	@$(PYTHON) -B tests/fuzz/run.py --check --jobs $(J) $(T)
