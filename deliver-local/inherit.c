#include "deliver-local/expand.h"

#include <string.h>

int
inherit_begin(struct inherit *h, int fd, const struct queue_file *file,
    const struct queue_rcpt *rcpt, const struct members_of *of)
{
	*h = (struct inherit){ .sender = of->sender,
		.written = of->recipient,
		.rcpt = rcpt->dsn };
	return queue_file_dsn(fd, file, &h->mail);
}

/* RFC 3461 section 5.2.7.3: the report of the alias is that of success. */
static uint8_t
without_success(uint8_t notify)
{
	const uint8_t left = (uint8_t)(notify & ~DSN_SUCCESS);

	return notify != 0 && left == 0 ? DSN_NEVER : left;
}

/* The wish of the recipient that was added last. Who gets a report of it has
 * written another address. The owner of a list has not, and programs of his
 * take the member of the list from ORCPT. */
static int
add_wish(struct inherit *h, struct queue_file_writer *w, bool only)
{
	struct dsn_rcpt dsn = { 0 };

	if (!h->due)
		return 0;
	h->due = false;
	if (h->own)
		dsn = h->rcpt;
	if (h->own && !only)
		dsn.notify = without_success(dsn.notify);
	/* An address that ORCPT cannot have is left out. */
	if (dsn.orcpt[0] == '\0' && (h->own || h->program))
		(void)dsn_orcpt_write(&dsn, h->written);
	return queue_file_add_rcpt_dsn(w, &dsn);
}

int
inherit_sender(
    struct inherit *h, struct queue_file_writer *w, const char *sender)
{
	h->own = strcmp(sender, h->sender) == 0;
	h->lists += !h->own;
	return h->own ? queue_file_add_dsn(w, &h->mail) : 0;
}

int
inherit_before_rcpt(struct inherit *h, struct queue_file_writer *w)
{
	return add_wish(h, w, false);
}

void
inherit_after_rcpt(struct inherit *h, bool program)
{
	h->due = true;
	h->program = program;
	h->rcpts += h->own;
}

static bool
is_one(const struct inherit *h)
{
	return h->rcpts == 1 && h->lists == 0;
}

int
inherit_end(struct inherit *h, struct queue_file_writer *w, bool last)
{
	return add_wish(h, w, last && is_one(h));
}

enum rcpt_mark
inherit_mark(const struct inherit *h, const struct queue_file *file)
{
	if (file->version == QUEUE_FILE_PLAIN || h->rcpts == 0)
		return RCPT_DONE;
	return is_one(h) ? RCPT_PASSED : RCPT_EXPANDED;
}
