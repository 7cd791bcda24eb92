#include "qctl/show/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "qctl/read/user.h"

/* ---- order ---- */

static uint64_t
permille(uint64_t use, uint64_t limit)
{
	return limit == 0 ? 0 : use * 1000 / limit;
}

/* The part of the share that is nearest to its end. */
static uint64_t
fullness(const struct share_row *row)
{
	uint64_t most = 0, part;
	size_t i;

	for (i = 0; i < NSHARES; i++) {
		part = permille(row->figures[i].use, row->figures[i].limit);
		if (part > most)
			most = part;
	}
	return most;
}

int
share_row_compare(const struct share_row *a, const struct share_row *b)
{
	const uint64_t x = fullness(a), y = fullness(b);

	if (x != y)
		return x > y ? -1 : 1;
	if (a->use.messages != b->use.messages)
		return a->use.messages > b->use.messages ? -1 : 1;
	if (a->use.bytes != b->use.bytes)
		return a->use.bytes > b->use.bytes ? -1 : 1;
	return (a->uid > b->uid) - (a->uid < b->uid);
}

/* ---- the door's file of a user ---- */

static void
read_door(const struct task *t, struct share_row *row)
{
	const uint32_t rate = t->limits.user_message_rate;
	const usec_t now = clock_wall();
	char path[1100];
	struct use under_way;
	int fd = -1;
	int n = snprintf(path, sizeof(path), "%s/" SPOOL_USERS "/%u", t->base,
	    (unsigned)row->uid);

	if (n < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	row->knows_door = fd >= 0 || (n < (int)sizeof(path) && errno == ENOENT);
	if (fd < 0)
		return;
	use_of_slots(fd, use_slots(&t->limits), UINT32_MAX, &under_way);
	row->figures[SHARE_UNDER_WAY].use = under_way.messages;
	/* The messages whose parts of a minute lie between now and the mark. */
	if (rate > 0)
		row->figures[SHARE_RATE].use =
		    ((uint64_t)(use_rate_mark(fd, now) - now) * rate +
			(uint64_t)USE_RATE_WINDOW - 1) /
		    (uint64_t)USE_RATE_WINDOW;
	io_close(&fd);
}

void
share_row_complete(const struct task *t, struct share_row *row)
{
	const struct conf *c = &t->limits;
	const uint64_t limits[NSHARES] = {
		[SHARE_MESSAGES] = c->user_message_limit,
		[SHARE_BYTES] = c->user_size_limit,
		[SHARE_FILES] = c->user_inode_limit,
		[SHARE_RATE] = c->user_message_rate,
		[SHARE_UNDER_WAY] = c->user_process_limit,
	};
	size_t i;

	row->is_free |=
	    row->uid == 0 || use_is_trusted(c->trusted_users, row->uid);
	for (i = 0; i < NSHARES; i++)
		row->figures[i].limit = row->is_free ? 0 : limits[i];
	row->figures[SHARE_MESSAGES].use = row->use.messages;
	row->figures[SHARE_BYTES].use = row->use.bytes;
	row->figures[SHARE_FILES].use = row->use.inodes;
	read_door(t, row);
}

/* ---- output ---- */

static const char *const members[NSHARES] = {
	[SHARE_MESSAGES] = "messages",
	[SHARE_BYTES] = "bytes",
	[SHARE_FILES] = "files",
	[SHARE_RATE] = "rate",
	[SHARE_UNDER_WAY] = "under_way",
};

static bool
is_known(const struct share_row *row, size_t i)
{
	return row->knows_door || (i != SHARE_RATE && i != SHARE_UNDER_WAY);
}

/* "20/10000"; "20/-": no limit; "-": this user may not see it. */
void
share_row_text(struct buf *out, const struct share_row *row)
{
	const char *name = user_name(row->uid);
	char limit[24], text[48];
	size_t i;

	for (i = 0; i < NSHARES; i++) {
		const struct share_figure *f = &row->figures[i];

		(void)snprintf(limit, sizeof(limit), "%" PRIu64, f->limit);
		(void)snprintf(text, sizeof(text), "%" PRIu64 "/%s", f->use,
		    f->limit == 0 ? "-" : limit);
		buf_printf(out, "%*s ", i == SHARE_BYTES ? 23 : 13,
		    is_known(row, i) ? text : "-");
	}
	buf_add_str(out, " ");
	out_clean(out, name, 32);
	buf_printf(out, *name == '\0' ? "%u\n" : "(%u)\n", (unsigned)row->uid);
}

static void
add_figure(struct buf *out, const char *end, const char *name, bool known,
    uint64_t figure)
{
	buf_printf(out, ", \"%s%s\": ", name, end);
	if (known)
		buf_printf(out, "%" PRIu64, figure);
	else
		buf_add_str(out, "null");
}

void
share_row_object(struct buf *out, const struct share_row *row,
    const struct shares_time *when)
{
	size_t i;

	buf_printf(out, "{\"uid\": %u", (unsigned)row->uid);
	out_member(out, "user", user_name(row->uid));
	for (i = 0; i < NSHARES; i++) {
		const struct share_figure *f = &row->figures[i];

		add_figure(out, "", members[i], is_known(row, i), f->use);
		add_figure(out, "_limit", members[i], f->limit > 0, f->limit);
	}
	buf_printf(out,
	    ", \"expansions\": %" PRIu64 ", \"counted_at\": %" PRId64
	    ", \"running\": %s}\n",
	    row->use.made, when->walked_wall / USEC_PER_SEC,
	    when->is_running ? "true" : "false");
}

const char share_row_head[] =
    "     MESSAGES                   BYTES         FILES    RATE LEVEL"
    "     UNDER WAY  USER\n";
