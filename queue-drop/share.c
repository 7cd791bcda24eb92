#include "queue-drop/door.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define SLOT_WAIT    10  /* seconds, for a slot or the rate */
#define SLOTS_MAX    250 /* without a limit */
#define TELL_EVERY   ((uint64_t)1 << 20)
#define RATE_WINDOW  (60 * USEC_PER_SEC)

/* The file: the rate at its beginning, then a number for each slot. The bytes
 * that are locked lie behind all of it. */
#define AT_RATE      0
#define AT_SLOT(i)   ((off_t)64 + 8 * (off_t)(i))
#define LOCK_RATE    ((off_t)1 << 20)
#define LOCK_SLOT(i) (LOCK_RATE + 1 + (off_t)(i))

static int refuse(struct share *s, const char *fmt, ...) PRINTF(2, 3);
static int
refuse(struct share *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
	return -1;
}

/* ---- locks ---- */

static int
lock(int fd, int command, off_t at, short type)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1
	};

	if (fcntl(fd, command, &l) < 0)
		return -errno;
	return l.l_type == F_UNLCK ? 0 : 1;
}

static void
on_alarm(int sig UNUSED)
{
}

/* Waits, but not for a door that is stopped. The alarm of the whole process
 * then continues with the rest of its time. */
static int
lock_within(int fd, off_t at, unsigned seconds)
{
	struct sigaction wake = { .sa_handler = on_alarm }, before;
	const unsigned left = alarm(0);
	int r;

	(void)sigaction(SIGALRM, &wake, &before);
	(void)alarm(seconds);
	r = lock(fd, F_OFD_SETLKW, at, F_WRLCK);
	(void)alarm(0);
	(void)sigaction(SIGALRM, &before, NULL);
	(void)alarm(left > seconds ? left - seconds : left > 0);
	return r < 0 ? r : 0;
}

/* ---- slots ---- */

/* bytes + 1 of the message that is being read; 0: nothing. */
static int
tell(struct share *s, uint64_t value)
{
	const ssize_t n =
	    pwrite(s->file, &value, sizeof(value), AT_SLOT(s->slot));

	s->told = value;
	if (n == sizeof(value))
		return 0;
	s->error = n < 0 ? -errno : -ENOSPC;
	return s->error;
}

static int
take_slot(struct share *s)
{
	uint32_t i, first = arc4random_uniform(s->slots);
	int r = -EAGAIN;

	for (i = 0; r < 0 && i < s->slots; i++) {
		s->slot = (first + i) % s->slots;
		r = lock(s->file, F_OFD_SETLK, LOCK_SLOT(s->slot), F_WRLCK);
	}
	if (r < 0) /* any of them */
		r = lock_within(s->file, LOCK_SLOT(s->slot), SLOT_WAIT);
	if (r < 0)
		return refuse(s,
		    "%" PRIu32 " submissions of uid %u are under way "
		    "(user_process_limit)",
		    s->slots, (unsigned)s->uid);
	if (tell(s, 1) < 0)
		return refuse(
		    s, "users/%u: cannot be written", (unsigned)s->uid);
	return 0;
}

/* Adds the messages that other doors are reading, and their bytes. A number in
 * a slot without lock was left by a killed door. */
static void
count_slots(const struct share *s, uint64_t *ret_doors, uint64_t *ret_bytes)
{
	uint64_t value;
	uint32_t i;

	*ret_doors = *ret_bytes = 0;
	for (i = 0; i < s->slots; i++) {
		if (i == s->slot ||
		    pread(s->file, &value, sizeof(value), AT_SLOT(i)) !=
			sizeof(value) ||
		    value == 0 ||
		    lock(s->file, F_OFD_GETLK, LOCK_SLOT(i), F_WRLCK) != 1)
			continue;
		++*ret_doors;
		*ret_bytes += value - 1;
	}
}

/* ---- the rate ---- */

/* Each message moves a mark on by its share of a minute; the mark may be a
 * minute ahead of now (generic cell rate). So a clock that was stepped back
 * delays a user by a minute at most. */
static int
pay_rate(struct share *s, bool pay)
{
	const usec_t now = clock_wall();
	const uint32_t rate = s->conf->user_message_rate;
	int64_t mark = 0;
	ssize_t n;

	if (pread(s->file, &mark, sizeof(mark), AT_RATE) != sizeof(mark) ||
	    mark < now)
		mark = now;
	if (mark > now + RATE_WINDOW)
		mark = now + RATE_WINDOW;
	mark += RATE_WINDOW / (usec_t)rate;
	if (mark > now + RATE_WINDOW)
		return -EAGAIN;
	if (!pay)
		return 0;
	n = pwrite(s->file, &mark, sizeof(mark), AT_RATE);
	if (n == sizeof(mark))
		return 0;
	s->error = n < 0 ? -errno : -ENOSPC;
	return s->error;
}

static int
check_rate(struct share *s, bool pay)
{
	int r;

	if (s->conf->user_message_rate == 0)
		return 0;
	r = lock_within(s->file, LOCK_RATE, SLOT_WAIT);
	if (r == 0)
		r = pay_rate(s, pay);
	(void)lock(s->file, F_OFD_SETLK, LOCK_RATE, F_UNLCK);
	if (r == 0)
		return 0;
	return refuse(s,
	    "uid %u submits more than %" PRIu32
	    " messages a minute (user_message_rate)",
	    (unsigned)s->uid, s->conf->user_message_rate);
}

/* ---- waiting mail ---- */

static int
check_messages(struct share *s, uint64_t others)
{
	const struct conf *c = s->conf;
	const uint64_t messages = s->messages + others;
	const uint64_t inodes = s->inodes + others;

	if (c->user_message_limit != 0 && messages >= c->user_message_limit)
		return refuse(s,
		    "%" PRIu64 " messages of uid %u wait, the limit is %" PRIu32
		    " (user_message_limit)",
		    messages, (unsigned)s->uid, c->user_message_limit);
	if (c->user_inode_limit != 0 && inodes >= c->user_inode_limit)
		return refuse(s,
		    "%" PRIu64 " files of uid %u wait, the limit is %" PRIu32
		    " (user_inode_limit)",
		    inodes, (unsigned)s->uid, c->user_inode_limit);
	return 0;
}

static int
check_bytes(struct share *s, uint64_t others, uint64_t own)
{
	const uint64_t limit = s->conf->user_size_limit;
	const uint64_t bytes = s->bytes + others + own;

	if (limit == 0 || bytes <= limit)
		return 0;
	return refuse(s,
	    "%" PRIu64 " bytes of uid %u wait, the limit is %" PRIu64
	    " (user_size_limit)",
	    bytes, (unsigned)s->uid, limit);
}

static int
check_waiting(struct share *s, const struct spool *sp)
{
	uint64_t doors, bytes;
	struct count c;
	int r;

	r = count_user(s->conf, sp, s->uid, &s->subuids, &c);
	if (r < 0)
		return refuse(
		    s, "the waiting mail cannot be counted: %s", strerror(-r));
	s->messages = c.messages;
	s->bytes = c.bytes;
	s->inodes = c.inodes;
	count_slots(s, &doors, &bytes);
	if (check_messages(s, doors) < 0)
		return -1;
	return check_bytes(s, bytes, 1);
}

/* ---- one door ---- */

/* The first door that comes makes the file, for the owner or for a subordinate
 * uid, and all doors of the account write it by their group. An earlier version
 * made files of mode 0600. In a sticky directory O_CREAT may not meet the file
 * of another uid (fs.protected_regular). */
static int
open_shared(const char *path)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	int fd = open(path, flags);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, flags | O_CREAT | O_EXCL, 0660);
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & 0777) != 0660)
		(void)fchmod(fd, 0660);
	return fd;
}

static int
open_file(struct share *s)
{
	char path[1100];
	int n = snprintf(path, sizeof(path), "%s/" SPOOL_USERS "/%u",
	    s->conf->queue_base, (unsigned)s->uid);

	if (n < (int)sizeof(path))
		s->file = open_shared(path);
	if (s->file >= 0)
		return 0;
	s->error = -errno;
	return refuse(s, "users/%u: %s", (unsigned)s->uid, strerror(errno));
}

int
share_take(struct share *s, const struct conf *conf, const struct spool *sp)
{
	*s = (struct share){ .conf = conf, .uid = getuid(), .file = -1 };
	s->slots = conf->user_process_limit == 0 ? SLOTS_MAX
						 : conf->user_process_limit;
	s->counted = s->uid != 0 && !sp->private &&
	    !count_is_trusted(conf->trusted_users, s->uid);
	if (!s->counted)
		return 0;
	if (count_account(s->uid, &s->subuids, &s->uid) < 0)
		return refuse(s,
		    "too few descriptors or too little memory to "
		    "read " SUBUID_FILE);
	if (open_file(s) < 0 || take_slot(s) < 0 || check_rate(s, false) < 0)
		return -1;
	return check_waiting(s, sp);
}

int
share_grows(struct share *s, uint64_t bytes)
{
	uint64_t doors, others;

	if (!s->counted || bytes < s->told + TELL_EVERY)
		return 0;
	if (tell(s, bytes + 1) < 0)
		return refuse(
		    s, "users/%u: cannot be written", (unsigned)s->uid);
	count_slots(s, &doors, &others);
	return check_bytes(s, others, bytes);
}

int
share_pay(struct share *s)
{
	return s->counted ? check_rate(s, true) : 0;
}

void
share_done(struct share *s)
{
	if (s->counted)
		io_close(&s->file);
	subuid_done(&s->subuids);
	s->counted = false;
}
