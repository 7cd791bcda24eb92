/* Where messages go: shared memory in every state, and the bell. */
#include "scratch.h"

#include "ipc/bell.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int
inject(const struct scratch *s, struct run *run)
{
	return scratch_exit(
	    s, run, ARGS("sendmail", "-i", "a@b"), "Subject: x\n\nbody\n");
}

/* ---- shared memory ---- */

static void
no_pages(UNUSED const struct scratch *s)
{
}

static void
stale_and_disabled(const struct scratch *s)
{
	scratch_pages(s, QUEUE_STATE_DISABLED, PAGE_STALE + 2 * USEC_PER_SEC);
}

static void
of_the_future(const struct scratch *s)
{
	scratch_pages(s, QUEUE_STATE_DISABLED, -3600 * USEC_PER_SEC);
}

static void
replace(const char *name, const void *data, size_t len)
{
	int fd;

	shm_unlink(name);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	if (len > 0)
		cr_assert_eq(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static void
garbage(const struct scratch *s, size_t len)
{
	static char data[2 * sizeof(struct sched_page)];
	char name[IPC_NAME_MAX];
	uint32_t i;

	memset(data, 0xff, sizeof(data));
	ipc_name_scheduler(s->instance, name);
	replace(name, data, len);
	for (i = 1; i <= s->queues; i++) {
		ipc_name_queue(s->instance, i, name);
		replace(name, data, len);
	}
}

static void
empty(const struct scratch *s)
{
	garbage(s, 0);
}

static void
short_one(const struct scratch *s)
{
	garbage(s, 30);
}

static void
large_garbage(const struct scratch *s)
{
	garbage(s, 2 * sizeof(struct sched_page));
}

/* A good head, and nonsense behind it. */
static void
absurd(const struct scratch *s)
{
	struct queue_page page;
	char name[IPC_NAME_MAX];
	uint32_t i;
	int fd;

	scratch_pages(s, QUEUE_STATE_OPEN, 0);
	memset(&page, 0xff, sizeof(page));
	page.disabled = 0;
	for (i = 1; i <= s->queues; i++)
		scratch_queue_page(s, i, 0, &page);
	ipc_name_scheduler(s->instance, name);
	fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	cr_assert_geq(fd, 0);
	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		struct sched_row row;

		memset(&row, 0xee, sizeof(row));
		cr_assert_eq(pwrite(fd, &row, sizeof(row),
				 (off_t)(offsetof(struct sched_page, rows) +
				     i * sizeof(row))),
		    (ssize_t)sizeof(row));
	}
	close(fd);
}

/* Written to and never finished. */
static void
torn(const struct scratch *s)
{
	uint32_t odd = 1;
	char name[IPC_NAME_MAX];
	int fd;

	scratch_pages(s, QUEUE_STATE_DISABLED, 0);
	ipc_name_scheduler(s->instance, name);
	fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, &odd, sizeof(odd),
			 offsetof(struct sched_page, head) +
			     offsetof(struct page_head, seq)),
	    (ssize_t)sizeof(odd));
	close(fd);
}

static void
queue_pages_missing(const struct scratch *s)
{
	char name[IPC_NAME_MAX];
	uint32_t i;

	scratch_pages(s, QUEUE_STATE_OPEN, 0);
	for (i = 1; i <= s->queues; i++) {
		ipc_name_queue(s->instance, i, name);
		shm_unlink(name);
	}
}

static void
quarantined(const struct scratch *s)
{
	scratch_pages(s, QUEUE_STATE_QUARANTINED, 0);
}

Test(submit, I10_I12_mail_is_never_refused_for_bad_pages)
{
	static const struct {
		const char *name;
		void (*make)(const struct scratch *s);
	} cases[] = {
		{ "missing", no_pages },
		{ "stale", stale_and_disabled },
		{ "of the future", of_the_future },
		{ "empty", empty },
		{ "short", short_one },
		{ "garbage", large_garbage },
		{ "absurd", absurd },
		{ "torn", torn },
		{ "queues missing", queue_pages_missing },
		{ "quarantined", quarantined },
	};
	struct scratch s;
	struct run run;
	size_t i;

	scratch_new(&s, 2, NULL);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		cases[i].make(&s);
		cr_expect_eq(
		    inject(&s, &run), 0, "%s: %s", cases[i].name, run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 1, "%s", cases[i].name);
		scratch_empty(&s);
		scratch_no_pages(&s);
	}
	scratch_done(&s);
}

Test(submit, I13_all_disabled_is_temporary)
{
	static const uint32_t states[] = { QUEUE_STATE_DISABLED,
		QUEUE_STATE_CLOSING };
	struct scratch s;
	struct run run;
	size_t i;

	scratch_new(&s, 2, NULL);
	for (i = 0; i < ARRAY_LEN(states); i++) {
		scratch_pages(&s, states[i], 0);
		cr_expect_eq(inject(&s, &run), 75);
		cr_expect_not_null(
		    strstr(run.err, "4.3.2 all queues are"), "%s", run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 0);
	}
	scratch_done(&s);
}

Test(submit, the_least_loaded_queue_is_taken)
{
	struct queue_page busy = { .remote_used = 5, .remote_limit = 10 };
	struct queue_page idle = { .remote_used = 1, .remote_limit = 10 };
	struct stored m = { 0 };
	struct scratch s;
	struct run run;
	uint32_t want, i;

	scratch_new(&s, 3, NULL);
	for (want = 1; want <= 3; want++) {
		scratch_pages(&s, QUEUE_STATE_OPEN, 0);
		for (i = 1; i <= 3; i++)
			scratch_queue_page(&s, i, 0, i == want ? &idle : &busy);
		cr_expect_eq(inject(&s, &run), 0, "%s", run.err);
		cr_expect_eq(scratch_stored(&s, &m), 1);
		cr_expect_eq(m.queue, want);
		scratch_empty(&s);
	}
	stored_done(&m);
	scratch_done(&s);
}

/* ---- the bell ---- */

Test(submit, rings_the_bell_of_the_queue)
{
	struct stored m = { 0 };
	struct scratch s;
	struct run run;
	struct bell bell;
	char name[IPC_NAME_MAX];
	uint32_t depth;
	mqd_t mq;

	scratch_new(&s, 1, NULL);
	ipc_name_queue(s.instance, 1, name);
	if (mq_create(name, &(struct mq_shape){ 1, MQ_MESSAGE_SIZE }, (uid_t)-1,
		(gid_t)-1, 0640, &mq, &depth) < 0)
		cr_skip_test("no message queue to be had");
	/* I1: the second finds it full, and does not care. */
	cr_expect_eq(inject(&s, &run), 0, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, &m), 1);
	cr_expect_eq(inject(&s, &run), 0, "%s", run.err);
	cr_expect_eq(bell_take(mq, &bell), 1);
	cr_expect_gt(bell.pid, 0);
	cr_expect_eq(bell.split, bell.inode % 3);
	while (bell_take(mq, &bell) == 1)
		;
	mq_close(mq);
	mq_unlink(name);
	stored_done(&m);
	scratch_done(&s);
}
