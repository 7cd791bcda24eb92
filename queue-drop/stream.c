#include "queue-drop/door.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "spool/door.h"

void
stream_init(struct stream *s, int fd)
{
	s->fd = fd;
	s->from = s->to = 0;
}

/* Fills an empty buffer. The number of bytes in it, 0 at the end. */
static int64_t
fill(struct stream *s)
{
	ssize_t n;

	if (s->from < s->to)
		return (int64_t)(s->to - s->from);
	s->from = s->to = 0;
	do
		n = read(s->fd, s->buf, sizeof(s->buf));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->to = (size_t)n;
	return n;
}

static int
take(struct stream *s, void *out, size_t len)
{
	char *to = out;
	size_t part;
	int64_t n;

	for (; len > 0; len -= part, to += part) {
		n = fill(s);
		if (n <= 0)
			return n < 0 ? (int)n : -EPROTO;
		part = (size_t)n < len ? (size_t)n : len;
		memcpy(to, s->buf + s->from, part);
		s->from += part;
	}
	return 0;
}

int
stream_next(struct stream *s, struct stream_record *ret_record)
{
	unsigned char head[DOOR_RECORD];
	int r = take(s, head, sizeof(head));

	if (r < 0)
		return r;
	ret_record->type = (char)head[0];
	ret_record->left = bytes_get_u32(head + 1);
	return 0;
}

int64_t
stream_bytes(struct stream *s, struct stream_record *record, const char **ret)
{
	int64_t n = fill(s);

	if (n <= 0)
		return n < 0 ? n : -EPROTO;
	if ((uint64_t)n > record->left)
		n = record->left;
	*ret = s->buf + s->from;
	s->from += (size_t)n;
	record->left -= (uint32_t)n;
	return n;
}

int
stream_short(
    struct stream *s, struct stream_record *record, char *out, uint32_t max)
{
	if (record->left > max)
		return -EPROTO;
	return take(s, out, record->left);
}

int
stream_end(struct stream *s)
{
	int64_t n = fill(s);

	return n > 0 ? -EPROTO : (int)n;
}
