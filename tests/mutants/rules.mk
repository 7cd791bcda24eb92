# make mutants: break the code of each catalogue row and watch its test fail
# (tests/README.md). R="D13 I7" chooses rows, J= how many at once.
.PHONY: mutants
mutants: all units
	@$(PYTHON) -B tests/mutants/run.py --jobs $(J) $(R)
