#include "spool/reason.h"

#include <errno.h>
#include <stdlib.h>

struct told {
	uint32_t count;
	unsigned char *bits; /* of recipients with a reason */
};

static int
note_reason(const struct reason *reason, void *arg)
{
	struct told *told = arg;

	if (reason->index < told->count)
		told->bits[reason->index / 8] |=
		    (unsigned char)(1u << reason->index % 8);
	return 0;
}

static int
compare(const struct spool *sp, int fd, const struct queue_file *file,
    const struct told *told, bool unmark, uint32_t *count)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	int r;

	queue_rcpt_begin(&cursor, file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		if (rcpt.mark != RCPT_FAILED ||
		    (told->bits[rcpt.index / 8] & 1u << rcpt.index % 8) != 0)
			continue;
		r = unmark
		    ? queue_file_mark(sp->sys, fd, rcpt.offset, RCPT_PENDING)
		    : 0;
		if (r < 0)
			break;
		(*count)++;
	}
	return r;
}

int
reason_compare_marks(
    const struct spool *sp, int fd, uint64_t name, bool unmark, uint32_t *count)
{
	struct told told = { 0 };
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	if (r == 0) {
		told.count = file.rcpt_count;
		told.bits = calloc(1, told.count / 8 + 1);
		r = told.bits == NULL ? -ENOMEM : 0;
	}
	if (r == 0)
		r = reason_read(sp, SPOOL_BOUNCE, name, note_reason, &told);
	if (r == 0 || r == -ENOENT)
		r = compare(sp, fd, &file, &told, unmark, count);
	free(told.bits);
	return r;
}
