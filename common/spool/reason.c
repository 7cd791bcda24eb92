#include "spool/reason_line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"

#define TEXT_MAX     2000
#define REPORT_LINE  REASON_REPORT "\t%" PRId64 "\t%s"
#define WARNING_LINE REPORT_LINE "\t" REASON_DELAY "\t%s\n"

int
reason_format(const struct reason *reason, struct buf *out)
{
	const struct {
		const char *text;
		size_t max;
	} fields[] = {
		{ reason->dsn, 16 },
		{ reason->relay, 300 },
		{ reason->address, ADDRESS_MAX },
		{ reason->text, TEXT_MAX },
	};
	size_t i;

	if (reason->attempt != 0)
		buf_printf(
		    out, REASON_ATTEMPT "\t%" PRIu32 "\n", reason->attempt);
	buf_printf(out, "%" PRIu32 "\t%" PRId64, reason->index,
	    reason->when_wall / USEC_PER_SEC);
	for (i = 0; i < ARRAY_LEN(fields); i++) {
		buf_add_char(out, '\t');
		(void)text_clean(
		    out, fields[i].text, strlen(fields[i].text), fields[i].max);
	}
	buf_add_char(out, '\n');
	return out->error;
}

/* Members of the queue's group read why mail waits; queue files are as open to
 * them. A reason that they cannot read is no reason not to write it. */
static void
share(const struct spool *sp, int fd)
{
	if (!sp->private)
		(void)fchmod(fd, 0640);
}

/* A crash may have left half a line at the end: a NUL and a line end make it a
 * line of its own, which readers ignore. Without the NUL half the line of a
 * report would count as a report. */
static int
end_half_line(int fd, const struct stat *st, struct buf *line)
{
	char last = '\n';

	if (!S_ISREG(st->st_mode))
		return -EPERM;
	if (st->st_size > 0 &&
	    io_pread_all(fd, &last, 1, (int64_t)st->st_size - 1) < 0)
		last = '\0';
	return last == '\n' ? 0 : buf_add(line, "\0\n", 2);
}

/* The line behind the others, or not at all; synced if asked for. */
static int
append(const struct spool *sp, int fd, const struct buf *text, bool sync)
{
	const struct spool_sys *sys = sp->sys;
	struct buf line = { 0 };
	struct stat st;
	int r = text->error;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	r = end_half_line(fd, &st, &line);
	if (r == 0 && st.st_size == 0 && (st.st_mode & REASON_MARKED_BIT) == 0)
		share(sp, fd);
	if (r == 0)
		r = buf_add(&line, text->data, text->len);
	if (r == 0)
		r = spool_write_all(sys, fd, line.data, line.len);
	if (r == 0 && sync && sys->fsync(fd) < 0)
		r = -errno;
	if (r < 0 && r != -EPERM)
		sys->ftruncate(fd, st.st_size);
	buf_done(&line);
	return r;
}

static int
append_to_leaf(const struct spool *sp, enum spool_dir dir, const char *leaf,
    const struct buf *line, bool sync)
{
	int fd, r;

	fd = sp->sys->openat(sp->dir[dir], leaf,
	    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0600);
	if (fd < 0)
		return -errno;
	r = append(sp, fd, line, sync);
	/* A sync has told all errors that a close could tell. */
	if (sp->sys->close(fd) < 0 && r == 0 && !sync)
		r = -errno;
	return r;
}

static int
append_to(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct buf *line, bool sync)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	return append_to_leaf(sp, dir, leaf, line, sync);
}

int
reason_add(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct reason *reason)
{
	struct buf line = { 0 };
	int r = reason_format(reason, &line);

	if (r == 0)
		r = append_to(sp, dir, inode, &line, false);
	buf_done(&line);
	return r;
}

static int
set_marked(const struct spool *sp, const char *leaf)
{
	struct stat st;
	int r = 0;
	int fd = sp->sys->openat(sp->dir[SPOOL_BOUNCE], leaf,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 ||
	    fchmod(fd, (st.st_mode & 07777) | REASON_MARKED_BIT) < 0)
		r = -errno;
	sp->sys->close(fd);
	return r;
}

/* The bit first: a line that a death leaves without the bit would count with
 * the next mark, and a line that is synced takes the bit along. */
static int
append_marked(const struct spool *sp, const char *leaf, const struct buf *lines,
    bool sync)
{
	int r =
	    append_to_leaf(sp, SPOOL_BOUNCE, leaf, &(struct buf){ 0 }, false);

	if (r == 0)
		r = set_marked(sp, leaf);
	return r < 0 ? r : append_to_leaf(sp, SPOOL_BOUNCE, leaf, lines, sync);
}

/* The line behind the others of bounce/. */
PRINTF(5, 6)
static int
add_line(const struct spool *sp, uint64_t inode, bool marked, bool sync,
    const char *fmt, ...)
{
	char leaf[SPOOL_PATH_MAX];
	struct buf line = { 0 };
	va_list ap;
	int r;

	va_start(ap, fmt);
	(void)buf_vprintf(&line, fmt, ap);
	va_end(ap);
	spool_leaf(sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	r = marked ? append_marked(sp, leaf, &line, sync)
		   : append_to_leaf(sp, SPOOL_BOUNCE, leaf, &line, sync);
	buf_done(&line);
	return r;
}

static int
add_mark(const struct spool *sp, const char *mark, const struct queue_id *id,
    usec_t when_wall)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(id, text);
	return add_line(sp, id->inode, true, false, "%s\t%" PRId64 "\t%s\n",
	    mark, when_wall / USEC_PER_SEC, text);
}

int
reason_add_expiry(
    const struct spool *sp, const struct queue_id *id, usec_t when_wall)
{
	return add_mark(sp, REASON_EXPIRY, id, when_wall);
}

int
reason_add_release(
    const struct spool *sp, const struct queue_id *id, usec_t when_wall)
{
	const int marks = reason_marks(sp, id);

	return marks > 0 && (marks & REASON_RELEASED) != 0
	    ? 0
	    : add_mark(sp, REASON_RELEASE, id, when_wall);
}

int
reason_add_decision(const struct spool *sp, const struct queue_id *id,
    int decision, usec_t when_wall)
{
	int marks;

	if (decision != 0)
		return add_mark(sp,
		    decision == REASON_TO_HOLD ? REASON_HOLD : REASON_DELETE,
		    id, when_wall);
	marks = reason_marks(sp, id);
	return marks > 0 && (marks & REASON_DECIDED) != 0
	    ? add_mark(sp, REASON_UNDECIDED, id, when_wall)
	    : 0;
}

int
reason_format_report(usec_t when_wall, const char *id, struct buf *out)
{
	return buf_printf(out, REPORT_LINE "\n", when_wall / USEC_PER_SEC, id);
}

int
reason_add_report(
    const struct spool *sp, uint64_t inode, usec_t when_wall, const char *id)
{
	return add_line(sp, inode, false, true, REPORT_LINE "\n",
	    when_wall / USEC_PER_SEC, id);
}

int
reason_add_rcpt_report(const struct spool *sp, uint64_t inode, usec_t when_wall,
    const char *id, uint32_t index)
{
	return add_line(sp, inode, false, true,
	    REPORT_LINE "\t" REASON_RCPT "\t%" PRIu32 "\n",
	    when_wall / USEC_PER_SEC, id, index);
}

int
reason_add_part_report(const struct spool *sp, uint64_t inode, usec_t when_wall,
    const char *id, uint32_t count)
{
	return add_line(sp, inode, false, true,
	    REPORT_LINE "\t" REASON_LINES "\t%" PRIu32 "\n",
	    when_wall / USEC_PER_SEC, id, count);
}

int
reason_format_warning(const struct queue_id *id, usec_t when_wall,
    const char *report, struct buf *out)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(id, text);
	return buf_printf(
	    out, WARNING_LINE, when_wall / USEC_PER_SEC, report, text);
}

int
reason_add_warning(const struct spool *sp, const struct queue_id *id,
    usec_t when_wall, const char *report)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(id, text);
	return add_line(sp, id->inode, true, true, WARNING_LINE,
	    when_wall / USEC_PER_SEC, report, text);
}

/* The walk of bounce/ removes a name that a crash left when it is old. */
int
reason_replace(const struct spool *sp, uint64_t inode, const struct buf *lines,
    bool marked)
{
	char leaf[SPOOL_PATH_MAX], temp[SPOOL_PATH_MAX];
	const int dir = sp->dir[SPOOL_BOUNCE];
	int r;

	if (lines->len == 0)
		return reason_clear(sp, SPOOL_BOUNCE, inode);
	spool_leaf(sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	snprintf(temp, sizeof(temp),
	    "%" PRIu64 "/" SPOOL_TEMP_PREFIX "%" PRIu64, inode % sp->split,
	    inode);
	if (sp->sys->unlinkat(dir, temp, 0) < 0 && errno != ENOENT)
		return -errno;
	r = marked ? append_marked(sp, temp, lines, true)
		   : append_to_leaf(sp, SPOOL_BOUNCE, temp, lines, true);
	if (r == 0 && sp->sys->replaceat(dir, temp, leaf) < 0)
		r = -errno;
	if (r < 0)
		(void)sp->sys->unlinkat(dir, temp, 0);
	return r;
}

int
reason_clear(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	int r = spool_remove(sp, dir, inode);

	return r == -ENOENT ? 0 : r;
}

/* The names that it has; 0: it is not there. */
static nlink_t
look(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    struct stat *ret_st)
{
	return spool_stat(sp, dir, inode, ret_st) < 0 ? 0 : ret_st->st_nlink;
}

/* The file that was seen is nobody's, but another one may be lent under its
 * name at any time. So that name is taken away first: what it then has is
 * nobody else's to change, and goes, or is put back. */
static void
clear_seen(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct stat *seen)
{
	char leaf[SPOOL_PATH_MAX], temp[SPOOL_PATH_MAX];
	const int fd = sp->dir[dir];
	struct stat st;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	snprintf(temp, sizeof(temp), "%" PRIu64 "/" SPOOL_TEMP_LOST "%" PRIu64,
	    inode % sp->split, inode);
	if (sp->sys->replaceat(fd, leaf, temp) < 0)
		return;
	if (fstatat(fd, temp, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_ino != seen->st_ino) {
		if (sp->sys->renameat(fd, temp, fd, leaf) == 0 ||
		    errno != EEXIST) /* lent once more */
			return;
	}
	(void)sp->sys->unlinkat(fd, temp, 0);
}

/* A file that is not there now may be lent in the next moment. */
void
reason_clear_lost(const struct spool *sp, uint64_t inode)
{
	struct stat in_defer, in_bounce;
	const nlink_t defer = look(sp, SPOOL_DEFER, inode, &in_defer);
	const nlink_t bounce = look(sp, SPOOL_BOUNCE, inode, &in_bounce);

	if (defer > 1 || bounce > 1 || spool_has(sp, inode))
		return;
	if (defer > 0)
		clear_seen(sp, SPOOL_DEFER, inode, &in_defer);
	if (bounce > 0)
		clear_seen(sp, SPOOL_BOUNCE, inode, &in_bounce);
}
