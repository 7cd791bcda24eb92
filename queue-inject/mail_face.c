/* The faces that take a message with its header: queue-inject, sendmail. */
#include "queue-inject/job.h"

#include "queue-inject/address_list.h"

#include "base/address.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An address of the command line, given a domain where it has none. */
struct argument {
	struct job *job;
	int (*put)(struct envelope *e, const char *address, size_t len,
	    struct refusal *why);
	size_t count;
};

static int
put_address(void *arg, const char *address, size_t len)
{
	struct argument *a = arg;

	a->count++;
	return a->put(&a->job->envelope, address, len, &a->job->why) < 0
	    ? -ECANCELED
	    : 0;
}

/* As it stands: nothing is unquoted or split. */
static int
put_literal(struct argument *a, const char *text, size_t len)
{
	const char *domain = a->job->identity.domain;
	struct buf b = { 0 };
	int r = address_check(text, len);

	if (r == 0)
		r = buf_add(&b, text, len);
	if (r == 0 && strchr(text, '@') == NULL)
		r = buf_printf(&b, "@%s", domain);
	if (r == 0)
		r = put_address(a, b.data, b.len);
	buf_done(&b);
	return r;
}

static int
put_argument(struct argument *a, const char *text)
{
	size_t i, len = strlen(text);
	int r;

	/* A line end is no fold here. */
	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return refuse_address(&a->job->why, -EILSEQ, text, len);
	if (a->job->options.literal)
		r = put_literal(a, text, len);
	else
		r = address_list_parse(
		    text, len, a->job->identity.domain, put_address, a);
	if (r == -ECANCELED)
		return -1;
	return r < 0 ? refuse_address(&a->job->why, r, text, len) : 0;
}

static int
set_sender(struct job *job)
{
	const char *text = job->options.sender;
	struct argument a = { job, envelope_set_sender, 0 };
	struct identity *id = &job->identity;
	struct buf own = { 0 };
	int r;

	if (text == NULL) {
		identity_look_up(id);
		r = buf_printf(&own, "%s@%s", id->login, id->domain);
		if (r < 0)
			return refuse(
			    &job->why, REFUSAL_MEMORY, "out of memory");
		r = envelope_set_sender(
		    &job->envelope, own.data, own.len, &job->why);
		buf_done(&own);
		return r;
	}
	if (text[0] == '\0' || strcmp(text, "<>") == 0)
		return envelope_set_sender(&job->envelope, "", 0, &job->why);
	r = put_argument(&a, text);
	if (r == 0 && a.count != 1)
		return refuse_address(&job->why, -EINVAL, text, strlen(text));
	return r;
}

static int
add_recipients(struct job *job)
{
	const struct options *o = &job->options;
	struct argument a = { job, envelope_add_rcpt, 0 };
	size_t i;
	int r = 0;

	for (i = 0; i < o->nrcpts && r == 0; i++)
		r = put_argument(&a, o->rcpts[i]);
	if (r == 0 && o->from_header)
		r = message_recipients(&job->message, job->identity.domain,
		    &job->envelope, &job->why);
	if (r < 0)
		return r;
	if (job->envelope.rcpt_count == 0)
		return refuse(&job->why, REFUSAL_NO_RECIPIENT,
		    o->from_header
			? "no recipient in the header"
			: "no recipient; name one, or use -t to take them "
			  "from the header");
	return 0;
}

static int
complete_header(struct job *job)
{
	struct identity *id = &job->identity;
	const char *sender = buf_str(&job->envelope.sender);
	struct message_author author = { .host = id->host,
		.address = sender,
		.full_name = job->options.full_name,
		.wall = clock_wall() };
	char daemon_address[sizeof(id->domain) + sizeof("MAILER-DAEMON@")];

	snprintf(daemon_address, sizeof(daemon_address), "MAILER-DAEMON@%s",
	    id->domain);
	arc4random_buf(&author.random, sizeof(author.random));
	/* The user's name belongs to the user's address only. */
	if (author.full_name == NULL)
		author.full_name =
		    job->options.sender == NULL ? id->full_name : "";
	if (*sender == '\0')
		author.address = daemon_address;
	return message_complete(&job->message, &author, &job->why);
}

int
mail_prepare(struct job *job)
{
	/* Without a header to look into, recipients are known at once. */
	if (!job->options.from_header && job->options.nrcpts == 0)
		return add_recipients(job);
	if (set_sender(job) < 0 ||
	    message_read(&job->message, &job->source, &job->why) < 0)
		return -1;
	job->message.drop_bcc = job->options.from_header;
	job->eol = job->message.eol;
	if (add_recipients(job) < 0)
		return -1;
	return complete_header(job);
}

int
mail_content(struct job *job)
{
	int r = message_write(&job->message, job->submission);

	return r < 0 ? r : job_copy(job);
}

/* All of it was known before. */
int
mail_envelope(UNUSED struct job *job)
{
	return 0;
}
