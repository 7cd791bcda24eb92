#include "queue-drop/door.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/header.h"
#include "base/io.h"
#include "base/num.h"
#include "spool/door.h"
#include "submit/submit.h"

/* ---- why not ---- */

static int
refuse(struct door *d, int status, const char *fmt, ...) PRINTF(3, 4);
static int
refuse(struct door *d, int status, const char *fmt, ...)
{
	va_list ap;

	d->status = status;
	va_start(ap, fmt);
	vsnprintf(d->reason, sizeof(d->reason), fmt, ap);
	va_end(ap);
	return -1;
}

/* clang-format off */
static const struct { int error, status; const char *code, *text; } errors[] = {
	{ ENOENT,       EX_TEMPFAIL, DOOR_CLOSED, NULL },
	{ ESHUTDOWN,    EX_TEMPFAIL, DOOR_CLOSED, "is being closed" },
	{ EDESTADDRREQ, EX_DATAERR,  DOOR_NO_RCPT, "no recipient" },
	{ EILSEQ,       EX_DATAERR,  DOOR_ADDRESS,
	    "control character in an address" },
	{ ENAMETOOLONG, EX_DATAERR,  DOOR_ADDRESS, "address too long" },
	{ EINVAL,       EX_DATAERR,  DOOR_ADDRESS, "empty address" },
	{ EBADRQC,      EX_DATAERR,  DOOR_WISH,
	    "wrong NOTIFY, RET, ENVID or ORCPT" },
	{ EPROTO,       EX_DATAERR,  DOOR_STREAM, "input is not as agreed" },
};
/* clang-format on */

/* Refuses for the error of a file system that takes no data. */
static int
refuse_room(struct door *d, int error, const char *text)
{
	return refuse(
	    d, EX_TEMPFAIL, "%s %s", error == -EIO ? "4.3.0" : DOOR_FULL, text);
}

/* The file system is that of the queue. */
static int
refuse_full(struct door *d, int error)
{
	const struct room_want want =
	    submit_reserve(&d->conf, submit_writer(d->uid));
	char text[ROOM_TEXT_SIZE];

	if (d->begun)
		accept_describe(&d->accept, error, text);
	else
		room_describe_queue(&d->sp, &want, 0, error, text);
	return refuse_room(d, error, text);
}

/* The file system is that of QUEUE_BASE/users, for which there is no reserve.
 */
static int
refuse_full_base(struct door *d, int error)
{
	static const struct room_want none;
	char text[ROOM_TEXT_SIZE];
	int fd = open(d->base, O_PATH | O_DIRECTORY | O_CLOEXEC);

	room_describe(fd, d->base, &none, 0, error, text);
	io_close(&fd);
	return refuse_room(d, error, text);
}

/* Refuses for an error of the queue, or of the message. */
static int
refuse_error(struct door *d, int error)
{
	const char *code = "4.3.0", *text = NULL;
	int status = EX_TEMPFAIL;
	size_t i;

	if (d->opened && room_is_error(error))
		return refuse_full(d, error);
	for (i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].error == -error) {
			status = errors[i].status;
			code = errors[i].code;
			text = errors[i].text;
		}
	return refuse(d, status, "%s queue%" PRIu32 ": %s", code, d->queue,
	    text == NULL ? strerror(-error) : text);
}

static int
refuse_share(struct door *d)
{
	if (room_is_error(d->share.error))
		return refuse_full_base(d, d->share.error);
	return refuse(d, EX_TEMPFAIL, DOOR_SHARE " %s", d->share.reason);
}

/* ---- the instance ---- */

/* Loads the configuration in force, never one of the caller. */
static int
load(struct door *d)
{
	int r = conf_load_base(d->base, &d->conf);

	if (r == 0)
		return 0;
	return refuse(d, EX_TEMPFAIL,
	    "4.3.5 %.100s/" CONF_IN_FORCE_NAME
	    ": no configuration is in force: %s",
	    d->base, strerror(-r));
}

static int
trust(struct door *d)
{
	int r = guard_trust(d->base, CONF_IN_FORCE_NAME);

	if (r == 0)
		return 0;
	if (r == -ENOENT)
		return refuse(d, EX_TEMPFAIL,
		    "4.3.5 %.100s: no configuration is in force", d->base);
	return refuse(d, EX_TEMPFAIL, "4.7.0 %.100s: not trusted: %s", d->base,
	    r == -EPERM ? "others than root may write" : strerror(-r));
}

static int
open_queue(struct door *d)
{
	int r = spool_open(&d->sp, d->sys, d->base, d->queue);
	char text[ROOM_TEXT_SIZE];

	if (r == -EMEDIUMTYPE)
		return refuse(d, EX_TEMPFAIL, "4.3.5 %s", spool_error(r));
	if (r < 0)
		return refuse_error(d, r);
	d->opened = true;
	if (d->sp.dir[SPOOL_MAILDROP] >= 0)
		return 0;
	door_explain_closed(d, text, sizeof(text));
	return refuse(d, EX_TEMPFAIL, "4.3.5 %s", text);
}

int
door_open(struct door *d, int argc, char *const *argv, bool secure)
{
	uint64_t queue;

	if (argc != 3 || argv[1][0] != '/' ||
	    num_u64(argv[2], 1, QUEUE_NUM_MAX, &queue) < 0)
		return refuse(d, EX_USAGE,
		    "5.5.4 usage: queue-drop QUEUE_BASE "
		    "QUEUE");
	d->base = argv[1];
	d->queue = (uint32_t)queue;
	d->uid = getuid();
	d->opened = false;
	d->sys = &spool_sys_real;
	if ((secure && trust(d) < 0) || load(d) < 0 || open_queue(d) < 0)
		return -1;
	conf_host(&d->conf, d->host);
	return share_take(&d->share, &d->conf, &d->sp) < 0 ? refuse_share(d)
							   : 0;
}

/* ---- the message ---- */

static int
begin(struct door *d)
{
	const struct accept_options opt = submit_accept_options(
	    &d->conf, SPOOL_MAILDROP, submit_writer(d->uid));
	int r = accept_begin(&d->accept, &d->sp, &opt, clock_wall(), d->uid);

	d->begun = true;
	return r < 0 ? refuse_error(d, r) : 0;
}

/* Puts the Received field before the first byte, with the line end of the
 * message. */
static int
put_received(struct door *d, const char *data, size_t len)
{
	char line[SUBMIT_RECEIVED_MAX];
	int n = submit_received(
	    &d->accept, d->host, header_line_end(data, len), line);

	return n < 0 ? n : accept_content(&d->accept, line, (size_t)n);
}

static int
refuse_content(struct door *d, int error)
{
	const struct queue_file_writer *w = &d->accept.writer;

	if (error != -EFBIG)
		return refuse_error(d, error);
	/* The other cause is a limit of the caller's process. */
	if (w->max_content == 0 ||
	    w->file.content_len + STREAM_BUFFER < w->max_content)
		return refuse(d, EX_TEMPFAIL, "4.3.0 a limit of file size");
	return refuse(d, EX_DATAERR,
	    DOOR_SIZE " the message is larger than %" PRIu64
		      " bytes (message_size_limit)",
	    d->conf.message_size_limit);
}

static int
take_content(struct door *d, struct stream_record *record)
{
	const struct queue_file *file = &d->accept.writer.file;
	const char *data;
	int64_t n;
	int r = 0;

	while (r == 0 && record->left > 0) {
		n = stream_bytes(&d->in, record, &data);
		if (n < 0)
			return refuse_error(d, (int)n);
		if (file->content_len == 0)
			r = put_received(d, data, (size_t)n);
		if (r == 0)
			r = accept_content(&d->accept, data, (size_t)n);
		if (r == 0 && share_grows(&d->share, file->content_len) < 0)
			return refuse_share(d);
	}
	return r < 0 ? refuse_content(d, r) : 0;
}

static int
take_sender(struct door *d, struct stream_record *record)
{
	struct queue_file_writer *w = &d->accept.writer;
	char address[ADDRESS_MAX];
	const uint32_t len = record->left;
	int r = stream_short(&d->in, record, address, sizeof(address));

	if (r == 0 && w->file.content_len == 0)
		r = put_received(d, NULL, 0);
	if (r == 0)
		r = queue_file_add_sender(w, address, len);
	return r < 0 ? refuse_error(d, r) : 0;
}

static int
take_rcpt(struct door *d, struct stream_record *record)
{
	char address[ADDRESS_MAX];
	const uint32_t len = record->left;
	int r = stream_short(&d->in, record, address, sizeof(address));

	if (r == 0 && ++d->rcpts > d->conf.message_recipient_limit)
		return refuse(d, EX_DATAERR,
		    DOOR_COUNT " more than %" PRIu32
			       " recipients (message_recipient_limit)",
		    d->conf.message_recipient_limit);
	if (r == 0)
		r = queue_file_add_rcpt(&d->accept.writer, address, len);
	return r < 0 ? refuse_error(d, r) : 0;
}

/* A byte, and a text behind it: its length, or -errno. */
static int
take_wish(struct door *d, struct stream_record *record, uint8_t *ret_value,
    char text[DSN_ORCPT_MAX])
{
	char bytes[1 + DSN_ORCPT_MAX];
	const uint32_t len = record->left;
	int r = len == 0 ? -EPROTO
			 : stream_short(&d->in, record, bytes, sizeof(bytes));

	if (r < 0)
		return r;
	*ret_value = (uint8_t)bytes[0];
	memcpy(text, bytes + 1, len - 1);
	return (int)len - 1;
}

static int
take_dsn(struct door *d, struct stream_record *record)
{
	struct dsn_mail dsn = { 0 };
	char text[DSN_ORCPT_MAX];
	int r = take_wish(d, record, &dsn.ret, text);

	if (r > 0 && dsn_envid_set(&dsn, text, (size_t)r) < 0)
		r = -EBADRQC;
	if (r >= 0)
		r = queue_file_add_dsn(&d->accept.writer, &dsn);
	return r < 0 ? refuse_error(d, r) : 0;
}

static int
take_rcpt_dsn(struct door *d, struct stream_record *record)
{
	struct dsn_rcpt dsn = { 0 };
	char text[DSN_ORCPT_MAX];
	int r = take_wish(d, record, &dsn.notify, text);

	if (r > 0 && dsn_orcpt_set(&dsn, text, (size_t)r) < 0)
		r = -EBADRQC;
	if (r >= 0)
		r = queue_file_add_rcpt_dsn(&d->accept.writer, &dsn);
	return r < 0 ? refuse_error(d, r) : 0;
}

/* The caller has not committed itself yet: it may go to another queue. */
static int
take_ready(struct door *d, struct stream_record *record)
{
	static const char ready = DOOR_IS_READY;

	if (record->left > 0)
		return refuse_error(d, -EPROTO);
	if (d->rcpts == 0)
		return refuse_error(d, -EDESTADDRREQ);
	return write(STDOUT_FILENO, &ready, 1) == 1 ? 0 : refuse_error(d, -EIO);
}

/* The order of records, and the function for each. */
static const struct step {
	char after, type;
	int (*take)(struct door *d, struct stream_record *record);
} steps[] = {
	{ DOOR_CONTENT, DOOR_CONTENT, take_content },
	{ DOOR_CONTENT, DOOR_SENDER, take_sender },
	{ DOOR_SENDER, DOOR_RCPT, take_rcpt },
	{ DOOR_SENDER, DOOR_DSN, take_dsn },
	{ DOOR_DSN, DOOR_RCPT, take_rcpt },
	{ DOOR_RCPT, DOOR_RCPT, take_rcpt },
	{ DOOR_RCPT, DOOR_RCPT_DSN, take_rcpt_dsn },
	{ DOOR_RCPT_DSN, DOOR_RCPT, take_rcpt },
	{ DOOR_SENDER, DOOR_READY, take_ready },
	{ DOOR_DSN, DOOR_READY, take_ready },
	{ DOOR_RCPT, DOOR_READY, take_ready },
	{ DOOR_RCPT_DSN, DOOR_READY, take_ready },
};

static int
take_record(struct door *d, char *state, struct stream_record *record)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].after == *state && steps[i].type == record->type) {
			*state = record->type;
			return steps[i].take(d, record);
		}
	return refuse_error(d, -EPROTO);
}

static int
take_records(struct door *d)
{
	struct stream_record record;
	char state = DOOR_CONTENT;
	int r;

	for (;;) {
		r = stream_next(&d->in, &record);
		if (r < 0)
			return refuse_error(d, r);
		if (record.type == DOOR_END)
			break;
		if (take_record(d, &state, &record) < 0)
			return -1;
	}
	if (state == DOOR_SENDER || state == DOOR_DSN)
		return refuse_error(d, -EDESTADDRREQ);
	if (state == DOOR_CONTENT || record.left > 0)
		return refuse_error(d, -EPROTO);
	r = stream_end(&d->in);
	return r < 0 ? refuse_error(d, r) : 0;
}

/* No signal that can be blocked ends this process between the name and the
 * answer, so that a message with a name is reported. */
static int
commit(struct door *d, struct queue_id *ret_id)
{
	/* A file with a temporary name is counted by its name. */
	const uint64_t bytes = d->accept.temp_name[0] == '\0'
	    ? d->accept.writer.file.content_len
	    : 0;
	sigset_t all;
	int r;

	share_pause(&d->share, &d->sp);
	if (share_pay(&d->share, &d->sp, bytes) < 0)
		return refuse_share(d);
	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	r = accept_commit(&d->accept, ret_id);
	return r < 0 ? refuse_content(d, r) : 0;
}

int
door_take(struct door *d, struct queue_id *ret_id)
{
	if (begin(d) < 0 || take_records(d) < 0)
		return -1;
	return commit(d, ret_id);
}

void
door_done(struct door *d)
{
	if (d->begun)
		accept_end(&d->accept);
	share_done(&d->share);
	if (d->opened)
		spool_close(&d->sp);
	conf_done(&d->conf);
}

/* ---- the answer ---- */

/* The message is accepted even if its id cannot be written. */
static void
tell(const struct queue_id *id)
{
	char text[QUEUE_ID_SIZE + 1] = "";
	ssize_t n;

	queue_id_format(id, text);
	text[strlen(text)] = '\n'; /* in place of the first NUL */
	n = write(STDOUT_FILENO, text, strnlen(text, sizeof(text)));
	(void)n;
}

static void
complain(const struct door *d)
{
	char line[sizeof(d->reason) + 1];
	int n = snprintf(line, sizeof(line), "%s\n", d->reason);
	size_t i;

	for (i = 0; i + 1 < (size_t)n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	n = (int)write(STDERR_FILENO, line, (size_t)n);
	(void)n;
}

int
door_main(int argc, char **argv)
{
	static struct door d = { .status = EX_OK };
	struct queue_id id;
	int r = guard_process();

	if (r < 0)
		refuse(&d, EX_TEMPFAIL, "4.3.0 %s", strerror(-r));
	else if (door_open(&d, argc, argv, guard_is_secure()) == 0) {
		stream_init(&d.in, STDIN_FILENO);
		r = door_take(&d, &id);
		if (r == 0)
			tell(&id);
	}
	if (d.status != EX_OK)
		complain(&d);
	door_done(&d);
	return d.status;
}
