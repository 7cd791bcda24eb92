#include "log/parts.h"

#include <errno.h>

size_t
log_batch_start(const struct log_batch *b, size_t i)
{
	return i == 0 ? 0 : b->ends[i - 1];
}

int
log_batch_add(struct log_batch *b, const char *line, size_t len)
{
	int r;

	if (b->count == LOG_BATCH_LINES || b->data.len + len > LOG_BATCH_BYTES)
		return -ENOBUFS;
	r = buf_add(&b->data, line, len);
	if (r < 0)
		return r;
	b->ends[b->count++] = b->data.len;
	return 0;
}

void
log_batch_reset(struct log_batch *b)
{
	buf_reset(&b->data);
	b->count = 0;
}
