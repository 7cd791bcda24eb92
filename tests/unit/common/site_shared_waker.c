/* What wakes the loop of a process. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "site_shared_scratch.h"

static struct shared_waker waker;

static void
waker_start(void)
{
	cr_assert_eq(shared_waker_open(&waker), 0);
}

static void
waker_end(void)
{
	shared_waker_close(&waker);
}

TestSuite(
    site_shared_waker, .init = waker_start, .fini = waker_end, .timeout = 60);

static bool
is_readable(void)
{
	struct pollfd p = { .fd = waker.fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void *
kick(void *arg)
{
	shared_waker_kick(arg);
	return NULL;
}

/* Else the loop, woken by the write, would find nothing to read and be woken
 * again until the thread gets on. */
Test(site_shared_waker, a_kick_is_known_before_the_loop_can_be_woken,
    .timeout = 20)
{
	char room[65536] = { 0 };
	int fds[2];
	struct shared_waker full = { 0 };
	pthread_t thread;

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], room, sizeof(room)), sizeof(room));
	full.fd = fds[1]; /* its write waits */
	cr_assert_eq(pthread_create(&thread, NULL, kick, &full), 0);
	while (__atomic_load_n(&full.kicked, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	cr_assert_eq(read(fds[0], room, sizeof(room)), sizeof(room));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

/* mutation: shared_waker_clear() forgets the kick in any case. */
Test(site_shared_waker, a_kick_that_cannot_be_read_yet_is_not_forgotten)
{
	const uint64_t one = 1;

	shared_waker_kick(&waker);
	shared_waker_kick(&waker);
	cr_expect(is_readable());
	shared_waker_clear(&waker);
	cr_expect_not(is_readable());
	waker.kicked = 1; /* the thread got no further */
	shared_waker_clear(&waker);
	cr_assert_eq(write(waker.fd, &one, sizeof(one)), sizeof(one));
	shared_waker_clear(&waker);
	cr_expect_not(is_readable());
	shared_waker_kick(&waker);
	cr_expect(is_readable());
}

/* The process frees places of the dead, and waits for one itself.
 * mutation: shared_wake_members() without the kick */
Test(site_shared_waker, a_process_that_wakes_itself_is_woken)
{
	struct scratch t;
	struct end dead, own;
	struct site *site;
	struct pollfd p;
	uint32_t told = 0;

	scratch_begin(&t, 64, 2);
	end_begin(&dead, &t, 1, &plain);
	end_begin(&own, &t, 2, &plain);
	site = end_site(&dead, "a", 0);
	end_take(site, 0);
	end_take(site, 0);
	site = end_site(&own, "a", 0);
	*site_user(site) = &told;
	end_wait(site, 0);
	end_work(&own, 0);
	p = (struct pollfd){ .fd = shared_wake_fd(own.shared),
		.events = POLLIN };
	cr_assert_eq(poll(&p, 1, 0), 0);
	end_die(&dead);
	shared_forget(own.shared, 1, 1, 0);
	cr_expect_eq(poll(&p, 1, 0), 1, "no other process is needed");
	end_work(&own, 0);
	cr_expect_eq(told, 1);
	end_close(&own);
	scratch_end(&t);
}
