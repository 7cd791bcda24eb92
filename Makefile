# qscheduler: one Makefile, not recursive.
#
#   make            programs in build/bin
#   make check      unit and system tests, lint (see tests/README.md)
#   make SAN=address,undefined check-unit     the sanitizer variant
#   make CC=clang   the other compiler
#   make WERROR=1   warnings are errors, as in make check
#
# Objects go to build/<variant>/, the variant being the compiler and the
# sanitizers, so that variants never meet.

PROGRAMS := qscheduler queue-send todo-proc queue-inject queue-drop deliver-local \
	    deliver-smtp setqload qtop qctl qsim
MODULES  := base log config ipc spool route smtp report site sched agent submit daemon

CC       ?= cc
ifeq ($(origin CC),default)
CC       := gcc
endif
SAN      ?=
WERROR   ?=
prefix   ?= /usr/local
DESTDIR  ?=
# Where the queues are unless the configuration says otherwise.
queue_base ?= /var/qscheduler/queue
# With the sanitizers gcc takes twice as long for the second level.
O        ?= $(if $(SAN),1,2)

empty    :=
comma    := ,
VARIANT  := $(notdir $(firstword $(CC)))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
B        := build/$(VARIANT)
BIN      := $(if $(SAN)$(filter-out gcc cc,$(VARIANT)),$(B)/bin,build/bin)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
	-Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wcast-qual \
	-Wcast-align -Wpointer-arith -Wundef -Wvla -Wformat=2 \
	-Wimplicit-fallthrough -Wswitch-enum -Wnull-dereference \
	$(if $(filter 1,$(WERROR)),-Werror)
HARD := -fno-common -fPIE -fstack-protector-strong -fstack-clash-protection \
	$(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
CPPFLAGS += -D_GNU_SOURCE -Icommon -I. -I$(B)/gen
CFLAGS   += -std=c17 -O$(O) -g$(if $(SAN),1) $(WARN) $(HARD) \
	    $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
LDFLAGS  += -pie -Wl,-z,relro,-z,now $(if $(SAN),-fsanitize=$(SAN))
LDLIBS   := -levent_core -lisal -lidn2 -lunistring -lrt -lpthread -lm
LDLIBS_qtop := -lncursesw
LDLIBS_deliver-smtp := -lcares -lresolv -lseccomp -lssl -lcrypto -lgsasl
LDLIBS_qsim := -lm
# More rights than its caller: only the libraries that it needs.
LDFLAGS_queue-drop := -Wl,--as-needed
LDFLAGS_qctl := -Wl,--as-needed
# Started for each message: each library costs more than the message.
LDFLAGS_queue-inject := -Wl,--as-needed
SAN_qctl := $(if $(SAN),$(B)/tests/san/qctl.o)
SAN_queue-drop := $(if $(SAN),$(B)/tests/san/queue-drop.o)
PYTHON   := /usr/bin/python3

common_c := $(foreach m,$(MODULES),$(wildcard common/$(m)/*.c))
common_o := $(common_c:%.c=$(B)/%.o)
LIB      := $(B)/libcommon.a

# A program's folder may have folders.
prog_c    = $(wildcard $(1)/*.c $(1)/*/*.c)
prog_o    = $(patsubst %.c,$(B)/%.o,$(call prog_c,$(1)))
logic_o   = $(filter-out $(B)/$(1)/main.o,$(call prog_o,$(1)))
BUILT    := $(foreach p,$(PROGRAMS),$(if $(call prog_c,$(p)),$(p)))

UNITS    := $(patsubst tests/unit/%/,%,$(sort $(dir $(wildcard tests/unit/*/*.c))))
unit_o    = $(patsubst %.c,$(B)/%.o,$(wildcard tests/unit/$(1)/*.c))
UNIT_SHARED := $(patsubst %.c,$(B)/%.o,$(wildcard tests/unit/*.c))

# Names of queue-inject and of qctl, each with a face of its own.
FACES    := sendmail newaliases qmail-queue
LISTERS  := mailq postqueue postsuper qread

.PHONY: all
all: $(BUILT:%=$(BIN)/%) $(FACES:%=$(BIN)/%) $(LISTERS:%=$(BIN)/%)

# What is built is named; V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "$(1)  $(2)")

# Objects are made again when the flags have changed: warnings that are no
# errors do not count. A stamp that differs is made once more.
FLAGS := $(B)/flags
flags := $(strip $(CC) $(CPPFLAGS) $(filter-out $(WARN),$(CFLAGS)) $(LDFLAGS) \
	 WERROR=$(WERROR) queue_base=$(queue_base))
ifneq ($(file <$(FLAGS)),$(flags))
.PHONY: $(FLAGS)
endif
$(FLAGS):
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(flags))' >$@

$(B)/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/common/config/param.o: CPPFLAGS += -DQUEUE_BASE_DEFAULT='"$(queue_base)"'

$(LIB): $(common_o)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^

define program
$(BIN)/$(1): $(call prog_o,$(1)) $(SAN_$(1)) $(LIB)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) $$(LDFLAGS_$(1)) -o $$@ $$^ $$(LDLIBS) $$(LDLIBS_$(1))
endef
$(foreach p,$(BUILT),$(eval $(call program,$(p))))

$(FACES:%=$(BIN)/%): $(BIN)/queue-inject
	$(Q)ln -sf queue-inject $@
$(LISTERS:%=$(BIN)/%): $(BIN)/qctl
	$(Q)ln -sf qctl $@

# A folder of tests/unit is one Criterion program: "common" has the library,
# a program's folder has its objects without main. A test that hangs fails.
# Most of them wait more than they compute: four at once also on two cores.
define unit
$(B)/unit/$(1): $(call unit_o,$(1)) $(UNIT_SHARED) $(if $(filter $(1),$(PROGRAMS)),$(call logic_o,$(1))) $(LIB)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $$(LDLIBS_$(1)) -lcriterion
endef
$(foreach u,$(UNITS),$(eval $(call unit,$(u))))

.PHONY: units check-unit
units: $(UNITS:%=$(B)/unit/%)
# Several at a time with -j: some of them mostly wait.
RUNS := $(UNITS:%=run-unit-%)
.PHONY: $(RUNS)
check-unit: $(RUNS)
$(RUNS): run-unit-%: units
	@echo "unit: $* ($(VARIANT))"; tests/unit/run.sh $(B)/unit/$*

# ---- everything that is checked -------------------------------------------

.PHONY: check check-system lint layers format
check:
	tests/check.sh
check-system: all
	QSCHED_BIN=$(abspath $(BIN)) $(PYTHON) -B tests/system/run.py $(T)
lint: all
	tests/lint/lint.sh
# The calls between the folders of each program, as the objects have them.
layers: all
	python3 -B tests/lint/floors.py
format:
	clang-format -i $$(find common tests $(PROGRAMS) -name '*.[ch]')

.PHONY: demo bench bench-beside bench-explain bench-share bench-road bench-qctl \
    bench-queues bench-outage bench-out bench-joined bench-slow \
    bench-connections bench-flood
demo: all
	$(PYTHON) -B tests/demo/demo.py
bench: all $(B)/tests/bench/submit $(B)/tests/bench/decide \
    $(B)/tests/bench/places
	$(PYTHON) -B tests/bench/bench.py
# BESIDE=DIR: another checkout, built there with the same two targets.
bench-beside: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/beside.py $(BESIDE)

# BEFORE=DIR: another checkout, built there with the same two targets.
bench-road: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/road.py
# The same.
bench-connections: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/connections.py
bench-joined: $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/joined.py
bench-queues: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/queues.py
bench-outage: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/outage.py
bench-slow: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/slow.py
bench-explain: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/explain.py
bench-flood: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/flood.py
bench-share: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/share.py
bench-qctl: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/qctl.py
bench-out: all $(B)/tests/bench/submit
	$(PYTHON) -B tests/bench/out.py $(if $(WRITE),--write)

$(B)/tests/bench/submit: $(patsubst %.c,$(B)/%.o,$(wildcard tests/bench/*.c)) \
    $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/tests/bench/places: $(B)/tests/bench/sites/sites.o $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# ---- what is made from the table of parameters ----------------------------

CONF5  := build/man/qscheduler.conf.5
SAMPLE := build/etc/qscheduler.conf.sample
.PHONY: generated
generated: $(CONF5) $(SAMPLE)
ifneq ($(and $(wildcard etc/man/qscheduler.conf.5.*),$(wildcard qscheduler/main.c)),)
all: generated
endif
$(CONF5): etc/man/qscheduler.conf.5.head etc/man/qscheduler.conf.5.tail $(BIN)/qscheduler
	@mkdir -p $(@D)
	{ cat $< && $(BIN)/qscheduler --manual && cat $(word 2,$^); } >$@.new
	mv $@.new $@
$(SAMPLE): $(BIN)/qscheduler
	@mkdir -p $(@D)
	$(BIN)/qscheduler --sample >$@.new
	mv $@.new $@

# ---- installation: nothing outside of DESTDIR and prefix ------------------

sbindir    := $(prefix)/sbin
bindir     := $(prefix)/bin
libexecdir := $(prefix)/libexec/qscheduler
mandir     := $(prefix)/share/man
docdir     := $(prefix)/share/doc/qscheduler
etcdir     := $(prefix)/share/qscheduler
unitdir    := $(prefix)/lib/systemd/system

INSTALL ?= install
MANUALS := $(wildcard etc/man/*.[1-8]) $(CONF5)
# Programs that the supervisor starts lie beside it, out of people's PATH.
INSTALLED_sbin    := setqload
INSTALLED_bin     := queue-inject qctl qtop qsim
INSTALLED_libexec := qscheduler queue-send todo-proc deliver-local deliver-smtp
# The door for local mail, and qctl for readers: set-group-id for these groups
# where there are any.
qdrop_group       ?= qdrop
qmail_group       ?= qmail
# FILES, DIRECTORY: a program that runs, or that users call at that moment, is
# replaced in one step.
put_programs = for f in $(1); do n=$(DESTDIR)$(2)/$${f\#\#*/}; \
	    $(INSTALL) -m 755 $$f $$n.new && mv -f $$n.new $$n || exit 1; done
# FILE, NAME, GROUP, what only members of group qmail do without it.
put_set_group_id = n=$(DESTDIR)$(libexecdir)/$(2); \
	$(INSTALL) -m 755 $(1) $$n.new || exit 1; \
	if [ "$$(id -u)" != 0 ]; then \
	    echo "$(2) is to be root:$(3) 2711: without it only members of" \
	    "group qmail $(4)"; \
	elif chgrp $(3) $$n.new; then chmod 2711 $$n.new; else \
	    echo "$(2) is to be root:$(3) 2711, and there is no group $(3):" \
	    "run 'make install-users', then 'make install' again"; fi; \
	mv -f $$n.new $$n

# What is installed names these places as they are here.
in_place = sed -i -e 's|@libexecdir@|$(libexecdir)|g' \
	-e 's|@sbindir@|$(sbindir)|g' \
	-e 's|/var/qscheduler/queue|$(queue_base)|g' \
	-e 's|/var/qscheduler|$(patsubst %/,%,$(dir $(queue_base)))|g' \
	-e 's|qmaill:qmail |qmaill:$(qmail_group) |'

.PHONY: install install-users uninstall install-mta uninstall-mta
# On this system, whatever DESTDIR says; other names as in etc/make-users.
install-users:
	qmail_group=$(qmail_group) qdrop_group=$(qdrop_group) etc/make-users

install: all
	$(INSTALL) -d $(addprefix $(DESTDIR),$(sbindir) $(bindir) $(libexecdir) \
	    $(docdir)/docs $(etcdir)/workloads $(unitdir))
	$(call put_programs,$(INSTALLED_sbin:%=$(BIN)/%),$(sbindir))
	$(call put_programs,$(INSTALLED_libexec:%=$(BIN)/%),$(libexecdir))
	@$(call put_set_group_id,$(BIN)/queue-drop,queue-drop,$(qdrop_group),submit)
	@$(call put_set_group_id,$(BIN)/qctl,queue-look,$(qmail_group),look)
	$(call put_programs,$(INSTALLED_bin:%=$(BIN)/%),$(bindir))
	ln -sf ../libexec/qscheduler/qscheduler $(DESTDIR)$(sbindir)/qscheduler
	for face in $(FACES); do \
	    ln -sf ../../bin/queue-inject $(DESTDIR)$(libexecdir)/$$face; done
	for face in $(LISTERS); do \
	    ln -sf ../../bin/qctl $(DESTDIR)$(libexecdir)/$$face; done
	for page in $(MANUALS); do \
	    $(INSTALL) -d $(DESTDIR)$(mandir)/man$${page##*.} && \
	    $(INSTALL) -m 644 $$page $(DESTDIR)$(mandir)/man$${page##*.} || exit 1; done
	$(INSTALL) -m 644 README.md CHANGES.md LICENSE $(DESTDIR)$(docdir)
	$(INSTALL) -m 644 docs/*.md $(DESTDIR)$(docdir)/docs
	$(INSTALL) -m 644 $(SAMPLE) etc/aliases $(DESTDIR)$(etcdir)
	$(INSTALL) -m 755 etc/make-users $(DESTDIR)$(etcdir)
	$(INSTALL) -m 644 etc/workloads/*.scn $(DESTDIR)$(etcdir)/workloads
	for way in daemontools runit s6; do \
	    cp -R etc/$$way $(DESTDIR)$(etcdir)/ || exit 1; done
	$(INSTALL) -m 644 etc/systemd/qscheduler.service $(DESTDIR)$(unitdir)
	find $(DESTDIR)$(etcdir) -name run -exec $(in_place) {} +
	$(in_place) $(addprefix $(DESTDIR),$(unitdir)/qscheduler.service \
	    $(mandir)/man8/qscheduler.8)

# The names that programs of the system call, /usr/sbin/sendmail and others;
# those of another MTA are put aside, and come back.
install-mta:
	etc/system-mta install $(libexecdir) '$(DESTDIR)' $(mandir)
uninstall-mta:
	etc/system-mta remove $(libexecdir) '$(DESTDIR)' $(mandir)

uninstall: uninstall-mta
	rm -f $(addprefix $(DESTDIR)$(sbindir)/,$(INSTALLED_sbin) qscheduler)
	rm -f $(addprefix $(DESTDIR)$(bindir)/,$(INSTALLED_bin))
	rm -rf $(DESTDIR)$(libexecdir) $(DESTDIR)$(docdir) $(DESTDIR)$(etcdir)
	for page in $(notdir $(MANUALS)); do \
	    rm -f $(DESTDIR)$(mandir)/man$${page##*.}/$$page; done
	rm -rf $(DESTDIR)$(unitdir)/qscheduler.service.d
	rm -f $(DESTDIR)$(unitdir)/qscheduler.service

# ---- the Debian package ---------------------------------------------------

# Built from a copy, so that nothing of it is left in the tree.
.PHONY: deb check-deb check-host check-systemd
# RELEASE=trixie builds, and tries, the package of another release than that of
# this host.
ifneq ($(RELEASE),)
deb:
	RELEASE=$(RELEASE) tests/build-deb.sh
else
deb:
	rm -rf build/deb
	mkdir -p build/deb/source
	tar -cf - --exclude=./build --exclude='./.git*' --exclude=__pycache__ . | \
	    tar -xf - -C build/deb/source
	cd build/deb/source && DEB_BUILD_OPTIONS=noautodbgsym \
	    dpkg-buildpackage -b -us -uc -j2
	@ls build/deb/*.deb
endif
check-systemd:
	RELEASE=$(RELEASE) tests/systemd.sh
check-deb:
	RELEASE=$(RELEASE) tests/deb.sh
check-host:
	RELEASE=$(RELEASE) tests/host.sh

# Everything, from nothing, in a bare Debian of another release.
.PHONY: check-bare
check-bare:
	tests/bare.sh $(or $(RELEASE),trixie) check

.PHONY: clean
clean:
	rm -rf build

-include $(wildcard tests/*/rules.mk)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
