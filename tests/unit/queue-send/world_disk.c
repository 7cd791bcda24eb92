/* What lies in the spool of a world. */
#include "tests/unit/queue-send/world.h"

#include "base/clock.h"
#include "base/io.h"
#include "queue-send/operators/operators.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const struct world_refusal world_refusals[WORLD_REFUSALS] = {
	{ "no room for the name", CALL_LINK, ENOSPC },
	{ "no /proc for the name", CALL_LINK, ENOENT },
	{ "no room for the text", CALL_WRITE, ENOSPC },
	{ "the sync of the report", CALL_FSYNC, EIO },
	{ "no room in incoming/", CALL_RENAME, ENOSPC },
};

uint64_t
world_file(struct world *w, const char *format, uint32_t n, int64_t age_s)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	const char *sender = w->sender == NULL ? "s@here.test" : w->sender;
	const char *content = w->content == NULL ? "a\n\nb\n" : w->content;
	struct dsn_rcpt dsn = { .notify = w->notify };
	struct spool_sys sys = world_sys;
	struct spool sp = w->s.sp;
	struct queue_id id;
	struct accept a;
	char rcpt[64];
	uint32_t i;

	/* Faults of syncs are meant for queue-send. */
	sys.fsync = spool_sys_real.fsync;
	sp.sys = &sys;
	cr_assert_eq(
	    accept_begin(&a, &sp, &options, clock_wall() - age_s * USEC_PER_SEC,
		w->uid == 0 ? getuid() : w->uid),
	    0);
	cr_assert_eq(
	    queue_file_add_content(&a.writer, content, strlen(content)), 0);
	cr_assert_eq(
	    queue_file_add_sender(&a.writer, sender, strlen(sender)), 0);
	cr_assert_eq(queue_file_add_dsn(&a.writer, &w->dsn), 0);
	snprintf(dsn.orcpt, sizeof(dsn.orcpt), "%s",
	    w->orcpt == NULL ? "" : w->orcpt);
	for (i = 0; i < n; i++) {
		snprintf(rcpt, sizeof(rcpt), "r%u@%s%u.test", i, format, i);
		if (format[0] == '@')
			snprintf(rcpt, sizeof(rcpt), "r%u%s", i, format);
		else if (strchr(format, '@') != NULL)
			snprintf(rcpt, sizeof(rcpt), "%s", format);
		cr_assert_eq(
		    queue_file_add_rcpt(&a.writer, rcpt, strlen(rcpt)), 0);
		cr_assert_eq(queue_file_add_rcpt_dsn(&a.writer, &dsn), 0);
	}
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	return id.inode;
}

enum spool_dir
world_where(const struct world *w, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	int dir;

	for (dir = SPOOL_MAILDROP; dir <= SPOOL_DELETED; dir++) {
		spool_leaf(
		    &w->s.sp, (enum spool_dir)dir, inode, leaf, sizeof(leaf));
		if (faccessat(w->s.sp.dir[dir], leaf, F_OK, 0) == 0)
			return (enum spool_dir)dir;
	}
	return SPOOL_NDIRS;
}

struct queue_id
world_id(const struct world *w, uint64_t inode)
{
	const enum spool_dir dir = world_where(w, inode);
	int fd = spool_open_file(&w->s.sp, dir, inode, O_RDONLY);
	struct queue_file file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	io_close(&fd);
	return (struct queue_id){ file.arrival_wall, file.nonce, file.queue,
		inode };
}

/* The answer to the last act that was asked for. */
static struct {
	bool is_known;
	int error;
	uint32_t running;
	struct spread *home;
} asked;

static void
take_answer(struct send *s UNUSED, const struct act_asker *by UNUSED, int error,
    uint32_t running)
{
	asked.is_known = true;
	asked.error = error;
	asked.running = running;
	if (asked.home != NULL)
		asked.home->moved += error == 0;
}

int
world_answered(uint32_t *ret_running)
{
	*ret_running = asked.running;
	return asked.is_known ? asked.error : ACT_UNDER_WAY;
}

static int
ask(struct world *w, struct act_order *order, uint32_t *ret_running)
{
	asked.is_known = false;
	asked.home = order->spread;
	order->by = (struct act_asker){ .answer = take_answer };
	acts_do(&w->s, order);
	if (!asked.is_known && !w->gated)
		world_run(w);
	return world_answered(ret_running);
}

int
world_do(struct world *w, enum spool_act act, const struct queue_id *id,
    usec_t due_wall, uint32_t *ret_running)
{
	struct act_order order = {
		.what = act, .id = id, .due_wall = due_wall
	};

	return ask(w, &order, ret_running);
}

int
world_hold(struct world *w, const struct queue_id *id,
    const struct hold_note *note, uint32_t *ret_running)
{
	struct act_order order = { .what = ACT_HOLD, .id = id, .note = note };

	return ask(w, &order, ret_running);
}

int
world_spread(struct world *w, struct spread *spread, const struct queue_id *id,
    uint32_t to)
{
	struct act_order order = {
		.what = ACT_SPREAD, .id = id, .to = to, .spread = spread
	};
	uint32_t running;

	return ask(w, &order, &running);
}

int
world_act(
    struct world *w, enum spool_act act, uint64_t inode, uint32_t *ret_running)
{
	const struct queue_id id = world_id(w, inode);
	int r;

	send_read_clocks(&w->s);
	r = world_do(w, act, &id, 0, ret_running);
	world_run(w);
	return r;
}

const char *
world_marks(const struct world *w, enum spool_dir dir, uint64_t inode)
{
	static struct queue_rcpt_cursor cursor;
	static char marks[256];
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&w->s.sp, dir, inode, O_RDONLY);
	size_t n = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	while (
	    n + 1 < sizeof(marks) && queue_rcpt_next(&cursor, fd, &rcpt) == 1)
		marks[n++] = (char)rcpt.mark;
	marks[n] = '\0';
	close(fd);
	return marks;
}

struct wanted {
	uint32_t index;
	char text[256];
};

static int
each_reason(const struct reason *reason, void *arg)
{
	struct wanted *want = arg;

	if (reason->index == want->index)
		snprintf(want->text, sizeof(want->text), "%s %s", reason->dsn,
		    reason->text);
	return 0;
}

const char *
world_reason(
    const struct world *w, enum spool_dir dir, uint64_t inode, uint32_t index)
{
	static struct wanted want;

	want = (struct wanted){ .index = index };
	(void)reason_read(&w->s.sp, dir, inode, each_reason, &want);
	return want.text;
}

/* The content of a message from the null sender; false: another message. */
static bool
read_report(const struct world *w, uint64_t inode, struct buf *text)
{
	int fd = spool_open_file(&w->s.sp, SPOOL_INCOMING, inode, O_RDONLY);
	struct queue_file file;
	struct buf sender = { 0 };
	bool is_report;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_assert_eq(queue_file_sender(fd, &file, &sender), 0);
	is_report = sender.len == 0;
	buf_done(&sender);
	cr_assert_eq(buf_reserve(text, file.content_len), 0);
	if (is_report) {
		cr_assert_eq(
		    io_pread_all(fd, text->data, (size_t)file.content_len,
			(int64_t)file.content_off),
		    (int64_t)file.content_len);
		text->len = (size_t)file.content_len;
		text->data[text->len] = '\0';
	}
	close(fd);
	return is_report;
}

const char *
world_report(const struct world *w)
{
	static struct buf text;
	struct spool_scan scan;
	struct spool_item item;
	int found = 0;

	buf_reset(&text);
	spool_scan_begin(&scan, &w->s.sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) == 1)
		found += read_report(w, item.inode, &text);
	spool_scan_done(&scan);
	return found == 1 ? buf_str(&text) : "";
}

uint32_t
world_count_reported(const struct world *w, const char *what)
{
	struct buf text = { 0 };
	struct spool_scan scan;
	struct spool_item item;
	const char *at;
	uint32_t n = 0;

	spool_scan_begin(&scan, &w->s.sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) == 1) {
		buf_reset(&text);
		if (!read_report(w, item.inode, &text))
			continue;
		for (at = strstr(buf_str(&text), what); at != NULL;
		     at = strstr(at + 1, what))
			n++;
	}
	spool_scan_done(&scan);
	buf_done(&text);
	return n;
}

bool
world_has_report(const struct world *w, const char *what)
{
	return world_count_reported(w, what) > 0;
}

void
world_settle(struct world *w)
{
	struct spool_scan scan;
	struct spool_item item;
	uint64_t inode;

	spool_scan_begin(&scan, &w->s.sp, SPOOL_PREPARED);
	while (spool_scan_next(&scan, false, &item) == 1)
		cr_assert_geq(
		    spool_settle_prepared(&w->s.sp, item.name, &inode), 0);
	spool_scan_done(&scan);
}

uint32_t
world_clear_incoming(struct world *w, uint64_t *ret_inode)
{
	struct spool_scan scan;
	struct spool_item item;
	uint32_t n = 0;

	spool_scan_begin(&scan, &w->s.sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) == 1) {
		*ret_inode = item.inode;
		n++;
		cr_assert_eq(
		    spool_remove(&w->s.sp, SPOOL_INCOMING, item.inode), 0);
	}
	spool_scan_done(&scan);
	return n;
}

void
world_is_empty(const struct world *w)
{
	static const enum spool_dir dirs[] = { SPOOL_ACTIVE, SPOOL_DEFERRED,
		SPOOL_HOLD, SPOOL_CORRUPT, SPOOL_DEFER, SPOOL_BOUNCE,
		SPOOL_PREPARED };
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		cr_expect_eq(
		    world_count(w, dirs[i]), 0, "%s", spool_dirs[dirs[i]].name);
	cr_expect_eq(w->s.active, 0);
}

uint32_t
world_count(const struct world *w, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;
	uint32_t n = 0;

	spool_scan_begin(&scan, &w->s.sp, dir);
	while (spool_scan_next(&scan, false, &item) == 1)
		n++;
	spool_scan_done(&scan);
	return n;
}

int
world_operator(const struct world *w)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	snprintf(to.sun_path, sizeof(to.sun_path),
	    "/proc/self/fd/%d/" OPERATORS_SOCKET, w->s.sp.dir[SPOOL_LOCK]);
	cr_assert_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}
