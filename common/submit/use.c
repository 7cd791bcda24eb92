#include "submit/use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/num.h"
#include "ipc/page.h"
#include "spool/waiting.h"

/* ---- maildrop/ ---- */

/* A drop has the name "UID.…". On a file system without O_TMPFILE a drop has
 * the name "tmp.UID.…" while the door writes the drop. */
static bool
parse_name(const char *name, uid_t *ret_uid, bool *ret_drop)
{
	const size_t temp = strlen(SPOOL_TEMP_PREFIX);
	char digits[11];
	uint64_t uid;
	size_t len;

	*ret_drop = strncmp(name, SPOOL_TEMP_PREFIX, temp) != 0;
	if (!*ret_drop)
		name += temp;
	len = strcspn(name, ".");
	if (name[len] != '.' || len >= sizeof(digits))
		return false;
	memcpy(digits, name, len);
	digits[len] = '\0';
	if (num_u64(digits, 0, UINT32_MAX, &uid) < 0)
		return false;
	*ret_uid = (uid_t)uid;
	return true;
}

void
use_add(struct use *to, const struct use *more)
{
	to->messages += more->messages;
	to->bytes += more->bytes;
	to->inodes += more->inodes;
	to->made += more->made;
}

static DIR *
open_maildrop(const struct spool *sp, int *ret_error)
{
	int fd = openat(
	    sp->dir[SPOOL_MAILDROP], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	*ret_error = dir == NULL ? -errno : 0;
	if (dir == NULL)
		io_close(&fd);
	return dir;
}

int
use_each_drop(const struct spool *sp, uid_t account,
    void (*take)(void *arg, uid_t account, const struct use *drop), void *arg)
{
	int error;
	DIR *dir = open_maildrop(sp, &error);
	const struct dirent *e;
	struct stat st;
	uid_t uid;
	bool whole;

	if (dir == NULL)
		return sp->dir[SPOOL_MAILDROP] < 0 ? 0 : error;
	while ((e = readdir(dir)) != NULL) {
		struct use drop = { .inodes = 1 };

		if (!parse_name(e->d_name, &uid, &whole) ||
		    (account != USE_ALL && waiting_account(uid) != account))
			continue;
		drop.messages = whole;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ==
		    0)
			drop.bytes = (uint64_t)st.st_size;
		take(arg, waiting_account(uid), &drop);
	}
	closedir(dir);
	return 0;
}

static void
add_drop(void *arg, uid_t account UNUSED, const struct use *drop)
{
	use_add(arg, drop);
}

bool
use_has_drops(const struct spool *sp, uid_t account, uint32_t count)
{
	int error;
	DIR *dir = open_maildrop(sp, &error);
	const struct dirent *e;
	uid_t uid;
	bool whole;

	if (dir == NULL)
		return false;
	while (count > 0 && (e = readdir(dir)) != NULL)
		count -= parse_name(e->d_name, &uid, &whole) && whole &&
		    waiting_account(uid) == account;
	closedir(dir);
	return count == 0;
}

struct counting {
	uid_t account;
	struct use use;
};

static int
count_queue(void *arg, const struct spool *sp)
{
	struct counting *c = arg;
	struct waiting_user row;
	int r = use_each_drop(sp, c->account, add_drop, &c->use);

	if (r == 0)
		r = waiting_read(sp, c->account, &row);
	if (r < 0)
		return r;
	use_add(&c->use,
	    &(struct use){ row.messages, row.bytes, row.messages, row.made });
	return 0;
}

/* A broken disk is no fault of the user, and its mail does not count. An error
 * that the user's own process limits cause must not hide mail. */
static int
forgive(int error)
{
	static const int own[] = { EMFILE, ENFILE, ENOMEM, EFBIG, EAGAIN };
	size_t i;

	for (i = 0; i < ARRAY_LEN(own); i++)
		if (own[i] == -error)
			return error;
	return 0;
}

int
use_accounts_read(const char *path)
{
	return forgive(waiting_accounts_read(path));
}

/* ---- all queues ---- */

/* Put aside by the supervisor: only the page of a root process that runs is
 * trusted. */
static bool
is_aside(const struct sched_page *page, uint32_t queue)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(page->rows); i++)
		if (page->rows[i].queue == queue)
			return page->rows[i].state == QUEUE_STATE_DISABLED ||
			    page->rows[i].state == QUEUE_STATE_QUARANTINED;
	return false;
}

/* The disk may not answer. Nobody but root and qmails writes that page. */
static bool
is_late(const struct conf *conf, const struct sched_page *sched, uint32_t queue)
{
	struct queue_page page;

	return queue_page_read_owned(
		   conf->instance, queue, sched->qmails_uid, &page) == 0 &&
	    page.queue == queue &&
	    queue_page_disk_late(&page, clock_mono()) >= DISK_LATE;
}

static int
each_other(const struct conf *conf, const struct spool *sp, uint32_t queue,
    int (*each)(void *arg, const struct spool *sp), void *arg)
{
	struct spool other;
	int r = spool_open_some(&other, sp->sys, conf->queue_base, queue,
	    SPOOL_DIR_BIT(SPOOL_MAILDROP));

	if (r < 0)
		return r;
	r = each(arg, &other);
	spool_close(&other);
	return r;
}

int
use_each_queue(const struct conf *conf, const struct spool *sp,
    int (*each)(void *arg, const struct spool *sp), void *arg)
{
	static struct sched_page page;
	uint32_t queues[QUEUE_NUM_MAX];
	int i, r, n = spool_list(conf->queue_base, queues, ARRAY_LEN(queues));
	bool known = sched_page_read_root(conf->instance, &page) == 0 &&
	    !page_stale(&page.head, clock_mono());

	if (n < 0)
		return n;
	r = forgive(each(arg, sp));
	for (i = 0; r == 0 && i < n; i++)
		if (queues[i] != sp->queue &&
		    !(known &&
			(is_aside(&page, queues[i]) ||
			    is_late(conf, &page, queues[i]))))
			r = forgive(each_other(conf, sp, queues[i], each, arg));
	return r;
}

int
use_count(const struct conf *conf, const struct spool *sp, uid_t account,
    struct use *ret)
{
	struct counting c = { .account = account };
	int r = use_each_queue(conf, sp, count_queue, &c);

	*ret = c.use;
	return r;
}

/* ---- limits ---- */

int
use_refuse(char reason[USE_REASON_SIZE], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, USE_REASON_SIZE, fmt, ap);
	va_end(ap);
	return -1;
}

int
use_check(const struct conf *conf, uid_t account, const struct use *there,
    const struct use *more, char reason[USE_REASON_SIZE])
{
	const uint64_t bytes = there->bytes + more->bytes;
	const unsigned uid = (unsigned)account;

	if (conf->user_message_limit != 0 &&
	    there->messages + more->messages > conf->user_message_limit)
		return use_refuse(reason,
		    "%" PRIu64 " messages of uid %u wait, the limit is %" PRIu32
		    " (user_message_limit)" USE_REMEDY,
		    there->messages, uid, conf->user_message_limit);
	if (conf->user_inode_limit != 0 &&
	    there->inodes + more->inodes > conf->user_inode_limit)
		return use_refuse(reason,
		    "%" PRIu64 " files of uid %u wait, the limit is %" PRIu32
		    " (user_inode_limit)" USE_REMEDY,
		    there->inodes, uid, conf->user_inode_limit);
	if (conf->user_size_limit != 0 && bytes > conf->user_size_limit)
		return use_refuse(reason,
		    "%" PRIu64 " bytes of uid %u wait with this message, "
		    "the limit is %" PRIu64 " (user_size_limit)" USE_REMEDY,
		    bytes, uid, conf->user_size_limit);
	return 0;
}

bool
use_is_free(const struct conf *conf, const struct spool *sp, uid_t account)
{
	return account == 0 || sp->private || waiting_is_made(sp, account) ||
	    use_is_trusted(conf->trusted_users, account);
}

/* ---- trusted users ---- */

static bool
is_named(const char *name, size_t len, uid_t uid)
{
	FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *pw;
	bool found = false;

	if (f == NULL)
		return false;
	while (!found && (pw = fgetpwent(f)) != NULL)
		found = pw->pw_uid == uid && strlen(pw->pw_name) == len &&
		    memcmp(pw->pw_name, name, len) == 0;
	(void)fclose(f);
	return found;
}

bool
use_is_trusted(const char *list, uid_t uid)
{
	char word[33];
	uint64_t number;
	size_t n;

	for (; *list != '\0'; list += n + (list[n] != '\0')) {
		n = strcspn(list, " ,");
		if (n == 0 || n >= sizeof(word))
			continue;
		memcpy(word, list, n);
		word[n] = '\0';
		if (num_u64(word, 0, UINT32_MAX, &number) == 0) {
			if (number == uid)
				return true;
		} else if (is_named(word, n, uid)) {
			return true;
		}
	}
	return false;
}

bool
use_instance_runs(const struct conf *conf)
{
	static struct sched_page page;

	return sched_page_read_root(conf->instance, &page) == 0 &&
	    !page_stale(&page.head, clock_mono());
}
