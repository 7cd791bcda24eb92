/* A process that is killed before every single store into the table: there is
 * never one place too few counted, its lock comes free, and when it is
 * forgotten nothing of it is left. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "site_shared_scratch.h"

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
	*site_user(k->ob) = &k->told;
	*k->held = 0;
	end_take(k->vb, 0);
	end_take(k->vb, 0);
	end_wait(k->ob, 0);
}

static void
victim_take(struct kill *k)
{
	if (site_take(k->va, 0) == SITE_ROOM)
		++*(volatile uint32_t *)k->held;
}

static void
victim_done(struct kill *k, enum site_result result)
{
	--*(volatile uint32_t *)k->held;
	end_done(k->va, result, 0);
}

/* Every way through the table once: a new slot, in line, its own turn, one
 * that is given to the other, a death, a flush, a slot that is free again. */
static void
run(struct kill *k)
{
	victim_take(k);
	victim_take(k);
	(void)site_wait(k->va, true, 0);
	victim_done(k, SITE_DELIVERED);
	victim_take(k);
	victim_done(k, SITE_FAILED);
	end_done(k->vb, SITE_DELIVERED, 0);
	victim_done(k, SITE_FAILED);
	site_flush(k->victim.shared, 0);
	(void)site_state(k->va, 0);
	end_done(k->vb, SITE_DELIVERED, 0);
}

/* ---- to be killed before a store ---- */

/* What others see of a process are its stores into the segment: it may read
 * there only, and a store that is caught is let through for one instruction. */
static struct {
	char *base;
	size_t size;
	int64_t left; /* stores until the end */
} watched;

static void
protect(int prot)
{
	if (mprotect(watched.base, watched.size, prot) < 0)
		_exit(3);
}

#if defined(__x86_64__)
#define TRAP_FLAG 0x100

static void
on_store(int sig UNUSED, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const char *at = info->si_addr;

	if (at < watched.base || at >= watched.base + watched.size)
		_exit(4);
	protect(PROT_READ | PROT_WRITE); /* for the kernel, too */
	if (watched.left-- == 0)
		(void)raise(SIGKILL);
	uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void
behind_store(int sig UNUSED, siginfo_t *info UNUSED, void *context)
{
	ucontext_t *uc = context;

	protect(PROT_READ);
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static bool
watch(void)
{
	struct sigaction store = { .sa_sigaction = on_store,
		.sa_flags = SA_SIGINFO | SA_NODEFER };
	struct sigaction behind = { .sa_sigaction = behind_store,
		.sa_flags = SA_SIGINFO };

	return sigaction(SIGSEGV, &store, NULL) == 0 &&
	    sigaction(SIGTRAP, &behind, NULL) == 0;
}
#else
static bool
watch(void)
{
	return false;
}
#endif

#define NOT_HERE 5

static _Noreturn void
victim(struct kill *k, int64_t count)
{
	watched.base = k->victim.shared->seg.base;
	watched.size = k->victim.shared->seg.size;
	watched.left = count;
	if (!watch())
		_exit(NOT_HERE);
	protect(PROT_READ);
	run(k);
	_exit(0);
}

/* False: it came to its end before so many stores. */
static bool
run_until(struct kill *k, int64_t count)
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		victim(k, count);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
		cr_skip("no way to catch stores on this machine");
	cr_assert(WIFEXITED(status) ? WEXITSTATUS(status) == 0
				    : WTERMSIG(status) == SIGKILL,
	    "status %x", (unsigned)status);
	return WIFSIGNALED(status);
}

static void
expect_whole(struct kill *k, int64_t n)
{
	struct end *o = &k->other;
	struct site_view v;

	(void)site_state(k->oa, 0);
	v = end_view(k->oa);
	cr_assert_geq(v.busy, *k->held, "before %ld", (long)n);
	cr_assert_leq(v.busy, 2, "before %ld", (long)n);
	shared_forget(o->shared, VICTIM, 1, 0);
	site_flush(o->shared, 0);
	(void)site_state(k->oa, 0);
	cr_assert_eq(end_view(k->oa).busy, 0, "before %ld", (long)n);
	end_work(o, 0);
	cr_assert_eq(k->told, 1, "before %ld", (long)n);
	end_take(k->oa, 0);
	if (end_view(k->oa).window > 1)
		end_take(k->oa, 0);
	end_full(k->oa, 0);
	end_take(k->ob, 0);
	end_take(k->ob, 0);
	end_full(k->ob, 0);
}

static bool
once(struct kill *k, int64_t count)
{
	bool killed;

	k->told = 0;
	scratch_begin(&k->t, SHARED_SET_SLOTS, 2);
	kill_begin(k);
	killed = run_until(k, count);
	expect_whole(k, count);
	end_die(&k->victim);
	end_close(&k->other);
	scratch_end(&k->t);
	return killed;
}

Test(site_shared_kill, P1_before_every_store)
{
	struct kill k;
	int64_t n;

	k.held = mmap(NULL, sizeof(*k.held), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(k.held, MAP_FAILED);
	for (n = 0; once(&k, n); n++)
		;
	cr_expect_gt(n, 50);
	munmap(k.held, sizeof(*k.held));
}
