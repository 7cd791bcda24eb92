/* queue-inject/message.h - a message of the mail faces: its header is read,
 * asked for recipients, completed, and written in front of the body.
 *
 * What came in is passed on byte for byte, but for three things: a mailbox
 * line "From …" in front of the fields is left away, Bcc and Resent-Bcc are
 * left away with -t, and where no empty line separates fields and body one is
 * put, so that the body stays body. Fields are added at the beginning.
 */
#ifndef QUEUE_INJECT_MESSAGE_H
#define QUEUE_INJECT_MESSAGE_H

#include "queue-inject/envelope.h"
#include "queue-inject/header.h"
#include "queue-inject/identity.h"
#include "queue-inject/source.h"
#include "submit/submit.h"

struct message {
	struct header header;
	struct buf added; /* fields that were missing */
	bool drop_bcc;
	bool resent; /* has Resent- fields: they count, not the others */
	const char *eol;
};

/* Everything up to the body; what is left in src is body. */
int message_read(struct message *m, struct source *src, struct refusal *why);
/* The recipients of To, Cc and Bcc, or of Resent-To, -Cc and -Bcc. */
int message_recipients(const struct message *m, const char *domain,
    struct envelope *e, struct refusal *why);

struct message_author {
	const char *full_name, *address, *host;
	usec_t wall;
	uint64_t random;
};
/* Make the fields that are missing. */
int message_complete(struct message *m, const struct message_author *author,
    struct refusal *why);
/* Write all but what is left in the source: -errno of submission_content(). */
int message_write(const struct message *m, struct submission *s);
void message_done(struct message *m);

/* What a failure of the source refuses. */
int message_refuse_source(struct refusal *why, int error);

#endif
