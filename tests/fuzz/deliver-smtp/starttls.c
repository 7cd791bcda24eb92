/* The border between a conversation in the clear and TLS, and AUTH behind it,
 * against a server that says anything, cut anywhere: nothing of the message and
 * no password is said in the clear where TLS is asked for, nothing that was
 * said in the clear is of use behind TLS, and no verdict has the password. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-smtp/dialog/dialog.h"

#define TURNS_MAX 64
#define SECRET    "Gr4ss-green"

struct play {
	struct dialog dialog;
	struct agent_rcpt rcpt;
	bool fails; /* TLS does */
	bool in_tls;
	uint32_t secured; /* d->turn then */
};

/* Without credentials the word is the server's own. */
static void
check_text(const struct play *p, const struct verdict *v)
{
	MUST(p->dialog.task.credential == NULL ||
	    strstr(buf_str(&v->text), SECRET) == NULL);
}

static void
on_report(void *arg, uint32_t place, const struct verdict *v)
{
	struct play *p = arg;

	MUST(place == 0 && !p->rcpt.reported);
	p->rcpt.reported = true;
	check_text(p, v);
}

static bool
begins(const char *line, const char *verb)
{
	return strncmp(line, verb, strlen(verb)) == 0;
}

/* Before TLS, where it is asked for, these alone. */
static void
check_clear(const char *line)
{
	MUST(begins(line, "EHLO ") || begins(line, "HELO ") ||
	    begins(line, "LHLO ") || begins(line, "STARTTLS\r\n") ||
	    begins(line, "QUIT\r\n"));
}

static void
check_said(const struct play *p)
{
	const struct dialog *d = &p->dialog;
	const char *line = buf_str(&d->out), *end;

	for (; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		MUST(end != NULL && end > line && end[-1] == '\r');
		if (!p->in_tls && d->task.tls >= TLS_LEVEL_ENCRYPT)
			check_clear(line);
		MUST(p->in_tls || d->task.auth_in_clear ||
		    !begins(line, "AUTH "));
		MUST(!p->in_tls || !begins(line, "STARTTLS"));
	}
}

static void
our_turn(struct play *p)
{
	struct dialog *d = &p->dialog;

	check_said(p);
	buf_reset(&d->out);
	if (d->state == DIALOG_TLS) {
		MUST(!p->in_tls);
		p->in_tls = !p->fails;
		if (p->fails)
			dialog_insecure(d, "rubbish");
		else
			dialog_secured(d);
		p->secured = d->turn;
		MUST(p->fails ||
		    (!d->ehlo.starttls && d->ehlo.auth == 0 &&
			!d->ehlo.pipelining));
		check_said(p);
		buf_reset(&d->out);
	}
	if (d->state == DIALOG_COUNT) {
		dialog_measured(d, d->task.size);
		check_said(p);
		buf_reset(&d->out);
	}
	if (d->state == DIALOG_CONTENT)
		dialog_content_sent(d);
}

static void
speak(struct play *p, struct fuzz_in *in)
{
	unsigned turns = 0;

	while (in->left > 0 && p->dialog.state != DIALOG_CLOSED &&
	    turns++ < TURNS_MAX) {
		char *said = fuzz_string(in);

		dialog_feed(&p->dialog, said, strlen(said));
		free(said);
		/* Octets behind the reply to STARTTLS are never read. */
		MUST(p->dialog.state != DIALOG_TLS || p->dialog.parser.whole ||
		    p->dialog.task.implicit);
		our_turn(p);
		if (p->dialog.state == DIALOG_IDLE)
			break;
	}
}

static void
finish(struct play *p)
{
	struct dialog *d = &p->dialog;

	dialog_lost(d, DIALOG_LOST_CLOSED);
	MUST(d->state == DIALOG_CLOSED);
	MUST(d->end.try_next + d->end.lockstep + d->end.stale +
		d->end.in_clear <=
	    1);
	MUST(p->rcpt.reported || d->end.try_next || d->end.lockstep ||
	    d->end.in_clear);
	/* Over TLS before the first reply alone. */
	MUST(!d->end.in_clear ||
	    (d->task.fall_back && (!p->in_tls || d->turn == p->secured)));
	check_text(p, &d->end.why);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char key[] = "mx", user[] = "me", secret[] = SECRET;
	static char address[] = "r@x";
	struct fuzz_in in = { data, size };
	uint8_t how = (uint8_t)fuzz_number(&in, 1);
	const struct credential credential = { key, user, secret,
		(how & 64) != 0, 1 };
	struct play p = { .fails = how & 128, .rcpt = { .address = address } };
	struct dialog_task task = {
		.tls = (enum tls_level)(how % TLS_NLEVELS),
		.fall_back = how % TLS_NLEVELS == TLS_LEVEL_MAY,
		.implicit = (how & 4) && how % TLS_NLEVELS >= TLS_LEVEL_ENCRYPT,
		.lmtp = how & 8,
		.credential = (how & 16) ? &credential : NULL,
		.auth_in_clear = how & 32,
		.auth_soft = true,
		.mechanisms = SMTP_AUTH_ALL,
		.helo = "me.example",
		.sender = "s@y",
		.peer = "mx[192.0.2.1]",
		.rcpts = &p.rcpt,
		.nrcpts = 1,
	};

	MUST(dialog_init(&p.dialog, &task, on_report, &p) == 0);
	our_turn(&p);
	speak(&p, &in);
	finish(&p);
	dialog_done(&p.dialog);
	return 0;
}
