/* Locks whose owners die or stop. */
#include <criterion/criterion.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "site_shared_scratch.h"

struct owner {
	struct scratch t;
	struct end e;
	struct site *a;
	pid_t pid;
	int gate[2];
};

/* Another process has the lock of the only set, and says so. */
static void
own_lock(const struct owner *o)
{
	struct shared_segment seg;
	struct end e;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_begin(&e, &o->t, 9, &plain);
	if (shared_segment_map(o->t.fd, &seg) < 0 ||
	    !shared_set_lock(e.shared, 0, clock_mono()))
		_exit(1);
	/* In the middle of taking a place. */
	shared_segment_set(&seg, 0)->in_use = 0;
	shared_segment_set(&seg, 0)->dead = UINT32_MAX;
	if (write(o->gate[1], "x", 1) != 1)
		_exit(1);
	(void)raise(SIGSTOP);
	shared_segment_set(&seg, 0)->dead = 0;
	shared_segment_set(&seg, 0)->in_use = 1;
	shared_set_unlock(e.shared, 0);
	while (write(o->gate[1], "y", 1) == 1)
		(void)pause();
}

static void
owner_begin(struct owner *o)
{
	char c;
	int status;

	scratch_begin(&o->t, SHARED_SET_SLOTS, 3);
	end_begin(&o->e, &o->t, 1, &plain);
	o->a = end_site(&o->e, "a", 0);
	end_take(o->a, 0);
	cr_assert_eq(pipe(o->gate), 0);
	o->pid = fork();
	cr_assert_geq(o->pid, 0);
	if (o->pid == 0)
		own_lock(o);
	cr_assert_eq(read(o->gate[0], &c, 1), 1);
	cr_assert_eq(waitpid(o->pid, &status, WUNTRACED), o->pid);
	cr_assert(WIFSTOPPED(status));
}

static void
owner_end(struct owner *o)
{
	close(o->gate[0]);
	close(o->gate[1]);
	end_close(&o->e);
	scratch_end(&o->t);
}

static void
owner_kill(struct owner *o)
{
	cr_assert_eq(kill(o->pid, SIGKILL), 0);
	cr_assert_eq(waitpid(o->pid, NULL, 0), o->pid);
}

static struct shared_figures
figures(struct end *e)
{
	struct shared_figures f;

	shared_figures(e->shared, &f);
	return f;
}

/* The word that the kernel changes when this thread dies. */
static const void *
pending(void)
{
	struct robust_list_head *head = NULL;
	size_t len;

	cr_assert_eq(syscall(SYS_get_robust_list, 0, &head, &len), 0);
	return head == NULL ? NULL : head->list_op_pending;
}

Test(site_shared_lock, of_the_dead_is_taken_over)
{
	struct owner o;

	owner_begin(&o);
	owner_kill(&o);
	end_take(o.a, 0);
	end_full(o.a, 0);
	cr_expect_eq(figures(&o.e).recovered, 1);
	cr_expect_eq(figures(&o.e).stuck, 0);
	cr_expect_eq(end_view(o.a).busy, 2);
	owner_end(&o);
}

/* The owner died before it noted that the slot of "a" is in use: given to
 * another site, the slot would lose a place that is taken.
 * mutation: common/site/shared_lock.c: shared_set_lock() mends no set. */
Test(site_shared_lock, P1_a_set_of_the_dead_is_mended_before_it_is_used)
{
	struct owner o;
	char name[16];
	int i;

	owner_begin(&o);
	owner_kill(&o);
	for (i = 0; i < SHARED_SET_SLOTS; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		(void)site_take(end_site(&o.e, name, 0), 0);
	}
	cr_expect_eq(figures(&o.e).recovered, 1);
	cr_expect_eq(figures(&o.e).evicted, 0);
	cr_expect_eq(end_view(o.a).busy, 1);
	owner_end(&o);
}

/* The kernel wakes one of those who sleep at the lock of the dead; the others
 * are woken by the next owner, whoever that is.
 * mutation: common/site/shared_lock.c: try_once() drops FUTEX_WAITERS. */
Test(site_shared_lock, P1_who_sleeps_at_the_lock_of_the_dead_is_woken)
{
	struct shared_segment seg;
	struct scratch t;
	struct end e;
	uint32_t *word;

	scratch_begin(&t, SHARED_SET_SLOTS, 3);
	end_begin(&e, &t, 1, &plain);
	cr_assert_eq(shared_segment_map(t.fd, &seg), 0);
	word = &shared_segment_set(&seg, 0)->lock;
	*word = FUTEX_WAITERS | FUTEX_OWNER_DIED;
	cr_assert(shared_set_lock(e.shared, 0, clock_mono()));
	cr_expect_not_null(pending());
	cr_expect_eq(*word & ~(uint32_t)FUTEX_TID_MASK, FUTEX_WAITERS);
	shared_set_unlock(e.shared, 0);
	cr_expect_null(pending());
	end_close(&e);
	scratch_end(&t);
}

/* P3: others do without it, and do not wait each time; what they had to tell
 * is told when it goes on.
 * mutation: common/site/shared_lock.c: lock() leaves the pending word. */
Test(site_shared_lock, P3_of_the_stopped_holds_nobody_up)
{
	struct owner o;
	uint32_t told = 0;
	usec_t began;
	char c;
	int i;

	owner_begin(&o);
	*site_user(o.a) = &told;
	began = clock_mono();
	for (i = 0; i < 10000; i++)
		end_full(o.a, 0);
	end_wait(o.a, 0);
	end_done(o.a, SITE_FAILED, 0);
	site_flush(o.e.shared, 0);
	end_work(&o.e, 0);
	cr_expect_null(pending(), "the lock is not ours");
	/* Once LOCK_LIMIT; the rest is what a slow machine may take. */
	cr_expect_lt(clock_mono() - began, 20 * LOCK_LIMIT);
	cr_expect_eq(figures(&o.e).stuck, 1);
	cr_expect_eq(told, 0);
	cr_assert_eq(kill(o.pid, SIGCONT), 0);
	cr_assert_eq(read(o.gate[0], &c, 1), 1);
	end_work(&o.e, TELL_AGAIN);
	cr_expect_eq(told, 1);
	cr_expect_eq(site_state(o.a, TELL_AGAIN), SITE_ROOM);
	cr_expect_eq(end_view(o.a).busy, 0);
	cr_expect(end_view(o.a).fail_cohorts == 0.5);
	owner_kill(&o);
	owner_end(&o);
}

/* Doubted ends of two messages, while the site cannot be told. */
Test(site_shared_lock, P3_doubts_that_are_owed_are_of_their_messages)
{
	struct owner o;
	char c;

	owner_begin(&o);
	end_doubt(o.a, 7, 0);
	end_doubt(o.a, 8, 0);
	cr_assert_eq(kill(o.pid, SIGCONT), 0);
	cr_assert_eq(read(o.gate[0], &c, 1), 1);
	end_work(&o.e, TELL_AGAIN);
	cr_expect_eq(site_state(o.a, TELL_AGAIN), SITE_ROOM);
	cr_expect_eq(end_view(o.a).busy, 0);
	cr_expect(end_view(o.a).fail_cohorts == 0.5);
	owner_kill(&o);
	owner_end(&o);
}

/* A site that is closed while it cannot be told. */
Test(site_shared_lock, what_is_owed_outlives_the_close)
{
	struct owner o;
	char c;

	owner_begin(&o);
	end_wait(o.a, 0);
	end_done(o.a, SITE_DELIVERED, 0);
	site_wait(o.a, false, 0);
	site_close(o.a, 0);
	cr_assert_eq(kill(o.pid, SIGCONT), 0);
	cr_assert_eq(read(o.gate[0], &c, 1), 1);
	cr_expect_eq(end_work(&o.e, TELL_AGAIN), USEC_NEVER);
	cr_expect(RB_EMPTY(&o.e.shared->handles));
	o.a = end_site(&o.e, "a", 0);
	cr_expect_eq(site_state(o.a, 0), SITE_ROOM);
	cr_expect_eq(end_view(o.a).busy, 0);
	owner_kill(&o);
	owner_end(&o);
}

/* A member whose queue is started again while a set cannot be cleared. */
Test(site_shared_lock, a_column_is_cleared_when_that_can_be)
{
	struct owner o;
	struct end again;
	struct site *a;
	char c;

	owner_begin(&o);
	end_die(&o.e);
	end_begin(&again, &o.t, 1, &plain);
	a = end_site(&again, "a", 0);
	end_full(a, 0);
	cr_assert_eq(kill(o.pid, SIGCONT), 0);
	cr_assert_eq(read(o.gate[0], &c, 1), 1);
	end_take(a, 0);
	end_take(a, 0);
	end_full(a, 0);
	owner_kill(&o);
	o.e = again;
	owner_end(&o);
}
