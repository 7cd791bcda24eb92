/* Acts of operators done by the pool, hold and release of each message in turn,
 * while their owner asks for the next ones: under ThreadSanitizer (make
 * check-tsan). */
#include "queue-send/operators/act_task.h"

#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool/accept.h"

#define THREADS 4
#define FILES   32
#define ACTS    4000

static struct send all; /* its spool */
static struct queue_id ids[FILES];

static void
must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "acts: %s: %s\n", what, strerror(-r));
	abort();
}

static void
make_file(struct queue_id *ret_id)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct accept a;

	must(accept_begin(&a, &all.sp, &options, clock_wall(), getuid()),
	    "begin");
	must(queue_file_add_content(&a.writer, "a\n", 2), "content");
	must(queue_file_add_sender(&a.writer, "s@x", 3), "sender");
	must(queue_file_add_rcpt(&a.writer, "r@x", 3), "recipient");
	must(accept_commit(&a, ret_id), "commit");
	accept_end(&a);
}

/* To hold/ with a note, from there to deferred/, and back. */
static void
begin_act(struct sync_pool *p, uint32_t file, enum spool_act what)
{
	const struct hold_note note = { .uid = 7, .reason = "why" };
	const struct act_order order = {
		.what = what,
		.id = &ids[file],
		.note = what == ACT_HOLD ? &note : NULL,
	};
	struct act_task *t = act_task_new(&all, &order, act_task_file);

	if (t == NULL)
		abort();
	t->passes_rules = what == ACT_RELEASE;
	t->task.serial = file;
	must(sync_pool_put(p, &t->task), "put");
}

static uint32_t
take_all(struct sync_pool *p, uint32_t left)
{
	struct sync_task *task;
	uint32_t n = 0;

	while ((task = sync_pool_take(p)) != NULL) {
		const struct act_task *t = (struct act_task *)(void *)task;

		must(task->error, "act");
		if (n++ < left)
			begin_act(p, task->serial,
			    t->what == ACT_HOLD ? ACT_RELEASE : ACT_HOLD);
		sync_task_free(task);
	}
	return n;
}

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
    struct FTW *ftw UNUSED)
{
	return remove(path);
}

int
main(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	struct sync_pool *p = sync_pool_new(&spool_sys_real, THREADS);
	struct pollfd ready = { .events = POLLIN };
	char dir[] = "/tmp/tsan-acts.XXXXXX";
	uint32_t i, taken = 0;

	if (p == NULL || mkdtemp(dir) == NULL)
		return 1;
	must(spool_create(dir, 1, 3, &owner), "spool");
	must(spool_open(&all.sp, &spool_sys_real, dir, 1), "open");
	all.now_wall = clock_wall();
	ready.fd = sync_pool_fd(p);
	for (i = 0; i < FILES; i++)
		make_file(&ids[i]);
	for (i = 0; i < FILES; i++)
		begin_act(p, i, ACT_HOLD);
	while (taken < ACTS && poll(&ready, 1, 30000) == 1)
		taken += take_all(
		    p, taken + FILES < ACTS ? ACTS - FILES - taken : 0);
	(void)sync_pool_free(&p);
	spool_close(&all.sp);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	printf("tsan: acts: %u by %d threads\n%s\n", taken, THREADS,
	    taken == ACTS ? "1 passed, 0 failed" : "FAILED acts");
	return taken == ACTS ? 0 : 1;
}
