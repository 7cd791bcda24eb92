#include "queue-inject/message.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
source_init(
    struct source *s, int fd, bool dot, usec_t deadline_mono, int stop_fd)
{
	*s = (struct source){
		.fd = fd,
		.dot = dot,
		.deadline_mono = deadline_mono,
		.stop_fd = stop_fd,
		.line_start = true,
		.buf = malloc(SOURCE_BUFFER),
	};
	return s->buf == NULL ? -ENOMEM : 0;
}

void
source_done(struct source *s)
{
	free(s->buf);
	s->buf = NULL;
}

int
source_wait(const struct source *s, int fd, short events)
{
	struct pollfd fds[2] = {
		{ .fd = fd, .events = events },
		{ .fd = s->stop_fd, .events = POLLIN },
	};
	usec_t left_ms = (s->deadline_mono - clock_mono()) / USEC_PER_MSEC;
	int n;

	if (left_ms < 0)
		left_ms = 0;
	n = poll(fds, 2, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	/* A reply that can be written is, also after a signal. */
	if (fds[1].revents != 0 && (events == POLLIN || fds[0].revents == 0))
		return -ECANCELED;
	return n == 0 ? -ETIMEDOUT : 0;
}

#define CRS_MAX (SOURCE_BUFFER / 2) /* held back for the LF that may follow */

/* Make room at the end of the buffer: bytes that were taken go, and with them
 * the mark. */
static void
make_room(struct source *s)
{
	size_t keep = s->len - s->next;

	if (s->len < SOURCE_BUFFER)
		return;
	memmove(s->buf, s->buf + s->next, keep);
	s->mark_lost |= s->mark < s->next;
	s->mark = 0;
	s->limit -= s->next;
	s->known -= s->next;
	s->next = 0;
	s->len = keep;
}

/* CRs in front of a LF go; those at the end wait for what follows them. */
static void
drop_crs(struct source *s)
{
	const char *cr = memchr(s->buf + s->known, '\r', s->len - s->known);
	size_t in = cr == NULL ? s->len : (size_t)(cr - s->buf), out = in;
	size_t first = s->known;

	for (; in < s->len; in++) {
		if (s->buf[in] == '\n')
			while (out > first && s->buf[out - 1] == '\r')
				out--;
		s->buf[out++] = s->buf[in];
	}
	s->len = s->known = out;
	while (!s->eof && s->known > first && out - s->known < CRS_MAX &&
	    s->buf[s->known - 1] == '\r')
		s->known--;
}

static ssize_t
read_fd(struct source *s, char *buf, size_t size)
{
	int r = source_wait(s, s->fd, POLLIN);
	ssize_t n;

	if (r < 0)
		return r;
	n = read(s->fd, buf, size);
	return n < 0 ? -errno : n;
}

static int
fill(struct source *s)
{
	char *to;
	size_t room;
	ssize_t n;

	make_room(s);
	to = s->buf + s->len;
	room = SOURCE_BUFFER - s->len;
	n = s->read != NULL ? s->read(s->arg, to, room) : read_fd(s, to, room);
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	if (n == 0)
		s->eof = true;
	s->len += (size_t)n;
	if (s->lf)
		drop_crs(s);
	else
		s->known = s->len;
	return 0;
}

/* At the start of a line, from: a dot alone on it? 1 yes, 0 no, -1 not known
 * before more is read. */
static int
lone_dot(const struct source *s, size_t from)
{
	const char *p = s->buf + from;
	size_t left = s->known - from;

	if (left == 0 || p[0] != '.')
		return left == 0 && !s->eof ? -1 : 0;
	if (left == 1)
		return s->eof ? 1 : -1;
	if (p[1] == '\n')
		return 1;
	if (p[1] != '\r')
		return 0;
	if (left == 2)
		return s->eof ? 0 : -1;
	return p[2] == '\n' ? 1 : 0;
}

/* Move the limit over whole lines and the beginning of the last one, up to a
 * lone dot. */
static void
find_limit(struct source *s)
{
	while (s->limit < s->known) {
		const char *lf;

		if (s->line_start) {
			int dot = lone_dot(s, s->limit);

			if (dot < 0)
				return;
			if (dot > 0) {
				s->eof = true;
				s->len = s->known = s->limit;
				return;
			}
		}
		lf = memchr(s->buf + s->limit, '\n', s->known - s->limit);
		s->line_start = lf != NULL;
		s->limit = lf == NULL ? s->known : (size_t)(lf - s->buf) + 1;
	}
}

int
source_peek(struct source *s, const char **ret_data, size_t *ret_len)
{
	while (s->next == s->limit) {
		int r;

		if (s->eof)
			return 0;
		r = fill(s);
		if (r < 0)
			return r;
		if (s->dot)
			find_limit(s);
		else
			s->limit = s->known;
	}
	*ret_data = s->buf + s->next;
	*ret_len = s->limit - s->next;
	return 1;
}

void
source_take(struct source *s, size_t len)
{
	ASSERT(len <= s->limit - s->next);
	s->next += len;
}

void
source_mark(struct source *s)
{
	s->mark = s->next;
	s->mark_lost = false;
}

bool
source_rewind(struct source *s)
{
	if (s->mark_lost)
		return false;
	s->next = s->mark;
	return true;
}
