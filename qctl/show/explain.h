/* qctl/show/explain.h - why a message waits (docs/QCTL.md, "Why a message
 * waits").
 *
 *	explain.c   what the spool says of a message, in sentences
 *	asker.c     what its queue-send says of it
 *	sentence.c  the sentence of each situation; pure
 */
#ifndef QCTL_SHOW_EXPLAIN_H
#define QCTL_SHOW_EXPLAIN_H

#include "qctl/read/peer.h"
#include "qctl/show/show.h"

int
explain_text(struct worker *w, const struct message *m, const struct view *v);

/* ---- sentence.c ---- */

/* A line with its end; nothing for a situation that is not known. Text from
 * outside is cleaned. */
void sentence_add(
    struct buf *out, const struct msg_EXPLAINED *fact, usec_t now_wall);
/* Of what a message that waits until it is due has for destinations that will
 * be dead then: nothing of that is tried. */
enum sentence_dead {
	SENTENCE_DEAD_NONE,
	SENTENCE_DEAD_SOME,
	SENTENCE_DEAD_ALL,
};
/* The sentence of SITUATION_LATER. */
void sentence_add_later(struct buf *out, const struct msg_EXPLAINED *fact,
    enum sentence_dead dead, usec_t now_wall);
/* "Sat, 22 Nov 2025 14:02:11 +0000 (in 5m)", "… (5m ago)"; 0: "some time". */
void sentence_add_time(struct buf *out, usec_t wall, usec_t now_wall);
/* The queue-send could not be asked: -errno. */
void sentence_add_not_asked(struct buf *out, int error);
/* "1 recipient", "7 recipients". */
void sentence_add_recipients(struct buf *out, uint64_t count);
/* Append the line "And 7 recipients more."; a count of 0 appends nothing. */
void sentence_add_more(struct buf *out, uint32_t count);
/* " (alice: new disk)": the operator, and the reason if there is one. */
void sentence_add_hold(
    struct buf *out, const struct hold_note *note, const char *who);

/* ---- asker.c ---- */

/* The queue-send of one queue, asked when the first message is explained. */
struct asker {
	const struct spool *sp;
	usec_t limit; /* of silence */
	struct peer peer;
	bool tried;
	int error; /* of the connection: -ENOENT, -ECONNREFUSED: no queue-send
		    */
};

struct answer {
	void (*fact)(void *arg, const struct msg_EXPLAINED *fact);
	void *arg;
	uint32_t left_out; /* recipients */
};

/* 0; else -errno: nobody can be asked, now or again. */
int asker_message(
    struct asker *a, const struct queue_id *id, struct answer *answer);
int asker_address(struct asker *a, const char *sender, const char *address,
    bool expanded, struct answer *answer);
void asker_close(struct asker *a);

#endif
