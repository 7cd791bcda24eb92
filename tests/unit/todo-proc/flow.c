/* New mail that comes faster than queue-send takes it. */
#include "tests/unit/todo-proc/world.h"

#include "ipc/names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#define RINGS 5

static struct world w;
static char instance[32];
static mqd_t ours;

/* Files that were offered stay in incoming/ here: no scan finds them again. */
static void
start(void)
{
	world_start(&w, "");
	world_link(&w);
	world_run(&w);
	w.t.incoming.not_before = w.t.incoming.due_at = USEC_NEVER;
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(flow, .init = start, .fini = end, .timeout = 120);

static void
link_doorbell(void)
{
	char name[IPC_NAME_MAX];
	uint32_t depth;
	mqd_t mq;

	snprintf(instance, sizeof(instance), "flow%d", (int)getpid());
	ipc_name_queue(instance, 1, name);
	if (mq_create(name, &(struct mq_shape){ 10, MQ_MESSAGE_SIZE },
		(uid_t)-1, (gid_t)-1, 0640, &mq, &depth) < 0)
		cr_skip_test("no message queue to be had");
	ours = dup(mq);
	mq_unlink(name);
	cr_assert_eq(bells_linked(&w.t, mq), 0);
}

static long
waiting_rings(void)
{
	struct mq_attr attr = { 0 };

	world_run(&w);
	cr_assert_eq(mq_getattr(ours, &attr), 0);
	return attr.mq_curmsgs;
}

static void
ring(void)
{
	const struct bell bell = { .pid = 1,
		.inode = world_file(&w, SPOOL_INCOMING, "d", 1) };

	cr_assert_eq(mq_send(ours, (const char *)&bell, sizeof(bell), 0), 0);
}

/* Where the doorbell is full, submitters wait. mutation: room() is never 0. */
Test(flow, N49_rings_stay_in_the_doorbell_until_there_is_credit)
{
	uint32_t i;

	link_doorbell();
	for (i = 0; i < INBOX_HEARD_MAX + RINGS; i++) {
		ring();
		world_run(&w);
	}
	cr_expect_eq(w.t.inbox.nheard, INBOX_HEARD_MAX);
	cr_expect_eq(waiting_rings(), RINGS);
	cr_expect(w.t.bell_deaf);
	world_credit(&w, RINGS - 1);
	cr_expect_eq(waiting_rings(), 1);
	world_credit(&w, RINGS);
	cr_expect_eq(waiting_rings(), 0);
	cr_expect_not(w.t.bell_deaf);
	ring();
	cr_expect_eq(waiting_rings(), 0, "it listens again");
	close(ours);
}

static void
pick_up(void)
{
	w.t.maildrop.wanted = true;
	w.t.maildrop.not_before = 0;
	world_run(&w);
}

/* The door counts drops that lie in maildrop/, and lets their users wait.
 * mutation: scan_maildrop_work() asks for no number. */
Test(flow, N51_drops_stay_in_maildrop_while_many_wait)
{
	uint32_t i;

	for (i = 0; i < INBOX_DROPS_MAX + 100; i++)
		world_file(&w, SPOOL_MAILDROP, "d", 1);
	for (i = 0; i < 20; i++)
		pick_up();
	cr_expect_geq(w.t.inbox.ndrops, INBOX_DROPS_MAX);
	cr_expect_lt(w.t.inbox.ndrops, INBOX_DROPS_MAX + 50);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), w.t.inbox.ndrops);
	for (i = 0; w.nmessages < INBOX_DROPS_MAX + 100 && i < 50; i++) {
		world_credit(&w, 64 - w.t.credit);
		pick_up();
	}
	cr_expect_eq(w.nmessages, INBOX_DROPS_MAX + 100);
	cr_expect_eq(w.t.inbox.ndrops, 0);
}
