/* The face of qmail-queue: the message on descriptor 0, then the envelope on
 * descriptor 1; nothing is added but Received. */
#include "queue-inject/inject.h"

#include <errno.h>
#include <fcntl.h>

#define ENVELOPE_FD 1

int
qmail_prepare(struct inject *inject)
{
	const char *data;
	size_t len;
	int r = source_peek(&inject->source, &data, &len);

	if (r < 0)
		return message_refuse_source(&inject->why, r);
	inject->eol = header_line_end(data, r == 0 ? 0 : len);
	return 0;
}

int
qmail_envelope(struct inject *inject)
{
	struct envelope_reader rd = { 0 };
	struct source src;
	const char *data;
	size_t len;
	int r = 1;

	if (source_init(&src, ENVELOPE_FD, false, inject->deadline_mono,
		inject->stop_fd) < 0)
		return refuse(&inject->why, REFUSAL_MEMORY, "out of memory");
	/* The far end of a pipe is never readable, and no error to poll(). */
	if ((fcntl(ENVELOPE_FD, F_GETFL) & O_ACCMODE) == O_WRONLY) {
		message_refuse_source(&inject->why, -EBADF);
		r = -1;
	}
	while (r > 0) {
		r = source_peek(&src, &data, &len);
		if (r < 0)
			message_refuse_source(&inject->why, r);
		if (r <= 0)
			break;
		source_take(&src, len);
		if (envelope_feed(
			&rd, &inject->envelope, data, len, &inject->why) < 0)
			r = -1;
	}
	if (r == 0)
		r = envelope_finish(&rd, &inject->envelope, &inject->why);
	buf_done(&rd.address);
	source_done(&src);
	return r;
}
