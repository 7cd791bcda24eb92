#include "spool/reason.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "base/text.h"

#define FIELDS         6
#define REPORT         "report"
#define EXPIRY         "expire"
#define DELAY          "delay"
#define MARKED_BIT     0100u /* in the mode: there may be lines of marks */
#define ATTEMPT        "attempt"
#define TEXT_MAX       2000
/* A line of reason_add() is shorter; a longer one is foreign. */
#define LINE_MAX_BYTES 4096

static int
format_line(const struct reason *reason, struct buf *out)
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
	int r = reason->attempt == 0
	    ? 0
	    : buf_printf(out, ATTEMPT "\t%" PRIu32 "\n", reason->attempt);

	if (r == 0)
		r = buf_printf(out, "%" PRIu32 "\t%" PRId64, reason->index,
		    reason->when_wall / USEC_PER_SEC);

	for (i = 0; r == 0 && i < ARRAY_LEN(fields); i++) {
		r = buf_add_char(out, '\t');
		if (r == 0)
			r = text_clean(out, fields[i].text,
			    strlen(fields[i].text), fields[i].max);
	}
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int
write_all(const struct spool_sys *sys, int fd, const struct buf *line)
{
	size_t done = 0;

	while (done < line->len) {
		ssize_t n = sys->write(fd, line->data + done, line->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
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
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = end_half_line(fd, &st, &line);
	if (r == 0 && st.st_size == 0 && (st.st_mode & MARKED_BIT) == 0)
		share(sp, fd);
	if (r == 0)
		r = buf_add(&line, text->data, text->len);
	if (r == 0)
		r = write_all(sys, fd, &line);
	if (r == 0 && sync && sys->fsync(fd) < 0)
		r = -errno;
	if (r < 0 && r != -EPERM)
		sys->ftruncate(fd, st.st_size);
	buf_done(&line);
	return r;
}

static int
append_to(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct buf *line, bool sync)
{
	char leaf[SPOOL_PATH_MAX];
	int fd, r;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
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

int
reason_add(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct reason *reason)
{
	struct buf line = { 0 };
	int r = format_line(reason, &line);

	if (r == 0)
		r = append_to(sp, dir, inode, &line, false);
	buf_done(&line);
	return r;
}

static int
set_marked(const struct spool *sp, uint64_t inode)
{
	int r = 0, fd = reason_open(sp, SPOOL_BOUNCE, inode);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 ||
	    fchmod(fd, (st.st_mode & 07777) | MARKED_BIT) < 0)
		r = -errno;
	sp->sys->close(fd);
	return r;
}

/* The line before the bit, which makes it count. */
int
reason_add_expiry(
    const struct spool *sp, const struct queue_id *id, usec_t when_wall)
{
	char text[QUEUE_ID_SIZE];
	struct buf line = { 0 };
	int r;

	queue_id_format(id, text);
	r = buf_printf(&line, EXPIRY "\t%" PRId64 "\t%s\n",
	    when_wall / USEC_PER_SEC, text);
	if (r == 0)
		r = append_to(sp, SPOOL_BOUNCE, id->inode, &line, false);
	buf_done(&line);
	return r < 0 ? r : set_marked(sp, id->inode);
}

int
reason_add_report(
    const struct spool *sp, uint64_t inode, usec_t when_wall, const char *id)
{
	struct buf line = { 0 };
	int r = buf_printf(
	    &line, REPORT "\t%" PRId64 "\t%s\n", when_wall / USEC_PER_SEC, id);

	if (r == 0)
		r = append_to(sp, SPOOL_BOUNCE, inode, &line, true);
	buf_done(&line);
	return r;
}

/* The line counts with its sync, so the bit comes first. */
int
reason_add_warning(const struct spool *sp, const struct queue_id *id,
    usec_t when_wall, const char *report)
{
	char text[QUEUE_ID_SIZE];
	struct buf line = { 0 };
	int r;

	queue_id_format(id, text);
	r = buf_printf(&line, REPORT "\t%" PRId64 "\t%s\t" DELAY "\t%s\n",
	    when_wall / USEC_PER_SEC, report, text);
	if (r == 0)
		r = append_to(
		    sp, SPOOL_BOUNCE, id->inode, &(struct buf){ 0 }, false);
	if (r == 0)
		r = set_marked(sp, id->inode);
	if (r == 0)
		r = append_to(sp, SPOOL_BOUNCE, id->inode, &line, true);
	buf_done(&line);
	return r;
}

int
reason_clear(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	int r = spool_remove(sp, dir, inode);

	return r == -ENOENT ? 0 : r;
}

/* Parses one line in place; false: a foreign line. */
static bool
parse_line(char *line, struct reason *ret_reason)
{
	char *field[FIELDS];
	uint64_t index, seconds;
	size_t n;

	for (n = 0; n < FIELDS; n++) {
		field[n] = line;
		if (n == FIELDS - 1)
			break;
		line = strchr(line, '\t');
		if (line == NULL)
			return false;
		*line++ = '\0';
	}
	if (strchr(field[FIELDS - 1], '\t') != NULL ||
	    num_u64(field[0], 0, UINT32_MAX, &index) < 0 ||
	    num_u64(field[1], 0, INT64_MAX / USEC_PER_SEC, &seconds) < 0)
		return false;
	*ret_reason = (struct reason){
		.index = (uint32_t)index,
		.when_wall = (usec_t)seconds * USEC_PER_SEC,
		.dsn = field[2],
		.relay = field[3],
		.address = field[4],
		.text = field[5],
	};
	return true;
}

struct lines {
	int (*each)(const struct reason *reason, void *arg); /* NULL: none */
	void *arg;
	uint32_t from;    /* reports in front of the first reason */
	uint32_t reports; /* so far */
	const char *id; /* of the message whose marks are looked for, or NULL */
	int marks;
	uint32_t *attempt; /* of the first line, or NULL */
	bool skip;         /* in a line that is too long */
};

/* "expire <TAB> WALL_SECONDS <TAB> ID" and
 * "report <TAB> WALL_SECONDS <TAB> ID <TAB> delay <TAB> ID" */
static int
mark_of(const char *line, const char *id)
{
	const char *at = strrchr(line, '\t');
	const size_t len = sizeof(DELAY) - 1;

	if (at == NULL || strcmp(at + 1, id) != 0)
		return 0;
	if (strncmp(line, EXPIRY "\t", sizeof(EXPIRY)) == 0)
		return REASON_GIVEN_UP;
	return strncmp(line, REPORT "\t", sizeof(REPORT)) == 0 &&
		(size_t)(at - line) > sizeof(REPORT) + len &&
		strncmp(at - len - 1, "\t" DELAY, len + 1) == 0
	    ? REASON_WARNED
	    : 0;
}

/* The first line of a file in defer/. */
static int
take_attempt(const char *line, uint32_t *attempt)
{
	uint64_t number;

	if (strncmp(line, ATTEMPT "\t", sizeof(ATTEMPT)) == 0 &&
	    num_u64(line + sizeof(ATTEMPT), 1, UINT32_MAX, &number) == 0)
		*attempt = (uint32_t)number;
	return 1;
}

static int
take_line(struct lines *l, char *line)
{
	struct reason reason;

	if (l->id != NULL)
		l->marks |= mark_of(line, l->id);
	if (l->attempt != NULL)
		return take_attempt(line, l->attempt);
	if (strncmp(line, REPORT "\t", sizeof(REPORT)) == 0) {
		l->reports++;
		return 0;
	}
	if (l->each == NULL || l->reports < l->from ||
	    !parse_line(line, &reason))
		return 0;
	return l->each(&reason, l->arg);
}

/* Reads each whole line in the buffer; *ret_used is the start of the rest. */
static int
take_lines(struct lines *l, char *data, size_t len, size_t *ret_used)
{
	size_t used = 0;
	char *end;
	int r = 0;

	while (
	    r == 0 && (end = memchr(data + used, '\n', len - used)) != NULL) {
		char *line = data + used;

		*end = '\0';
		used = (size_t)(end - data) + 1;
		if (!l->skip && strlen(line) == (size_t)(end - line))
			r = take_line(l, line);
		l->skip = false;
	}
	*ret_used = used;
	return r;
}

static int
read_lines(int fd, struct lines *l)
{
	char data[4 * LINE_MAX_BYTES];
	size_t len = 0, used;
	int64_t n;
	int r;

	while ((n = io_read_all(fd, data + len, sizeof(data) - len)) > 0) {
		len += (size_t)n;
		r = take_lines(l, data, len, &used);
		if (r != 0)
			return r;
		len -= used;
		memmove(data, data + used, len);
		if (len > LINE_MAX_BYTES) {
			l->skip = true;
			len = 0;
		}
	}
	return (int)n;
}

int
reason_open(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	int fd;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	fd = sp->sys->openat(sp->dir[dir], leaf,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int
read_file(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    struct lines *lines)
{
	int r, fd = reason_open(sp, dir, inode);
	struct stat st;

	if (fd < 0)
		return fd;
	r = fstat(fd, &st) < 0    ? -errno
	    : S_ISREG(st.st_mode) ? read_lines(fd, lines)
				  : -EPERM;
	sp->sys->close(fd);
	return r;
}

int
reason_read(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    int (*each)(const struct reason *reason, void *arg), void *arg)
{
	struct lines lines = { .each = each, .arg = arg };

	return read_file(sp, dir, inode, &lines);
}

int
reason_read_after(const struct spool *sp, uint64_t inode, uint32_t reports,
    int (*each)(const struct reason *reason, void *arg), void *arg)
{
	struct lines lines = { .each = each, .arg = arg, .from = reports };

	return read_file(sp, SPOOL_BOUNCE, inode, &lines);
}

int
reason_count_reports(
    const struct spool *sp, uint64_t inode, uint32_t *ret_count)
{
	struct lines lines = { 0 };
	int r = read_file(sp, SPOOL_BOUNCE, inode, &lines);

	if (r < 0 && r != -ENOENT)
		return r;
	*ret_count = lines.reports;
	return 0;
}

int
reason_marks(const struct spool *sp, const struct queue_id *id)
{
	char leaf[SPOOL_PATH_MAX], text[QUEUE_ID_SIZE];
	struct lines lines = { .id = text };
	struct stat st;
	int r;

	spool_leaf(sp, SPOOL_BOUNCE, id->inode, leaf, sizeof(leaf));
	if (fstatat(sp->dir[SPOOL_BOUNCE], leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((st.st_mode & MARKED_BIT) == 0)
		return 0;
	queue_id_format(id, text);
	r = read_file(sp, SPOOL_BOUNCE, id->inode, &lines);
	return r < 0 ? r : lines.marks;
}

uint32_t
reason_attempts(const struct spool *sp, uint64_t inode)
{
	uint32_t attempt = 0;
	struct lines lines = { .attempt = &attempt };

	(void)read_file(sp, SPOOL_DEFER, inode, &lines);
	return attempt;
}
