/* queue-send/state/message.h - one message as queue-send knows it, the lists
 * that it can be on, and what becomes of it.
 *
 * A message is found by its inode, and told from another one of the same inode
 * by arrival time and nonce, since inode numbers are reused. It lives from
 * messages_add() to messages_drop(). It is kept small: with its part of
 * common/sched it must fit into 1 KiB, and 128 bytes if its destination is its
 * alone (tests/unit/queue-send/memory.c).
 */
#ifndef QUEUE_SEND_STATE_MESSAGE_H
#define QUEUE_SEND_STATE_MESSAGE_H

#include "ipc/msg.h"
#include "spool/queue_file.h"
#include "spool/spool.h"

#include <sys/queue.h>
#include <bsd/sys/tree.h>

struct claim;
struct backlog;
struct report;
struct sched_message;

RB_HEAD(claims, claim);

/* The states of a message (state/steps.c has the steps between them). Each has
 * a list of its messages. */
enum message_state {
	STATE_OFFERED_INCOMING,  /* a file of incoming/ that waits for room */
	STATE_OFFERED_DEFERRED,  /* the same, of deferred/ */
	STATE_ENTERING_INCOMING, /* offered, and the move is under way */
	STATE_ENTERING_DEFERRED, /* the same, of deferred/ */
	/* In the active queue: */
	STATE_ACTIVE,     /* entries wait or run, or more is read later */
	STATE_READING,    /* a batch of recipients is read */
	STATE_FETCHING,   /* a thread reads the batch into memory */
	STATE_FINISHED,   /* nothing of it waits or runs: it is to leave */
	STATE_STUCK,      /* the move failed, and is tried again */
	STATE_UNSYNCED,   /* marks of it wait to be synced */
	STATE_SYNCING,    /* a thread syncs them */
	STATE_UNREPORTED, /* failures of it are to be reported */
	STATE_REPORTING,  /* a thread makes the report */
	STATE_UNMOVED,    /* too many others leave: to be finished again */
	STATE_LEAVING,    /* the move is under way */
	NSTATES,
};

/* The fate of a message. One that is decided before its recipients have been
 * dealt with ends the attempt, and the rest of it is not delivered now. */
enum message_fate {
	FATE_OPEN,      /* not decided: its recipients will say */
	FATE_DELIVERED, /* to all recipients */
	FATE_TOLD,      /* the same, and its sender is told */
	FATE_DEFERRED,  /* a recipient is pending */
	FATE_FAILED,    /* some recipients failed, none is pending */
	/* decided before: */
	FATE_EVICTED, /* the rest is for destinations that have their share */
	FATE_ASIDE,   /* the mail of this queue is moved to other queues */
	FATE_SUSPECT, /* agents died of it: delivered alone next time */
	/* an operator decided, while a recipient is pending: */
	FATE_REQUEUED, /* due at once */
	FATE_HELD,
	FATE_DELETED,
	FATE_POISON,     /* agents died of it, and of no other */
	FATE_UNREADABLE, /* this time: error says why */
	FATE_DAMAGED,    /* not a queue file, or not whole: why, or error */
	FATE_REPLACED,   /* the file is gone, another message has the name */
	FATE_VANISHED,   /* the file is gone */
	NFATES,
};

/* The offer of todo-proc, of a message that is not in the active queue yet. */
struct message_offer {
	uint32_t census_len, names_len;     /* of bytes, in this order, */
	uint32_t rcpts_len, message_id_len; /* and a NUL */
	uint32_t uid;
	char bytes[];
};

struct message {
	RB_ENTRY(message) link;
	TAILQ_ENTRY(message) on;
	uint8_t state;          /* enum message_state; messages_put() sets it */
	uint8_t deaths;         /* of agents that had it */
	uint8_t fate;           /* enum message_fate */
	bool reasons_begun : 1; /* defer/ holds this attempt's */
	bool held_for : 1;      /* the hold of it has an end */
	bool agent_died : 1;    /* in this attempt */
	bool decided : 1;       /* a mark on disk says hold or delete */
	bool named : 1;         /* todo-proc has told all its destinations */
	bool sole : 1;          /* and there is one */
	bool succeeded : 1;     /* a delivery may have to be reported */
	bool reported : 1;      /* by this attempt, or not to be by it */
	bool expires : 1;       /* given up by an operator */
	bool first : 1;         /* no attempt was made before this one */
	bool bounce_begun : 1;  /* bounce/ holds reasons of this message */
	bool untold : 1;        /* not by it, though it had failures */
	bool owed : 1;          /* was on hold, and has not been tried since */
	bool tried : 1;         /* some of its recipients, in this attempt */
	bool passed_over : 1;   /* others, whose destination is dead */
	bool untried : 1;       /* not tried before this attempt */
	bool warned : 1;        /* the sender knows that it is late */
	bool released : 1;      /* by an operator, from a hold */
	bool fetching : 1;      /* a thread opens and reads its file */
	bool fetched : 1;       /* the batch is in memory */
	bool removed : 1;       /* in place of its last mark */
	bool verp : 1;          /* each recipient has a sender of its own */
	bool stuck : 1;         /* the disk refused to move it out of active/ */
	bool reason_failed : 1; /* a reason could not be written */
	uint8_t locked;         /* tries to report it that met a lock */
	uint16_t hops;          /* Received fields, at most UINT16_MAX */
	uint64_t inode;
	struct queue_file file; /* not active: only its identity */
	uint64_t next;          /* offset of the next recipient to read */
	uint32_t next_index;
	uint32_t room;           /* left of this batch; 0: none has begun */
	uint32_t pending;        /* of all, when it was prepared */
	uint32_t deferred;       /* in this attempt */
	uint32_t failed;         /* for good, ever */
	uint32_t settled;        /* of pending: delivered, or failed since */
	uint32_t death;          /* the last one counted in deaths */
	uint32_t nunrecorded;    /* results that are not recorded yet */
	uint32_t second;         /* for ages_remove() */
	uint32_t marked;         /* epoch of the last mark (sync.c), 0: none */
	uint32_t wait_s;         /* until its report may go, 0: none waits */
	uint32_t rule;           /* of the hold, not noted yet; 0: none */
	struct backlog *backlog; /* the destination that holds it, or NULL */
	struct claims claims;    /* unless it is for one alone */
	char *rcpts; /* records of its recipients, or NULL: in the file */
	TAILQ_ENTRY(message) resting;
	usec_t rested_at; /* nothing is done with the open file since then; 0:
			     it is in use, or closed */
	int fd;           /* of its file, O_RDWR, or -1 */
	int error;        /* -errno of FATE_UNREADABLE and FATE_DAMAGED */
	const char *why;  /* the damage, or NULL */
	union {
		struct message_offer *offer; /* !active */
		struct {                     /* active */
			struct sched_message *sched;
			usec_t active_mono;
		};
	};
	char sender[];
};

TAILQ_HEAD(message_queue, message);
RB_HEAD(message_tree, message);

/* A file that nothing is done with rests (docs/QUEUE.md, "Rest"): it stays
 * open, so that a message that goes its way is opened once, also behind a
 * backlog. The one that has rested longest is closed when more rest than may;
 * each after MESSAGES_REST_TIME; and all when none has begun to rest for
 * MESSAGES_REST_IDLE. */
#define MESSAGES_REST_MAX  4096
#define MESSAGES_REST_TIME (10 * USEC_PER_SEC)
#define MESSAGES_REST_IDLE USEC_PER_SEC

struct messages {
	struct message_tree tree;
	struct message_queue resting; /* the longest first */
	uint32_t nresting, rest_max;
	usec_t rested_at; /* when a file last began to rest */
	struct message_queue list[NSTATES];
	uint32_t count[NSTATES];
	size_t rcpts;    /* the same */
	uint64_t faults; /* steps that are not in the table */
};

/* Bytes of recipients in memory, at most; others are read again. */
#define MESSAGES_RCPTS_MAX ((size_t)2 << 20)

/* How many files may rest in a process that may open so many: half of what is
 * left beside deliveries, moves and connections. */
uint32_t messages_rest_max(uint64_t descriptors);
void messages_init(struct messages *ms, uint32_t rest_max);
/* From a frame whose values were checked. NULL when memory is out. */
struct message *
messages_add(struct messages *ms, const struct msg_MESSAGE *frame);
struct message *messages_find(struct messages *ms, uint64_t inode);
/* The one with the next higher inode; NULL: there is none. */
struct message *messages_after(struct messages *ms, uint64_t inode);
/* Free it, while nothing of it runs. The file is not touched. */
void messages_drop(struct messages *ms, struct message *m);
/* The message has that state from now on, and is the last of its list. A step
 * that is not in the table of steps.c is a fault of the program, and so is the
 * end of a message with results that are not recorded: it is counted, the first
 * one is logged, and the step is taken. */
void
messages_put(struct messages *ms, struct message *m, enum message_state state);
struct message *messages_first(struct messages *ms, enum message_state state);
/* Is it in the active queue? */
bool message_is_active(const struct message *m);
/* The directory of its file, as long as no move is under way. */
enum spool_dir message_dir(const struct message *m);
/* How many are about to leave, but for those that cannot. */
uint32_t messages_to_leave(const struct messages *ms);

/* The open file of a message rests from now on; or is in use again. */
void messages_rest(struct messages *ms, struct message *m, usec_t now);
void messages_use(struct messages *ms, struct message *m);
/* Close its file. */
void messages_close(struct messages *ms, struct message *m);
/* Close all files that rest. */
void messages_close_resting(struct messages *ms);
/* Close those that have rested long enough. When more are to be closed;
 * USEC_NEVER: none rests. */
usec_t messages_end_rest(struct messages *ms, usec_t now);

struct queue_id message_queue_id(const struct message *m);
void message_id(const struct message *m, char out[QUEUE_ID_SIZE]);
/* A number for the queue id, never 0: struct site_report tells messages apart
 * by it. */
uint32_t message_hash(const struct message *m);
/* Take over the trailer of its file; its recipients are to be read. */
void message_set_file(struct message *m, const struct queue_file *file);
/* The message enters the active queue, without a sched_message yet. The offer
 * is the caller's to free. */
struct message_offer *
messages_activate(struct messages *ms, struct message *m, usec_t now);
/* The trailer of which a frame tells. */
struct queue_file message_told_file(const struct msg_MESSAGE *frame);
/* Keeps the recipients of the offer, if there are some, and memory for them. */
void messages_keep_rcpts(
    struct messages *ms, struct message *m, const struct message_offer *offer);
/* The first decision stands. */
void message_decide(struct message *m, enum message_fate fate);
/* The file cannot be opened or read: -errno decides, and the reason of spool is
 * kept. 0 changes nothing. */
void message_fail(struct message *m, int error);
/* Has it recipients that are to be read? */
bool message_has_unread(const struct message *m);
/* Is it this message, and no other of the same inode? */
bool message_is(const struct message *m, usec_t arrival_wall, uint8_t nonce);

#endif
