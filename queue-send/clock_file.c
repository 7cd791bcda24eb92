#include "queue-send/control.h"
#include "queue-send/disk/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/num.h"
#include "log/log.h"
#include "spool/format.h"

#define NAME       "clock" /* in lock/ */
#define MAGIC      "QSCLK\r\n"
#define VERSION    1
#define SAVE_EVERY (60 * USEC_PER_SEC)
#define BOOT_ID    "/proc/sys/kernel/random/boot_id"
#define BOOT_LEN   36

/* docs/SPOOL.md, "The clock". */
enum {
	AT_VERSION = 8,
	AT_NEXT = 12,
	AT_WALL = 16,
	AT_BOOT = 24,
	AT_BOOT_ID = 32,
	AT_JUMPS = 72,
	AT_CRC = AT_JUMPS + 16 * JUMPS_MAX,
	SIZE = AT_CRC + 4,
};
_Static_assert(SIZE <= 512, "one sector: no write of it is cut in two");

/* ---- the record ---- */

/* Without it no two boots are the same. */
static void
read_boot_id(char out[BOOT_LEN])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);

	memset(out, 0, BOOT_LEN);
	if (fd < 0 || io_read_all(fd, out, BOOT_LEN) != BOOT_LEN)
		memset(out, 0, BOOT_LEN);
	io_close(&fd);
}

static void
put(const struct jumps *j, char out[SIZE])
{
	int i;

	memset(out, 0, SIZE);
	memcpy(out, MAGIC, sizeof(MAGIC));
	bytes_put_u32(out + AT_VERSION, VERSION);
	bytes_put_u32(out + AT_NEXT, j->next);
	bytes_put_u64(out + AT_WALL, (uint64_t)j->wall);
	bytes_put_u64(out + AT_BOOT, (uint64_t)j->boot);
	read_boot_id(out + AT_BOOT_ID);
	for (i = 0; i < JUMPS_MAX; i++) {
		char *at = out + AT_JUMPS + 16 * i;

		bytes_put_u64(at, (uint64_t)j->last[i].before_wall);
		bytes_put_u64(at + 8, (uint64_t)j->last[i].size);
	}
	bytes_put_u32(out + AT_CRC, format_crc(0, out, AT_CRC));
}

static bool
get(const char in[SIZE], struct jumps *ret_jumps, bool *ret_same_boot)
{
	static const char none[BOOT_LEN];
	char boot[BOOT_LEN];
	int i;

	if (memcmp(in, MAGIC, sizeof(MAGIC)) != 0 ||
	    bytes_get_u32(in + AT_VERSION) != VERSION ||
	    bytes_get_u32(in + AT_CRC) != format_crc(0, in, AT_CRC))
		return false;
	read_boot_id(boot);
	*ret_same_boot = memcmp(boot, none, BOOT_LEN) != 0 &&
	    memcmp(boot, in + AT_BOOT_ID, BOOT_LEN) == 0;
	*ret_jumps = (struct jumps){ .next = bytes_get_u32(in + AT_NEXT),
		.wall = (usec_t)bytes_get_u64(in + AT_WALL),
		.boot = (usec_t)bytes_get_u64(in + AT_BOOT) };
	for (i = 0; i < JUMPS_MAX; i++) {
		const char *at = in + AT_JUMPS + 16 * i;

		ret_jumps->last[i] = (struct jump){ (usec_t)bytes_get_u64(at),
			(usec_t)bytes_get_u64(at + 8) };
	}
	return true;
}

/* ---- the file ---- */

static int
open_file(const struct spool *sp, int flags)
{
	return sp->sys->openat(sp->dir[SPOOL_LOCK], NAME,
	    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

struct clock_task {
	struct sync_task task; /* first */
	const struct spool *sp;
	char record[SIZE];
};

/* A clock that cannot be saved is as one that was saved before: the first hour
 * of the next run expires nothing in any case. */
static int
write_record(struct sync_task *task)
{
	const struct clock_task *t = (const struct clock_task *)(void *)task;
	int fd = open_file(t->sp, O_WRONLY | O_CREAT);

	if (fd < 0)
		return 0;
	(void)t->sp->sys->pwrite(fd, t->record, sizeof(t->record), 0);
	t->sp->sys->close(fd);
	return 0;
}

static void
ended(void *send, struct sync_task *task)
{
	((struct send *)send)->clock_away = false;
	sync_task_free(task);
}

static void
save(struct send *s)
{
	struct clock_task *t = malloc(sizeof(*t));

	if (t == NULL)
		return;
	sync_task_init(&t->task, write_record, NULL, ended);
	t->sp = &s->sp;
	put(&s->jumps, t->record);
	s->clock_away = true;
	disk_do(s, DISK_CLOCK, &t->task);
}

static bool
load(const struct send *s, struct jumps *ret_jumps, bool *ret_same_boot)
{
	char record[SIZE];
	int fd = open_file(&s->sp, O_RDONLY);
	bool good;

	if (fd < 0)
		return false;
	good = io_pread_all(fd, record, sizeof(record), 0) == SIZE &&
	    get(record, ret_jumps, ret_same_boot);
	s->sp.sys->close(fd);
	return good;
}

static void
say_gap(usec_t jump)
{
	struct buf text = { 0 };

	(void)num_add_span(&text, jump < 0 ? -jump : jump);
	log_warning("ALERT: since the last run of this queue the clock has "
		    "gone %s by %s, which is taken for a wrong clock: messages "
		    "do not age by it",
	    jump < 0 ? "back" : "on", buf_str(&text));
	buf_done(&text);
}

void
clock_file_load(struct send *s)
{
	const usec_t wall = clock_wall(), boot = clock_boot();
	struct jumps saved;
	bool same_boot;
	usec_t jump;

	if (load(s, &saved, &same_boot)) {
		jumps_resume(&s->jumps, &saved, same_boot, wall, boot,
		    retry_believed_gap(&s->retry));
		jump = jumps_find(&s->jumps, wall, boot);
		if (jump != 0)
			say_gap(jump);
	} else {
		(void)jumps_find(&s->jumps, wall, boot);
	}
	s->clock_at = clock_mono() + SAVE_EVERY;
	save(s);
}

usec_t
clock_file_work(struct send *s)
{
	if (s->clock_away) /* the end of that wakes the loop */
		return USEC_NEVER;
	if (s->now >= s->clock_at) {
		save(s);
		s->clock_at = s->now + SAVE_EVERY;
	}
	return s->clock_at;
}
