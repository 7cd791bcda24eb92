#include "live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "qtop/qtop.h"

struct fake *shared;
struct terminal t;

static int
read_sched(const char *instance UNUSED, struct sched_page *ret_page)
{
	*ret_page = shared->sched;
	ret_page->head.beat_mono = clock_mono();
	return shared->sched_error;
}

static int
read_queue(
    const char *instance UNUSED, uint32_t queue, struct queue_page *ret_page)
{
	uint32_t i;

	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (shared->sched.rows[i].queue == queue) {
			*ret_page = shared->queues[i];
			ret_page->head.beat_mono = clock_mono();
			return shared->queue_error;
		}
	return -ENOENT;
}

void
live_setup(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
	setenv("LC_ALL", "C", 1);
}

void
live_teardown(void)
{
	munmap(shared, sizeof(*shared));
}

void
live_show(uint32_t queues)
{
	fake_make(queues);
	*shared = fake;
}

int
live_draw(void *arg UNUSED)
{
	static const struct model_source source = { read_sched, read_queue };
	const struct options o = { .task = TASK_SCREEN,
		.delay = USEC_PER_SEC / 10 };

	return screen_run(&o, "t", &source);
}

void
live_quit(void)
{
	int status;

	terminal_type(&t, "q");
	status = terminal_finish(&t);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
	cr_expect_str_empty(t.unknown, "to the terminal: %s", t.unknown);
}

void
live_disable_by_hand(struct sched_row *row, const char *reason)
{
	row->state = QUEUE_STATE_DISABLED;
	row->flags = SCHED_ROW_OVERRIDE;
	/* Half a minute more than what is shown. */
	row->until_mono = clock_mono() + (59 * 60 + 30) * USEC_PER_SEC;
	snprintf(row->reason, sizeof(row->reason), "%s", reason);
}
