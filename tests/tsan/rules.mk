# Small plain programs under ThreadSanitizer (tests/README.md).
TSAN := $(patsubst tests/tsan/%.c,%,$(wildcard tests/tsan/*.c))

$(TSAN:%=$(B)/tests/tsan/%): $(B)/tests/tsan/%: $(B)/tests/tsan/%.o $(LIB)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LDLIBS)

$(B)/tests/tsan/moves: $(B)/queue-send/message/move_task.o
$(B)/tests/tsan/acts: $(B)/queue-send/disk/act_task.o
$(B)/tests/tsan/moves $(B)/tests/tsan/acts: $(B)/tests/tsan/drive/drive.o

# The daemons as a whole instance: not part of check-tsan. The control comes
# first: queue-send and todo-proc have a race in it.
TSAN_BIN := build/tsan-bin
TSAN_DAEMONS := qscheduler queue-send todo-proc deliver-local deliver-smtp
TSAN_RACED := queue-send todo-proc
define raced
$(B)/tests/tsan/raced/$(1): $(call prog_o,$(1)) $(B)/tests/tsan/race/race.o $(LIB)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) -Wl,--wrap=clock_mono -o $$@ $$^ $$(LDLIBS)
endef
$(foreach p,$(TSAN_RACED),$(eval $(call raced,$(p))))

.PHONY: tsan-instance run-tsan-instance
tsan-instance: all
	@mkdir -p $(TSAN_BIN)
	@cp -p $(BIN)/* $(TSAN_BIN)
	@$(MAKE) SAN=thread run-tsan-instance
run-tsan-instance: $(TSAN_DAEMONS:%=$(BIN)/%) \
    $(TSAN_RACED:%=$(B)/tests/tsan/raced/%)
	@cp $(TSAN_DAEMONS:%=$(BIN)/%) $(TSAN_BIN)
	@cp $(TSAN_RACED:%=$(B)/tests/tsan/raced/%) $(TSAN_BIN)
	@$(PYTHON) -B tests/tsan/instance.py --control $(TSAN_BIN)
	@cp $(TSAN_RACED:%=$(BIN)/%) $(TSAN_BIN)
	@$(PYTHON) -B tests/tsan/instance.py $(TSAN_BIN) $(or $(S),60) $(SEED)

.PHONY: check-tsan run-tsan
check-tsan:
	@$(MAKE) SAN=thread run-tsan
run-tsan: $(TSAN:%=$(B)/tests/tsan/%)
	@tests/tsan/run.sh $(TSAN:%=$(B)/tests/tsan/%)
