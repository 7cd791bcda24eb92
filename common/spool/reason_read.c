#include "spool/reason_line.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/num.h"

#define FIELDS         6
/* A line of reason_add() is shorter; a longer one is foreign. */
#define LINE_MAX_BYTES 4096

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
	void (*told)(uint32_t index, void *arg);             /* NULL: none */
	void *arg;
	uint32_t reports; /* so far */
	/* Reasons so far; those that were told by so many reports; reasons that
	 * each() does not get. */
	uint64_t reasons, told_count, skipped;
	uint32_t from;  /* reports that count for told_count */
	uint64_t parts; /* reasons that are told() right behind each() */
	const char *id; /* of the message whose marks are looked for, or NULL */
	int marks;
	uint32_t *attempt; /* of the first line, or NULL */
	bool skip;         /* in a line that is too long */
};

/* "WORD <TAB> WALL_SECONDS <TAB> ID" */
static const struct {
	const char *word;
	int mark, ends; /* bits that the line sets, and that it takes away */
} words[] = {
	{ REASON_EXPIRY, REASON_GIVEN_UP, 0 },
	{ REASON_RELEASE, REASON_RELEASED, 0 },
	{ REASON_HOLD, REASON_TO_HOLD, REASON_DECIDED },
	{ REASON_DELETE, REASON_TO_DELETE, REASON_DECIDED },
	{ REASON_UNDECIDED, 0, REASON_DECIDED },
};

/* "report <TAB> WALL_SECONDS <TAB> ID <TAB> delay <TAB> ID" */
static bool
is_warning(const char *line, const char *at)
{
	const size_t len = sizeof(REASON_DELAY) - 1;

	return strncmp(line, REASON_REPORT "\t", sizeof(REASON_REPORT)) == 0 &&
	    (size_t)(at - line) > sizeof(REASON_REPORT) + len &&
	    strncmp(at - len - 1, "\t" REASON_DELAY, len + 1) == 0;
}

/* The marks behind this line. */
static int
take_marks(const char *line, const char *id, int marks)
{
	const char *at = strrchr(line, '\t');
	size_t i, len;

	if (at == NULL || strcmp(at + 1, id) != 0)
		return marks;
	if (is_warning(line, at))
		return marks | REASON_WARNED;
	for (i = 0; i < ARRAY_LEN(words); i++) {
		len = strlen(words[i].word);
		if (strncmp(line, words[i].word, len) == 0 && line[len] == '\t')
			return (marks & ~words[i].ends) | words[i].mark;
	}
	return marks;
}

/* "report <TAB> WALL_SECONDS <TAB> ID <TAB> rcpt <TAB> INDEX" tells of one
 * recipient, the line of a part of the reasons that `parts` counts, and any
 * other line of a report of all in front of it. */
static void
take_told(const struct lines *l, const char *line)
{
	static const char word[] = "\t" REASON_RCPT "\t";
	const char *at = strstr(line, word);
	uint64_t index;

	if (at != NULL &&
	    num_u64(at + sizeof(word) - 1, 0, REASON_ALL - 1, &index) == 0)
		l->told((uint32_t)index, l->arg);
	else if (at == NULL && strstr(line, "\t" REASON_LINES "\t") == NULL)
		l->told(REASON_ALL, l->arg);
}

/* "report <TAB> WALL_SECONDS <TAB> ID <TAB> lines <TAB> COUNT" tells of so many
 * reasons that were not told of before. */
static void
count_told(struct lines *l, const char *line)
{
	static const char word[] = "\t" REASON_LINES "\t";
	const char *at = strstr(line, word);
	uint64_t count;

	if (strstr(line, "\t" REASON_RCPT "\t") != NULL)
		return;
	if (at == NULL)
		l->told_count = l->reasons;
	else if (num_u64(at + sizeof(word) - 1, 0, UINT32_MAX, &count) == 0)
		l->told_count += count;
}

/* The first line of a file in defer/. */
static int
take_attempt(const char *line, uint32_t *attempt)
{
	uint64_t number;

	if (strncmp(line, REASON_ATTEMPT "\t", sizeof(REASON_ATTEMPT)) == 0 &&
	    num_u64(line + sizeof(REASON_ATTEMPT), 1, UINT32_MAX, &number) == 0)
		*attempt = (uint32_t)number;
	return 1;
}

static int
take_line(struct lines *l, char *line)
{
	struct reason reason;
	int r;

	if (l->id != NULL)
		l->marks = take_marks(line, l->id, l->marks);
	if (l->attempt != NULL)
		return take_attempt(line, l->attempt);
	if (strncmp(line, REASON_REPORT "\t", sizeof(REASON_REPORT)) == 0) {
		if (l->reports++ < l->from)
			count_told(l, line);
		if (l->told != NULL)
			take_told(l, line);
		return 0;
	}
	if ((l->each == NULL && l->from == 0) || !parse_line(line, &reason))
		return 0;
	l->reasons++;
	r = l->each == NULL || l->reasons <= l->skipped
	    ? 0
	    : l->each(&reason, l->arg);
	if (l->told != NULL && l->reasons <= l->parts)
		l->told(reason.index, l->arg);
	return r;
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
	return spool_open_name(sp, dir, inode, O_RDONLY);
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
reason_read_told(const struct spool *sp, uint64_t inode,
    int (*each)(const struct reason *reason, void *arg),
    void (*told)(uint32_t index, void *arg), void *arg)
{
	struct lines reports = { .from = UINT32_MAX };
	struct lines lines = { .each = each, .told = told, .arg = arg };
	int r = told == NULL ? 0 : read_file(sp, SPOOL_BOUNCE, inode, &reports);

	lines.parts = reports.told_count;
	return r < 0 ? r : read_file(sp, SPOOL_BOUNCE, inode, &lines);
}

int
reason_read_after(const struct spool *sp, uint64_t inode, uint32_t reports,
    int (*each)(const struct reason *reason, void *arg), void *arg)
{
	struct lines told = { .from = reports };
	struct lines lines = { .each = each, .arg = arg };
	int r = reports == 0 ? 0 : read_file(sp, SPOOL_BOUNCE, inode, &told);

	lines.skipped = told.told_count;
	return r < 0 ? r : read_file(sp, SPOOL_BOUNCE, inode, &lines);
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
	char text[QUEUE_ID_SIZE];
	struct lines lines = { .id = text };
	struct stat st;
	int r;

	r = spool_stat(sp, SPOOL_BOUNCE, id->inode, &st);
	if (r < 0)
		return r;
	if ((st.st_mode & REASON_MARKED_BIT) == 0)
		return 0;
	queue_id_format(id, text);
	r = read_file(sp, SPOOL_BOUNCE, id->inode, &lines);
	return r < 0 ? r : lines.marks;
}

int
reason_count_attempts(
    const struct spool *sp, uint64_t inode, uint32_t *ret_count)
{
	uint32_t attempt = 0;
	struct lines lines = { .attempt = &attempt };
	int r = read_file(sp, SPOOL_DEFER, inode, &lines);

	if (r < 0 && r != -ENOENT)
		return r;
	*ret_count = attempt;
	return 0;
}

uint32_t
reason_attempts(const struct spool *sp, uint64_t inode)
{
	uint32_t attempt = 0;

	(void)reason_count_attempts(sp, inode, &attempt);
	return attempt;
}
