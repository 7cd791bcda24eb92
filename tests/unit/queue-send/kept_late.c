/* Connections between two deliveries, and entries whose file is not in memory:
 * the place that such an entry has stays together with its connection. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct world w;

/* A thread that opens a file waits here for a byte. */
static int gate[2];
static _Atomic bool cold;

static int (*world_openat)(int dir, const char *name, int flags, mode_t mode);

static int
slow_openat(int dir, const char *name, int flags, mode_t mode)
{
	char c;

	if (cold && (flags & O_NOCTTY) != 0 && gettid() != getpid())
		(void)!read(gate[0], &c, 1);
	return world_openat(dir, name, flags, mode);
}

static int
cold_open(int dir, const char *name, int flags)
{
	if (!cold)
		return spool_sys_real.open_cached(dir, name, flags);
	errno = EAGAIN;
	return -1;
}

static void
start(void)
{
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	cold = w.gated = false;
	w.threads[DISK_READ] = 1;
	world_start(&w,
	    "smtp_initial_destination_concurrency = 1\n"
	    "smtp_destination_concurrency_limit = 1\n"
	    "smtp_destination_recipient_limit = 1\n"
	    "default_destination_recipient_limit = 1\n");
	world_openat = world_sys.openat;
	world_sys.openat = slow_openat;
	world_sys.open_cached = cold_open;
	world_link_smtp(&w);
	world_run(&w);
}

static void
end(void)
{
	close(gate[1]);
	world_end(&w);
	close(gate[0]);
}

TestSuite(kept_late, .init = start, .fini = end, .timeout = 60);

/* A connection is kept, and the next entry has its place and waits for its
 * file. */
static uint64_t
begin(struct world_delivery *d)
{
	uint64_t inode;

	world_message(&w, "u@smtp.test", 1);
	world_take_one(&w, d);
	cr_assert(d->may_keep);
	world_result(&w, d, 0, AGENT_SENT);
	world_send(w.agent,
	    &(struct msg){ .type = MSG_KEPT, .u.KEPT.job = d->number });
	w.s.dispatch_at = USEC_NEVER;
	world_run(&w);
	cr_assert_eq(w.s.links->kept.count, 1);
	inode = world_message(&w, "u@smtp.test", 1);
	messages_close_resting(&w.s.messages);
	cold = w.gated = true;
	w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(w.s.fetches.tasks, 1);
	return inode;
}

static void
let_file_come(void)
{
	cold = w.gated = false;
	cr_assert_eq(write(gate[1], "", 1), 1);
	world_run(&w);
}

static void
say_closed(uint64_t connection)
{
	world_send(w.agent,
	    &(struct msg){
		.type = MSG_CLOSED, .u.CLOSED.connection = connection });
	world_run(&w);
}

/* The next delivery comes over this connection, 0: a new one, and is made. */
static void
delivers_over(uint64_t connection)
{
	struct world_delivery d;

	world_take_one(&w, &d);
	cr_expect_eq(d.connection, connection);
	world_result(&w, &d, 0, AGENT_SENT);
	world_done(&w, &d);
	world_run(&w);
}

/* The window of one place is free, and nothing is counted twice. */
static void
is_free(void)
{
	world_message(&w, "u@smtp.test", 1);
	delivers_over(0);
	cr_expect_eq(w.s.active, 0);
}

Test(kept_late, D43_the_entry_gets_its_connection)
{
	struct world_delivery first;

	begin(&first);
	let_file_come();
	delivers_over(first.number);
	is_free();
}

/* mutation: queue-send/agents/kept.c: end() gives the place back; dispatch.c:
 * waits_for_file() promises nothing. */
Test(kept_late, D43_closed_while_the_file_is_opened)
{
	struct world_delivery first;

	begin(&first);
	say_closed(first.number);
	cr_expect_eq(w.s.links->kept.count, 0);
	let_file_come();
	delivers_over(0);
	is_free();
}

/* mutation: queue-send/agents/dispatch.c: start_late() spares nothing. */
Test(kept_late, D43_an_entry_that_cannot_start_leaves_it)
{
	struct world_delivery first, none;

	begin(&first);
	w.s.dispatch_at = USEC_NEVER;
	let_file_come();
	cr_expect_not(world_take(&w, &none));
	cr_expect_eq(w.s.links->kept.count, 1);
	cr_expect(TAILQ_EMPTY(&w.s.links->kept.promised));
	w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
	delivers_over(first.number);
	is_free();
}

/* mutation: queue-send/agents/dispatch.c: start_late() spares nothing. */
Test(kept_late, D43_a_message_that_is_held_leaves_it)
{
	struct world_delivery first;
	uint32_t running;
	const uint64_t inode = begin(&first);

	cr_expect_eq(world_act(&w, ACT_HOLD, inode, &running), 0);
	let_file_come();
	cr_expect_eq(w.s.links->kept.count, 1);
	cr_expect(TAILQ_EMPTY(&w.s.links->kept.promised));
	world_message(&w, "u@smtp.test", 1);
	delivers_over(first.number);
	is_free();
}
