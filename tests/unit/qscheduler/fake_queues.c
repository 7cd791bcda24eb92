#include "fake_queues.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake.h"
#include "ipc/ask.h"
#include "ipc/bell.h"
#include "ipc/names.h"
#include "ipc/page.h"
#include "qscheduler/supervisor/supervisor.h"

#define QUICK                     \
	"queue_grow_time = 0\n"   \
	"queue_shrink_time = 0\n" \
	"queue_change_interval = 0\n"

struct sched_page page;

uint32_t
state_of(uint32_t queue)
{
	size_t i;

	stage_page(&page);
	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (page.rows[i].queue == queue)
			return page.rows[i].state;
	return QUEUE_STATE_NONE;
}

void
wait_state(uint32_t queue, uint32_t state)
{
	const usec_t end = clock_mono() + 120 * USEC_PER_SEC;

	while (state_of(queue) != state) {
		const struct timespec between = { 0, 5 * 1000 * 1000 };

		cr_assert(clock_mono() < end, "queue %u is %u, not %u\n%s",
		    queue, state_of(queue), state,
		    stage_logged("") ? stage()->logged : "");
		nanosleep(&between, NULL);
	}
}

const char *
path_of(const char *rest)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", stage()->base, rest);
	return path;
}

void
put_file(const char *rest)
{
	int fd = open(path_of(rest), O_WRONLY | O_CREAT, 0600);

	cr_assert(fd >= 0, "%s: %s", rest, strerror(errno));
	close(fd);
}

bool
is_there(const char *rest)
{
	return access(path_of(rest), F_OK) == 0;
}

static int
request(struct msg *msg, char text[SCHED_ANSWER_SIZE])
{
	static uint32_t nonce;
	int code = 1;

	/* The same two fields stand first in all of them. */
	msg->u.COUNT.pid = (uint32_t)getpid();
	msg->u.COUNT.nonce = ++nonce;
	cr_assert_eq(
	    ask_request(&(struct ask_question){ stage()->instance, NULL, msg,
			    nonce, false, 120 * USEC_PER_SEC },
		&code, text),
	    0);
	return code;
}

int
set_count(uint32_t count)
{
	struct msg msg = { .type = MSG_COUNT, .u.COUNT = { .count = count } };
	char text[SCHED_ANSWER_SIZE];

	return request(&msg, text);
}

int
set_load(int32_t queue, uint32_t pct)
{
	struct msg msg = { .type = MSG_SET_LOAD_FOR,
		.u.SET_LOAD_FOR = {
		    .queue = queue, .local_used = pct, .local_limit = 100 } };
	char text[SCHED_ANSWER_SIZE];

	return request(&msg, text);
}

int
disable(int32_t queue)
{
	struct msg msg = { .type = MSG_DISABLE,
		.u.DISABLE = { .queue = queue, .reason = MSG_S("a test") } };
	char text[SCHED_ANSWER_SIZE];

	return request(&msg, text);
}

void
start(const char *option, const char *conf)
{
	char text[400];

	snprintf(text, sizeof(text), QUICK "%s", conf);
	stage_conf(text);
	stage_start(option);
	stage_wait_ready();
}

size_t
count_descriptors(void)
{
	char path[64];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)stage()->pid);
	dir = opendir(path);
	cr_assert_not_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}
