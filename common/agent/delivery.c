#include "agent/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/address.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "config/conf.h"

int
agent_record_add(
    struct buf *list, uint32_t number, const char *text, size_t len)
{
	unsigned char head[AGENT_RECORD_HEAD];
	int r = buf_reserve(list, sizeof(head) + len);

	if (r < 0)
		return r;
	bytes_put_u32(head, number);
	bytes_put_u32(head + 4, (uint32_t)len);
	(void)buf_add(list, head, sizeof(head));
	return buf_add(list, text, len);
}

bool
agent_record_take(
    struct msg_str *left, uint32_t *ret_number, struct msg_str *ret_text)
{
	size_t len;

	if (left->len < AGENT_RECORD_HEAD)
		return false;
	len = bytes_get_u32(left->data + 4);
	if (len > left->len - AGENT_RECORD_HEAD)
		return false;
	*ret_number = bytes_get_u32(left->data);
	*ret_text = (struct msg_str){ left->data + AGENT_RECORD_HEAD, len };
	left->data += AGENT_RECORD_HEAD + len;
	left->len -= AGENT_RECORD_HEAD + len;
	return true;
}

int
agent_rcpt_add(
    struct buf *rcpts, uint32_t index, const char *address, size_t len)
{
	int r = address_check(address, len);

	return r < 0 ? r : agent_record_add(rcpts, index, address, len);
}

/* No control characters; at most max bytes. */
static bool
plain(const struct msg_str *s, size_t min, size_t max)
{
	size_t i;

	if (s->len < min || s->len > max)
		return false;
	for (i = 0; i < s->len; i++)
		if ((unsigned char)s->data[i] < 0x20 || s->data[i] == 0x7f)
			return false;
	return true;
}

static bool
rcpts_are_right(const struct msg_DELIVER *f)
{
	struct msg_str left = f->rcpts, address;
	uint32_t i, index;

	if (f->nrcpts < 1 || f->nrcpts > AGENT_RCPTS_MAX)
		return false;
	for (i = 0; i < f->nrcpts; i++)
		if (!agent_record_take(&left, &index, &address) ||
		    address_check(address.data, address.len) < 0)
			return false;
	return left.len == 0;
}

/* A queue file that is open for reading only: an agent takes nothing else, so
 * that it never writes to a file by mistake. */
static const char *
judge_file(const struct msg_DELIVER *f, int fd)
{
	struct stat st;
	uint64_t end;
	int flags;

	if (fd < 0)
		return "no descriptor";
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || flags & O_PATH)
		return "descriptor is not open for reading only";
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "descriptor is not a regular file";
	if (__builtin_add_overflow(f->content_off, f->content_len, &end) ||
	    end > (uint64_t)st.st_size)
		return "content beyond the end of the file";
	return NULL;
}

static const char *
judge(const struct msg_DELIVER *f)
{
	if (f->kind >= AGENT_NKINDS)
		return "kind";
	if (!plain(&f->id, 1, AGENT_ID_MAX))
		return "queue id";
	if (!plain(&f->transport, 1, AGENT_NAME_MAX))
		return "transport";
	if (!plain(&f->nexthop, 0, AGENT_NEXTHOP_MAX))
		return "nexthop";
	if (!plain(&f->sender, 0, ADDRESS_MAX))
		return "sender";
	if (!rcpts_are_right(f))
		return "recipients";
	return NULL;
}

static char *
place_string(char **next, const struct msg_str *s)
{
	char *at = *next;

	if (s->len > 0)
		memcpy(at, s->data, s->len);
	at[s->len] = '\0';
	*next = at + s->len + 1;
	return at;
}

static void
fill_strings(struct agent_delivery *d, const struct msg_DELIVER *f)
{
	struct msg_str left = f->rcpts, address;
	char *next = d->strings;
	uint32_t i;

	d->id = place_string(&next, &f->id);
	d->transport = place_string(&next, &f->transport);
	d->nexthop = place_string(&next, &f->nexthop);
	d->sender = place_string(&next, &f->sender);
	for (i = 0; i < f->nrcpts; i++) {
		/* rcpts_are_right() has taken each of them. */
		ASSERT(agent_record_take(&left, &d->rcpts[i].index, &address));
		d->rcpts[i].address = place_string(&next, &address);
	}
}

/* Of a frame that was judged; content: NULL, or all of it. */
static int
make(const struct msg_DELIVER *f, const struct msg_str *content,
    struct agent_delivery **ret_delivery)
{
	struct agent_delivery *d = calloc(1, sizeof(*d));
	size_t strings = f->id.len + f->transport.len + f->nexthop.len +
	    f->sender.len + f->rcpts.len + 4;
	size_t whole = content == NULL ? 0 : content->len;

	if (d == NULL)
		return -ENOMEM;
	d->fd = -1;
	d->rcpts = calloc(f->nrcpts, sizeof(*d->rcpts));
	/* The heads of the recipients leave more than room for their NULs. */
	d->strings = malloc(strings + whole + 1);
	if (d->rcpts == NULL || d->strings == NULL) {
		agent_delivery_free(&d);
		return -ENOMEM;
	}
	d->number = f->job;
	d->kind = f->kind;
	d->content_off = f->content_off;
	d->content_len = f->content_len;
	d->flags = f->flags;
	d->nrcpts = f->nrcpts;
	d->received_at = clock_mono();
	fill_strings(d, f);
	if (content != NULL)
		d->content = memcpy(d->strings + strings, content->data, whole);
	*ret_delivery = d;
	return 0;
}

int
agent_delivery_new(const struct msg_DELIVER *f, int fd,
    struct agent_delivery **ret_delivery, const char **ret_what)
{
	const char *what = judge(f);
	int r;

	if (what == NULL)
		what = judge_file(f, fd);
	if (what != NULL) {
		*ret_what = what;
		return -EBADMSG;
	}
	r = make(f, NULL, ret_delivery);
	if (r == 0)
		(*ret_delivery)->fd = fd;
	return r;
}

int
agent_delivery_new_whole(const struct msg_DELIVER_WHOLE *f,
    struct agent_delivery **ret_delivery, const char **ret_what)
{
	const struct msg_DELIVER same = { .job = f->job,
		.id = f->id,
		.kind = f->kind,
		.transport = f->transport,
		.nexthop = f->nexthop,
		.sender = f->sender,
		.content_len = f->content.len,
		.flags = f->flags,
		.nrcpts = f->nrcpts,
		.rcpts = f->rcpts };

	*ret_what = judge(&same);
	if (*ret_what != NULL)
		return -EBADMSG;
	*ret_what = "out of memory";
	return make(&same, &f->content, ret_delivery);
}

int
agent_delivery_place(struct agent_delivery *d, const char *site)
{
	const struct msg_str text = MSG_S(site);

	if (!plain(&text, 1, AGENT_SITE_MAX))
		return -EBADMSG;
	d->site = strdup(site);
	return d->site == NULL ? -ENOMEM : 0;
}

void
agent_delivery_free(struct agent_delivery **delivery)
{
	struct agent_delivery *d = *delivery;

	*delivery = NULL;
	if (d == NULL)
		return;
	io_close(&d->fd);
	free(d->rcpts);
	free(d->strings);
	free(d->wishes);
	free(d->site);
	free(d);
}

const char *
agent_cancelled(enum agent_stage stage)
{
	static const char late[] =
	    "no server has greeted within smtp_ungreeted_time, and other mail "
	    "waits for the slot";
	static const char *const texts[AGENT_NSTAGES] = {
		[AGENT_NOT_BEGUN] = AGENT_STOPPED,
		[AGENT_NOT_ACCEPTED] = "delivery interrupted by an operator",
		[AGENT_NOT_GREETED] = late,
	};

	return texts[stage];
}
