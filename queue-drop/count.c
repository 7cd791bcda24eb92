#include "queue-drop/door.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
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

/* "UID.…" is a drop, "tmp.UID.…" one that is being written where the file
 * system has no files without a name. */
static bool
is_of_user(const char *name, uid_t uid, const struct subuid_table *subuids,
    bool *ret_drop)
{
	char number[16];
	uint64_t owner;

	*ret_drop =
	    strncmp(name, SPOOL_TEMP_PREFIX, strlen(SPOOL_TEMP_PREFIX)) != 0;
	if (!*ret_drop)
		name += strlen(SPOOL_TEMP_PREFIX);
	snprintf(number, sizeof(number), "%.*s", (int)strcspn(name, "."), name);
	return num_u64(number, 0, UINT32_MAX, &owner) == 0 &&
	    subuid_owner(subuids, (uid_t)owner) == uid;
}

static int
count_drops(const struct spool *sp, uid_t uid,
    const struct subuid_table *subuids, struct count *c)
{
	int fd = openat(
	    sp->dir[SPOOL_MAILDROP], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;
	bool drop;

	if (dir == NULL) {
		int r = -errno;

		io_close(&fd);
		return r;
	}
	while ((e = readdir(dir)) != NULL) {
		if (!is_of_user(e->d_name, uid, subuids, &drop))
			continue;
		c->inodes++;
		c->messages += drop;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			c->bytes += (uint64_t)st.st_size;
	}
	closedir(dir);
	return 0;
}

static int
count_queue(const struct spool *sp, uid_t uid,
    const struct subuid_table *subuids, struct count *c)
{
	struct waiting_user row;
	int r =
	    sp->dir[SPOOL_MAILDROP] < 0 ? 0 : count_drops(sp, uid, subuids, c);

	if (r == 0)
		r = waiting_read(sp, uid, &row);
	if (r < 0)
		return r;
	c->messages += row.messages;
	c->inodes += row.messages;
	c->bytes += row.bytes;
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

/* ---- all queues ---- */

int
count_account(uid_t uid, struct subuid_table *ret, uid_t *ret_account)
{
	int r = forgive(subuid_read(SUBUID_FILE, ret));

	*ret_account = subuid_owner(ret, uid);
	return r;
}

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

static int
count_other(const struct conf *conf, const struct spool *sp, uint32_t queue,
    uid_t uid, const struct subuid_table *subuids, struct count *c)
{
	struct spool other;
	int r = spool_open(&other, sp->sys, conf->queue_base, queue);

	if (r < 0)
		return r;
	r = count_queue(&other, uid, subuids, c);
	spool_close(&other);
	return r;
}

int
count_user(const struct conf *conf, const struct spool *sp, uid_t uid,
    const struct subuid_table *subuids, struct count *ret)
{
	static struct sched_page page;
	uint32_t queues[QUEUE_NUM_MAX];
	int i, r, n = spool_list(conf->queue_base, queues, ARRAY_LEN(queues));
	bool known = sched_page_read_root(conf->instance, &page) == 0 &&
	    !page_stale(&page.head, clock_mono());

	*ret = (struct count){ 0 };
	if (n < 0)
		return n;
	r = forgive(count_queue(sp, uid, subuids, ret));
	for (i = 0; r == 0 && i < n; i++)
		if (queues[i] != sp->queue &&
		    !(known && is_aside(&page, queues[i])))
			r = forgive(count_other(
			    conf, sp, queues[i], uid, subuids, ret));
	return r;
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
count_is_trusted(const char *list, uid_t uid)
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
