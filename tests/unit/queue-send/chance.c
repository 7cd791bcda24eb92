/* Everything that may happen to mail, in any order: agents that answer, fail
 * and die, sites that die, flushes, reloads, disks that fail, restarts. When
 * all is well again, each recipient was delivered once. */
#include "tests/unit/queue-send/world.h"

#include "base/clock.h"
#include "base/io.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVES      6
#define STEPS      400
#define MESSAGES   60
#define RCPTS      60
#define DELIVERIES 128

struct mail {
	uint64_t inode;
	uint32_t n;
	bool offered; /* from incoming */
	uint8_t sent[RCPTS];
};

static struct world w;
static struct mail mails[MESSAGES];
static struct world_delivery deliveries[DELIVERIES];
static uint32_t nmails, ndeliveries, answered, scans;
static uint64_t dice;

static uint32_t
roll(uint32_t sides)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(dice >> 33) % sides;
}

/* ---- mail ---- */

static void
add_mail(void)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct mail *m = &mails[nmails];
	struct queue_id id;
	struct accept a;
	char rcpt[64];
	uint32_t i;

	if (nmails == MESSAGES)
		return;
	*m = (struct mail){ .n = 1 + roll(roll(2) ? 4 : RCPTS) };
	/* The disk fails for this one, too: not accepted. */
	if (accept_begin(&a, &w.s.sp, &options, clock_wall(), getuid()) < 0)
		return;
	cr_assert_eq(queue_file_add_content(&a.writer, "a\n\nb\n", 5), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "s@here.test", 11), 0);
	for (i = 0; i < m->n; i++) {
		snprintf(
		    rcpt, sizeof(rcpt), "m%u.%u@d%u.test", nmails, i, roll(5));
		cr_assert_eq(
		    queue_file_add_rcpt(&a.writer, rcpt, strlen(rcpt)), 0);
	}
	if (accept_commit(&a, &id) == 0) {
		m->inode = id.inode;
		nmails++;
	}
	accept_end(&a);
}

static bool
is_alive(const struct mail *m)
{
	uint32_t i;

	for (i = 0; i < m->n; i++)
		if (m->sent[i] == 0)
			return true;
	return false;
}

/* As todo-proc does. */
static void
hear(void)
{
	struct mail *m;

	world_run(&w);
	for (m = mails; m < mails + nmails; m++) {
		if (scans != w.scans)
			m->offered = false;
		if (is_alive(m) && !m->offered && w.credit > 0 &&
		    world_where(&w, m->inode) == SPOOL_INCOMING) {
			m->offered = true;
			world_offer(&w, SPOOL_INCOMING, m->inode);
		}
	}
	scans = w.scans;
	for (; answered < w.nprepared; answered++)
		if (world_where(&w, w.prepared[answered % 256]) ==
		    SPOOL_DEFERRED)
			world_offer(
			    &w, SPOOL_DEFERRED, w.prepared[answered % 256]);
	world_run(&w);
}

/* ---- deliveries ---- */

static void
take(void)
{
	if (ndeliveries < DELIVERIES &&
	    world_take(&w, &deliveries[ndeliveries]))
		close(deliveries[ndeliveries++].fd);
}

static void
sent(const struct world_delivery *delivery, uint32_t place)
{
	struct mail *m;
	uint32_t number;

	cr_assert_eq(sscanf(delivery->first, "m%u.", &number), 1);
	m = &mails[number];
	cr_assert_lt(delivery->rcpt[place], m->n);
	cr_assert_eq(m->sent[delivery->rcpt[place]]++, 0,
	    "%s: recipient %u twice", delivery->first, delivery->rcpt[place]);
	world_result(&w, delivery, place, AGENT_SENT);
}

static void
end_job(uint32_t which, uint32_t how)
{
	struct world_delivery delivery = deliveries[which];
	uint32_t i;

	deliveries[which] = deliveries[--ndeliveries];
	for (i = 0; i < delivery.nrcpts; i++)
		if (how == 0 || (how < 3 && roll(3) == 0))
			sent(&delivery, i);
		else if (how < 3 && roll(3) == 0)
			world_result(&w, &delivery, i, AGENT_DEFERRED);
	if (how < 2)
		world_done(&w, &delivery);
	else if (how < 5)
		world_site_failed(&w, &delivery);
	else
		world_agent_failed(&w, &delivery);
	world_run(&w);
}

/* ---- what else ---- */

/* It was not their doing (poison.c is about that). */
static void
forgive(void)
{
	struct message *m;
	struct due *d;
	uint32_t i;

	for (i = 0; i < nmails; i++) {
		m = messages_find(&w.s.messages, mails[i].inode);
		d = due_find(&w.s.due, mails[i].inode);
		if (m != NULL)
			m->deaths = 0;
		if (d != NULL)
			d->deaths = 0;
	}
}

static void
agent_dies(void)
{
	io_close(&w.agent);
	ndeliveries = 0;
	if (roll(2))
		world_run(&w);
	world_link_agent(&w);
	world_run(&w);
	forgive();
}

static void
flush(void)
{
	control_ops.flush(&(struct daemon){ .state = &w.s });
}

static const char *const confs[] = {
	"",
	"initial_destination_concurrency = 1\n",
	"default_destination_recipient_limit = 2\n"
	"initial_destination_concurrency = 2\n",
	"default_destination_recipient_limit = 7\n"
	"default_delivery_slot_cost = 2\n"
	"default_minimum_delivery_slots = 1\n"
	"qmgr_message_recipient_limit = 7\n"
	"qmgr_message_recipient_minimum = 2\n"
	"default_recipient_limit = 3\n"
	"default_extra_recipient_limit = 1\n"
	"default_recipient_refill_limit = 2\n",
	"default_destination_recipient_limit = 50\n"
	"qmgr_message_recipient_minimum = 1\n"
	"default_recipient_limit = 1\n"
	"qmgr_message_active_limit = 3\n"
	"default_destination_concurrency_failed_cohort_limit = 0\n",
};

static void
break_disk(void)
{
	static const int errors[] = { EIO, EROFS, ENOSPC, EMFILE, EACCES };

	world_fail((enum world_call)(1 + roll(4)), errors[roll(5)],
	    (int)roll(4)); /* 0: until it is mended */
}

static void
mend(void)
{
	world_fail(CALL_NONE, 0, 0);
	w.s.health.probe_at = w.s.record_at = w.s.finish_at = 0;
	w.s.stuck_at = 0;
	w.s.admission_blocked_until = w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
}

static void
scan(void)
{
	uint32_t i;

	for (i = 0; i < nmails; i++)
		mails[i].offered = false;
}

static void
restart(void)
{
	mend();
	mend();
	if (!STAILQ_EMPTY(&w.s.unrecorded))
		return;
	world_again(&w);
	ndeliveries = answered = scans = 0;
	scan();
}

/* The end of the queue begins, to a queue that is not there, or is called off:
 * what waits is put aside, what runs ends, all of it is found again. */
static void
tell_evacuate(const char *queues, uint32_t len)
{
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { queues, len } };

	cr_assert_eq(
	    control_ops.told(&(struct daemon){ .state = &w.s }, &msg), 0);
}

static void
step(void)
{
	uint32_t what = roll(100);

	if (what < 12)
		add_mail();
	else if (what < 50)
		take();
	else if (what < 85 && ndeliveries > 0)
		end_job(roll(ndeliveries), roll(6));
	else if (what < 87)
		agent_dies();
	else if (what < 89)
		flush();
	else if (what < 92)
		world_reload(&w, confs[roll(ARRAY_LEN(confs))]);
	else if (what < 95)
		break_disk();
	else if (what < 97)
		mend();
	else if (what < 98)
		tell_evacuate("\x9\0\0\0", 4);
	else if (what < 99)
		tell_evacuate(NULL, 0);
	else if (roll(3) == 0)
		restart();
	hear();
}

static bool
all_done(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < nmails; i++)
		n += is_alive(&mails[i]);
	return n == 0 && w.s.active == 0;
}

static void
finish(void)
{
	int i;

	tell_evacuate(NULL, 0);
	for (i = 0; i < 300 && !all_done(); i++) {
		mend();
		scan();
		while (ndeliveries > 0)
			end_job(0, 0);
		flush();
		hear();
		do
			take();
		while (ndeliveries < DELIVERIES &&
		    world_take(&w, &deliveries[ndeliveries]) &&
		    (close(deliveries[ndeliveries].fd), ++ndeliveries));
	}
	mend();
	hear();
}

static void
live(uint64_t seed)
{
	enum spool_dir dir;
	uint32_t i;

	dice = seed * 7919 + 1;
	nmails = ndeliveries = answered = scans = 0;
	world_start(&w, confs[roll(ARRAY_LEN(confs))]);
	for (i = 0; i < STEPS; i++)
		step();
	finish();
	for (i = 0; i < nmails; i++)
		cr_expect_not(is_alive(&mails[i]),
		    "seed %lu: mail %u of %u recipients lies in %d",
		    (unsigned long)seed, i, mails[i].n,
		    world_where(&w, mails[i].inode));
	for (dir = SPOOL_INCOMING; dir <= SPOOL_CORRUPT; dir++)
		cr_expect_eq(world_count(&w, dir), 0, "seed %lu: %d",
		    (unsigned long)seed, dir);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(sched_figures(w.s.sched).messages, 0);
	cr_expect_eq(sched_figures(w.s.sched).recipients, 0);
	world_end(&w);
}

Test(chance, each_recipient_is_delivered_once)
{
	const char *from = getenv("SEED"), *to = getenv("SEEDS");
	uint64_t seed = from == NULL ? 1 : strtoull(from, NULL, 10),
		 end = seed + (to == NULL ? LIVES : strtoull(to, NULL, 10));

	for (; seed < end; seed++)
		live(seed);
}
