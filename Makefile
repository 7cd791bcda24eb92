# qscheduler: one Makefile, not recursive.
#
#   make            programs in build/bin
#   make check      unit and system tests, lint (see tests/README.md)
#   make SAN=address,undefined check-unit     the sanitizer variant
#   make CC=clang   the other compiler
#
# Objects go to build/<variant>/, the variant being the compiler and the
# sanitizers, so that variants never meet.

PROGRAMS := qscheduler queue-send todo-proc queue-inject deliver-local \
	    deliver-smtp setqload qtop
MODULES  := base log config ipc spool route sched proc agent daemon

CC       ?= cc
ifeq ($(origin CC),default)
CC       := gcc
endif
SAN      ?=
prefix   ?= /usr/local
DESTDIR  ?=
O        ?= 2

empty    :=
comma    := ,
VARIANT  := $(notdir $(firstword $(CC)))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
B        := build/$(VARIANT)
BIN      := $(if $(SAN)$(filter-out gcc cc,$(VARIANT)),$(B)/bin,build/bin)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
	-Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wcast-qual \
	-Wcast-align -Wpointer-arith -Wundef -Wvla -Wformat=2 \
	-Wimplicit-fallthrough -Wswitch-enum -Wnull-dereference -Werror
HARD := -fno-common -fPIE -fstack-protector-strong -fstack-clash-protection \
	$(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
CPPFLAGS += -D_GNU_SOURCE -Icommon -I. -I$(B)/gen
CFLAGS   += -std=c17 -O$(O) -g $(WARN) $(HARD) \
	    $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
LDFLAGS  += -pie -Wl,-z,relro,-z,now $(if $(SAN),-fsanitize=$(SAN))
LDLIBS   := -levent_core -lisal -lrt -lpthread
LDLIBS_qtop := -lncursesw

common_c := $(foreach m,$(MODULES),$(wildcard common/$(m)/*.c))
common_o := $(common_c:%.c=$(B)/%.o)
LIB      := $(B)/libcommon.a

prog_c    = $(wildcard $(1)/*.c)
prog_o    = $(patsubst %.c,$(B)/%.o,$(call prog_c,$(1)))
logic_o   = $(filter-out $(B)/$(1)/main.o,$(call prog_o,$(1)))
BUILT    := $(foreach p,$(PROGRAMS),$(if $(call prog_c,$(p)),$(p)))

UNITS    := $(patsubst tests/unit/%/,%,$(sort $(dir $(wildcard tests/unit/*/*.c))))
unit_o    = $(patsubst %.c,$(B)/%.o,$(wildcard tests/unit/$(1)/*.c))

.PHONY: all
all: $(BUILT:%=$(BIN)/%)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(LIB): $(common_o)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

define program
$(BIN)/$(1): $(call prog_o,$(1)) $(LIB)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $$(LDLIBS_$(1))
endef
$(foreach p,$(BUILT),$(eval $(call program,$(p))))

# A folder of tests/unit is one Criterion program: "common" has the library,
# a program's folder has its objects without main.
define unit
$(B)/unit/$(1): $(call unit_o,$(1)) $(if $(filter $(1),$(PROGRAMS)),$(call logic_o,$(1))) $(LIB)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $$(LDLIBS_$(1)) -lcriterion
endef
$(foreach u,$(UNITS),$(eval $(call unit,$(u))))

.PHONY: units check-unit
units: $(UNITS:%=$(B)/unit/%)
check-unit: units
	@set -e; for u in $(UNITS); do echo "unit: $$u ($(VARIANT))"; \
	    $(B)/unit/$$u --quiet -j2; done

.PHONY: clean
clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
