#include "qctl/read/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "qctl/read/user.h"
#include "spool/reason.h"

/* In the order in which mail goes through them: a message that moves on while
 * they are read is met again, not missed. */
const enum spool_dir message_states[MESSAGE_STATES] = { SPOOL_MAILDROP,
	SPOOL_INCOMING, SPOOL_ACTIVE, SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_DELETED,
	SPOOL_CORRUPT };

const char *
message_state_name(enum spool_dir dir)
{
	const char *name = spool_dirs[dir].name;
	const char *slash = strrchr(name, '/');

	return slash == NULL ? name : slash + 1;
}

int
message_state_find(const char *name, size_t len, enum spool_dir *ret_dir)
{
	size_t i;

	for (i = 0; i < MESSAGE_STATES; i++) {
		const char *known = message_state_name(message_states[i]);

		if (strlen(known) == len && memcmp(known, name, len) == 0) {
			*ret_dir = message_states[i];
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- opening ---- */

/* Scans remove what dead writers left, which is not a reader's affair. */
static int
keep_name(int dir UNUSED, const char *name UNUSED, int flags UNUSED)
{
	errno = EROFS;
	return -1;
}

int
message_queue_open(struct spool *sp, const char *base, uint32_t queue)
{
	static struct spool_sys sys;
	int r;

	sys = spool_sys_real;
	sys.unlinkat = keep_name;
	r = spool_open(sp, &sys, base, queue);
	if (r == 0 && sp->dir[SPOOL_DEFERRED] < 0) {
		spool_close(sp);
		r = -EACCES;
	}
	return r;
}

/* The file of this name; files that are damaged or foreign are opened, too, for
 * their size and time. */
static int
open_name(const struct message *m)
{
	char path[16 + sizeof(m->name)];

	(void)spool_name_leaf(m->dir, (uint32_t)(m->inode % m->sp->split),
	    m->name, path, sizeof(path));
	return openat(m->sp->dir[m->dir], path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Which marks, sums and owners are wrong is told where the file is used; here
 * it is read as far as it can be. */
static int
read_envelope(struct message *m)
{
	struct queue_id id;
	int r = queue_file_read(m->fd, &m->file);

	if (r == 0)
		r = queue_file_sender(m->fd, &m->file, &m->sender);
	if (r == 0)
		r = queue_file_dsn(m->fd, &m->file, &m->dsn);
	if (r < 0)
		return r;
	id = queue_file_id(&m->file, m->inode);
	queue_id_format(&id, m->id);
	return 0;
}

static void
note_damage(struct message *m, int error)
{
	struct queue_id id;

	snprintf(m->damage, sizeof(m->damage), "%s",
	    error == -EBADMSG      ? queue_file_reason()
		: error == -ESTALE ? "its name is not its inode"
				   : strerror(-error));
	if (message_may_be_damaged(m->dir) &&
	    corrupt_id(m->sp, m->fd, &id) == 0)
		queue_id_format(&id, m->id);
	else
		snprintf(m->id, sizeof(m->id), "%.*s", (int)sizeof(m->id) - 1,
		    m->name);
}

static void
read_due(struct message *m)
{
	struct stat st;

	if ((m->dir == SPOOL_DEFERRED || m->dir == SPOOL_DELETED) &&
	    spool_stat(m->sp, SPOOL_DEFER, m->inode, &st) == 0)
		m->due_wall = clock_usec(st.st_mtim);
}

int
message_open(struct message *m, const struct spool *sp, enum spool_dir dir,
    const struct spool_item *item)
{
	struct stat st;
	int r;

	*m = (struct message){ .sp = sp, .dir = dir, .fd = -1 };
	if (item->inode == 0 && spool_dirs[dir].split)
		return -ENOENT; /* a foreign name */
	snprintf(m->name, sizeof(m->name), "%s", item->name);
	m->inode = item->inode;
	m->fd = open_name(m);
	if (m->fd < 0)
		return -errno;
	if (fstat(m->fd, &st) < 0)
		return -errno;
	m->inode = (uint64_t)st.st_ino;
	m->file_size = (uint64_t)st.st_size;
	r = item->inode != 0 && item->inode != m->inode && dir != SPOOL_CORRUPT
	    ? -ESTALE
	    : read_envelope(m);
	if (r < 0)
		note_damage(m, r);
	read_due(m);
	return 0;
}

bool
message_is_given_up(const struct message *m)
{
	struct queue_id id;
	int marks;

	if (m->damage[0] != '\0' || m->sp->dir[SPOOL_BOUNCE] < 0 ||
	    queue_id_parse(m->id, &id) < 0)
		return false;
	marks = reason_marks(m->sp, &id);
	return marks > 0 && (marks & REASON_GIVEN_UP) != 0;
}

int
message_hold(const struct message *m, struct hold_note *ret_note,
    char ret_who[static MESSAGE_WHO_SIZE])
{
	const char *user;
	struct queue_id id;
	int r;

	if (m->dir != SPOOL_HOLD || m->sp->dir[SPOOL_DEFER] < 0 ||
	    queue_id_parse(m->id, &id) < 0)
		return -ENOENT;
	r = hold_note_read(m->sp, &id, ret_note);
	if (r < 0)
		return r;
	user = user_name(ret_note->uid);
	if (*user != '\0')
		snprintf(ret_who, MESSAGE_WHO_SIZE, "%s", user);
	else
		snprintf(ret_who, MESSAGE_WHO_SIZE, "uid %u",
		    (unsigned)ret_note->uid);
	return 0;
}

void
message_close(struct message *m)
{
	io_close(&m->fd);
	buf_done(&m->sender);
}

/* ---- by id ---- */

static bool
has_id(const struct message *m, const struct queue_id *id)
{
	struct queue_id its;

	return (m->damage[0] == '\0' || message_may_be_damaged(m->dir)) &&
	    queue_id_parse(m->id, &its) == 0 && queue_id_is(&its, id);
}

/* 0: open; -ENOENT: not here. */
static int
find_in(struct message *m, const struct spool *sp, enum spool_dir dir,
    const struct queue_id *id)
{
	struct spool_item item = { .inode = id->inode };
	int r;

	queue_file_name(id->inode, item.name);
	r = message_open(m, sp, dir, &item);
	if (r == 0 && has_id(m, id))
		return 0;
	message_close(m);
	return r == 0 ? -ENOENT : r;
}

/* In these directories the name does not follow from the inode: names are read,
 * and the one file is opened. */
static int
find_by_names(struct message *m, const struct spool *sp, enum spool_dir dir,
    const struct queue_id *id)
{
	struct spool_scan scan;
	struct spool_item item;
	int r = -ENOENT;

	if (sp->dir[dir] < 0)
		return -ENOENT;
	spool_scan_begin(&scan, sp, dir);
	while (r < 0 && spool_scan_next(&scan, false, &item) > 0) {
		item.inode = 0;
		r = message_open(m, sp, dir, &item);
		if (r == 0 && has_id(m, id))
			break;
		message_close(m);
		r = -ENOENT;
	}
	spool_scan_done(&scan);
	return r;
}

#define FIND_TRIES 3 /* a message may move back meanwhile */

int
message_find(
    struct message *m, const struct spool *sp, const struct queue_id *id)
{
	unsigned try;
	size_t i;
	int r;

	*m = (struct message){ .sp = sp, .fd = -1 };
	for (try = 0; try < FIND_TRIES; try++)
		for (i = 0; i < MESSAGE_STATES; i++) {
			if (sp->dir[message_states[i]] < 0 ||
			    message_states[i] == SPOOL_MAILDROP ||
			    message_states[i] == SPOOL_CORRUPT)
				continue;
			r = find_in(m, sp, message_states[i], id);
			if (r != -ENOENT)
				return r;
		}
	r = find_by_names(m, sp, SPOOL_CORRUPT, id);
	return r == -ENOENT ? find_by_names(m, sp, SPOOL_MAILDROP, id) : r;
}
