#include "submit/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "spool/door.h"

#define CHUNK 65536
#define NAME  "queue-drop"

/* ---- the program ---- */

/* The pipes' ends of the door are its standard descriptors. An error of exec
 * must not be read as one of the message. */
static int
spawn(struct through_door *t, const char *program, const char *base,
    uint32_t queue, const int ends[3])
{
	char number[16], name[] = NAME;
	char *argv[] = { name, (char *)(uintptr_t)base, number, NULL };
	char *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	int i, r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	snprintf(number, sizeof(number), "%" PRIu32, queue);
	for (i = 0; r == 0 && i < 3; i++)
		r = posix_spawn_file_actions_adddup2(&actions, ends[i], i);
	if (r == 0)
		r = posix_spawn(&t->pid, program, &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		snprintf(t->reason, sizeof(t->reason), "%.250s: %s", program,
		    strerror(r));
	return r == 0 || r == EAGAIN || r == ENOMEM ? -r : -EIO;
}

static int
start(struct through_door *t, const char *program, const char *base,
    uint32_t queue)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, r;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    pipe2(err, O_CLOEXEC) < 0 || io_nonblock(in[1]) < 0)
		r = -errno;
	else
		r = spawn(
		    t, program, base, queue, (int[]){ in[0], out[1], err[1] });
	if (r < 0)
		t->pid = 0;
	t->in = in[1];
	t->out = out[0];
	t->err = err[0];
	io_close(&in[0]);
	io_close(&out[1]);
	io_close(&err[1]);
	return r;
}

int
through_door_begin(
    struct through_door *t, const struct conf *conf, uint32_t queue)
{
	char program[PATH_MAX], real[PATH_MAX];
	int r = conf_find_program(conf, NAME, program);

	*t = (struct through_door){ .in = -1,
		.out = -1,
		.err = -1,
		.give_up = t->give_up,
		.arg = t->arg };
	if (r < 0) {
		snprintf(t->reason, sizeof(t->reason),
		    "no program " NAME " in program_dir, beside this one or in "
		    "libexec");
		return r;
	}
	/* The door follows no links. */
	if (realpath(conf->queue_base, real) == NULL ||
	    buf_reserve(&t->content, CHUNK) < 0)
		r = -errno;
	else
		r = start(t, program, real, queue);
	if (r < 0 && t->reason[0] == '\0')
		snprintf(
		    t->reason, sizeof(t->reason), NAME ": %s", strerror(-r));
	return r;
}

/* ---- the answer ---- */

static size_t
read_text(int *fd, char *out, size_t size)
{
	int64_t n = *fd < 0 ? 0 : io_read_all(*fd, out, size - 1);

	io_close(fd);
	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return strlen(out);
}

static int
wait_for(struct through_door *t)
{
	int status = 0;

	while (waitpid(t->pid, &status, 0) < 0)
		if (errno != EINTR) {
			status = -1;
			break;
		}
	t->pid = 0;
	return status;
}

/* clang-format off */
static const struct { const char *code; int error; } codes[] = {
	{ DOOR_FULL,    ENOSPC },
	{ DOOR_CLOSED,  ESHUTDOWN },
	{ DOOR_SHARE,   EUSERS },
	{ DOOR_SIZE,    EFBIG },
	{ DOOR_COUNT,   E2BIG },
	{ DOOR_NO_RCPT, EDESTADDRREQ },
	{ DOOR_ADDRESS, EINVAL },
	{ DOOR_WISH,    EBADRQC },
};
/* clang-format on */

/* "X.Y.Z reason": permanent only with the exit code that says so. */
static int
judge(struct through_door *t, int status, const char *said)
{
	const size_t code = strcspn(said, " ");
	size_t i;

	if (status < 0 || !WIFEXITED(status)) {
		snprintf(t->reason, sizeof(t->reason), NAME " was killed");
		return -EIO;
	}
	snprintf(t->reason, sizeof(t->reason), "%s",
	    said[code] == ' ' ? said + code + 1 : NAME " gives no reason");
	for (i = 0; i < ARRAY_LEN(codes); i++)
		if (strlen(codes[i].code) == code &&
		    memcmp(codes[i].code, said, code) == 0 &&
		    (said[0] == '5') == (WEXITSTATUS(status) == EX_DATAERR))
			return -codes[i].error;
	return -EIO;
}

/* Wait for the end of the door: 0, or its error. */
static int
hear(struct through_door *t, char *id, size_t size)
{
	char said[ROOM_TEXT_SIZE + 16];
	int status;

	io_close(&t->in);
	/* Few bytes each, less than a pipe takes. */
	(void)read_text(&t->out, id, size);
	(void)read_text(&t->err, said, sizeof(said));
	status = wait_for(t);
	return status == 0 ? 0 : judge(t, status, said);
}

/* The door does not read on: the reason is there already. */
static int
give_up(struct through_door *t, int error)
{
	char id[QUEUE_ID_SIZE + 2];
	int r = t->pid == 0 ? -EIO : hear(t, id, sizeof(id));

	if (r < 0)
		return r;
	snprintf(t->reason, sizeof(t->reason), NAME ": %s", strerror(-error));
	return -EIO;
}

/* ---- waiting for the door ---- */

/* The process is left behind: it may hang for as long as the disk does, and
 * then finds that its input has ended without DOOR_END. */
static int
abandon(struct through_door *t)
{
	io_close(&t->in);
	io_close(&t->out);
	io_close(&t->err);
	t->pid = 0;
	snprintf(t->reason, sizeof(t->reason),
	    NAME " hangs: the disk of a queue does not answer");
	return -ETIMEDOUT;
}

/* Wait until the door has read, or has answered. */
static int
await(struct through_door *t, int fd, short events)
{
	const int patience = (int)(THROUGH_DOOR_PATIENCE / USEC_PER_MSEC);
	struct pollfd end = { .fd = fd, .events = events };
	int n;

	for (;;) {
		n = poll(&end, 1, t->give_up == NULL ? -1 : patience);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && t->give_up(t->arg))
			return -ETIMEDOUT;
	}
}

/* The pipe does not block. */
static int
write_all(struct through_door *t, const void *data, size_t len)
{
	const char *from = data;
	ssize_t n;
	int r = 0;

	while (r == 0 && len > 0) {
		n = write(t->in, from, len);
		if (n >= 0) {
			from += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			r = await(t, t->in, POLLOUT);
		} else if (errno != EINTR) {
			r = -errno;
		}
	}
	return r;
}

/* ---- the message ---- */

static int
put(struct through_door *t, char type, const void *data, size_t len)
{
	unsigned char head[DOOR_RECORD] = { (unsigned char)type };
	int r;

	bytes_put_u32(head + 1, (uint32_t)len);
	r = t->in < 0 ? -EPIPE : write_all(t, head, sizeof(head));
	if (r == 0)
		r = write_all(t, data, len);
	if (r == -ETIMEDOUT)
		return abandon(t);
	return r < 0 ? give_up(t, r) : 0;
}

static int
flush(struct through_door *t)
{
	int r = t->content.len == 0
	    ? 0
	    : put(t, DOOR_CONTENT, t->content.data, t->content.len);

	buf_reset(&t->content);
	return r;
}

int
through_door_content(struct through_door *t, const void *data, size_t len)
{
	const char *from = data;
	size_t part;
	int r = 0;

	for (; r == 0 && len > 0; from += part, len -= part) {
		part = CHUNK - t->content.len;
		part = len < part ? len : part;
		r = buf_add(&t->content, from, part);
		if (r == 0 && t->content.len == CHUNK)
			r = flush(t);
	}
	return r;
}

int
through_door_sender(struct through_door *t, const char *address, size_t len)
{
	int r = flush(t);

	return r < 0 ? r : put(t, DOOR_SENDER, address, len);
}

int
through_door_rcpt(struct through_door *t, const char *address, size_t len)
{
	return put(t, DOOR_RCPT, address, len);
}

/* A byte, and the text behind it. */
static int
put_wish(struct through_door *t, char type, uint8_t value, const char *text)
{
	char record[1 + DSN_ORCPT_MAX];
	const size_t len = strlen(text);

	record[0] = (char)value;
	memcpy(record + 1, text, len);
	return put(t, type, record, 1 + len);
}

int
through_door_dsn(struct through_door *t, const struct dsn_mail *dsn)
{
	return dsn_mail_is_empty(dsn)
	    ? 0
	    : put_wish(t, DOOR_DSN, dsn->ret, dsn->envid);
}

int
through_door_rcpt_dsn(struct through_door *t, const struct dsn_rcpt *dsn)
{
	return dsn_rcpt_is_empty(dsn)
	    ? 0
	    : put_wish(t, DOOR_RCPT_DSN, dsn->notify, dsn->orcpt);
}

/* Has the door taken all that it was told, so that it waits for the end? */
static int
ask_ready(struct through_door *t)
{
	char byte = 0;
	int r = put(t, DOOR_READY, "", 0);

	if (r < 0) /* put() has judged or left the door */
		return r;
	r = await(t, t->out, POLLIN);
	if (r == -ETIMEDOUT)
		return abandon(t);
	if (r < 0 || read(t->out, &byte, 1) != 1 || byte != DOOR_IS_READY)
		return give_up(t, -EIO);
	return 0;
}

int
through_door_commit(struct through_door *t, struct queue_id *ret_id)
{
	char id[QUEUE_ID_SIZE + 2];
	int r = t->give_up == NULL ? 0 : ask_ready(t);

	t->give_up = NULL;
	if (r == 0)
		r = put(t, DOOR_END, "", 0);
	if (r == 0)
		r = hear(t, id, sizeof(id));
	if (r == 0 && queue_id_parse(id, ret_id) < 0) {
		snprintf(t->reason, sizeof(t->reason), NAME " tells no id");
		r = -EIO;
	}
	return r;
}

void
through_door_end(struct through_door *t)
{
	io_close(&t->in);
	io_close(&t->out);
	io_close(&t->err);
	if (t->pid > 0)
		(void)wait_for(t);
	buf_done(&t->content);
}
