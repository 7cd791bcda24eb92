/* queue-send/rules/rules.h - rules that put mail on hold before an attempt
 * (docs/QCTL.md, "Rules").
 *
 * A thread reads and writes QUEUE_BASE/rules/hold.
 *
 * QUEUE_BASE may be a disk that hangs, and another than that of the queue: the
 * loop never waits for it. Rules that cannot be read leave those that are in
 * force, and mail goes on.
 */
#ifndef QUEUE_SEND_RULES_RULES_H
#define QUEUE_SEND_RULES_RULES_H

#include "ipc/msg.h"
#include "queue-send/state/send.h"
#include "spool/hold_note.h"

struct message;
struct queue_rcpt;

/* True: the message is to be held, by a rule that fits this recipient. Its note
 * is written by its move, if the rule is in force then. transport NULL: no
 * route. */
bool rules_hold(struct send *s, struct message *m,
    const struct queue_rcpt *rcpt, const char *transport, const char *nexthop);
/* The note of a message that an operator holds by a rule. -ESRCH: no such rule
 * is in force. */
int rules_note(struct send *s, uint32_t rule, struct hold_note *ret_note);
/* Is any rule in force? */
bool rules_exist(const struct send *s);
bool rules_are_over(const struct send *s, uint32_t rule);
/* The note is on disk. */
void
rules_noted(struct send *s, struct message *m, const struct hold_note *note);

/* The first reading begins. 0 or -ENOMEM. */
int rules_init(struct send *s);
void rules_done(struct send *s);
/* The file is looked at each ten seconds. */
usec_t rules_work(struct send *s);
/* The file is looked at now. */
void rules_try_again(struct send *s);
/* Mail that is to be looked at waits until the file was read first, and not
 * longer than this; 0: it was. */
usec_t rules_wait(const struct send *s);

/* An operator's request, answered by this function, with the number of the
 * rule: within the call with -EAGAIN (too many wait), -EINVAL (no rule) or
 * -ENOMEM; else when the disk has answered, with 0 or -errno of
 * hold_rules_change() or hold_rules_read(). */
struct rules_asker {
	void (*answer)(struct send *s, const struct rules_asker *by, int error,
	    uint32_t number);
	uint64_t operator, serial;
	uid_t uid;
};
void rules_add(
    struct send *s, const struct rules_asker *by, const struct msg_RULE_ADD *f);
void rules_drop(struct send *s, const struct rules_asker *by, uint32_t number);
void rules_read(struct send *s, const struct rules_asker *by);

#endif
