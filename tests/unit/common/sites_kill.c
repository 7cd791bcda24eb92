/* A process that is killed behind every single instruction of what it does
 * with the table: there is never one place too few counted, its lock comes
 * free, and when it is forgotten nothing of it is left. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sites_scratch.h"

/* As many as there are instructions would take minutes: other ones are tried
 * each time. */
#define RUNS   300

#define VICTIM 1u

struct kill {
	struct scratch t;
	uint32_t *held; /* by the victim, of "a": noted when it has it for
			   sure, and until it begins to give it back */
	struct end victim, other;
	struct site *va, *vb, *oa, *ob;
	uint32_t told;
};

static void
kill_begin(struct kill *k)
{
	end_begin(&k->victim, &k->t, VICTIM, &plain);
	k->va = end_site(&k->victim, "a", 0);
	k->vb = end_site(&k->victim, "b", 0);
	end_begin(&k->other, &k->t, 2, &plain);
	k->oa = end_site(&k->other, "a", 0);
	k->ob = end_site(&k->other, "b", 0);
	*k->other.f->mine(k->ob) = &k->told;
	*k->held = 0;
	end_take(&k->victim, k->vb, 0);
	end_take(&k->victim, k->vb, 0);
	end_wait(&k->other, k->ob, 0);
}

static void
victim_take(struct kill *k)
{
	if (k->victim.f->take(k->victim.table, k->va, 0) == SITE_ROOM)
		++*(volatile uint32_t *)k->held;
}

static void
victim_done(struct kill *k, enum site_result result)
{
	--*(volatile uint32_t *)k->held;
	end_done(&k->victim, k->va, result, 0);
}

/* Every way through the table once: a new slot, in line, its own turn, one
 * that is given to the other, a death, a flush, a slot that is free again. */
static void
run(struct kill *k)
{
	victim_take(k);
	victim_take(k);
	(void)k->victim.f->wait(k->victim.table, k->va, true, 0);
	victim_done(k, SITE_DELIVERED);
	victim_take(k);
	victim_done(k, SITE_FAILED);
	end_done(&k->victim, k->vb, SITE_DELIVERED, 0);
	victim_done(k, SITE_FAILED);
	k->victim.f->flush(k->victim.table, 0);
	(void)k->victim.f->state(k->victim.table, k->va, 0);
	end_done(&k->victim, k->vb, SITE_DELIVERED, 0);
}

static _Noreturn void
victim(struct kill *k)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	run(k);
	_exit(0);
}

/* How many instructions, `count` at most; then it is dead. -1: no such thing
 * as a debugger here. */
static int64_t
run_until(struct kill *k, int64_t count)
{
	int64_t n;
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		victim(k);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	for (n = 0; n < count && WIFSTOPPED(status); n++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
		cr_assert_eq(waitpid(pid, &status, 0), pid);
	}
	if (!WIFSTOPPED(status))
		return n;
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return n == 0 && count > 0 ? -1 : n;
}

static void
expect_whole(struct kill *k, int64_t n)
{
	struct end *o = &k->other;
	struct site_view v;

	(void)o->f->state(o->table, k->oa, 0);
	v = end_view(o, k->oa);
	cr_assert_geq(v.busy, *k->held, "behind %ld", (long)n);
	cr_assert_leq(v.busy, 2, "behind %ld", (long)n);
	shared_forget(o->shared, VICTIM, 1, 0);
	o->f->flush(o->table, 0);
	(void)o->f->state(o->table, k->oa, 0);
	cr_assert_eq(end_view(o, k->oa).busy, 0, "behind %ld", (long)n);
	end_work(o, 0);
	cr_assert_eq(k->told, 1, "behind %ld", (long)n);
	end_take(o, k->oa, 0);
	if (end_view(o, k->oa).window > 1)
		end_take(o, k->oa, 0);
	end_full(o, k->oa, 0);
	end_take(o, k->ob, 0);
	end_take(o, k->ob, 0);
	end_full(o, k->ob, 0);
}

static int64_t
once(struct kill *k, int64_t count)
{
	int64_t n;

	k->told = 0;
	scratch_begin(&k->t, SHARED_WAYS, 2);
	kill_begin(k);
	n = run_until(k, count);
	if (n >= 0)
		expect_whole(k, n);
	end_die(&k->victim);
	end_close(&k->other);
	scratch_end(&k->t);
	return n;
}

Test(sites_kill, P1_behind_every_instruction)
{
	struct kill k;
	int64_t all, n;

	k.held = mmap(NULL, sizeof(*k.held), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(k.held, MAP_FAILED);
	all = once(&k, INT64_MAX);
	if (all < 0) {
		printf("SKIP P1_behind_every_instruction: no ptrace here\n");
		return;
	}
	/* Others in other places each time. */
	for (n = clock_mono() % (all / RUNS + 1); n < all; n += all / RUNS + 1)
		(void)once(&k, n);
	munmap(k.held, sizeof(*k.held));
}
