/* What a door counts before a message is accepted. */
#include "queue-drop/door.h"

#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define MIB  ((uint64_t)1 << 20)
#define USER 1000

static char top[64], base[80], instance[64];
static struct conf conf;
static struct spool sp;
static struct share share;

static int
put(int dir, const char *name, uint64_t size)
{
	int fd = openat(dir, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* A door that has looked at its share, while nothing waited. */
static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	snprintf(top, sizeof(top), "/tmp/share-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	snprintf(base, sizeof(base), "%s/q", top);
	snprintf(instance, sizeof(instance), "share%ld", (long)getpid());
	cr_assert_eq(spool_create(base, 1, 3, &owner), 0);
	cr_assert_eq(spool_open(&sp, &spool_sys_real, base, 1), 0);
	conf = (struct conf){ .queue_base = base,
		.instance = instance,
		.user_size_limit = 3 * MIB };
	share = (struct share){ .conf = &conf,
		.uid = USER,
		.counted = true,
		.file = put(sp.fd, "user", 0),
		.slots = 2,
		.counted_at = clock_mono() };
}

static void
end(void)
{
	share_done(&share);
	spool_close(&sp);
	unit_remove_tree(top);
}

TestSuite(share, .init = start, .fini = end, .timeout = 60);

static void
drop(const char *name, uint64_t size)
{
	close(put(sp.dir[SPOOL_MAILDROP], name, size));
}

static void
expect_full(void)
{
	cr_expect_eq(share_pay(&share, &sp, 3 * MIB / 2), -1);
	cr_expect_str_eq(share.reason,
	    "3670016 bytes of uid 1000 wait with this message, the limit is "
	    "3145728 "
	    "(user_size_limit); see \"qctl shares\"");
}

/* mutation: share_pay() counts nothing anew. */
Test(share, X6_what_came_while_a_large_message_was_read_counts)
{
	cr_expect_eq(share_grows(&share, 3 * MIB / 2), 0);
	drop("1000.0123456789abcdef", 3 * MIB / 2);
	cr_expect_eq(share_pay(&share, &sp, 3 * MIB / 2), 0);
	drop("1000.0123456789abcdee", MIB / 2);
	expect_full();
}

Test(share, X6_what_came_while_a_slow_message_was_read_counts)
{
	drop("1000.0123456789abcdef", 2 * MIB);
	cr_expect_eq(share_pay(&share, &sp, 3 * MIB / 2), 0);
	share.counted_at -= 2 * USEC_PER_SEC;
	expect_full();
}

/* mutation: check_rate() tells of the rate, whatever the cause. */
Test(share, X6_a_file_that_cannot_be_written_is_no_rate)
{
	conf.user_message_rate = 1;
	cr_expect_eq(share_pay(&share, &sp, 1), 0);
	cr_expect_eq(share_pay(&share, &sp, 1), -1);
	cr_expect_str_eq(share.reason,
	    "uid 1000 submits more than 1 messages a minute "
	    "(user_message_rate); try again in a minute");
	close(share.file);
	share.file = -1;
	cr_expect_eq(share_pay(&share, &sp, 1), -1);
	cr_expect_str_eq(share.reason,
	    "the file users/1000 cannot be written: Bad file descriptor");
}
