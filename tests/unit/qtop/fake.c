#include "fake.h"

#include <errno.h>
#include <string.h>

struct fake fake;

static int
read_sched(const char *instance UNUSED, struct sched_page *ret_page)
{
	*ret_page = fake.sched; /* also on failure: it must not be believed */
	return fake.sched_error;
}

static int
read_queue(
    const char *instance UNUSED, uint32_t queue, struct queue_page *ret_page)
{
	uint32_t i;

	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (fake.sched.rows[i].queue == queue) {
			*ret_page = fake.queues[i];
			return fake.queue_error;
		}
	return -ENOENT;
}

const struct model_source fake_source = { read_sched, read_queue };

void
fake_make(uint32_t queues)
{
	uint32_t i;

	memset(&fake, 0, sizeof(fake));
	fake.sched.head.pid = 4711;
	fake.sched.head.beat_mono = FAKE_MONO - USEC_PER_SEC;
	fake.sched.threshold_pct = 90;
	fake.sched.queue_count = 1;
	fake.sched.queue_max = 20;
	fake.sched.qcount = fake.sched.qconf = queues;
	for (i = 0; i < queues; i++) {
		fake.sched.rows[i].queue = i + 1;
		fake.sched.rows[i].state = QUEUE_STATE_OPEN;
		fake.queues[i].queue = i + 1;
		fake.queues[i].head.beat_mono = FAKE_MONO - USEC_PER_SEC;
		fake.queues[i].local_limit = 10;
		fake.queues[i].remote_limit = 20;
	}
}

void
fake_sample(struct model *ret_model)
{
	model_sample(ret_model, &fake_source, "t", FAKE_MONO, FAKE_WALL);
}
