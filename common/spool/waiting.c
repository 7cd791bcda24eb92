#include "spool/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/num.h"

#define NAME     SPOOL_GATE "/waiting"
#define TEMP     SPOOL_GATE "/waiting.new"
#define TEXT_MAX ((size_t)WAITING_USERS * 64 + 64)

static int
heavier(const void *a, const void *b)
{
	const struct waiting_user *x = a, *y = b;

	if (x->messages != y->messages)
		return x->messages > y->messages ? -1 : 1;
	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static int
write_file(const struct spool *sp, const struct buf *text)
{
	int r,
	    fd = openat(sp->fd, TEMP,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text->data, text->len);
	/* Only group qdrop passes the gate and can read the file. */
	if (r == 0 && fchmod(fd, 0644) < 0)
		r = -errno;
	io_close(&fd);
	if (r == 0 && renameat(sp->fd, TEMP, sp->fd, NAME) < 0)
		r = -errno;
	return r;
}

int
waiting_write(const struct spool *sp, struct waiting_user *rows, size_t count)
{
	struct buf text = { 0 };
	size_t i;
	int r = buf_add_str(&text, WAITING_HEAD);

	qsort(rows, count, sizeof(*rows), heavier);
	for (i = 0; r == 0 && i < count && i < WAITING_USERS; i++)
		r = buf_printf(&text, "%u %" PRIu64 " %" PRIu64 "\n",
		    (unsigned)rows[i].uid, rows[i].messages, rows[i].bytes);
	if (r == 0)
		r = write_file(sp, &text);
	buf_done(&text);
	return r;
}

/* One number, ended by this character; the text behind it, NULL: none. */
static char *
number(char *text, char end, uint64_t *ret)
{
	char *at = text == NULL ? NULL : strchr(text, end);

	if (at == NULL)
		return NULL;
	*at = '\0';
	return num_u64(text, 0, INT64_MAX, ret) < 0 ? NULL : at + 1;
}

static int
find_row(char *text, uid_t uid, struct waiting_user *ret)
{
	uint64_t id, messages, bytes;

	if (strncmp(text, WAITING_HEAD, strlen(WAITING_HEAD)) != 0)
		return -EBADMSG;
	text += strlen(WAITING_HEAD);
	while (*text != '\0') {
		text = number(text, ' ', &id);
		text = number(text, ' ', &messages);
		text = number(text, '\n', &bytes);
		if (text == NULL)
			return -EBADMSG;
		if (id != uid)
			continue;
		*ret = (struct waiting_user){ uid, messages, bytes };
		return 0;
	}
	return 0;
}

int
waiting_read(const struct spool *sp, uid_t uid, struct waiting_user *ret)
{
	static char text[TEXT_MAX];
	int64_t n;
	int r,
	    fd = openat(
		sp->fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	*ret = (struct waiting_user){ .uid = uid };
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = io_read_all(fd, text, sizeof(text) - 1);
	r = n < 0 ? (int)n : 0;
	io_close(&fd);
	if (r < 0)
		return r;
	text[n] = '\0';
	return find_row(text, uid, ret);
}
