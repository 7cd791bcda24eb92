/* A submitter waits while new mail comes faster than it leaves incoming/. */
#include "scratch.h"

#include "base/clock.h"
#include "ipc/bell.h"
#include "ipc/names.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

TestSuite(flow, .timeout = 60);

#define SHORT (200 * USEC_PER_MSEC)
#define LONG  (10 * USEC_PER_SEC)

/* A doorbell with room for one ring, which another message has. */
static mqd_t
full_doorbell(struct scratch *s)
{
	const struct bell other = { .pid = 1, .inode = 1 };
	char name[IPC_NAME_MAX];
	uint32_t depth;
	mqd_t mq;

	ipc_name_queue(s->instance, 1, name);
	if (mq_create(name, &(struct mq_shape){ 1, MQ_MESSAGE_SIZE }, (uid_t)-1,
		(gid_t)-1, 0640, &mq, &depth) < 0)
		cr_skip_test("no message queue to be had");
	cr_assert_eq(bell_ring(s->instance, 1, &other), 0);
	scratch_pages(s, QUEUE_STATE_OPEN, 0);
	return mq;
}

static void
end_doorbell(const struct scratch *s, mqd_t mq)
{
	char name[IPC_NAME_MAX];

	ipc_name_queue(s->instance, 1, name);
	mq_close(mq);
	mq_unlink(name);
}

static usec_t
time_of_a_job(const struct scratch *s)
{
	const usec_t began = clock_mono();
	struct run run;

	cr_expect_eq(scratch_exit(s, &run,
			 (const char *const[]){ "sendmail", "-i", "a@b", NULL },
			 "Subject: x\n\nbody\n"),
	    0, "%s", run.err);
	return clock_mono() - began;
}

/* Never refused for that. mutation: ring() never waits. */
Test(flow, N49_a_submitter_waits_while_the_doorbell_is_full)
{
	struct scratch s;
	struct bell bell;
	mqd_t mq;

	scratch_new(&s, 1, "in_flow_delay = 200ms\n");
	mq = full_doorbell(&s);
	cr_expect_geq(time_of_a_job(&s), SHORT);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	cr_expect_eq(bell_take(mq, &bell), 1);
	cr_expect_eq(bell_take(mq, &bell), 0, "this ring was given up");
	end_doorbell(&s, mq);
	scratch_done(&s);
}

/* A supervisor that was killed leaves its doorbell. mutation: ring() asks for
 * no supervisor. */
Test(flow, N49_not_while_nothing_runs)
{
	struct scratch s;
	mqd_t mq;

	scratch_new(&s, 1, "in_flow_delay = 10s\n");
	mq = full_doorbell(&s);
	scratch_no_pages(&s);
	cr_expect_lt(time_of_a_job(&s), LONG);
	end_doorbell(&s, mq);
	scratch_done(&s);
}

struct progress {
	struct scratch *s;
	mqd_t mq;
};

/* The queue makes progress when the message is there. */
static void *
make_progress(void *arg)
{
	const struct progress *p = arg;
	struct bell bell;

	while (scratch_stored(p->s, NULL) == 0)
		sched_yield();
	(void)bell_take(p->mq, &bell);
	return NULL;
}

Test(flow, N49_it_goes_on_with_the_progress_of_the_queue)
{
	struct progress p;
	struct scratch s;
	struct bell bell;
	pthread_t thread;

	scratch_new(&s, 1, "in_flow_delay = 10s\n");
	p = (struct progress){ &s, full_doorbell(&s) };
	cr_assert_eq(pthread_create(&thread, NULL, make_progress, &p), 0);
	cr_expect_lt(time_of_a_job(&s), LONG);
	pthread_join(thread, NULL);
	cr_expect_eq(bell_take(p.mq, &bell), 1);
	cr_expect_gt(bell.inode, 1, "the ring of this message");
	end_doorbell(&s, p.mq);
	scratch_done(&s);
}

/* mutation: ring() waits for nobody who cannot ring. */
Test(flow, N49_who_cannot_ring_goes_by_the_page)
{
	static const struct {
		uint64_t incoming;
		bool waits;
	} rows[] = { { 0, false }, { 999, false }, { 1000, true } };
	struct scratch s;
	usec_t took;
	size_t i;

	scratch_new(&s, 1, "in_flow_delay = 10s\n");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct queue_page page = { .incoming = rows[i].incoming };

		scratch_pages(&s, QUEUE_STATE_OPEN, 0);
		scratch_queue_page(&s, 1, 0, &page);
		took = time_of_a_job(&s);
		cr_expect_eq(took >= LONG, rows[i].waits, "row %zu", i);
		cr_expect_eq(scratch_stored(&s, NULL), 1);
		scratch_empty(&s);
	}
	scratch_done(&s);
}
