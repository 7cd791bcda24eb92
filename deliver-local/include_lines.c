#include "deliver-local/expand.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

#define LINE_BYTES ((size_t)1 << 16)
#define READ_BYTES 16384
#define BYTES_EACH 1024
#define BYTES_MORE ((uint64_t)1 << 20)

void
include_begin(struct include_file *f, int fd)
{
	struct stat st;

	*f = (struct include_file){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return;
	f->left = f->bytes = (uint64_t)st.st_size;
	f->changed = st.st_mtim;
}

/* An address with its line has fewer; comments have the rest. */
uint64_t
include_room(uint32_t nrcpts)
{
	return (uint64_t)nrcpts * BYTES_EACH + BYTES_MORE;
}

bool
include_fits(const struct include_file *f, uint64_t *room)
{
	if (f->bytes > *room)
		return false;
	*room -= f->bytes;
	return true;
}

/* At the end of the file. */
static int
judge_end(const struct include_file *f, const char **ret_why)
{
	struct stat st;
	int r = fstat(f->fd, &st) < 0 ? -errno : 0;

	if (r < 0) {
		*ret_why = strerror(-r);
		return r;
	}
	if ((uint64_t)st.st_size == f->bytes &&
	    st.st_mtim.tv_sec == f->changed.tv_sec &&
	    st.st_mtim.tv_nsec == f->changed.tv_nsec)
		return 0;
	*ret_why = "the file was changed while it was read";
	return -EAGAIN;
}

void
include_end(struct include_file *f)
{
	io_close(&f->fd);
	buf_done(&f->text);
	buf_done(&f->members);
}

/* More bytes behind those that are not read yet. */
static int
fill(struct include_file *f, const char **ret_why)
{
	const size_t have = f->text.len - f->text_at;
	const size_t want = f->left < READ_BYTES ? (size_t)f->left : READ_BYTES;
	int64_t n;
	int r;

	if (f->text_at > 0)
		memmove(f->text.data, f->text.data + f->text_at, have);
	f->text.len = have;
	f->text_at = 0;
	r = buf_reserve(&f->text, READ_BYTES);
	if (r < 0)
		return r;
	n = io_read_all(f->fd, f->text.data + have, want);
	if (n < 0) {
		*ret_why = strerror((int)-n);
		return (int)n;
	}
	f->left = (size_t)n < want ? 0 : f->left - want;
	f->text.len += (size_t)n;
	return 0;
}

/* 1: the next line is *ret_len bytes at text_at; 0: there is none. */
static int
read_line(struct include_file *f, size_t *ret_len, const char **ret_why)
{
	const char *lf;
	size_t have;
	int r;

	for (;;) {
		have = f->text.len - f->text_at;
		lf = have == 0 ? NULL
			       : memchr(f->text.data + f->text_at, '\n', have);
		*ret_len = lf == NULL
		    ? have
		    : (size_t)(lf - f->text.data) - f->text_at;
		if (lf != NULL || f->left == 0)
			return lf != NULL || have > 0;
		if (have >= LINE_BYTES) {
			*ret_why = "the line is too long";
			return -EINVAL;
		}
		r = fill(f, ret_why);
		if (r < 0)
			return r;
	}
}

/* Kind and text, as they lie in members. */
static int
keep_member(void *arg, const struct alias_member *member)
{
	struct include_file *f = arg;
	const char *text = member->text == NULL ? "" : member->text;
	int r = buf_add_char(&f->members, (char)member->kind);

	return r < 0 ? r : buf_add(&f->members, text, strlen(text) + 1);
}

static bool
has_mark(const char *line, size_t len)
{
	return len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0;
}

static int
read_members(struct include_file *f, const char **ret_why)
{
	size_t len = 0;
	int r = read_line(f, &len, ret_why);

	f->line++;
	if (r <= 0)
		return r < 0 ? r : judge_end(f, ret_why);
	if (f->line == 1 && has_mark(f->text.data + f->text_at, len)) {
		f->text_at += 3; /* as in the alias file */
		len -= 3;
	}
	buf_reset(&f->members);
	f->member_at = 0;
	r = alias_parse_members(
	    f->text.data + f->text_at, len, keep_member, f, ret_why);
	f->text_at += len < f->text.len - f->text_at ? len + 1 : len;
	return r < 0 ? r : 1;
}

int
include_next(
    struct include_file *f, struct alias_member *ret, const char **ret_why)
{
	int r = 1;

	while (r > 0 && f->member_at >= f->members.len)
		r = read_members(f, ret_why);
	if (r <= 0)
		return r;
	ret->kind = (enum alias_member_kind)f->members.data[f->member_at++];
	ret->text = f->members.data + f->member_at;
	f->member_at += strlen(ret->text) + 1;
	return 1;
}
