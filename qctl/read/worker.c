/* The worker's side. */
#include "qctl/read/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define SEND_BYTES (32 << 10)
#define SEND_TIME  (50 * USEC_PER_MSEC)
#define STEP_TIME  (500 * USEC_PER_MSEC)

/* A parent that has ended needs nothing more. */
static void
send_frame(
    struct worker *w, enum worker_frame type, const void *data, size_t len)
{
	const struct frame_head head = { type, (uint32_t)len, w->messages,
		w->bytes };

	if (io_write_all(w->fd, &head, sizeof(head)) < 0 ||
	    io_write_all(w->fd, data, len) < 0)
		_exit(1);
	w->messages = w->bytes = 0;
	w->sent_mono = clock_mono();
}

static void
send_text(struct worker *w, enum worker_frame type)
{
	const char *text = buf_str(&w->out);
	size_t left = w->out.len;

	for (; left > WORKER_FRAME_MAX; left -= WORKER_FRAME_MAX) {
		send_frame(w, WORKER_PART, text, WORKER_FRAME_MAX);
		text += WORKER_FRAME_MAX;
	}
	send_frame(w, type, text, left);
	buf_reset(&w->out);
}

int
worker_text(struct worker *w, const char *text, size_t len)
{
	int r = buf_add(&w->out, text, len);

	w->within = true;
	if (r == 0 && w->out.len >= WORKER_FRAME_MAX)
		send_text(w, WORKER_PART);
	return r;
}

void
worker_message(struct worker *w, uint64_t bytes)
{
	w->within = false;
	w->messages++;
	w->bytes += bytes;
	if (w->out.len >= SEND_BYTES || clock_mono() - w->sent_mono > SEND_TIME)
		send_text(w, WORKER_TEXT);
}

void
worker_step(struct worker *w)
{
	const usec_t since = clock_mono() - w->sent_mono;

	if (since > STEP_TIME || (w->messages > 0 && since > SEND_TIME))
		send_text(w, w->within ? WORKER_PART : WORKER_TEXT);
}

void
worker_note(struct worker *w, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send_frame(w, WORKER_NOTE, text, strlen(text));
}

void
worker_row(struct worker *w, const void *data, size_t len)
{
	ASSERT(len <= WORKER_FRAME_MAX);
	send_frame(w, WORKER_ROW, data, len);
}

void
worker_denied(struct worker *w)
{
	send_frame(w, WORKER_DENIED, "", 0);
}

int
worker_main(const struct worker_job *job, int fd, uint32_t queue)
{
	struct worker w = { .fd = fd, .queue = queue };
	int code = job->run(&w, job->arg);

	send_text(&w, WORKER_TEXT);
	send_frame(&w, WORKER_DONE, "", 0);
	buf_done(&w.out);
	return code;
}
