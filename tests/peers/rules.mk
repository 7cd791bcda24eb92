# make check-peers: delivery to servers of other people, of Debian's packages,
# which are unpacked into build/peers and not installed (tests/README.md).
.PHONY: check-peers
check-peers: all
	@QSCHED_BIN=$(abspath $(BIN)) $(PYTHON) -B tests/peers/check.py $(T)
