/* Rule 4: where selection stands, in what no recorded selection shows: batches
 * that come later, and destinations that open without a delivery that ended. */
#include "sched/parts.h"

#include <criterion/criterion.h>
#include <string.h>

#include "sched_check.h"
#include "sched_table.h"

static struct shared *sites;

/* Windows of one delivery, entries of one recipient, no preemption. */
static struct sched *
make(void)
{
	const struct sched_params params = { 1000, 1, 1000 };
	const struct sched_transport_params transport = {
		.process_limit = 100,
		.destination_recipient_limit = 100,
		.recipient_limit = 1000,
		.recipient_refill_limit = 1,
	};
	const struct site_params site = {
		.initial_destination_concurrency = 1,
		.destination_concurrency_limit = 1,
		.positive = { 1, WINDOW_FIXED },
	};
	const struct site_backoff backoff = { 1, 1, 0 };
	struct sched *s = NULL;

	cr_assert_eq(table_new(&site, 1, &backoff, &sites), 0);
	cr_assert_eq(sched_new(&params, &transport, 1, sites, &s), 0);
	return s;
}

static void
unmake(struct sched **s)
{
	sched_check(*s);
	sched_free(s);
	shared_free(&sites);
}

/* A batch with one recipient at each of these destinations, of one letter. */
static void
batch(struct sched_message *m, const char *destinations, bool last)
{
	const struct sched_rcpt rcpt = { 0 };
	char name[2] = "";

	for (; *destinations != '\0'; destinations++) {
		name[0] = *destinations;
		cr_assert_eq(sched_rcpt_add(m, 0, name, NULL, &rcpt), 0);
	}
	sched_batch_end(m, last, 0);
}

static struct sched_message *
message(struct sched *s, const char *owner, const char *destinations, bool last)
{
	struct sched_message *m = NULL;

	cr_assert_eq(sched_message_new(s, (void *)(uintptr_t)owner, 0, &m), 0);
	batch(m, destinations, last);
	return m;
}

static struct sched_entry *
next(struct sched *s, const char *owner)
{
	struct sched_entry *e = sched_select(s, 0);

	cr_assert_not_null(e, "instead of %s", owner);
	cr_assert_str_eq(e->owner, owner);
	sched_check(s);
	return e;
}

static void
end(struct sched *s, struct sched_entry *e)
{
	struct sched_message *m = e->message;

	sched_done(s, e, SITE_DELIVERED, NULL, 0);
	if (sched_message_waiting(m) == 0 && sched_message_running(m) == 0)
		sched_message_free(&m);
	sched_check(s);
}

static const char *
current(const struct sched *s)
{
	const struct job *job = s->transports[0].current;

	return job == NULL ? NULL : job->message->owner;
}

Test(sched_current, stands_where_the_last_entry_was_selected)
{
	struct sched *s = make();
	struct sched_entry *a, *b;

	cr_assert_null(current(s));
	message(s, "a", "x", true);
	cr_assert_str_eq(current(s), "a");
	message(s, "b", "xyz", true);
	cr_assert_str_eq(current(s), "a", "the list grows behind it");
	a = next(s, "a");
	cr_assert_str_eq(current(s), "b", "a has left");
	b = next(s, "b");
	end(s, b);
	end(s, a);
	cr_assert_str_eq(current(s), "b");
	end(s, next(s, "b"));
	end(s, next(s, "b"));
	cr_assert_null(current(s));
	unmake(&s);
}

Test(sched_current, goes_back_when_a_blocker_gets_room)
{
	struct sched *s = make();
	struct sched_entry *a, *b;

	message(s, "a", "x", true);
	message(s, "b", "x", true);
	message(s, "c", "yz", true);
	a = next(s, "a");
	b = next(s, "c");
	cr_assert_str_eq(current(s), "c");
	end(s, a);
	cr_assert_str_eq(current(s), "b");
	end(s, next(s, "b"));
	end(s, b);
	end(s, next(s, "c"));
	unmake(&s);
}

Test(sched_current, a_batch_gives_a_blocker_something_that_can_go)
{
	struct sched *s = make();
	struct sched_message *a;
	struct sched_entry *x, *y;

	message(s, "o", "x", true);
	a = message(s, "a", "x", false);
	message(s, "b", "yz", true);
	x = next(s, "o");
	y = next(s, "b");
	cr_assert_str_eq(current(s), "b");
	batch(a, "w", true);
	cr_assert_str_eq(current(s), "a");
	end(s, next(s, "a"));
	end(s, next(s, "b"));
	end(s, y);
	end(s, x);
	end(s, next(s, "a"));
	unmake(&s);
}

/* A message whose first batch comes after that of a younger one. */
Test(sched_current, a_job_that_comes_in_before_it)
{
	struct sched *s = make();
	struct sched_message *a = NULL;

	cr_assert_eq(sched_message_new(s, (void *)(uintptr_t) "a", 0, &a), 0);
	message(s, "b", "yz", true);
	end(s, next(s, "b"));
	batch(a, "x", true);
	cr_assert_str_eq(current(s), "a");
	end(s, next(s, "a"));
	cr_assert_str_eq(current(s), "b");
	end(s, next(s, "b"));
	unmake(&s);
}

Test(sched_current, all_full_is_no_reason_to_move)
{
	struct sched *s = make();
	struct sched_entry *x, *y;

	message(s, "a", "x", true);
	message(s, "b", "xy", true);
	message(s, "c", "xy", true);
	x = next(s, "a");
	y = next(s, "b");
	cr_assert_str_eq(current(s), "b");
	cr_assert_null(sched_select(s, 0));
	cr_assert_str_eq(current(s), "b", "c has not been gone by");
	end(s, y);
	end(s, next(s, "c"));
	end(s, x);
	cr_assert_str_eq(current(s), "b", "a blocker: the head");
	end(s, next(s, "b"));
	end(s, next(s, "c"));
	unmake(&s);
}
