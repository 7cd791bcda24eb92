/* The face of qmail-queue: the message on descriptor 0, then the envelope on
 * descriptor 1; nothing is added but Received. */
#include "queue-inject/job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define ENVELOPE_FD 1

int
qmail_prepare(struct job *job)
{
	const char *data, *lf;
	size_t len;
	int r = source_peek(&job->source, &data, &len);

	if (r < 0)
		return message_refuse_source(&job->why, r);
	lf = r == 0 ? NULL : memchr(data, '\n', len);
	job->eol = lf != NULL && lf > data && lf[-1] == '\r' ? "\r\n" : "\n";
	return 0;
}

int
qmail_content(struct job *job)
{
	return job_copy(job);
}

int
qmail_envelope(struct job *job)
{
	struct envelope_reader rd = { 0 };
	struct source src;
	const char *data;
	size_t len;
	int r = 1;

	if (source_init(
		&src, ENVELOPE_FD, false, job->deadline_mono, job->stop_fd) < 0)
		return refuse(&job->why, REFUSAL_MEMORY, "out of memory");
	/* The far end of a pipe is never readable, and no error to poll(). */
	if ((fcntl(ENVELOPE_FD, F_GETFL) & O_ACCMODE) == O_WRONLY) {
		message_refuse_source(&job->why, -EBADF);
		r = -1;
	}
	while (r > 0) {
		r = source_peek(&src, &data, &len);
		if (r < 0)
			message_refuse_source(&job->why, r);
		if (r <= 0)
			break;
		source_take(&src, len);
		if (envelope_feed(&rd, &job->envelope, data, len, &job->why) <
		    0)
			r = -1;
	}
	if (r == 0)
		r = envelope_finish(&rd, &job->envelope, &job->why);
	buf_done(&rd.address);
	source_done(&src);
	return r;
}
