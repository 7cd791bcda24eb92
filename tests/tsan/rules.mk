# Small plain programs under ThreadSanitizer (tests/README.md).
TSAN := $(patsubst tests/tsan/%.c,%,$(wildcard tests/tsan/*.c))

$(TSAN:%=$(B)/tests/tsan/%): $(B)/tests/tsan/%: $(B)/tests/tsan/%.o $(LIB)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LDLIBS)

$(B)/tests/tsan/moves: $(B)/queue-send/road/move_task.o
$(B)/tests/tsan/acts: $(B)/queue-send/operators/act_task.o
$(B)/tests/tsan/moves $(B)/tests/tsan/acts: $(B)/tests/tsan/drive/drive.o

# queue-send and todo-proc as a whole instance: not part of check-tsan.
TSAN_BIN := build/tsan-bin
.PHONY: tsan-instance
tsan-instance: all
	@$(MAKE) SAN=thread build/gcc-thread/bin/queue-send \
	    build/gcc-thread/bin/todo-proc
	@mkdir -p $(TSAN_BIN)
	@cp -p $(BIN)/* $(TSAN_BIN)
	@cp build/gcc-thread/bin/queue-send build/gcc-thread/bin/todo-proc \
	    $(TSAN_BIN)
	@/usr/bin/python3 -B tests/tsan/instance.py $(TSAN_BIN)

.PHONY: check-tsan run-tsan
check-tsan:
	@$(MAKE) SAN=thread run-tsan
run-tsan: $(TSAN:%=$(B)/tests/tsan/%)
	@tests/tsan/run.sh $(TSAN:%=$(B)/tests/tsan/%)
