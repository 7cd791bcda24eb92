# The cases of decisions (tests/bench/sched), measured by time.
DECIDE_c := $(wildcard tests/bench/sched/*.c)
STEPS_only := tests/bench/sched/check.c tests/bench/sched/steps.c
decide_o = $(patsubst %.c,$(B)/%.o,$(filter-out $(1),$(DECIDE_c)))

$(B)/tests/bench/decide: $(call decide_o,$(STEPS_only)) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The same, measured by steps (tests/bench/sched/steps.c): the scheduler and its
# table of destinations, built so that each basic block calls a function. The
# steps of the thread that wakes a process depend on time.
STEPS_c := $(filter-out %/shared_waker.c, \
    $(wildcard common/sched/*.c common/site/*.c)) common/base/pages.c \
    common/base/slab.c
STEPS_o := $(STEPS_c:%.c=$(B)/steps/%.o)

$(STEPS_o): $(B)/steps/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(call say,CC,$< for steps)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize-coverage=trace-pc -MMD -MP \
	    -c -o $@ $<
-include $(STEPS_o:.o=.d)

$(B)/tests/bench/steps: \
    $(call decide_o,tests/bench/sched/decide.c) $(STEPS_o) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,--wrap=realloc,--wrap=calloc -o $@ $^ $(LDLIBS)

.PHONY: check-steps
check-steps: $(B)/tests/bench/steps
	$(B)/tests/bench/steps
