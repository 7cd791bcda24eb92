# make check-disk: file systems of our own (root, loop devices, FUSE, mkfs).
# 77: something could not be run here, and said so.

$(B)/tests/disk/disk: $(patsubst %.c,$(B)/%.o,$(wildcard tests/disk/*.c)) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# fsync and syncfs that lie, for the wrong order in a whole instance.
$(B)/tests/disk/lying.so: tests/disk/preload/lying.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -shared -fPIC -o $@ $<

.PHONY: check-disk check-disk-cuts check-disk-whole
check-disk:
	@$(MAKE) --no-print-directory -k -j1 check-disk-cuts check-disk-whole
check-disk-cuts: $(B)/tests/disk/disk
	@$(B)/tests/disk/disk || [ $$? -eq 77 ]
check-disk-whole: all $(B)/tests/disk/disk $(B)/tests/disk/lying.so
	@$(PYTHON) -B tests/disk/whole.py $(B)/tests/disk/disk || [ $$? -eq 77 ]
