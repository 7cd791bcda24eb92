# make storm S=600 SEED=n: a whole instance, shared and private, under load and
# faults of every kind; in the end all mail is accounted for (tests/README.md).
S     ?= 60
SEED  ?= 1
STORM := $(PYTHON) -B tests/storm/storm.py

.PHONY: storm hostile hostile-each
storm: $(if $(filter command line,$(origin BIN)),,all)
	$(STORM) --seconds $(S) --seed $(SEED) --bin $(BIN) $(STORM_OPTIONS)

# make hostile S=600: eight hostile users beside two honest ones.
hostile: $(if $(filter command line,$(origin BIN)),,all)
	$(STORM) --place hostile --seconds $(S) --seed $(SEED) --bin $(BIN) \
	    $(STORM_OPTIONS)

# make hostile-each S=20: each attack on what all users share, alone.
AIMED := expand reports mailbox memory silent unknown
hostile-each: $(if $(filter command line,$(origin BIN)),,all)
	status=0; for b in $(AIMED); do \
	    $(STORM) --place hostile --seconds $(S) --seed $(SEED) --bin $(BIN) \
		--behaviours $$b $(STORM_OPTIONS) >build/storm/each-$$b 2>&1 || status=1; \
	    sed -n "s/^hostile: \(honest mail, from\|FAILED\)/$$b: \1/p" build/storm/each-$$b; \
	done; exit $$status
