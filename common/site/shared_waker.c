#include "site/shared_parts.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* More than the thread needs, which makes two system calls. */
#define STACK        (UINT32_C(64) * 1024)
/* Sent to the thread by this process only. */
#define WAKER_SIGNAL SIGRTMIN

static void
word_wait(uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

/* The call is made even if the word is 1 already: the process that set it may
 * have died before its call. */
static void
word_wake(uint32_t *word)
{
	(void)__atomic_exchange_n(word, 1, __ATOMIC_ACQ_REL);
	(void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void
shared_waker_kick(struct shared_waker *w)
{
	const uint64_t one = 1;

	/* In front of the write: a loop that is woken knows that there is
	 * something to read, also where this thread gets no further for a
	 * while. Before it is read, one is enough. */
	if (__atomic_exchange_n(&w->kicked, 1, __ATOMIC_ACQ_REL) == 0)
		(void)!write(w->fd, &one, sizeof(one));
}

void
shared_waker_clear(struct shared_waker *w)
{
	uint64_t count;

	/* Nothing to read yet: it comes, and wakes the loop again. What others
	 * did before they found it set is seen behind the exchange. */
	if (__atomic_load_n(&w->kicked, __ATOMIC_ACQUIRE) != 0 &&
	    read(w->fd, &count, sizeof(count)) > 0)
		(void)__atomic_exchange_n(&w->kicked, 0, __ATOMIC_ACQ_REL);
}

static void *
waker_run(void *arg)
{
	struct shared_waker *w = arg;

	while (__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) == 0)
		if (__atomic_exchange_n(w->word, 0, __ATOMIC_ACQ_REL) == 0)
			word_wait(w->word);
		else
			shared_waker_kick(w);
	return NULL;
}

int
shared_waker_open(struct shared_waker *w)
{
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->fd < 0 ? -errno : 0;
}

static void
on_interrupt(int sig UNUSED)
{
}

/* A thread that sleeps on a word that was cut off cannot be woken through that
 * word. */
static int
interrupt_open(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	sigemptyset(&sa.sa_mask);
	return sigaction(WAKER_SIGNAL, &sa, NULL) < 0 ? -errno : 0;
}

/* Signals are for the loop of the process; SIGBUS is the thread's own, since
 * the word that it reads may be cut off (ipc/mapping.h). */
static int
start_silent(struct shared_waker *w)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, WAKER_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, &attr, waker_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int
shared_waker_start(struct shared_waker *w, uint32_t *word)
{
	int r;

	w->word = word;
	w->stop = 0;
	r = interrupt_open();
	if (r == 0)
		r = start_silent(w);
	w->runs = r == 0;
	return r;
}

void
shared_waker_stop(struct shared_waker *w)
{
	struct timespec soon;

	if (!w->runs)
		return;
	__atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
	do { /* others may write the word meanwhile */
		__atomic_store_n(w->word, 1, __ATOMIC_RELEASE);
		(void)syscall(
		    SYS_futex, w->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
		(void)pthread_kill(w->thread, WAKER_SIGNAL);
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_sec++;
	} while (pthread_timedjoin_np(w->thread, NULL, &soon) == ETIMEDOUT);
	w->runs = false;
}

void
shared_waker_close(struct shared_waker *w)
{
	shared_waker_stop(w);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* A bit for each member, no list that could be full or half written. A process
 * that dies in here has woken some members; the others check by themselves. */
void
shared_wake_members(
    struct shared *s, const struct shared_mask *woken, uint32_t set)
{
	uint32_t word, member;

	for (word = 0; word < SHARED_MEMBERS_MAX / 64; word++) {
		uint64_t left = woken->bits[word];

		for (; left != 0; left &= left - 1) {
			struct shared_member *c;

			member = word * 64 + (uint32_t)__builtin_ctzll(left);
			if (member >= s->seg.members)
				return;
			c = shared_segment_member(&s->seg, member);
			__atomic_fetch_or(&c->bits[set / 64],
			    UINT64_C(1) << set % 64, __ATOMIC_RELEASE);
			s->figures.wakes++;
			if (member == s->member) /* needs no thread */
				shared_waker_kick(&s->waker);
			else
				word_wake(&c->word);
		}
	}
}

/* ---- the loop of this process ---- */

static void
want(struct shared *s, usec_t *next, usec_t when)
{
	if (when < *next)
		*next = when;
	if (*next < s->told) {
		s->told = *next;
		shared_waker_kick(&s->waker);
	}
}

void
shared_work_at(struct shared *s, usec_t when)
{
	want(s, &s->next_check, when);
}

void
shared_work_note_grant(struct site *h, usec_t now)
{
	if (!h->has_ticket || h->granted_at != 0)
		return;
	h->granted_at = now;
	want(h->shared, &h->shared->next_pass_on, now + SHARED_GRANT_TIME);
}
