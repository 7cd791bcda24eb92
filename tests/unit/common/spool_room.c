/* What stays free on the disk of a queue, whatever is still to come. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool_scratch.h"

#define MIB ((uint64_t)1 << 20)

static void
leave_free(uint64_t mib)
{
	const struct statvfs v = {
		.f_frsize = 4096, .f_bsize = 4096, .f_bavail = mib * MIB / 4096
	};

	fault_statvfs(&v);
}

Test(accept_room, X11_the_reserve_counts_what_is_announced)
{
	static const struct {
		uint64_t reserve, announced, mib;
		enum room_writer writer;
		int want;
	} rows[] = {
		{ 0, 0, 1, ROOM_USER, 0 },
		{ MIB, 0, 1, ROOM_USER, 0 },
		{ MIB + 1, 0, 1, ROOM_USER, -ENOSPC },
		{ MIB, MIB, 2, ROOM_USER, 0 },
		{ MIB, MIB + 1, 2, ROOM_USER, -ENOSPC },
		{ MIB, UINT64_MAX, 2, ROOM_USER, -ENOSPC },
		{ 2 * MIB, 0, 1, ROOM_ROOT, 0 },
		{ 2 * MIB, MIB, 2, ROOM_ROOT, 0 },
		{ 2 * MIB, MIB, 2, ROOM_SYSTEM, -ENOSPC },
	};
	struct scratch s;
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct accept_options opt = { .dir = SPOOL_INCOMING,
			.reserve.bytes = rows[i].reserve,
			.reserve.writer = rows[i].writer,
			.announced = rows[i].announced };
		struct accept a;

		leave_free(rows[i].mib);
		cr_expect_eq(accept_begin(&a, &s.sp, &opt, clock_wall(), 0),
		    rows[i].want, "row %zu", i);
		accept_end(&a);
	}
	cr_expect_eq(scratch_files(&s), 0);
	scratch_close(&s);
}

/* Others write meanwhile, or the message itself has come so far. */
Test(accept_room, X11_the_reserve_is_looked_at_each_mebibyte)
{
	const struct accept_options opt = { .dir = SPOOL_INCOMING,
		.reserve.bytes = 4 * MIB };
	static char block[65536];
	struct scratch s;
	struct accept a;
	int i, r = 0;

	scratch_open(&s);
	leave_free(8);
	cr_assert_eq(accept_begin(&a, &s.sp, &opt, clock_wall(), 0), 0);
	for (i = 0; i < 15; i++)
		cr_assert_eq(accept_content(&a, block, sizeof(block)), 0);
	leave_free(3);
	for (i = 0; r == 0 && i < 16; i++)
		r = accept_content(&a, block, sizeof(block));
	cr_expect_eq(r, -ENOSPC);
	cr_expect_eq(i, 1, "at the end of the first");
	accept_end(&a);
	cr_expect_eq(scratch_files(&s), 0);
	scratch_close(&s);
}

/* Room for many messages is ample; a queue that was found with ample room is
 * not looked at again. */
Test(accept_room, X11_ample_room_is_believed_for_a_moment)
{
	struct accept_options opt = { .dir = SPOOL_INCOMING,
		.reserve.bytes = MIB };
	struct scratch s;
	struct accept a;

	scratch_open(&s);
	leave_free(257);
	cr_assert_eq(accept_begin(&a, &s.sp, &opt, clock_wall(), 0), 0);
	cr_expect_not(a.ample);
	accept_end(&a);
	leave_free(258);
	cr_assert_eq(accept_begin(&a, &s.sp, &opt, clock_wall(), 0), 0);
	cr_expect(a.ample);
	accept_end(&a);
	leave_free(0);
	cr_expect_eq(accept_begin(&a, &s.sp, &opt, clock_wall(), 0), -ENOSPC);
	accept_end(&a);
	opt.looked = true;
	cr_expect_eq(accept_begin(&a, &s.sp, &opt, clock_wall(), 0), 0);
	accept_end(&a);
	scratch_close(&s);
}
