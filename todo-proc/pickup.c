#include "todo-proc/pickup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "log/log.h"
#include "spool/accept.h"
#include "todo-proc/examine.h"

#define NOTE_SIZE  128
#define COPY_CHUNK 65536

/* ---- the note: "DROP COPY ARRIVAL NONCE\n", and "named\n" once the copy has
 * its name and the drop cannot be removed: from then on the copy is delivered,
 * and where it is says nothing any more ---- */

#define NAMED      "named\n"

struct note {
	uint64_t drop, copy, arrival, nonce;
	bool named;
};

static int
note_open(const struct todo *t, int flags)
{
	int fd = t->sp.sys->openat(t->sp.dir[SPOOL_LOCK], SPOOL_PICKUP,
	    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int
note_write(const struct todo *t, const struct note *note)
{
	char text[NOTE_SIZE];
	int n = snprintf(text, sizeof(text),
	    "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", note->drop,
	    note->copy, note->arrival, note->nonce);
	int fd = note_open(t, O_WRONLY | O_CREAT | O_TRUNC), r;

	if (fd < 0)
		return fd;
	r = io_write_all(fd, text, (size_t)n);
	io_close(&fd);
	return r;
}

/* What is there stays: without this line the copy is looked for. */
static void
note_add_named(const struct todo *t)
{
	int fd = note_open(t, O_WRONLY | O_APPEND);

	if (fd >= 0)
		(void)io_write_all(fd, NAMED, strlen(NAMED));
	io_close(&fd);
}

static void
note_clear(const struct todo *t)
{
	t->sp.sys->unlinkat(t->sp.dir[SPOOL_LOCK], SPOOL_PICKUP, 0);
}

/* False: there is none, or only a part of one, which was written before any
 * copy had its name. */
static bool
note_read(const struct todo *t, struct note *ret)
{
	uint64_t *const values[] = { &ret->drop, &ret->copy, &ret->arrival,
		&ret->nonce };
	char text[NOTE_SIZE], *field = text, *end;
	int fd = note_open(t, O_RDONLY);
	int64_t n;
	size_t i;

	if (fd < 0)
		return false;
	n = io_read_all(fd, text, sizeof(text) - 1);
	io_close(&fd);
	text[n < 0 ? 0 : n] = '\0';
	end = strchr(text, '\n');
	if (end == NULL)
		return false;
	*end = '\0';
	ret->named = strncmp(end + 1, NAMED, strlen(NAMED)) == 0;
	for (i = 0; i < ARRAY_LEN(values); i++) {
		end = i + 1 < ARRAY_LEN(values) ? strchr(field, ' ') : NULL;
		if (end != NULL)
			*end = '\0';
		if (num_u64(field, 0, INT64_MAX, values[i]) < 0)
			return false;
		if (end != NULL)
			field = end + 1;
	}
	return true;
}

/* Is the copy that the note names in incoming/, and safe there? Its inode alone
 * does not tell: it may be another message's by now (D22). Who made the copy
 * died before the drop was removed, perhaps before the one fsync. */
static bool
copy_is_there(const struct todo *t, const struct note *note)
{
	struct queue_file file;
	int fd = spool_open_file(&t->sp, SPOOL_INCOMING, note->copy, O_RDONLY);
	int r = fd < 0 ? fd : queue_file_read(fd, &file);

	if (r == 0 && t->sp.sys->fsync(fd) < 0)
		r = -errno;
	io_close(&fd);
	return r == 0 && file.arrival_wall == (usec_t)note->arrival &&
	    file.nonce == note->nonce;
}

/* The drop is copied and must go. While it does not, nothing else is picked
 * up, and the note stays. */
static int
remove_drop(struct todo *t, uint64_t inode)
{
	int r = spool_remove(&t->sp, SPOOL_MAILDROP, inode);
	bool known = t->stuck_drop == inode;

	t->stuck_drop = 0;
	if (r == 0 || r == -ENOENT) {
		note_clear(t);
		return 0;
	}
	t->stuck_drop = inode;
	if (!known)
		note_add_named(t);
	if (log_due(t->now, 60 * USEC_PER_SEC, &t->said_drop))
		log_error("maildrop/%" PRIu64 ": is copied and cannot be "
			  "removed: %s: no drop is picked up",
		    inode, strerror(-r));
	return r;
}

void
pickup_recover(struct todo *t)
{
	struct note note = { 0 };

	if (!note_read(t, &note) || (!note.named && !copy_is_there(t, &note))) {
		note_clear(t);
		return;
	}
	log_info("maildrop/%" PRIu64 ": was copied before", note.drop);
	if (note.named)
		t->stuck_drop = note.drop;
	(void)remove_drop(t, note.drop);
}

/* ---- the copy ---- */

struct drop {
	uint64_t inode;
	int fd;
	struct stat st;
	struct queue_file file;
};

static int
copy_content(const struct drop *drop, struct queue_file_writer *w)
{
	uint64_t off = drop->file.content_off, left = drop->file.content_len;
	char chunk[COPY_CHUNK];
	int64_t n;
	int r = 0;

	for (; r == 0 && left > 0; left -= (uint64_t)n) {
		n = io_pread_all(drop->fd, chunk,
		    left < sizeof(chunk) ? (size_t)left : sizeof(chunk),
		    (int64_t)off);
		if (n <= 0)
			return n < 0 ? (int)n : -EBADMSG;
		off += (uint64_t)n;
		r = queue_file_add_content(w, chunk, (size_t)n);
	}
	return r;
}

static int
copy_envelope(
    struct todo *t, const struct drop *drop, struct queue_file_writer *w)
{
	struct buf sender = { 0 };
	struct queue_rcpt rcpt;
	int r = queue_file_sender(drop->fd, &drop->file, &sender);

	if (r == 0)
		r = queue_file_add_sender(w, buf_str(&sender), sender.len);
	buf_done(&sender);
	if (r < 0)
		return r;
	queue_rcpt_begin(&t->cursor, &drop->file);
	while ((r = queue_rcpt_next(&t->cursor, drop->fd, &rcpt)) > 0) {
		r = queue_file_add_rcpt(w, rcpt.address, rcpt.len);
		if (r < 0)
			break;
	}
	return r;
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whole and right, and untouched since we began. */
static int
check_again(const struct drop *drop)
{
	struct stat st;
	int r = queue_file_verify(drop->fd, &drop->file);

	if (r < 0)
		return r;
	if (fstat(drop->fd, &st) < 0)
		return -errno;
	if (st.st_size != drop->st.st_size ||
	    !same_time(&st.st_mtim, &drop->st.st_mtim) ||
	    !same_time(&st.st_ctim, &drop->st.st_ctim))
		return -ETXTBSY;
	return 0;
}

static void
picked_up(struct todo *t, const struct drop *drop, const struct accept *a,
    const struct queue_id *id)
{
	char text[QUEUE_ID_SIZE];
	struct stat st;

	queue_id_format(id, text);
	log_info("%s: picked up: uid=%u", text, (unsigned)drop->st.st_uid);
	if (fstat(a->fd, &st) == 0)
		(void)backlog_add(&t->backlog, id->inode, todo_mtime(&st));
}

static int
commit(struct todo *t, const struct drop *drop, struct accept *a)
{
	struct note note = { .drop = drop->inode,
		.arrival = (uint64_t)a->writer.file.arrival_wall,
		.nonce = a->writer.file.nonce };
	struct queue_id id;
	struct stat st;
	int r;

	if (fstat(a->fd, &st) < 0)
		return -errno;
	note.copy = (uint64_t)st.st_ino;
	r = note_write(t, &note);
	if (r == 0)
		r = accept_commit(a, &id);
	if (r < 0) {
		note_clear(t);
		return r;
	}
	picked_up(t, drop, a, &id);
	(void)remove_drop(t, drop->inode);
	return 0;
}

static int
copy(struct todo *t, const struct drop *drop)
{
	const struct accept_options options = {
		.dir = SPOOL_INCOMING,
		.reserve_bytes = t->conf->queue_minfree_bytes,
		.reserve_inodes = t->conf->queue_minfree_inodes,
		.strict = t->conf->strict_sync,
	};
	usec_t arrival = drop->file.arrival_wall;
	struct accept a;
	int r;

	if (arrival > t->now_wall)
		arrival = t->now_wall;
	r = accept_begin(
	    &a, &t->sp, &options, arrival, (uint32_t)drop->st.st_uid);
	if (r == 0)
		r = copy_content(drop, &a.writer);
	if (r == 0)
		r = copy_envelope(t, drop, &a.writer);
	if (r == 0)
		r = check_again(drop);
	if (r == 0)
		r = commit(t, drop, &a);
	accept_end(&a);
	return r;
}

/* ---- one drop ---- */

/* More than an injector lets pass. Refused before anything large is read: a
 * sparse file of ten gigabytes costs us its trailer. */
static const char *
refusal(const struct todo *t, const struct queue_file *file)
{
	uint64_t limit = t->conf->message_size_limit;

	if (limit > 0 && file->content_len > limit + ACCEPT_ADDED_MAX)
		return "message is too large";
	if (file->rcpt_count > t->conf->message_recipient_limit)
		return "too many recipients";
	return NULL;
}

static int
look(struct todo *t, struct drop *drop, const char **ret_refusal)
{
	int r = spool_file_settled(drop->fd);

	if (r == 0 && fstat(drop->fd, &drop->st) < 0)
		r = -errno;
	if (r == 0)
		r = queue_file_read(drop->fd, &drop->file);
	if (r < 0)
		return r;
	*ret_refusal = refusal(t, &drop->file);
	return *ret_refusal != NULL ? -EFBIG : copy(t, drop);
}

/* What is wrong with the drop itself: another look would find the same. */
static bool
is_flaw(int error)
{
	static const int flaws[] = { EBADMSG, EPERM, EFBIG, EILSEQ, EINVAL,
		ENAMETOOLONG, EDESTADDRREQ, ETXTBSY };
	size_t i;

	for (i = 0; i < ARRAY_LEN(flaws); i++)
		if (flaws[i] == error)
			return true;
	return false;
}

int
pickup_drop(struct todo *t, uint64_t inode)
{
	struct drop drop = { .inode = inode };
	const char *why = NULL;
	int r;

	if (t->stuck_drop != 0 && remove_drop(t, t->stuck_drop) < 0)
		return -EBUSY;
	drop.fd = spool_open_file(&t->sp, SPOOL_MAILDROP, inode, O_RDONLY);
	r = drop.fd < 0 ? drop.fd : look(t, &drop, &why);
	io_close(&drop.fd);
	if (r == 0 || r == -EAGAIN || r == -ENOENT)
		return r;
	if (!is_flaw(-r)) {
		if (log_due(t->now, 60 * USEC_PER_SEC, &t->said_drop))
			log_error("maildrop/%" PRIu64 ": %s: it waits", inode,
			    strerror(-r));
		return r;
	}
	if (r == -EBADMSG || r == -EPERM)
		why = queue_file_reason();
	else if (why == NULL)
		why =
		    r == -ETXTBSY ? "changed while it was read" : strerror(-r);
	return examine_corrupt(t, SPOOL_MAILDROP, inode, why);
}
