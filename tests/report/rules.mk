# make check-report: reports of delivery, read by parsers that were not written
# here (tests/README.md).
$(B)/tests/report/build: $(B)/tests/report/build.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: check-report run-report
check-report:
	@$(MAKE) --no-print-directory SAN=address,undefined run-report
run-report: $(B)/tests/report/build
	@$(PYTHON) -B tests/report/check.py $(B)/tests/report/build
