#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void
on_report(void *arg, uint32_t place, const struct verdict *v)
{
	struct play *p = arg;

	cr_assert_lt(place, ARRAY_LEN(p->rcpts));
	cr_assert_not(p->rcpts[place].reported, "reported twice");
	p->rcpts[place].reported = true;
	p->got[place] = *v;
	buf_add_str(&p->texts[place], buf_str(&v->text));
}

struct dialog_task
play_task(struct play *p, uint32_t nrcpts)
{
	static const char *const names[] = { "a@x", "b@x", "c@x", "d@x", "e@x",
		"f@x", "g@x", "h@x" };
	uint32_t i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < nrcpts; i++)
		p->rcpts[i].address = strdup(names[i]);
	return (struct dialog_task){
		.helo = "me.example",
		.sender = "s@y",
		.peer = "mx[1.2.3.4]",
		.size = 100,
		.mechanisms = SMTP_AUTH_ALL,
		.rcpts = p->rcpts,
		.nrcpts = nrcpts,
	};
}

struct dialog_task
play_auth_task(struct play *p, const struct credential *c, enum tls_level level)
{
	struct dialog_task task = play_task(p, 1);

	task.tls = level;
	task.credential = c;
	task.auth_soft = true;
	return task;
}

/* What the caller of a dialogue does after each event. */
static void
say(struct play *p)
{
	struct dialog *d = &p->dialog;

	buf_add(&p->said, d->out.data, d->out.len);
	buf_reset(&d->out);
	d->told = 0;
}

static void
our_turn(struct play *p)
{
	struct dialog *d = &p->dialog;

	say(p);
	if (d->state == DIALOG_TLS) {
		buf_add_str(&p->said, "{tls}");
		if (p->insecure)
			dialog_insecure(d, "rubbish");
		else
			dialog_secured(d);
		say(p);
	}
	if (d->state == DIALOG_SURVEY) {
		buf_add_str(&p->said, d->whole ? "{survey}" : "{header}");
		dialog_surveyed(d, &p->survey);
		say(p);
	}
	if (d->state == DIALOG_COUNT) {
		buf_add_str(&p->said, "{count}");
		dialog_measured(d, p->wire > 0 ? p->wire : d->task.size);
		say(p);
	}
	if (d->state == DIALOG_MEASURE) {
		buf_add_str(
		    &p->said, d->convert ? "{measure converted}" : "{measure}");
		dialog_measured(d, 42);
		say(p);
	}
	if (d->state == DIALOG_CONTENT) {
		buf_add_str(&p->said, d->convert ? "{converted}" : "{content}");
		dialog_content_sent(d);
	}
}

static void
feed(struct play *p, const char *data, size_t len)
{
	/* In memory of its own, so that a read beyond it is seen. */
	char *copy = malloc(len + 1);

	memcpy(copy, data, len);
	dialog_feed(&p->dialog, copy, len);
	free(copy);
}

static void
judge(struct play *p)
{
	static const char letters[AGENT_NOUTCOMES] = { 'S', 'D', 'F' };
	const struct dialog_end *e = &p->dialog.end;
	uint32_t i;

	for (i = 0; i < p->dialog.task.nrcpts; i++) {
		if (i > 0)
			buf_add_char(&p->results, ' ');
		if (p->rcpts[i].reported)
			buf_printf(&p->results, "%c%s",
			    letters[p->got[i].outcome], p->got[i].dsn);
		else
			buf_add_char(&p->results, '-');
	}
	cr_assert_leq(
	    e->try_next + e->lockstep + e->stale + e->open + e->in_clear, 1);
	cr_assert_leq(e->site_failed + e->site_doubted + e->stale +
		e->lockstep + e->in_clear,
	    1);
	cr_assert_eq(e->open, p->dialog.state == DIALOG_IDLE);
	p->end = e->open      ? "open"
	    : e->stale        ? "stale"
	    : e->in_clear     ? "clear"
	    : e->try_next     ? "site next"
	    : e->lockstep     ? "lockstep"
	    : e->site_failed  ? "site"
	    : e->site_doubted ? "doubted"
			      : "";
}

static void
begin(struct play *p, const struct dialog_task *task)
{
	cr_assert_eq(dialog_init(&p->dialog, task, on_report, p), 0);
}

static void
finish(struct play *p, char how)
{
	our_turn(p);
	if (p->dialog.state == DIALOG_IDLE) {
		judge(p);
		return;
	}
	if (how == '#')
		dialog_abandon(&p->dialog, "4.3.2", "stop");
	dialog_lost(
	    &p->dialog, how == '!' ? DIALOG_LOST_TIMEOUT : DIALOG_LOST_CLOSED);
	cr_assert_eq(p->dialog.state, DIALOG_CLOSED);
	buf_add(&p->said, p->dialog.out.data, p->dialog.out.len);
	judge(p);
}

/* The octets of one turn of the script. */
static void
turn_of(const char **script, struct buf *out)
{
	const char *s = *script;

	buf_reset(out);
	for (; *s != '\0' && *s != '|' && *s != '!' && *s != '#'; s++) {
		if (*s == '\n')
			buf_add_char(out, '\r');
		buf_add_char(out, *s);
	}
	*script = *s == '|' ? s + 1 : s;
}

/* The rest of the script, at its end or at one of "!#". */
static const char *
listen_to(struct play *p, const char *script, size_t cut)
{
	struct buf turn = { 0 };
	size_t i, n;

	while (*script != '\0' && *script != '!' && *script != '#') {
		our_turn(p); /* the first one has nothing to say */
		turn_of(&script, &turn);
		for (i = 0; i < turn.len; i += n) {
			n = turn.len - i < cut ? turn.len - i : cut;
			feed(p, turn.data + i, n);
		}
		if (p->dialog.state == DIALOG_CLOSED)
			break;
	}
	buf_done(&turn);
	return script;
}

static void
run(struct play *p, const char *script, size_t cut)
{
	finish(p, *listen_to(p, script, cut));
}

void
play_cut(struct play *p, const struct dialog_task *task, const char *script,
    size_t cut)
{
	begin(p, task);
	run(p, script, cut);
}

void
play_begin(struct play *p, const struct dialog_task *task, const char *script)
{
	begin(p, task);
	(void)listen_to(p, script, SIZE_MAX);
}

void
play_end(struct play *p)
{
	judge(p);
}

void
play_again(struct play *p, const char *script)
{
	const struct dialog_task task = p->dialog.task;
	size_t i;

	for (i = 0; i < ARRAY_LEN(p->rcpts); i++) {
		p->rcpts[i].reported = false;
		buf_reset(&p->texts[i]);
	}
	buf_reset(&p->results);
	buf_reset(&p->said);
	cr_assert_eq(dialog_again(&p->dialog, &task, on_report, p), 0);
	run(p, script, SIZE_MAX);
}

void
play(struct play *p, const struct dialog_task *task, const char *script)
{
	play_cut(p, task, script, SIZE_MAX);
}

void
play_done(struct play *p)
{
	size_t i;

	dialog_done(&p->dialog);
	buf_done(&p->said);
	buf_done(&p->results);
	for (i = 0; i < ARRAY_LEN(p->rcpts); i++) {
		free(p->rcpts[i].address);
		buf_done(&p->texts[i]);
	}
}
