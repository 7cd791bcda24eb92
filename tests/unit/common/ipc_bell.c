#include "ipc/bell.h"

#include "ipc/names.h"
#include "ipc_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAVE ((uid_t)-1)

TestSuite(ipc_bell, .fini = ipc_scratch_done, .timeout = 60);

static char name[IPC_NAME_MAX];

static mqd_t
make(uint32_t depth, uint32_t *ret_depth)
{
	mqd_t mq = (mqd_t)-1;

	ipc_name_queue(ipc_scratch(), 1, name);
	cr_assert_eq(
	    mq_create(name, &(struct mq_shape){ depth, MQ_MESSAGE_SIZE }, LEAVE,
		(gid_t)-1, 0640, &mq, ret_depth),
	    0);
	return mq;
}

Test(ipc_bell, rung_and_taken)
{
	const struct bell in = { 4711, 22, 0x123456789abcdef };
	struct bell out;
	uint32_t depth;
	mqd_t mq = make(10, &depth);

	cr_assert_eq(bell_take(mq, &out), 0);
	cr_assert_eq(bell_ring(ipc_scratch(), 1, &in), 0);
	cr_assert_eq(bell_take(mq, &out), 1);
	cr_assert_eq(out.pid, in.pid);
	cr_assert_eq(out.split, in.split);
	cr_assert_eq(out.inode, in.inode);
	cr_assert_eq(bell_take(mq, &out), 0);
}

/* Between two looks the old queue may still be rung; after the next one never.
 */
Test(ipc_bell, I8_a_kept_bell_is_looked_at_again)
{
	const struct bell bell = { 1, 2, 3 };
	struct bell_rope rope = { .mq = BELL_NO_MQ };
	const usec_t now = USEC_PER_SEC;
	struct bell out;
	uint32_t depth;
	mqd_t old, fresh;

	cr_expect_eq(bell_pull(&rope, ipc_scratch(), 1, &bell, now), -ENOENT);
	old = make(10, &depth);
	cr_expect_eq(bell_pull(&rope, ipc_scratch(), 1, &bell, now), 0);
	cr_expect_eq(bell_take(old, &out), 1);
	fresh = make(10, &depth);
	cr_expect_eq(bell_pull(&rope, ipc_scratch(), 1, &bell, now + 1), 0);
	cr_expect_eq(bell_take(fresh, &out), 0, "looked too early");
	cr_expect_eq(
	    bell_pull(&rope, ipc_scratch(), 1, &bell, now + BELL_BELIEVED), 0);
	cr_expect_eq(bell_take(fresh, &out), 1, "the old one is still rung");
	bell_let_go(&rope);
	cr_expect_eq(rope.mq, BELL_NO_MQ);
}

Test(ipc_bell, owner_mode_and_close_on_exec)
{
	struct stat st;
	uint32_t depth;
	mqd_t mq = make(10, &depth);

	cr_assert_eq(fstat(mq, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0640u);
	cr_expect_eq(st.st_uid, geteuid());
	cr_expect(fcntl(mq, F_GETFD) & FD_CLOEXEC);
	cr_expect(fcntl(mq, F_GETFL) & O_NONBLOCK);
}

Test(ipc_bell, I1_full_is_said_at_once)
{
	const struct bell bell = { 1, 2, 3 };
	uint32_t depth, i;

	make(10, &depth);
	for (i = 0; i < depth; i++)
		cr_assert_eq(bell_ring(ipc_scratch(), 1, &bell), 0);
	cr_assert_eq(bell_ring(ipc_scratch(), 1, &bell), -EAGAIN);
}

/* mutation: bell_wait() waits for nothing but the stop. */
Test(ipc_bell, N49_a_full_one_is_waited_for)
{
	const struct bell bell = { 1, 2, 3 };
	struct bell_rope rope = { .mq = BELL_NO_MQ };
	struct bell out;
	uint32_t depth, i;
	int stop[2];
	mqd_t mq = make(2, &depth);

	cr_assert_eq(pipe(stop), 0);
	for (i = 0; i < depth; i++)
		cr_assert_eq(bell_pull(&rope, ipc_scratch(), 1, &bell, 1), 0);
	cr_assert_eq(bell_pull(&rope, ipc_scratch(), 1, &bell, 1), -EAGAIN);
	cr_expect_not(bell_wait(&rope, 1000, stop[0]), "for a millisecond");
	cr_assert_eq(bell_take(mq, &out), 1);
	cr_expect(bell_wait(&rope, 30 * USEC_PER_SEC, stop[0]));
	cr_assert_eq(bell_pull(&rope, ipc_scratch(), 1, &bell, 1), 0);
	cr_assert_eq(write(stop[1], "", 1), 1);
	cr_expect_not(bell_wait(&rope, 30 * USEC_PER_SEC, stop[0]), "a stop");
	bell_let_go(&rope);
	close(stop[0]);
	close(stop[1]);
}

Test(ipc_bell, I5_a_bell_that_is_not_there)
{
	const struct bell bell = { 1, 2, 3 };

	cr_expect_eq(bell_ring(ipc_scratch(), 3, &bell), -ENOENT);
}

Test(ipc_bell, I7_records_of_a_wrong_length_are_taken_and_told)
{
	static const size_t lens[] = { 0, 1, 15, 17, 36, 64 };
	char junk[64] = { 0 };
	struct bell out = { .inode = 7 };
	uint32_t depth;
	mqd_t mq = make(10, &depth);
	size_t i;

	for (i = 0; i < ARRAY_LEN(lens); i++) {
		cr_assert_eq(mq_send(mq, junk, lens[i], 0), 0);
		cr_expect_eq(bell_take(mq, &out), -EBADMSG, "%zu", lens[i]);
	}
	cr_expect_eq(out.inode, 7, "the output was touched");
	cr_expect_eq(bell_take(mq, &out), 0);
}

/* A descriptor that blocks, or a queue with large records, was not made by us
 * and must still not hold anybody up. */
Test(ipc_bell, I9_take_never_blocks)
{
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8192 };
	char large[8192] = { 0 };
	struct bell out;
	mqd_t mq;

	ipc_name_queue(ipc_scratch(), 1, name);
	mq = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	cr_assert_neq(mq, (mqd_t)-1);
	cr_expect_eq(bell_take(mq, &out), 0);
	cr_assert_eq(mq_send(mq, large, sizeof(large), 0), 0);
	cr_expect_eq(bell_take(mq, &out), -EBADMSG);
	cr_expect_eq(bell_take(mq, &out), 0);
}

Test(ipc_bell, I15_a_stale_one_is_replaced)
{
	const struct bell bell = { 1, 2, 3 };
	struct bell out;
	uint32_t depth;
	mqd_t old = make(10, &depth), fresh;

	cr_assert_eq(bell_ring(ipc_scratch(), 1, &bell), 0);
	fresh = make(10, &depth);
	cr_expect_eq(bell_take(fresh, &out), 0, "an old record came along");
	cr_expect_not(mq_same(name, old));
	cr_expect(mq_same(name, fresh));
}

Test(ipc_bell, I8_unlinked_while_in_use)
{
	const struct bell bell = { 1, 2, 3 };
	struct bell out;
	uint32_t depth;
	mqd_t mq = make(10, &depth), again;

	cr_assert_eq(bell_ring(ipc_scratch(), 1, &bell), 0);
	cr_expect(mq_same(name, mq));
	cr_assert_eq(mq_unlink(name), 0);
	cr_expect_not(mq_same(name, mq));
	cr_expect_eq(bell_take(mq, &out), 1, "the descriptor still works");
	again = make(10, &depth);
	cr_expect(mq_same(name, again));
	cr_expect_not(mq_same(name, mq), "another one has the name");
}

static int
create_deep(void *arg)
{
	uint32_t *depth = arg;
	mqd_t mq;
	int r;

	ipc_name_queue(ipc_scratch(), 1, name);
	r = mq_create(name, &(struct mq_shape){ *depth, MQ_MESSAGE_SIZE },
	    LEAVE, (gid_t)-1, 0600, &mq, depth);
	mq_unlink(name);
	return r == 0 ? (int)*depth : 127;
}

static uint32_t
msg_max(void)
{
	unsigned n = 0;
	FILE *f = fopen("/proc/sys/fs/mqueue/msg_max", "re");

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%9u", &n), 1);
	fclose(f);
	return n;
}

Test(ipc_bell, I4_deeper_than_allowed_falls_back)
{
	uint32_t depth = 100000;
	const uint32_t want = msg_max() < 10 ? msg_max() : 10;

	cr_expect_eq(ipc_as_nobody(create_deep, &depth), (int)want);
	depth = 3;
	cr_expect_eq(ipc_as_nobody(create_deep, &depth), 3);
}

#define MANY 40

/* Child: as many bells as fit into the stock limit, at most MANY. */
static int
create_many(void *arg UNUSED)
{
	const struct rlimit stock = { 819200, 819200 };
	struct rlimit now;
	uint32_t i, depth, made = 0;
	mqd_t mq[MANY];

	if (getrlimit(RLIMIT_MSGQUEUE, &now) < 0 ||
	    (now.rlim_max >= stock.rlim_max &&
		setrlimit(RLIMIT_MSGQUEUE, &stock) < 0))
		return 127;
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "/%s.many%u", ipc_scratch(), i);
		made +=
		    mq_create(name, &(struct mq_shape){ 10, MQ_MESSAGE_SIZE },
			LEAVE, (gid_t)-1, 0600, &mq[i], &depth) == 0 &&
		    depth == 10;
	}
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "/%s.many%u", ipc_scratch(), i);
		mq_unlink(name);
	}
	return (int)made;
}

/* Ten queues of the default size would be more than the limit. */
Test(ipc_bell, I3_many_small_queues_fit_the_stock_limit)
{
	cr_expect_eq(ipc_as_nobody(create_many, NULL), MANY);
}

static int
create_with_tiny_limit(void *arg UNUSED)
{
	struct rlimit tiny = { 600, 600 };
	uint32_t depth = 10;

	if (setrlimit(RLIMIT_MSGQUEUE, &tiny) < 0)
		return 127;
	return create_deep(&depth);
}

Test(ipc_bell, I3_a_shallower_one_where_the_limit_is_near)
{
	if (geteuid() != 0)
		cr_skip_test("needs a user with no other queues, that is root");
	cr_expect_eq(ipc_as_nobody(create_with_tiny_limit, NULL), 1);
}

/* Another user took the name: an ordinary user cannot have it, and is told. */
static int
create_squatted(void *arg UNUSED)
{
	uint32_t depth;
	mqd_t mq;

	return -mq_create(name, &(struct mq_shape){ 10, MQ_MESSAGE_SIZE },
	    LEAVE, (gid_t)-1, 0600, &mq, &depth);
}

Test(ipc_bell, I14_squatted_name)
{
	uint32_t depth;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	make(10, &depth); /* root's */
	cr_expect_eq(ipc_as_nobody(create_squatted, NULL), EPERM);
}

static int
squat(void *arg UNUSED)
{
	return mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, NULL) ==
	    (mqd_t)-1;
}

Test(ipc_bell, I14_root_takes_the_name_back)
{
	struct stat st;
	uint32_t depth;
	mqd_t mq;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	ipc_name_queue(ipc_scratch(), 1, name);
	cr_assert_eq(ipc_as_nobody(squat, NULL), 0);
	mq = make(10, &depth);
	cr_assert_eq(fstat(mq, &st), 0);
	cr_expect_eq(st.st_uid, 0u);
}

/* Child, where one queue is all that there may be. */
static int
create_beside_squatter(void *arg UNUSED)
{
	uint32_t depth;
	mqd_t mq, squatter;

	squatter = mq_open("/squatter", O_CREAT | O_RDWR, 0600, NULL);
	if (squatter == (mqd_t)-1)
		return 1;
	ipc_name_queue(ipc_scratch(), 1, name);
	if (mq_create(name, &(struct mq_shape){ 10, MQ_MESSAGE_SIZE }, LEAVE,
		(gid_t)-1, 0600, &mq, &depth) != -ENOSPC)
		return 2;
	mq_unlink("/squatter");
	mq_close(squatter);
	/* The retry of a later minute. */
	if (mq_create(name, &(struct mq_shape){ 10, MQ_MESSAGE_SIZE }, LEAVE,
		(gid_t)-1, 0600, &mq, &depth) != 0)
		return 3;
	return 0;
}

/* In a namespace of its own, where the limit can be 1. */
Test(ipc_bell, I2_queues_used_up_by_another)
{
	FILE *f;

	if (geteuid() != 0 || unshare(CLONE_NEWIPC) < 0)
		cr_skip_test("needs an IPC namespace of its own, that is root");
	f = fopen("/proc/sys/fs/mqueue/queues_max", "we");
	cr_assert_not_null(f);
	fprintf(f, "1\n");
	cr_assert_eq(fclose(f), 0);
	cr_expect_eq(ipc_as_nobody(create_beside_squatter, NULL), 0);
}

static int
meddle(void *arg UNUSED)
{
	const struct bell bell = { 1, 2, 3 };

	if (bell_ring(ipc_scratch(), 1, &bell) != -EACCES)
		return 1;
	if (mq_open(name, O_RDONLY) != (mqd_t)-1)
		return 2;
	return mq_unlink(name) == 0 ? 3 : 0;
}

Test(ipc_bell, X4_strangers_can_neither_ring_nor_read_nor_remove)
{
	uint32_t depth;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	make(10, &depth);
	cr_expect_eq(ipc_as_nobody(meddle, NULL), 0);
}
