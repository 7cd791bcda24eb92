/* The marker and the seal: what a power cut leaves of them. */
#include "spool/marker.h"

#include <criterion/criterion.h>
#include <string.h>

#include "spool_scratch.h"
#include "tests/unit/sync_seam.h"

/* A queue with a marker is complete.
 * mutations: common/base/file.c: write_new() does not sync;
 * common/spool/spool_create.c: fill_queue() writes the marker before the
 * directories. */
Test(spool_marker, D12_D24_a_marker_is_on_disk_behind_the_directories)
{
	const char *end, *calls;
	struct scratch s;

	scratch_open(&s);
	sync_seam_begin();
	cr_assert_eq(spool_create(s.base, 2, 3, &s.owner), 0);
	calls = sync_seam_end();
	end = strchr(calls, 'f');
	cr_assert_not_null(end, "%s", calls);
	cr_expect_geq(end - calls, SPOOL_NDIRS, "%s", calls);
	/* The marker, its name, the queue; the name of the queue. */
	cr_expect_str_eq(end, "frddrd", "%s", calls);
	scratch_close(&s);
}

/* The supervisor looks into the queue behind the seal, and ends it: a power cut
 * does not open the queue again.
 * mutation: common/spool/spool.c: spool_set_sealed() does not sync the
 * directory. */
Test(spool_marker, D20_a_seal_is_on_disk_and_so_is_its_end)
{
	struct scratch s;

	scratch_open(&s);
	sync_seam_begin();
	cr_assert_eq(spool_set_sealed(s.base, 1, true), 0);
	cr_expect_str_eq(sync_seam_end(), "fd");
	sync_seam_begin();
	cr_assert_eq(spool_set_sealed(s.base, 1, false), 0);
	cr_expect_str_eq(sync_seam_end(), "ud");
	scratch_close(&s);
}
