/* Several queues at one site: places, whose turn it is, and who is told. */
#include <criterion/criterion.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "site_shared_scratch.h"

#define ENDS 4

struct several {
	struct scratch t;
	struct end ends[ENDS];
	struct site *sites[ENDS];
	uint32_t told[ENDS];
};

static void
several_begin(struct several *s, const struct site_params *params)
{
	uint32_t i;

	scratch_begin(&s->t, SHARED_SET_SLOTS, ENDS);
	for (i = 0; i < ENDS; i++) {
		s->told[i] = 0;
		end_begin(&s->ends[i], &s->t, i + 1, params);
		s->sites[i] = end_site(&s->ends[i], "a.example", 0);
		*site_user(s->sites[i]) = &s->told[i];
		end_work(&s->ends[i], 0); /* what was before it came */
	}
}

static void
several_end(struct several *s)
{
	uint32_t i;

	for (i = 0; i < ENDS; i++)
		end_close(&s->ends[i]);
	scratch_end(&s->t);
}

static bool
is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Somebody has fallen asleep there: as it is moved from the word to itself, it
 * is counted and not woken. */
static bool
sleeps_on(uint32_t *word)
{
	const struct timespec a_moment = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < 5000; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0 &&
		    syscall(SYS_futex, word, FUTEX_REQUEUE, 0, 1, word, 0) == 1)
			return true;
		(void)nanosleep(&a_moment, NULL);
	}
	return false;
}

Test(site_shared_waiters, one_window_for_all)
{
	struct several s;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[1], 0);
	end_full(s.sites[0], 0);
	end_full(s.sites[2], 0);
	cr_expect_eq(end_view(s.sites[2]).busy, 2);
	end_done(s.sites[1], SITE_DELIVERED, 0);
	end_take(s.sites[2], 0);
	end_done(s.sites[2], SITE_DELIVERED, 0);
	end_done(s.sites[0], SITE_DELIVERED, 0);
	several_end(&s);
}

Test(site_shared_waiters, those_who_wait_are_told_in_turn)
{
	struct several s;
	uint32_t i;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	for (i = 1; i < ENDS; i++)
		end_wait(s.sites[i], 0);
	for (i = 1; i < ENDS; i++) /* it asked to be called for a new time */
		end_work(&s.ends[i], 0);
	cr_expect_not(is_readable(shared_wake_fd(s.ends[1].shared), 0));
	end_done(s.sites[0], SITE_DELIVERED, 1);
	cr_expect(is_readable(shared_wake_fd(s.ends[1].shared), 120000));
	cr_expect_not(is_readable(shared_wake_fd(s.ends[2].shared), 0));
	end_full(s.sites[0], 1);
	end_full(s.sites[2], 1);
	end_work(&s.ends[1], 1);
	cr_expect_eq(s.told[1], 1);
	end_take(s.sites[1], 1);
	end_done(s.sites[1], SITE_DELIVERED, 2);
	end_full(s.sites[1], 2);
	cr_expect(is_readable(shared_wake_fd(s.ends[2].shared), 120000));
	end_work(&s.ends[2], 2);
	cr_expect_eq(s.told[2], 1);
	cr_expect_eq(s.told[3], 0);
	several_end(&s);
}

/* A queue that does not use its turn loses it when somebody else looks. */
/* Tickets go round, at any of those in line. */
Test(site_shared_waiters, whose_turn_it_is_at_the_end_of_all_tickets)
{
	uint32_t first, i;

	for (first = 0; first < ENDS; first++) {
		struct shared *shared;
		struct several s;

		several_begin(&s, &plain);
		shared = s.ends[0].shared;
		end_take(s.sites[0], 0);
		end_take(s.sites[0], 0);
		shared_set_slot(&shared->seg,
		    shared_segment_set(&shared->seg, s.sites[0]->set),
		    s.sites[0]->index)
		    ->ticket = UINT32_MAX - first;
		for (i = 1; i < ENDS; i++)
			end_wait(s.sites[i], 0);
		end_done(s.sites[0], SITE_AGENT_DIED, 0);
		for (i = 1; i + 1 < ENDS; i++) {
			end_full(s.sites[i + 1], 0);
			end_take(s.sites[i], 0);
			end_done(s.sites[i], SITE_AGENT_DIED, 0);
		}
		several_end(&s);
	}
}

Test(site_shared_waiters, a_turn_ends)
{
	struct several s;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_wait(s.sites[2], 0);
	end_done(s.sites[0], SITE_DELIVERED, 0);
	end_full(s.sites[2], SHARED_GRANT_TIME - 1000);
	end_take(s.sites[2], SHARED_GRANT_TIME + 1000);
	end_full(s.sites[1], SHARED_GRANT_TIME + 1000);
	/* It lines up again, and has its turn again. */
	end_wait(s.sites[1], SHARED_GRANT_TIME + 1000);
	end_done(s.sites[2], SITE_DELIVERED, SHARED_GRANT_TIME + 1000);
	end_full(s.sites[3], SHARED_GRANT_TIME + 1000);
	end_take(s.sites[1], SHARED_GRANT_TIME + 1000);
	several_end(&s);
}

/* Whoever was put out of line without a word is in it again when it looks. */
Test(site_shared_waiters, it_lines_up_again_by_itself)
{
	struct several s;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_done(s.sites[0], SITE_DELIVERED, 0);
	end_wait(s.sites[2], 0);
	end_take(s.sites[2], SHARED_GRANT_TIME + 2000);
	end_work(&s.ends[1], CHECK_AGAIN);
	cr_expect_eq(s.told[1], 0);
	end_done(s.sites[0], SITE_DELIVERED, CHECK_AGAIN);
	end_work(&s.ends[1], CHECK_AGAIN);
	cr_expect_eq(s.told[1], 1);
	several_end(&s);
}

/* A limit that is lowered takes a turn back, and the queue stays where it is in
 * line. */
Test(site_shared_waiters, a_turn_that_is_withdrawn_is_not_over)
{
	static const char *const names[] = { "smtp", "lmtp" };
	struct site_params one[] = { plain, plain };
	const struct shared_params p = { one, names, 2, exact };
	struct several s;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_wait(s.sites[2], 0);
	end_done(s.sites[0], SITE_DELIVERED, 0);
	one[0].destination_concurrency_limit = 1;
	cr_assert_eq(shared_configure(s.ends[3].shared, &p), 0);
	end_full(s.sites[3], 0);
	end_done(s.sites[0], SITE_DELIVERED, SHARED_GRANT_TIME);
	end_full(s.sites[2], SHARED_GRANT_TIME + 1000);
	end_take(s.sites[1], SHARED_GRANT_TIME + 1000);
	several_end(&s);
}

/* One that lives gives its turn away by itself. */
Test(site_shared_waiters, a_turn_that_is_not_used_is_passed_on)
{
	struct several s;
	usec_t next;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_wait(s.sites[2], 0);
	end_done(s.sites[0], SITE_DELIVERED, 5);
	next = end_work(&s.ends[1], 5);
	cr_expect_eq(s.told[1], 1);
	cr_expect_eq(next, 5 + SHARED_GRANT_TIME);
	end_work(&s.ends[1], next);
	cr_expect(is_readable(shared_wake_fd(s.ends[2].shared), 120000));
	end_work(&s.ends[2], next);
	cr_expect_eq(s.told[2], 1);
	end_full(s.sites[1], next);
	end_take(s.sites[2], next);
	several_end(&s);
}

Test(site_shared_waiters, a_death_is_told_to_all)
{
	struct several s;
	uint32_t i;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	for (i = 1; i < ENDS; i++)
		end_wait(s.sites[i], 0);
	for (i = 1; i < ENDS; i++)
		end_work(&s.ends[i], 0);
	end_done(s.sites[0], SITE_FAILED, 0);
	end_done(s.sites[0], SITE_FAILED, 0);
	for (i = 1; i < ENDS; i++) {
		end_work(&s.ends[i], 0);
		cr_expect_eq(s.told[i], 1, "queue %u", i);
		cr_expect_eq(site_wait(s.sites[i], true, 0), SITE_DEAD);
		cr_expect_str_eq(end_view(s.sites[i]).why, "refused");
	}
	several_end(&s);
}

/* Who died holding places, and in line. */
Test(site_shared_waiters, a_queue_that_is_gone_has_nothing)
{
	struct several s;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_wait(s.sites[2], 0);
	end_die(&s.ends[1]);
	end_die(&s.ends[0]);
	end_full(s.sites[2], 0);
	shared_forget(s.ends[3].shared, 1, 2, 0); /* of another life */
	end_full(s.sites[2], 0);
	shared_forget(s.ends[3].shared, 2, 1, 0);
	shared_forget(s.ends[3].shared, 1, 1, 0);
	end_work(&s.ends[2], 0);
	cr_expect_eq(s.told[2], 1);
	end_take(s.sites[2], 0);
	end_take(s.sites[2], 0);
	end_begin(&s.ends[0], &s.t, 9, &plain);
	end_begin(&s.ends[1], &s.t, 8, &plain);
	several_end(&s);
}

/* FORGET comes late, when the member is another one's already. */
Test(site_shared_waiters, what_is_forgotten_is_of_its_generation)
{
	struct several s;
	uint32_t member;
	uint64_t old;

	several_begin(&s, &plain);
	member = s.ends[0].shared->member;
	old = s.ends[0].shared->owner;
	end_die(&s.ends[0]);
	end_open(&s.ends[0], &plain);
	cr_assert_eq(shared_attach(s.ends[0].shared, s.t.fd, 1, 2, 0), 0);
	cr_assert_eq(s.ends[0].shared->member, member);
	s.sites[0] = end_site(&s.ends[0], "a.example", 0);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	s.ends[1].shared->forgets[member] = old; /* it looked before */
	cr_expect(shared_member_forget(s.ends[1].shared, member, 0));
	end_full(s.sites[1], 0);
	cr_expect_not(shared_is_lost(s.ends[0].shared));
	several_end(&s);
}

/* A queue that is started again has a member that is clear. */
Test(site_shared_waiters, a_queue_that_is_back_has_nothing)
{
	struct several s;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_die(&s.ends[0]);
	end_begin(&s.ends[0], &s.t, 1, &plain);
	end_work(&s.ends[1], 0);
	cr_expect_eq(s.told[1], 1);
	end_take(s.sites[1], 0);
	end_take(s.sites[1], 0);
	several_end(&s);
}

/* Whoever was to wake it died on the way: it looks by itself. */
Test(site_shared_waiters, a_wake_up_that_is_lost_costs_a_second)
{
	struct shared_figures f;
	struct several s;
	usec_t next;

	several_begin(&s, &plain);
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	next = end_work(&s.ends[1], 0);
	cr_expect_leq(next, CHECK_AGAIN);
	end_done(s.sites[0], SITE_DELIVERED, 0);
	shared_segment_member(&s.ends[1].shared->seg, s.ends[1].shared->member)
	    ->bits[0] = 0;
	end_work(&s.ends[1], next - 1);
	cr_expect_eq(s.told[1], 0);
	end_work(&s.ends[1], next);
	cr_expect_eq(s.told[1], 1);
	shared_figures(s.ends[1].shared, &f);
	cr_expect_eq(f.wakes_lost, 1);
	end_take(s.sites[1], next);
	several_end(&s);
}

/* It died between the word and the call that wakes: the next one does both,
 * or every wake-up from then on would cost a second. */
Test(site_shared_waiters, P1_a_wake_up_that_is_half_done_is_the_only_one_lost)
{
	struct several s;
	uint32_t *word;

	several_begin(&s, &plain);
	word = &shared_segment_member(
	    &s.ends[1].shared->seg, s.ends[1].shared->member)
		    ->word;
	end_take(s.sites[0], 0);
	end_take(s.sites[0], 0);
	end_wait(s.sites[1], 0);
	end_work(&s.ends[1], 0);
	cr_assert(sleeps_on(word));
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	end_done(s.sites[0], SITE_DELIVERED, 0);
	cr_expect(is_readable(shared_wake_fd(s.ends[1].shared), 120000));
	several_end(&s);
}

/* ---- shares ---- */

#define MANY 12

struct queue {
	struct end e;
	struct site *site;
	usec_t until[MANY]; /* of its deliveries; 0: none */
	uint32_t told, done;
};
struct race {
	struct scratch t;
	struct queue queues[MANY];
	uint64_t seed;
	uint32_t busy, most; /* deliveries of each at once */
	uint64_t used;       /* places, summed over all steps */
	usec_t now;
};

static uint32_t
dice(struct race *r, uint32_t sides)
{
	r->seed = r->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(r->seed >> 33) % sides;
}

static void
deliveries_end(struct race *r, struct queue *q)
{
	uint32_t i;

	for (i = 0; i < r->most; i++)
		if (q->until[i] != 0 && q->until[i] <= r->now) {
			q->until[i] = 0;
			q->done++;
			r->busy--;
			end_done(q->site, SITE_DELIVERED, r->now);
		}
}

/* As the scheduler does: as many as it can, and in line for more. */
static void
deliveries_begin(struct race *r, struct queue *q)
{
	uint32_t i;

	for (i = 0; i < r->most; i++) {
		if (q->until[i] != 0)
			continue;
		if (site_take(q->site, r->now) != SITE_ROOM) {
			(void)site_wait(q->site, true, r->now);
			return;
		}
		q->until[i] = r->now + (1 + dice(r, 40)) * USEC_PER_MSEC;
		r->busy++;
	}
}

static void
race_step(struct race *r)
{
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		struct queue *q = &r->queues[i];

		q->told = 0;
		deliveries_end(r, q);
		end_work(&q->e, r->now);
		deliveries_begin(r, q);
	}
	r->used += r->busy;
	r->now += USEC_PER_MSEC;
}

/* Of a window that is too small for all every queue gets its part, and all of
 * it is used. */
Test(site_shared_waiters, every_queue_gets_its_share)
{
	struct site_params p = plain;
	struct race r = { .seed = 3, .most = 4, .now = 1 };
	uint32_t i, least = UINT32_MAX, sum = 0, steps = 5000;

	p.initial_destination_concurrency = p.destination_concurrency_limit = 8;
	scratch_begin(&r.t, 64, MANY);
	for (i = 0; i < MANY; i++) {
		end_begin(&r.queues[i].e, &r.t, i, &p);
		r.queues[i].site = end_site(&r.queues[i].e, "a", 0);
		*site_user(r.queues[i].site) = &r.queues[i].told;
	}
	for (i = 0; i < steps; i++) {
		race_step(&r);
		cr_assert_leq(r.busy, 8);
	}
	for (i = 0; i < MANY; i++) {
		sum += r.queues[i].done;
		if (r.queues[i].done < least)
			least = r.queues[i].done;
	}
	cr_expect_geq(2 * least * MANY, sum, "least %u of %u", least, sum);
	/* A place waits for the next step of who has its turn. */
	cr_expect_geq(r.used, (uint64_t)steps * 8 * 90 / 100, "%lu",
	    (unsigned long)r.used);
	for (i = 0; i < MANY; i++)
		end_close(&r.queues[i].e);
	scratch_end(&r.t);
}
