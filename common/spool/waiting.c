#include "spool/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/subuid.h"

#define HEAD     "waiting 2 "
#define HEAD_LEN ((int)sizeof(HEAD) - 1)
#define LINE     (10 + 3 * (1 + 19) + 1)
#define ROW      "%10" SCNu64 " %19" SCNu64 " %19" SCNu64 " %19" SCNu64 "%n"

/* The names of the table, and the mode that suits their directory. */
static const struct {
	const char *name, *temp;
	mode_t mode;
} places[] = {
	/* Only group qdrop passes the gate. */
	{ SPOOL_GATE "/waiting", SPOOL_GATE "/waiting.new", 0644 },
	/* The directory gives the file group qmail. */
	{ "lock/waiting", "lock/waiting.new", 0640 },
};

/* ---- submitters ---- */

bool
waiting_is_made(const struct spool *sp, uid_t owner)
{
	return !sp->private && owner != 0 &&
	    (owner == sp->owner[SPOOL_INCOMING] ||
		owner == sp->owner[SPOOL_ACTIVE]);
}

uid_t
waiting_submitter(const struct spool *sp, uid_t owner, uint32_t trailer_uid)
{
	return sp->private || waiting_is_made(sp, owner) ? trailer_uid : owner;
}

uid_t
waiting_submitter_of(const struct spool *sp, int fd, uint32_t trailer_uid)
{
	struct stat st;

	return fstat(fd, &st) < 0
	    ? trailer_uid
	    : waiting_submitter(sp, st.st_uid, trailer_uid);
}

/* ---- accounts ---- */

static struct subuid_table subuids; /* of waiting_accounts_read() */

int
waiting_accounts_read(const char *path)
{
	subuid_done(&subuids);
	return subuid_read(path, &subuids);
}

uid_t
waiting_account(uid_t uid)
{
	return subuid_owner(&subuids, uid);
}

/* ---- writing ---- */

static int
by_uid(const void *a, const void *b)
{
	const struct waiting_user *x = a, *y = b;

	return (x->uid > y->uid) - (x->uid < y->uid);
}

static int
write_place(const struct spool *sp, size_t place, const struct buf *text)
{
	const char *temp = places[place].temp;
	int r,
	    fd = openat(sp->fd, temp,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text->data, text->len);
	if (r == 0 && fchmod(fd, places[place].mode) < 0)
		r = -errno;
	io_close(&fd);
	if (r == 0 && renameat(sp->fd, temp, sp->fd, places[place].name) < 0)
		r = -errno;
	return r;
}

int
waiting_write(const struct spool *sp, usec_t walked_wall,
    struct waiting_user *rows, size_t count)
{
	struct buf text = { 0 };
	size_t i;
	int r;

	buf_printf(
	    &text, HEAD "%0*" PRId64 "\n", LINE - HEAD_LEN - 1, walked_wall);
	qsort(rows, count, sizeof(*rows), by_uid);
	for (i = 0; i < count; i++)
		buf_printf(&text,
		    "%010u %019" PRIu64 " %019" PRIu64 " %019" PRIu64 "\n",
		    (unsigned)rows[i].uid, rows[i].messages, rows[i].bytes,
		    rows[i].made);
	r = text.error;
	if (r == 0) {
		const int gate = write_place(sp, 0, &text);

		r = write_place(sp, 1, &text);
		r = gate < 0 ? gate : r;
	}
	buf_done(&text);
	return r;
}

/* ---- reading ---- */

static int
read_line(int fd, uint64_t line, char text[LINE + 1])
{
	int64_t n = io_pread_all(fd, text, LINE, (int64_t)(line * LINE));

	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return n == (int64_t)LINE && text[LINE - 1] == '\n' ? 0 : -EBADMSG;
}

static int
read_head(struct waiting_file *f)
{
	char text[LINE + 1];
	struct stat st;
	uint64_t wall;
	int r, end = 0;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size % LINE != 0)
		return -EBADMSG;
	f->count = (uint64_t)st.st_size / LINE - 1;
	r = read_line(f->fd, 0, text);
	if (r == 0 &&
	    (sscanf(text, HEAD "%" SCNu64 "%n", &wall, &end) != 1 ||
		end != LINE - 1 || wall > INT64_MAX))
		r = -EBADMSG;
	if (r == 0)
		f->walked_wall = (usec_t)wall;
	return r;
}

int
waiting_open(const struct spool *sp, struct waiting_file *ret_file)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct waiting_file *f = ret_file;

	*f = (struct waiting_file){ .fd = -1 };
	f->fd = openat(sp->fd, places[0].name, flags);
	if (f->fd < 0 && errno == EACCES)
		f->fd = openat(sp->fd, places[1].name, flags);
	return f->fd < 0 ? -errno : read_head(f);
}

int
waiting_row(
    const struct waiting_file *f, uint64_t row, struct waiting_user *ret)
{
	struct waiting_user user;
	char text[LINE + 1];
	uint64_t uid;
	int end = 0, r = read_line(f->fd, row + 1, text);

	if (r == 0 &&
	    (sscanf(text, ROW, &uid, &user.messages, &user.bytes, &user.made,
		 &end) != 4 ||
		end != LINE - 1 || uid > UINT32_MAX))
		r = -EBADMSG;
	if (r < 0)
		return r;
	user.uid = (uid_t)uid;
	*ret = user;
	return 0;
}

void
waiting_close(struct waiting_file *f)
{
	io_close(&f->fd);
}

/* The first row of this uid or of a greater one. The rows ascend. */
static int
find_row(const struct waiting_file *f, uid_t uid, uint64_t *ret)
{
	uint64_t from = 0, to = f->count, middle;
	struct waiting_user row;
	int r;

	while (from < to) {
		middle = from + (to - from) / 2;
		r = waiting_row(f, middle, &row);
		if (r < 0)
			return r;
		if (row.uid < uid)
			from = middle + 1;
		else
			to = middle;
	}
	*ret = from;
	return 0;
}

/* Adds the rows from `first` to `last` that are charged to the account. */
static int
add_rows(const struct waiting_file *f, uid_t first, uid_t last, uid_t account,
    struct waiting_user *sum)
{
	struct waiting_user row;
	uint64_t i = 0;
	int r = find_row(f, first, &i);

	for (; r == 0 && i < f->count; i++) {
		r = waiting_row(f, i, &row);
		if (r < 0 || row.uid > last)
			break;
		if (waiting_account(row.uid) != account)
			continue;
		sum->messages += row.messages;
		sum->bytes += row.bytes;
		sum->made += row.made;
	}
	return r;
}

int
waiting_read(const struct spool *sp, uid_t account, struct waiting_user *ret)
{
	const uid_t first = subuid_first(&subuids);
	struct waiting_file f;
	int r = waiting_open(sp, &f);

	*ret = (struct waiting_user){ .uid = account };
	if (r == 0 && account < first)
		r = add_rows(&f, account, account, account, ret);
	if (r == 0)
		r = add_rows(&f, first, (uid_t)-1, account, ret);
	waiting_close(&f);
	return r == -ENOENT ? 0 : r;
}
