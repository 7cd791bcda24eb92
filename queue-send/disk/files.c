#include "queue-send/disk/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"

/* ---- files ---- */

int
disk_open(struct send *s, struct message *m)
{
	int fd;

	if (m->fd >= 0)
		return 0;
	fd = spool_open_file(&s->sp, SPOOL_ACTIVE, m->inode, O_RDWR);
	if ((fd == -EMFILE || fd == -ENFILE) && s->messages.nresting > 0) {
		messages_close_resting(&s->messages);
		fd = spool_open_file(&s->sp, SPOOL_ACTIVE, m->inode, O_RDWR);
	}
	if (fd < 0)
		return fd;
	m->fd = fd;
	messages_rest(&s->messages, m, s->now);
	return 0;
}

int
disk_open_to_read(struct send *s, struct message *m)
{
	int r = disk_open(s, m);

	if (r == -EROFS)
		return spool_open_file(
		    &s->sp, SPOOL_ACTIVE, m->inode, O_RDONLY);
	return r < 0 ? r : m->fd;
}

/* A file that rested may have been removed by hand; one that was opened in this
 * turn was not. */
static bool
is_gone(const struct send *s, const struct message *m)
{
	struct stat st;

	return m->rested_at > 0 && m->rested_at < s->now &&
	    fstat(m->fd, &st) == 0 && st.st_nlink == 0;
}

int
disk_use(struct send *s, struct message *m)
{
	int r;

	if (is_gone(s, m))
		messages_close(&s->messages, m);
	r = disk_open(s, m);
	messages_use(&s->messages, m);
	return r;
}

usec_t
disk_work(struct send *s)
{
	return messages_end_rest(&s->messages, s->now);
}

/* ---- errors ---- */

bool
disk_is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

void
disk_count_error(struct send *s, enum health_write kind, int error)
{
	if (!health_failed(&s->health, kind, error, s->now))
		return;
	log_error("%s: %s: no delivery starts until marks can be written",
	    s->sp.path, strerror(-error));
	send_wake(s);
}

static void
say_failed(
    struct send *s, const struct queue_id *id, const char *what, int error)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(id, text);
	s->pub.changed = true;
	if (log_due(s->now, USEC_PER_SEC, &s->said_io))
		log_message(LOG_ERROR_L, "disk", text, "cannot %s: %s", what,
		    strerror(-error));
}

void
disk_mark_failed(
    struct send *s, const struct message *m, const char *what, int error)
{
	disk_write_failed_again(s, m, what, error);
	disk_count_error(s, HEALTH_MARK, error);
}

void
disk_write_failed(
    struct send *s, const struct message *m, const char *what, int error)
{
	disk_write_failed_again(s, m, what, error);
	disk_count_error(s, HEALTH_OTHER, error);
}

void
disk_write_failed_again(
    struct send *s, const struct message *m, const char *what, int error)
{
	const struct queue_id id = message_queue_id(m);

	say_failed(s, &id, what, error);
}

void
disk_removal_failed(struct send *s, const struct queue_id *id, int error)
{
	say_failed(s, id, "remove what was delivered", error);
	if (!disk_is_shortage(error))
		disk_count_error(s, HEALTH_OTHER, error);
}

void
disk_note_failed(struct send *s, const struct message *m, int error)
{
	disk_write_failed_again(s, m, "write the note of a rule", error);
	if (!disk_is_shortage(error))
		disk_count_error(s, HEALTH_OTHER, error);
}

/* ---- reasons ---- */

bool
reasons_may_exist(const struct message *m, enum spool_dir dir)
{
	return !m->first ||
	    (dir == SPOOL_DEFER ? m->reasons_begun : m->bounce_begun);
}
