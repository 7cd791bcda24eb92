# Small plain programs under ThreadSanitizer (tests/README.md).
TSAN := $(patsubst tests/tsan/%.c,%,$(wildcard tests/tsan/*.c))

$(TSAN:%=$(B)/tests/tsan/%): $(B)/tests/tsan/%: $(B)/tests/tsan/%.o $(LIB)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LDLIBS)

$(B)/tests/tsan/moves: $(B)/queue-send/road/move_task.o
$(B)/tests/tsan/acts: $(B)/queue-send/operators/act_task.o
$(B)/tests/tsan/moves $(B)/tests/tsan/acts: $(B)/tests/tsan/drive/drive.o

.PHONY: check-tsan run-tsan
check-tsan:
	@$(MAKE) SAN=thread run-tsan
run-tsan: $(TSAN:%=$(B)/tests/tsan/%)
	@tests/tsan/run.sh $(TSAN:%=$(B)/tests/tsan/%)
