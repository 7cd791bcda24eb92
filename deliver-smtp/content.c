#include "deliver-smtp/net.h"

#include <errno.h>

#include "base/io.h"

/* One turn of the loop fills and empties it: sessions share it. */
static char slice[CONTENT_SLICE];

void
content_begin(
    struct content *c, const char *data, int fd, uint64_t off, uint64_t len)
{
	*c = (struct content){ .data = data, .fd = fd, .left = len };
	c->off = data == NULL ? off : 0;
}

static int
read_slice(struct content *c, const char **ret_data, size_t *ret_len)
{
	size_t want = c->left < sizeof(slice) ? (size_t)c->left : sizeof(slice);
	int64_t got = (int64_t)want;

	*ret_data = c->data == NULL ? slice : c->data + c->off;
	if (c->data == NULL)
		got = io_pread_all(c->fd, slice, want, (int64_t)c->off);
	if (got < 0)
		return (int)got;
	if ((size_t)got < want)
		return -ENODATA;
	c->off += want;
	c->left -= want;
	*ret_len = want;
	return 0;
}

int
content_add(struct content *c, struct buf *out)
{
	const char *data;
	size_t len = 0;
	int r;

	ASSERT(!c->ended);
	r = read_slice(c, &data, &len);
	if (r == 0)
		r = buf_reserve(out, SMTP_ENCODE_MAX(len) + SMTP_ENCODE_MAX(0));
	if (r < 0)
		return r;
	out->len +=
	    smtp_encode_feed(&c->encode, data, len, out->data + out->len);
	if (c->left > 0)
		return 0;
	out->len += smtp_encode_end(&c->encode, out->data + out->len);
	c->ended = true;
	return 0;
}
