#include "ipc/outbox.h"

#include "base/io.h"

#include <errno.h>
#include <stdlib.h>

struct datagram {
	TAILQ_ENTRY(datagram) link;
	struct buf frames;
	int fd; /* of the first of them, or -1 */
};

void
outbox_init(struct outbox *o, bool bundles)
{
	*o = (struct outbox){ .bundles = bundles };
	TAILQ_INIT(&o->list);
}

bool
outbox_is_empty(const struct outbox *o)
{
	return TAILQ_EMPTY(&o->list);
}

static void
drop_first(struct outbox *o)
{
	struct datagram *first = TAILQ_FIRST(&o->list);

	TAILQ_REMOVE(&o->list, first, link);
	o->bytes -= first->frames.len;
	io_close(&first->fd);
	buf_done(&first->frames);
	free(first);
}

void
outbox_clear(struct outbox *o)
{
	while (!outbox_is_empty(o))
		drop_first(o);
}

/* The frame goes behind those of that datagram. */
static int
append(struct outbox *o, struct datagram *to, const struct msg *msg)
{
	const size_t before = to->frames.len;
	int r = msg_encode(msg, &to->frames);

	if (r == 0 && o->bytes + to->frames.len - before > OUTBOX_MAX) {
		to->frames.len = before;
		r = -ENOBUFS;
	}
	if (r == 0)
		o->bytes += to->frames.len - before;
	return r;
}

static int
put_alone(struct outbox *o, const struct msg *msg, int *fd)
{
	struct datagram *fresh = malloc(sizeof(*fresh));
	int r;

	if (fresh == NULL)
		return -ENOMEM;
	*fresh = (struct datagram){ .fd = -1 };
	r = append(o, fresh, msg);
	if (r < 0) {
		buf_done(&fresh->frames);
		free(fresh);
		return r;
	}
	fresh->fd = *fd;
	*fd = -1;
	TAILQ_INSERT_TAIL(&o->list, fresh, link);
	return 0;
}

int
outbox_put(struct outbox *o, const struct msg *msg, int *fd)
{
	struct datagram *last = TAILQ_LAST(&o->list, datagram_list);

	if (o->bundles && *fd < 0 && last != NULL &&
	    last->frames.len < CHAN_BUNDLE)
		return append(o, last, msg);
	return put_alone(o, msg, fd);
}

/* Several datagrams in one call: their number, or -errno. */
static int
send_some(const struct outbox *o, int sock, unsigned max)
{
	const struct datagram *d = TAILQ_FIRST(&o->list);
	struct chan_out out[CHAN_MANY];
	unsigned n = 0;

	for (; d != NULL && n < CHAN_MANY && n < max; d = TAILQ_NEXT(d, link))
		out[n++] = (struct chan_out){ &d->frames, d->fd };
	return chan_send_many(sock, out, n);
}

int
outbox_send(struct outbox *o, int sock, unsigned max)
{
	int r = 0;

	while (r >= 0 && max > 0 && !outbox_is_empty(o)) {
		r = send_some(o, sock, max);
		for (; r > 0; r--, max--)
			drop_first(o);
	}
	return r;
}
