#include "queue-drop/door.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/subuid.h"
#include "spool/waiting.h"

#define SLOT_WAIT   10 /* seconds, for a slot or the rate */
#define TELL_EVERY  ((uint64_t)1 << 20)
#define COUNT_HOLDS USEC_PER_SEC
#define FLOW_LOOK   (20 * USEC_PER_MSEC)

/* ---- locks ---- */

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
	r = use_lock(fd, F_OFD_SETLKW, at, F_WRLCK);
	(void)alarm(0);
	(void)sigaction(SIGALRM, &before, NULL);
	(void)alarm(left > seconds ? left - seconds : left > 0);
	return r < 0 ? r : 0;
}

/* ---- slots ---- */

/* bytes + 1 of the message that is being read. */
static int
tell(struct share *s, uint64_t value)
{
	const ssize_t n =
	    pwrite(s->file, &value, sizeof(value), USE_AT_SLOT(s->slot));

	s->told = value;
	if (n == sizeof(value))
		return 0;
	s->error = n < 0 ? -errno : -ENOSPC;
	return use_refuse(s->reason, "the file users/%u cannot be written: %s",
	    (unsigned)s->uid, strerror(-s->error));
}

static int
take_slot(struct share *s)
{
	uint32_t i, first = arc4random_uniform(s->slots);
	int r = -EAGAIN;

	for (i = 0; r < 0 && i < s->slots; i++) {
		s->slot = (first + i) % s->slots;
		r = use_lock(
		    s->file, F_OFD_SETLK, USE_LOCK_SLOT(s->slot), F_WRLCK);
	}
	if (r < 0) /* any of them */
		r = lock_within(s->file, USE_LOCK_SLOT(s->slot), SLOT_WAIT);
	if (r < 0)
		return use_refuse(s->reason,
		    "%" PRIu32 " submissions of uid %u are under way, and "
		    "there may be no more (user_process_limit); try again when "
		    "one has ended",
		    s->slots, (unsigned)s->uid);
	return tell(s, 1);
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
	int64_t mark = use_rate_mark(s->file, now);
	ssize_t n;

	mark += USE_RATE_WINDOW / (usec_t)rate;
	if (mark > now + USE_RATE_WINDOW)
		return -EAGAIN;
	if (!pay)
		return 0;
	n = pwrite(s->file, &mark, sizeof(mark), USE_AT_RATE);
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
	r = lock_within(s->file, USE_LOCK_RATE, SLOT_WAIT);
	if (r == 0)
		r = pay_rate(s, pay);
	(void)use_lock(s->file, F_OFD_SETLK, USE_LOCK_RATE, F_UNLCK);
	if (r == 0)
		return 0;
	if (r == -EAGAIN)
		return use_refuse(s->reason,
		    "uid %u submits more than %" PRIu32
		    " messages a minute (user_message_rate); try again in a "
		    "minute",
		    (unsigned)s->uid, s->conf->user_message_rate);
	if (r == -EINTR)
		return use_refuse(s->reason,
		    "another submission locks the file users/%u; try again",
		    (unsigned)s->uid);
	return use_refuse(s->reason, "the file users/%u cannot be written: %s",
	    (unsigned)s->uid, strerror(-r));
}

/* ---- waiting mail ---- */

/* May `own` come to what the user has, other submissions under way included? */
static int
check_use(struct share *s, const struct use *doors, const struct use *own)
{
	struct use there = *doors;

	use_add(&there, &s->use);
	/* One more door is no reason to end this one. */
	if (own->messages == 0)
		there.messages = there.inodes = 0;
	return use_check(s->conf, s->uid, &there, own, s->reason);
}

/* Doors are counted before drops, as a message goes: one that is accepted
 * meanwhile may count twice, rather than not at all. */
static int
check_waiting(struct share *s, const struct spool *sp, const struct use *own)
{
	struct use doors;
	int r;

	use_of_slots(s->file, s->slots, s->slot, &doors);
	r = use_count(s->conf, sp, s->uid, &s->use);
	if (r < 0)
		return use_refuse(s->reason,
		    "the waiting mail cannot be counted: %s", strerror(-r));
	s->counted_at = clock_mono();
	return check_use(s, &doors, own);
}

/* ---- one door ---- */

/* The first door that comes makes the file, for the owner or for a subordinate
 * uid, and all doors of the account write it by their group. In a sticky
 * directory O_CREAT may not meet the file of another uid
 * (fs.protected_regular). */
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
	return use_refuse(s->reason, "the file users/%u cannot be opened: %s",
	    (unsigned)s->uid, strerror(errno));
}

int
share_take(struct share *s, const struct conf *conf, const struct spool *sp)
{
	const int r = use_accounts_read(SUBUID_FILE);

	*s = (struct share){ .conf = conf,
		.uid = waiting_account(getuid()),
		.file = -1,
		.slots = use_slots(conf) };
	s->counted = !use_is_free(conf, sp, s->uid);
	if (!s->counted)
		return 0;
	if (r < 0)
		return use_refuse(s->reason,
		    "too few descriptors or too little memory to "
		    "read " SUBUID_FILE);
	if (open_file(s) < 0 || take_slot(s) < 0 || check_rate(s, false) < 0)
		return -1;
	return check_waiting(
	    s, sp, &(struct use){ .messages = 1, .bytes = 1, .inodes = 1 });
}

int
share_grows(struct share *s, uint64_t bytes)
{
	struct use doors;

	if (!s->counted || bytes < s->told + TELL_EVERY)
		return 0;
	if (tell(s, bytes + 1) < 0)
		return -1;
	use_of_slots(s->file, s->slots, s->slot, &doors);
	return check_use(s, &doors, &(struct use){ .bytes = bytes });
}

void
share_pause(const struct share *s, const struct spool *sp)
{
	const struct timespec look = { .tv_nsec = 1000 * FLOW_LOOK };
	const usec_t until = clock_mono() + s->conf->in_flow_delay;

	while (clock_mono() < until && use_has_drops(sp, s->uid, FLOW_DROPS) &&
	    use_instance_runs(s->conf))
		(void)nanosleep(&look, NULL);
}

/* Other doors of the user have had time to add much. */
static bool
is_count_old(const struct share *s)
{
	return s->told > TELL_EVERY ||
	    clock_mono() - s->counted_at > COUNT_HOLDS;
}

int
share_pay(struct share *s, const struct spool *sp, uint64_t bytes)
{
	if (!s->counted)
		return 0;
	if (is_count_old(s) &&
	    (tell(s, bytes + 1) < 0 ||
		check_waiting(s, sp, &(struct use){ .bytes = bytes }) < 0))
		return -1;
	return check_rate(s, true);
}

void
share_done(struct share *s)
{
	if (s->counted)
		io_close(&s->file);
	s->counted = false;
}
