#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>

#define MOUNTS                                                             \
	"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,errors=x\n" \
	"30 27 0:5 / /var rw shared:2 - xfs /dev/vdb rw,nodiscard\n"       \
	"31 27 0:6 / /var/q\\040a rw - ext4 /dev/vdc rw,discard\n"         \
	"32 27 0:7 / /tmp rw - btrfs /dev/vdd rw,discard=async\n"          \
	"33 27 0:8 / /srv rw - ext4 /dev/vde rw\n"                         \
	"34 33 0:9 / /srv rw - ext4 /dev/vdf rw,discard\n"                 \
	"no line of ours\n"

/* mutation: is_below() compares without the slash. */
Test(discard, by_the_table_of_mounts)
{
	static const struct {
		const char *path;
		bool want;
	} rows[] = {
		{ "/queue1", true },
		{ "/var/queue1", false },
		{ "/variable/queue1", true },
		{ "/var/q a/queue1", true },
		{ "/var/q a", true },
		{ "/var/q", false },
		{ "/tmp/queue1", false },
		{ "/srv/queue1", true },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(discard_is_on(MOUNTS, rows[i].path), rows[i].want,
		    "%s", rows[i].path);
	cr_expect_not(discard_is_on("", "/queue1"));
	cr_expect_not(discard_is_on("\\ - - -\n - \n", "/queue1"));
}
