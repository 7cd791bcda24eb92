# make check-disk: file systems of our own (root, loop devices, FUSE, mkfs).
# 77: something could not be run here, and said so.

$(B)/tests/disk/disk: $(patsubst %.c,$(B)/%.o,$(wildcard tests/disk/*.c)) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: check-disk
check-disk: $(B)/tests/disk/disk
	@$< || [ $$? -eq 77 ]
