#include "tests/unit/todo-proc/world.h"

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"
#include "todo-proc/todo.h"
#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
read_conf(struct world *w, const char *conf)
{
	struct buf text = { 0 }, error = { 0 };

	unit_put_file(w->dir, "routing", "smtp.test smtp\n* discard\n");
	buf_printf(&text,
	    "queue_base = %s\nrouting_file = %s/routing\n"
	    "queue_minfree_bytes = 0\nqueue_minfree_inodes = 0\n%s",
	    w->dir, w->dir, conf);
	cr_assert_eq(conf_load(unit_put_file(w->dir, "conf", buf_str(&text)),
			 &w->conf, &error),
	    0, "%s", buf_str(&error));
	buf_done(&text);
}

static void
begin(struct world *w)
{
	struct todo *t = &w->t;

	memset(t, 0, sizeof(*t));
	t->conf = &w->conf;
	t->lock = -1;
	t->base = daemon_loop_new(false);
	cr_assert_not_null(t->base);
	cr_assert_eq(spool_open(&t->sp, &spool_sys_real, w->dir, 1), 0);
	t->threads = w->threads;
	cr_assert_eq(todo_init(t), 0);
	w->send = -1;
	w->nmessages = w->ngone = w->ncounts = w->ncounts_alone = 0;
}

static void
finish(struct world *w)
{
	todo_done(&w->t);
	spool_close(&w->t.sp);
	event_base_free(w->t.base);
	io_close(&w->send);
}

void
world_start(struct world *w, const char *conf)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const char *tmp = getenv("TMPDIR");

	log_open("test", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_ERROR_L + 1);
	snprintf(w->dir, sizeof(w->dir), "%s/todo.XXXXXX",
	    tmp == NULL || strlen(tmp) > 40 ? "/tmp" : tmp);
	cr_assert_not_null(mkdtemp(w->dir));
	read_conf(w, conf);
	cr_assert_eq(
	    spool_create(w->dir, 1, 3, &owner), 0, "%s", queue_file_reason());
	begin(w);
}

void
world_again(struct world *w)
{
	finish(w);
	begin(w);
}

void
world_end(struct world *w)
{
	uint32_t n;

	for (n = 0; n < w->nmessages && n < 256; n++)
		io_close(&w->fds[n]);
	finish(w);
	conf_done(&w->conf);
	unit_remove_tree(w->dir);
}

/* ---- the link ---- */

void
world_link(struct world *w)
{
	int fds[2];

	io_close(&w->send);
	cr_assert_eq(chan_pair(fds), 0);
	cr_assert_eq(offer_linked(&w->t, fds[0]), 0);
	w->send = fds[1];
	todo_kick(&w->t);
}

static void
hear_facts(struct world *w, uint32_t n, const struct msg_MESSAGE *m)
{
	cr_assert_leq(m->rcpts.len, sizeof(w->rcpts[n]));
	memcpy(w->rcpts[n], m->rcpts.data, m->rcpts.len);
	cr_assert_lt(m->message_id.len, sizeof(w->message_id[n]));
	memcpy(w->message_id[n], m->message_id.data, m->message_id.len);
	w->message_id[n][m->message_id.len] = '\0';
}

/* Of its datagram: what was taken of that is this frame. */
static bool
is_first(const struct chan_frame *frame)
{
	uint32_t len;

	memcpy(&len, frame->data, sizeof(len));
	return frame->at == len;
}

static void
hear(struct world *w)
{
	static struct chan_frame frame;
	const struct msg *msg = &frame.msg;
	uint32_t n = w->nmessages % 256;

	while (w->send >= 0 && chan_recv(w->send, &frame) == 1) {
		if (msg->type == MSG_COUNTS) {
			w->ncounts++;
			w->ncounts_alone += is_first(&frame) && frame.left == 0;
		} else if (msg->type == MSG_GONE) {
			w->gone[w->ngone++ % 256] = msg->u.GONE;
		} else if (msg->type == MSG_MESSAGE) {
			n = w->nmessages++ % 256;
			w->messages[n] = msg->u.MESSAGE;
			w->census_len[n] = msg->u.MESSAGE.census.len;
			cr_assert_leq(w->census_len[n], sizeof(w->census[n]));
			memcpy(w->census[n], msg->u.MESSAGE.census.data,
			    w->census_len[n]);
			hear_facts(w, n, &msg->u.MESSAGE);
			w->fds[n] = frame.fd;
		}
	}
}

void
world_run(struct world *w)
{
	int i;

	todo_kick(&w->t);
	for (i = 0; i < 100; i++) {
		event_base_loop(w->t.base, EVLOOP_NONBLOCK);
		hear(w);
	}
}

static void
tell(struct world *w, const struct msg *msg)
{
	cr_assert_eq(chan_send(w->send, msg, -1), 0);
	world_run(w);
}

void
world_credit(struct world *w, uint32_t n)
{
	tell(w,
	    &(struct msg){ .type = MSG_CREDIT, .u.CREDIT = { .messages = n } });
}

void
world_prepare(struct world *w, uint64_t inode)
{
	tell(w,
	    &(struct msg){
		.type = MSG_PREPARE, .u.PREPARE = { .inode = inode } });
}

void
world_scan(struct world *w)
{
	w->t.incoming.not_before = w->t.maildrop.not_before = 0;
	w->t.incoming.wanted = w->t.maildrop.wanted = true;
	world_run(w);
}

/* ---- files ---- */

static uint64_t
write_message(struct world *w, struct accept *a, enum spool_dir dir,
    const char *to, uint32_t n)
{
	const struct accept_options options = { .dir = dir };
	const char *content = w->content == NULL ? "a\n\nb\n" : w->content;
	const char *sender = w->sender == NULL ? "s@here.test" : w->sender;
	struct queue_id id;
	char rcpt[64];
	uint32_t i;

	cr_assert_eq(
	    accept_begin(a, &w->t.sp, &options, clock_wall(), getuid()), 0);
	cr_assert_eq(
	    queue_file_add_content(&a->writer, content, strlen(content)), 0);
	cr_assert_eq(
	    queue_file_add_sender(&a->writer, sender, strlen(sender)), 0);
	for (i = 0; i < n; i++) {
		snprintf(rcpt, sizeof(rcpt), "r%u@%s%u.test", i, to, i);
		if (strchr(to, '@') != NULL)
			snprintf(rcpt, sizeof(rcpt), "%s", to);
		cr_assert_eq(
		    queue_file_add_rcpt(&a->writer, rcpt, strlen(rcpt)), 0);
	}
	cr_assert_eq(accept_commit(a, &id), 0);
	return id.inode;
}

uint64_t
world_file(struct world *w, enum spool_dir dir, const char *to, uint32_t n)
{
	struct accept a;
	uint64_t inode = write_message(w, &a, dir, to, n);

	accept_end(&a);
	return inode;
}

uint64_t
world_unfinished(struct world *w, struct accept *a)
{
	return write_message(w, a, SPOOL_INCOMING, "d", 1);
}

void
world_bell(struct world *w, uint64_t inode)
{
	todo_tick(&w->t);
	bells_rung(&w->t, &(struct bell){ .pid = 1, .inode = inode });
}

static void
leaf_of(
    const struct world *w, enum spool_dir dir, const char *name, char out[300])
{
	snprintf(out, 300, "%s%s", spool_dirs[dir].split ? "0/" : "", name);
	(void)w;
}

uint64_t
world_raw(struct world *w, enum spool_dir dir, const char *name,
    const void *data, size_t len)
{
	char leaf[300];
	struct stat st;
	int fd;

	leaf_of(w, dir, name, leaf);
	fd = openat(w->t.sp.dir[dir], leaf,
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0, "%s: %s", leaf, strerror(errno));
	cr_assert_eq(io_write_all(fd, data, len), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	return (uint64_t)st.st_ino;
}

uint64_t
world_raw_named(
    struct world *w, enum spool_dir dir, const void *data, size_t len)
{
	uint64_t inode = world_raw(w, dir, "being-made", data, len);
	char from[300], to[SPOOL_PATH_MAX];

	leaf_of(w, dir, "being-made", from);
	spool_leaf(&w->t.sp, dir, inode, to, sizeof(to));
	cr_assert_eq(renameat(w->t.sp.dir[dir], from, w->t.sp.dir[dir], to), 0);
	return inode;
}

bool
world_drop_name(const struct world *w, uint64_t inode, char out[SPOOL_DROP_MAX])
{
	const int dir = w->t.sp.dir[SPOOL_MAILDROP];
	struct spool_scan scan;
	struct spool_item item;
	struct stat st;
	bool found = false;

	spool_scan_begin(&scan, &w->t.sp, SPOOL_MAILDROP);
	while (!found && spool_scan_next(&scan, false, &item) == 1)
		found =
		    fstatat(dir, item.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (uint64_t)st.st_ino == inode;
	spool_scan_done(&scan);
	if (found)
		snprintf(out, SPOOL_DROP_MAX, "%.31s", item.name);
	return found;
}

enum spool_dir
world_where(const struct world *w, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX], name[SPOOL_DROP_MAX];
	int dir;

	if (world_drop_name(w, inode, name))
		return SPOOL_MAILDROP;
	for (dir = SPOOL_INCOMING; dir <= SPOOL_CORRUPT; dir++) {
		spool_leaf(
		    &w->t.sp, (enum spool_dir)dir, inode, leaf, sizeof(leaf));
		if (faccessat(
			w->t.sp.dir[dir], leaf, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return (enum spool_dir)dir;
	}
	return SPOOL_NDIRS;
}

uint32_t
world_count(const struct world *w, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;
	uint32_t n = 0;

	spool_scan_begin(&scan, &w->t.sp, dir);
	while (spool_scan_next(&scan, false, &item) == 1)
		n++;
	spool_scan_done(&scan);
	return n;
}
