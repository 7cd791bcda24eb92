#include "queue-inject/inject.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
inject_copy(struct inject *inject)
{
	const char *data;
	size_t len;
	int r;

	while ((r = source_peek(&inject->source, &data, &len)) > 0) {
		r = submission_content(inject->submission, data, len);
		if (r < 0)
			return r;
		source_take(&inject->source, len);
	}
	return r < 0 ? message_refuse_source(&inject->why, r) : 0;
}

/* The wishes of the message; an option holds where the message has no wish. */
static struct dsn_mail
mail_wishes(const struct envelope *e, const struct options *o)
{
	struct dsn_mail dsn = e->dsn;

	if (dsn.ret == 0)
		dsn.ret = o->dsn.ret;
	if (dsn.envid[0] == '\0')
		memcpy(dsn.envid, o->dsn.envid, sizeof(dsn.envid));
	return dsn;
}

static struct dsn_rcpt
next_rcpt_wishes(const struct envelope *e, size_t *pos, const struct options *o)
{
	struct dsn_rcpt dsn;

	if (!envelope_next_wish(e, pos, &dsn))
		return o->rcpt_dsn;
	if (dsn.notify == 0)
		dsn.notify = o->rcpt_dsn.notify;
	if (dsn.orcpt[0] == '\0')
		memcpy(dsn.orcpt, o->rcpt_dsn.orcpt, sizeof(dsn.orcpt));
	return dsn;
}

static int
put_envelope(struct inject *inject)
{
	const struct envelope *e = &inject->envelope;
	const struct options *o = &inject->options;
	const struct dsn_mail mail = mail_wishes(e, o);
	const char *rcpt;
	size_t pos = 0, wish_pos = 0, len;
	struct dsn_rcpt dsn;
	int r = submission_sender(
	    inject->submission, buf_str(&e->sender), e->sender.len);

	if (r == 0)
		r = submission_dsn(inject->submission, &mail);
	while (r == 0 && (rcpt = envelope_next_rcpt(e, &pos, &len)) != NULL) {
		dsn = next_rcpt_wishes(e, &wish_pos, o);
		r = submission_rcpt(inject->submission, rcpt, len);
		if (r == 0)
			r = submission_rcpt_dsn(inject->submission, &dsn);
	}
	return r;
}

static int
store_once(struct inject *inject, struct queue_id *ret_id)
{
	int r = inject->face->content(inject);

	if (r == 0 && !inject->has_envelope && inject->face->envelope != NULL) {
		r = inject->face->envelope(inject);
		inject->has_envelope = r == 0;
	}
	if (inject->source.mark_lost)
		submission_stay(inject->submission);
	if (r == 0)
		r = put_envelope(inject);
	if (r == 0)
		r = submission_commit(
		    inject->submission, inject->stop_fd, ret_id);
	return r;
}

static int
refuse_storage(struct inject *inject, int error)
{
	size_t closed;

	if (error == -EFBIG && inject->conf.message_size_limit != 0)
		return refuse(&inject->why, REFUSAL_TOO_BIG,
		    "the message is larger than %llu bytes "
		    "(message_size_limit)",
		    (unsigned long long)inject->conf.message_size_limit);
	closed = error == -EACCES || error == -ENOENT
	    ? path_closed(inject->conf.queue_base)
	    : 0;
	if (closed > 0)
		return refuse(&inject->why, REFUSAL_CLOSED,
		    "%.*s: this user may not enter the directory; run `chmod "
		    "a+x` on it as its owner",
		    (int)closed, inject->conf.queue_base);
	return refuse_error(
	    &inject->why, error, submission_reason(inject->submission));
}

/* Try one queue after the other, while the message can be read again. */
static int
store(struct inject *inject, struct queue_id *ret_id)
{
	const struct submit_origin origin = { inject->identity.uid,
		inject->identity.host, inject->eol, inject->announced };
	int r = submission_begin(inject->submission, &origin);

	while (r == 0) {
		r = store_once(inject, ret_id);
		if (r == 0)
			return 0;
		if (inject->why.kind != REFUSAL_NONE || r == -EFBIG)
			submission_abort(inject->submission, 0);
		else
			submission_abort(inject->submission, r);
		if (inject->why.kind != REFUSAL_NONE)
			return -1;
		if (!source_rewind(&inject->source))
			break;
		r = submission_again(inject->submission, r, &origin);
	}
	return refuse_storage(inject, r);
}

/* The bytes that a file on standard input still has; 0 where that is not known.
 */
static uint64_t
announced(void)
{
	const off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct stat st;

	if (at < 0 || fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size <= at)
		return 0;
	return (uint64_t)(st.st_size - at);
}

int
inject_open(struct inject *inject)
{
	if (inject->no_input)
		return refuse(
		    &inject->why, REFUSAL_READ, "standard input is closed");
	identity_init(&inject->identity, &inject->conf);
	inject->envelope.rcpt_limit = inject->conf.message_recipient_limit;
	if (submit_new(&inject->conf, inject->sys, &inject->submit) < 0 ||
	    submission_new(inject->submit, &inject->submission) < 0)
		return refuse(&inject->why, REFUSAL_MEMORY, "out of memory");
	return 0;
}

int
inject_store(struct inject *inject, struct queue_id *ret_id)
{
	inject->source.lf = inject->options.lf;
	if (inject->face->prepare(inject) < 0)
		return -1;
	source_mark(&inject->source);
	return store(inject, ret_id);
}

int
inject_run(struct inject *inject, struct queue_id *ret_id)
{
	if (inject_open(inject) < 0)
		return -1;
	inject->announced = announced();
	if (source_init(&inject->source, 0, !inject->options.ignore_dot,
		inject->deadline_mono, inject->stop_fd) < 0)
		return refuse(&inject->why, REFUSAL_MEMORY, "out of memory");
	return inject_store(inject, ret_id);
}

void
inject_done(struct inject *inject)
{
	submission_free(&inject->submission);
	submit_free(&inject->submit);
	source_done(&inject->source);
	message_done(&inject->message);
	envelope_done(&inject->envelope);
	conf_done(&inject->conf);
}
