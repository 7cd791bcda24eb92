# make storm S=600 SEED=n: a whole instance, shared and private, under load and
# faults of every kind; in the end all mail is accounted for (tests/README.md).
S     ?= 60
SEED  ?= 1
STORM := $(PYTHON) -B tests/storm/storm.py

.PHONY: storm hostile
storm: $(if $(filter command line,$(origin BIN)),,all)
	$(STORM) --seconds $(S) --seed $(SEED) --bin $(BIN) $(STORM_OPTIONS)

# make hostile S=600: eight hostile users beside two honest ones.
hostile: $(if $(filter command line,$(origin BIN)),,all)
	$(STORM) --place hostile --seconds $(S) --seed $(SEED) --bin $(BIN) \
	    $(STORM_OPTIONS)
