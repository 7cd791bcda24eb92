#include "tests/unit/files.h"

#include "scratch.h"

#include "queue-inject/inject.h"

#include "base/clock.h"
#include "base/io.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void
write_conf(const struct scratch *s, const char *settings)
{
	FILE *f = fopen(s->conf, "we");

	cr_assert_not_null(f);
	if (settings == NULL)
		settings = "";
	fprintf(f,
	    "queue_base = %s\ninstance = %s\nmyhostname = mx.example\n"
	    "mydomain = example.org\n%s",
	    s->base, s->instance, settings);
	if (strstr(settings, "queue_minfree") == NULL)
		fprintf(
		    f, "queue_minfree_bytes = 0\nqueue_minfree_inodes = 0\n");
	cr_assert_eq(fclose(f), 0);
}

void
scratch_new(struct scratch *s, uint32_t queues, const char *settings)
{
	static unsigned number;
	const char *tmp = getenv("TMPDIR");
	struct spool_owner owner = { getuid(), getuid(), getgid(), getgid(),
		true };
	uint32_t i;

	*s = (struct scratch){ .queues = queues };
	snprintf(s->instance, sizeof(s->instance), "t%ld-%u", (long)getpid(),
	    number++);
	snprintf(s->dir, sizeof(s->dir), "%.60s/inject-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	cr_assert_not_null(mkdtemp(s->dir));
	cr_assert_eq(chmod(s->dir, 0755), 0);
	snprintf(s->base, sizeof(s->base), "%s/queue", s->dir);
	snprintf(s->conf, sizeof(s->conf), "%s/conf", s->dir);
	cr_assert_eq(mkdir(s->base, 0755), 0);
	for (i = 1; i <= queues; i++)
		cr_assert_eq(spool_create(s->base, i, 3, &owner), 0, "%s",
		    queue_file_reason());
	write_conf(s, settings);
	unsetenv("QUEUE_BASE");
	setenv("QSCHED_CONF", s->conf, 1);
	unsetenv("QSCHED_INSTANCE");
}

void
scratch_conf(const struct scratch *s, const char *settings)
{
	write_conf(s, settings);
}

void
scratch_done(struct scratch *s)
{
	scratch_no_pages(s);
	unit_remove_tree(s->dir);
}

/* ---- faces ---- */

static int
file_of(const char *data, size_t len)
{
	int fd = memfd_create("input", 0);

	cr_assert_geq(fd, 0);
	if (len > 0)
		cr_assert_eq(io_write_all(fd, data, len), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void
become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setgid(SCRATCH_NOBODY) < 0 ||
	    setuid(SCRATCH_NOBODY) < 0)
		_exit(126);
}

static _Noreturn void
child(const struct run *run, int in, int out, int err)
{
	int argc = 0, status, i;
	char **argv;

	while (run->argv[argc] != NULL)
		argc++;
	argv = calloc((size_t)argc + 1, sizeof(*argv));
	for (i = 0; argv != NULL && i < argc; i++)
		argv[i] = strdup(run->argv[i]);
	if (run->as_nobody)
		become_nobody();
	if (run->close_fd > 0)
		close(run->close_fd);
	if (in < 0)
		close(0);
	else
		dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	status = inject_main(argc, argv);
	fflush(NULL);
	_exit(status);
}

static void
take_text(int fd, char *out, size_t size)
{
	int64_t n;

	lseek(fd, 0, SEEK_SET);
	n = io_read_all(fd, out, size - 1);
	out[n < 0 ? 0 : n] = '\0';
	close(fd);
}

pid_t
scratch_start(struct run *run)
{
	int in = run->input_fd > 0 ? dup(run->input_fd)
	    : run->input == NULL   ? -1
				   : file_of(run->input, run->len);
	pid_t pid;

	run->out_fd = run->envelope_fd > 0
	    ? dup(run->envelope_fd)
	    : file_of(run->envelope, run->envelope_len);
	run->err_fd = file_of(NULL, 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		child(run, in, run->out_fd, run->err_fd);
	io_close(&in);
	return pid;
}

void
scratch_wait(pid_t pid, struct run *run)
{
	cr_assert_eq(waitpid(pid, &run->status, 0), pid);
	take_text(run->out_fd, run->out, sizeof(run->out));
	take_text(run->err_fd, run->err, sizeof(run->err));
}

void
scratch_run(UNUSED const struct scratch *s, struct run *run)
{
	scratch_wait(scratch_start(run), run);
}

int
scratch_exit(const struct scratch *s, struct run *run, const char *const *argv,
    const char *input)
{
	*run = (struct run){ .argv = argv, .input = input };
	run->len = input == NULL ? 0 : strlen(input);
	scratch_run(s, run);
	return WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1;
}

/* ---- queues ---- */

static void
load(const struct spool *sp, const struct spool_item *item, enum spool_dir dir,
    struct stored *out)
{
	static struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct dsn_mail dsn;
	char notify[DSN_NOTIFY_MAX];
	int fd = spool_open_file(sp, dir, item->inode, O_RDONLY);

	stored_done(out);
	cr_assert_geq(fd, 0, "%s", queue_file_reason());
	cr_assert_eq(queue_file_read(fd, &out->file), 0);
	cr_assert_eq(queue_file_verify(fd, &out->file), 0);
	out->queue = sp->queue;
	out->dir = dir;
	cr_assert_eq(buf_reserve(&out->content, out->file.content_len), 0);
	cr_assert_eq(io_pread_all(fd, out->content.data, out->file.content_len,
			 (int64_t)out->file.content_off),
	    (int64_t)out->file.content_len);
	out->content.len = out->file.content_len;
	out->content.data[out->content.len] = '\0';
	cr_assert_eq(queue_file_sender(fd, &out->file, &out->sender), 0);
	cr_assert_eq(queue_file_dsn(fd, &out->file, &dsn), 0);
	buf_printf(&out->wishes, "%s %s", dsn_ret_name(dsn.ret), dsn.envid);
	queue_rcpt_begin(&cursor, &out->file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0) {
		if (out->rcpts.len > 0)
			buf_add_char(&out->rcpts, '|');
		buf_add(&out->rcpts, rcpt.address, rcpt.len);
		dsn_notify_format(rcpt.dsn.notify, notify);
		buf_printf(&out->wishes, "|%s %s", notify, rcpt.dsn.orcpt);
	}
	close(fd);
}

/* What each file of both directories is given to. */
static size_t
each_file(const struct scratch *s, struct stored *last, bool remove_them)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_MAILDROP };
	size_t count = 0, d;
	uint32_t queue;

	for (queue = 1; queue <= s->queues; queue++) {
		struct spool sp;

		if (spool_open(&sp, &spool_sys_real, s->base, queue) < 0) {
			spool_close(&sp);
			continue;
		}
		for (d = 0; d < ARRAY_LEN(dirs); d++) {
			struct spool_scan scan;
			struct spool_item item;

			spool_scan_begin(&scan, &sp, dirs[d]);
			while (spool_scan_next(&scan, false, &item) > 0) {
				count++;
				if (last != NULL && item.inode != 0)
					load(&sp, &item, dirs[d], last);
				if (remove_them)
					spool_remove(&sp, dirs[d], item.inode);
			}
			spool_scan_done(&scan);
		}
		spool_close(&sp);
	}
	return count;
}

size_t
scratch_stored(const struct scratch *s, struct stored *ret_last)
{
	return each_file(s, ret_last, false);
}

void
scratch_empty(const struct scratch *s)
{
	each_file(s, NULL, true);
}

void
stored_done(struct stored *stored)
{
	buf_done(&stored->content);
	buf_done(&stored->sender);
	buf_done(&stored->rcpts);
	buf_done(&stored->wishes);
}

/* ---- pages ---- */

static const struct page_owner owner = { (uid_t)-1, (gid_t)-1, 0644 };

static void *
new_page(const char *name, size_t size, uint64_t magic)
{
	uint32_t pid;
	void *page;
	int fd;

	shm_unlink(name);
	cr_assert_eq(
	    page_create(name, size, magic, &owner, &page, &fd, &pid), 0);
	close(fd);
	return page;
}

void
scratch_queue_page(const struct scratch *s, uint32_t queue, usec_t age,
    const struct queue_page *content)
{
	char name[IPC_NAME_MAX];
	struct queue_page *page;
	struct page_head head;
	void *map;

	ipc_name_queue(s->instance, queue, name);
	map = new_page(name, sizeof(*page), QUEUE_PAGE_MAGIC);
	page = map;
	page_write_begin(&page->head);
	head = page->head;
	if (content != NULL)
		*page = *content;
	page->head = head;
	page->queue = queue;
	page_write_end(&page->head, clock_mono() - age, clock_wall() - age);
	page_unmap(&map, sizeof(*page));
}

void
scratch_pages(const struct scratch *s, uint32_t state, usec_t age)
{
	char name[IPC_NAME_MAX];
	struct sched_page *page;
	uint32_t i;
	void *map;

	ipc_name_scheduler(s->instance, name);
	map = new_page(name, sizeof(*page), SCHED_PAGE_MAGIC);
	page = map;
	page_write_begin(&page->head);
	page->qcount = page->qconf = s->queues;
	page->qmails_uid = (uint32_t)getuid();
	for (i = 0; i < s->queues; i++) {
		page->rows[i].queue = i + 1;
		page->rows[i].state = state;
	}
	page_write_end(&page->head, clock_mono() - age, clock_wall() - age);
	page_unmap(&map, sizeof(*page));
	for (i = 1; i <= s->queues; i++)
		scratch_queue_page(s, i, age, NULL);
}

void
scratch_no_pages(const struct scratch *s)
{
	char name[IPC_NAME_MAX];
	uint32_t i;

	ipc_name_scheduler(s->instance, name);
	shm_unlink(name);
	for (i = 1; i <= s->queues; i++) {
		ipc_name_queue(s->instance, i, name);
		shm_unlink(name);
	}
}
