#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/header.h"
#include "base/io.h"
#include "log/log.h"

/* ---- messages whose line is in the log ---- */

struct accepted_before {
	RB_ENTRY(accepted_before) link;
	uint64_t inode;
	usec_t arrival_wall;
};

static int
before_compare(const struct accepted_before *a, const struct accepted_before *b)
{
	return (a->inode > b->inode) - (a->inode < b->inode);
}

TREE_GENERATE(accepted_tree, accepted_before, link, before_compare)

void
accepted_note(struct accepted_tree *tree, uint64_t inode, usec_t arrival_wall)
{
	struct accepted_before *fresh = malloc(sizeof(*fresh)), *old;

	if (fresh == NULL)
		return;
	*fresh = (struct accepted_before){
		.inode = inode,
		.arrival_wall = arrival_wall,
	};
	old = RB_INSERT(accepted_tree, tree, fresh);
	if (old == NULL)
		return;
	old->arrival_wall = arrival_wall;
	free(fresh);
}

void
accepted_done(struct accepted_tree *tree)
{
	struct accepted_before *b;

	while ((b = RB_MIN(accepted_tree, tree)) != NULL) {
		RB_REMOVE(accepted_tree, tree, b);
		free(b);
	}
}

bool
accepted_is_noted(
    struct accepted_tree *tree, uint64_t inode, usec_t arrival_wall)
{
	struct accepted_before key = { .inode = inode };
	const struct accepted_before *b = RB_FIND(accepted_tree, tree, &key);

	return b != NULL && b->arrival_wall == arrival_wall;
}

/* Was the message noted? Then it is forgotten. */
static bool
take_note(struct accepted_tree *tree, uint64_t inode, usec_t arrival_wall)
{
	struct accepted_before key = { .inode = inode };
	struct accepted_before *b = RB_FIND(accepted_tree, tree, &key);
	bool same = b != NULL && b->arrival_wall == arrival_wall;

	if (b != NULL) {
		RB_REMOVE(accepted_tree, tree, b);
		free(b);
	}
	return same;
}

/* ---- the line ---- */

static void
read_message_id(
    int fd, const struct queue_file *file, char out[HEADER_MESSAGE_ID_MAX])
{
	char head[HEADER_READ_MAX];
	size_t len = file->content_len < sizeof(head)
	    ? (size_t)file->content_len
	    : sizeof(head);

	if (queue_file_content(fd, file->content_off, head, len) < 0)
		len = 0;
	header_message_id(head, len, out, HEADER_MESSAGE_ID_MAX);
}

static void
write_line(uint64_t inode, const struct queue_file *file, const char *sender,
    const char *message_id)
{
	const struct queue_id parts = {
		.arrival_wall = file->arrival_wall,
		.nonce = file->nonce,
		.queue = file->queue,
		.inode = inode,
	};
	char id[QUEUE_ID_SIZE];
	/* A size right behind the sender would be taken for the line of a
	 * message that became active. */
	const struct log_field fields[] = {
		LOG_INT("uid", file->uid),
		LOG_INT("size", file->content_len),
		LOG_ADDR("from", sender),
		LOG_ADDR("message-id", message_id),
	};
	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "accepted",
		.id = id,
		.part = "pickup",
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
	};

	queue_id_format(&parts, id);
	log_write(&event);
}

static bool
has_line(struct send *s, uint64_t inode, const struct queue_file *file)
{
	return file->queue == s->sp.queue &&
	    !take_note(&s->accepted, inode, file->arrival_wall) &&
	    log_shows(LOG_INFO_L);
}

void
accepted_log_known(struct send *s, uint64_t inode,
    const struct queue_file *file, const char *sender, const char *message_id)
{
	if (has_line(s, inode, file))
		write_line(inode, file, sender, message_id);
}

void
accepted_log(struct send *s, uint64_t inode, int fd,
    const struct queue_file *file, const char *sender)
{
	char message_id[HEADER_MESSAGE_ID_MAX];

	if (!has_line(s, inode, file))
		return;
	read_message_id(fd, file, message_id);
	write_line(inode, file, sender, message_id);
}

void
accepted_log_file(struct send *s, uint64_t inode, int fd)
{
	struct buf sender = { 0 };
	struct queue_file file;

	if (queue_file_read(fd, &file) == 0 &&
	    queue_file_sender(fd, &file, &sender) == 0)
		accepted_log(s, inode, fd, &file, buf_str(&sender));
	buf_done(&sender);
}

void
accepted_log_parked(struct send *s, uint64_t inode, int fd)
{
	int own = fd >= 0
	    ? -1
	    : spool_open_file(&s->sp, SPOOL_DEFERRED, inode, O_RDONLY);

	if (fd >= 0 || own >= 0)
		accepted_log_file(s, inode, fd >= 0 ? fd : own);
	io_close(&own);
}
