/* Recipients of a message with their reasons, in batches. */
#include "qctl/read/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spool/reason.h"

/* The last reason of a recipient, in texts: reason NUL relay NUL. */
struct note {
	size_t at; /* from 1; 0: none */
	usec_t when_wall;
	bool told; /* all reasons so far are in reports to the sender */
};

struct notes {
	uint32_t first, count; /* the recipients of this batch */
	struct note *notes;
	struct buf texts;
};

/* Keeps the later one of defer/ and bounce/, and the last line of each. */
static int
take_reason(const struct reason *reason, void *arg)
{
	struct notes *n = arg;
	struct note *note;
	const size_t at = n->texts.len + 1;
	int r;

	if (reason->index < n->first || reason->index - n->first >= n->count)
		return 0;
	note = &n->notes[reason->index - n->first];
	note->told = false;
	if (note->at != 0 && note->when_wall > reason->when_wall)
		return 0;
	r = buf_printf(&n->texts, "%s%s%s", reason->dsn,
	    reason->dsn[0] == '\0' ? "" : " ", reason->text);
	if (r == 0)
		r = buf_add(&n->texts, "", 1);
	if (r == 0)
		r = buf_add(
		    &n->texts, reason->relay, strlen(reason->relay) + 1);
	if (r == 0)
		*note =
		    (struct note){ .at = at, .when_wall = reason->when_wall };
	return r;
}

static void
take_told(uint32_t index, void *arg)
{
	struct notes *n = arg;
	uint32_t i;

	if (index >= n->first && index - n->first < n->count)
		n->notes[index - n->first].told = true;
	for (i = 0; index == REASON_ALL && i < n->count; i++)
		n->notes[i].told = true;
}

static int
read_reasons(struct notes *n, const struct message *m)
{
	const struct spool *sp = m->sp;
	int r = 0;

	if (sp->dir[SPOOL_DEFER] >= 0)
		r = reason_read(sp, SPOOL_DEFER, m->inode, take_reason, n);
	if (r != -ENOMEM && sp->dir[SPOOL_BOUNCE] >= 0)
		r = reason_read_told(sp, m->inode, take_reason, take_told, n);
	return r;
}

/* Reasons that cannot be read are left out: the list of recipients is worth
 * more than no list. */
static int
load(struct notes *n, const struct message *m, uint32_t first)
{
	const uint32_t left = m->file.rcpt_count - first;

	n->first = first;
	n->count = left < MESSAGE_BATCH ? left : MESSAGE_BATCH;
	memset(n->notes, 0, n->count * sizeof(*n->notes));
	buf_reset(&n->texts);
	return read_reasons(n, m) == -ENOMEM ? -ENOMEM : 0;
}

static void
add_note(const struct notes *n, uint32_t index, struct recipient *r)
{
	const struct note *note = &n->notes[index - n->first];

	r->told = note->told;
	if (note->at == 0)
		return;
	r->reason = n->texts.data + note->at - 1;
	r->relay = r->reason + strlen(r->reason) + 1;
	r->when_wall = note->when_wall;
}

/* NULL: no memory. */
static struct note *
new_notes(const struct message *m)
{
	const size_t count = m->file.rcpt_count < MESSAGE_BATCH
	    ? m->file.rcpt_count
	    : MESSAGE_BATCH;

	return calloc(count, sizeof(struct note));
}

int
message_recipients(const struct message *m, bool with_reasons,
    int (*each)(const struct recipient *r, void *arg), void *arg)
{
	struct notes n = { 0 };
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	int r = 0;

	if (with_reasons && (n.notes = new_notes(m)) == NULL)
		return -ENOMEM;
	queue_rcpt_begin(&cursor, &m->file);
	while (r == 0 && (r = queue_rcpt_next(&cursor, m->fd, &rcpt)) > 0) {
		struct recipient one = { .rcpt = &rcpt };

		r = with_reasons && rcpt.index - n.first >= n.count
		    ? load(&n, m, rcpt.index)
		    : 0;
		if (r == 0 && with_reasons)
			add_note(&n, rcpt.index, &one);
		if (r == 0)
			r = each(&one, arg);
	}
	free(n.notes);
	buf_done(&n.texts);
	return r;
}
