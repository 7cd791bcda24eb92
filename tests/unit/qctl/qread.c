/* The table of queues of qread. */
#include "qctl/show/qread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "ipc/page.h"

static int
read_page(
    const char *instance UNUSED, uint32_t queue, struct queue_page *ret_page)
{
	*ret_page = (struct queue_page){ .local_limit = 5,
		.remote_limit = 20,
		.local_used = (int32_t)queue };
	return queue == 4 ? -ENOENT : 0;
}

Test(qread, the_highest_load_comes_first)
{
	static struct sched_page page;
	struct buf out = { 0 };

	page = (struct sched_page){ .qcount = 3,
		.qconf = 4,
		.threshold_pct = 90,
		.mean_load_pct = 45 };
	page.rows[0] = (struct sched_row){
		.queue = 1, .state = QUEUE_STATE_OPEN, .load_pct = 10
	};
	page.rows[2] = (struct sched_row){
		.queue = 2, .state = QUEUE_STATE_DISABLED, .load_pct = 70
	};
	page.rows[3] = (struct sched_row){
		.queue = 3, .state = QUEUE_STATE_OPEN, .load_pct = 70
	};
	page.rows[9] = (struct sched_row){
		.queue = 4, .state = QUEUE_STATE_OPEN, .load_pct = 1000
	};
	qread_table(&page, read_page, "", &out);
	cr_expect_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "queue      local  Remote   +/- flag\n"
	    "queue4     0/0      0/0    - enabled\n"
	    "queue2     2/5      0/20   + disabled\n"
	    "queue3     3/5      0/20   + enabled\n"
	    "queue1     1/5      0/20   + enabled\n"
	    "threshold = 90.00 , qcount = 3, qconf = 4, qload = 45.00\n");
	buf_done(&out);
}
