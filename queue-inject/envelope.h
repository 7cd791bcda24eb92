/* queue-inject/envelope.h - sender and recipients, while a message comes in.
 *
 * Addresses are checked (base/address) as they are put in, and counted
 * against a limit, so memory is bounded by it. Recipients stay in the order
 * they came in, doubles too.
 */
#ifndef QUEUE_INJECT_ENVELOPE_H
#define QUEUE_INJECT_ENVELOPE_H

#include "base/buf.h"
#include "queue-inject/refusal.h"

struct envelope {
	bool has_sender;
	struct buf sender; /* "" is the null sender */
	struct buf rcpts;  /* each ended by NUL */
	uint32_t rcpt_count;
	uint32_t rcpt_limit; /* 0: none */
};

void envelope_done(struct envelope *e);
/* Both refuse what may not stand in an envelope; a recipient may not be "". */
int envelope_set_sender(
    struct envelope *e, const char *address, size_t len, struct refusal *why);
int envelope_add_rcpt(
    struct envelope *e, const char *address, size_t len, struct refusal *why);
/* The recipient at *pos (0 at first) with its length; NULL at the end. */
const char *
envelope_next_rcpt(const struct envelope *e, size_t *pos, size_t *ret_len);

/* The envelope of qmail-queue, `F…\0T…\0T…\0\0`, in pieces of any size. */
struct envelope_reader {
	int state;
	struct buf address;
};

int envelope_feed(struct envelope_reader *rd, struct envelope *e,
    const char *data, size_t len, struct refusal *why);
/* The input ended: was the envelope whole, with a recipient? */
int envelope_finish(
    struct envelope_reader *rd, const struct envelope *e, struct refusal *why);

#endif
