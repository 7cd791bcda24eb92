/* The end of a queue, of which a directory cannot be read. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue-send/message/path.h"
#include "queue-send/evacuation/evacuation.h"

static struct world w;

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	world_start(&w, "error_interval = 1h\n");
	cr_assert_eq(spool_create(w.dir, 2, 5, &owner), 0);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(evacuate_unread, .init = start, .fini = end, .timeout = 60);

static unsigned walks; /* of reasons */

static int
openat_unread(int dir, const char *name, int flags, mode_t mode)
{
	if (dir == w.s.sp.dir[SPOOL_DEFERRED] && (flags & O_DIRECTORY) != 0) {
		errno = EIO;
		return -1;
	}
	walks += dir == w.s.sp.dir[SPOOL_DEFER] && (flags & O_DIRECTORY) != 0;
	return openat(dir, name, flags, mode);
}

/* No reason is taken for one without a message while the message may be where
 * nothing can be read.
 * mutation: queue-send/evacuation/evacuate.c: take_found() counts no error. */
Test(evacuate_unread, D8_what_cannot_be_read_is_not_empty)
{
	struct daemon d = { .state = &w.s };
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { "\2\0\0\0", 4 } };
	const uint64_t inode = world_file(&w, "x", 1, 0);

	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_DEFERRED, inode), 0);
	cr_assert_eq(
	    spool_set_due(&w.s.sp, inode, clock_wall() + 1000000000), 0);
	world_again(&w);
	world_sys.openat = openat_unread;
	walks = 0;
	cr_assert_eq(control_ops.told(&d, &msg), 0);
	world_run(&w);
	cr_assert_not_null(w.s.evacuation);
	cr_expect_eq(walks, 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}
