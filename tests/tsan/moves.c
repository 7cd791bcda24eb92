/* Files of messages moved by the pool, with their reasons and due times, while
 * their owner asks for the next move: under ThreadSanitizer (make check-tsan).
 */
#include "queue-send/road/move_task.h"

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
#define MOVES   4000

static struct spool sp;
static struct queue_id ids[FILES];

static void
must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "moves: %s: %s\n", what, strerror(-r));
	abort();
}

static void
make_file(struct queue_id *ret_id)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct accept a;

	must(accept_begin(&a, &sp, &options, clock_wall(), getuid()), "begin");
	must(queue_file_add_content(&a.writer, "a\n", 2), "content");
	must(queue_file_add_sender(&a.writer, "s@x", 3), "sender");
	must(queue_file_add_rcpt(&a.writer, "r@x", 3), "recipient");
	must(accept_commit(&a, ret_id), "commit");
	accept_end(&a);
}

/* From incoming/ to active/, from there to deferred/, and back to active/. */
static void
begin_move(struct sync_pool *p, uint32_t file, enum spool_dir from)
{
	struct move_task *t = calloc(1, sizeof(*t));
	struct buf *reasons = calloc(1, sizeof(*reasons));

	if (t == NULL || reasons == NULL)
		abort();
	t->task = (struct sync_task){ .work = move_task_work,
		.drop = move_task_drop,
		.fds = { -1, -1 },
		.serial = file,
		.inode = ids[file].inode };
	t->sp = &sp;
	t->id = ids[file];
	t->fd = -1;
	t->from = from;
	t->to = from == SPOOL_ACTIVE ? SPOOL_DEFERRED : SPOOL_ACTIVE;
	t->open = t->look = t->to == SPOOL_ACTIVE;
	if (t->to == SPOOL_DEFERRED) {
		must(buf_add_str(reasons, "0\t1\t4.0.0\tnone\tr@x\tlater\n"),
		    "reason");
		t->due = MOVE_DUE_NEEDED;
		t->due_wall = clock_wall();
	}
	t->reasons = reasons;
	t->begins = true;
	must(sync_pool_put(p, &t->task), "put");
}

static uint32_t
take_all(struct sync_pool *p, uint32_t left)
{
	struct sync_task *task;
	uint32_t n = 0;

	while ((task = sync_pool_take(p)) != NULL) {
		const struct move_task *t = (struct move_task *)(void *)task;

		must(task->error, "move");
		must(t->reason_error, "reasons");
		if (n++ < left)
			begin_move(p, task->serial, t->to);
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
	char dir[] = "/tmp/tsan-moves.XXXXXX";
	uint32_t i, taken = 0;

	if (p == NULL || mkdtemp(dir) == NULL)
		return 1;
	must(spool_create(dir, 1, 3, &owner), "spool");
	must(spool_open(&sp, &spool_sys_real, dir, 1), "open");
	sync_pool_set_share(p, 4);
	ready.fd = sync_pool_fd(p);
	for (i = 0; i < FILES; i++)
		make_file(&ids[i]);
	for (i = 0; i < FILES; i++)
		begin_move(p, i, SPOOL_INCOMING);
	while (taken < MOVES && poll(&ready, 1, 30000) == 1)
		taken += take_all(
		    p, taken + FILES < MOVES ? MOVES - FILES - taken : 0);
	(void)sync_pool_free(&p);
	spool_close(&sp);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	printf("tsan: moves: %u by %d threads\n%s\n", taken, THREADS,
	    taken == MOVES ? "1 passed, 0 failed" : "FAILED moves");
	return taken == MOVES ? 0 : 1;
}
