# Models, verified by spin (tests/README.md).
.PHONY: check-model
check-model:
	tests/model/run.sh
