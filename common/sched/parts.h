/* sched/parts.h - the structs of the scheduler; inside of the module.
 *
 *	sched.c        start, parameters, figures
 *	message.c      messages: recipients come in, batches, the end
 *	peer.c         peers and entries: the ring of a job, the line of a
 *	               destination
 *	destination.c  room and no room: the open ones
 *	job.c          the job list, the preemption tree
 *	candidate.c    who may preempt
 *	select.c       selecting and ending
 *	pool.c         how many recipients may be in memory
 *	order.c        a list whose elements can be compared
 *	check.c        what must hold between all of them
 *
 * Who owns what: the scheduler its transports, a message its jobs, a peer its
 * entries that wait. A job lives as long as its message, a peer while entries
 * of it wait or run, a destination while it has peers, a class while jobs use
 * it.
 */
#ifndef SCHED_PARTS_H
#define SCHED_PARTS_H

#include "sched/order.h"
#include "sched/sched.h"

#include <sys/queue.h>
#include <bsd/sys/tree.h>

struct total_class;

enum entry_state {
	ENTRY_WAITING, /* in peer->entries, also in a batch being read */
	ENTRY_RUNNING, /* has a place at its site */
	ENTRY_UNTRIED, /* taken from a dead destination */
};

struct entry {
	struct sched_entry pub; /* rcpts points to `one` or to memory of ours */
	TAILQ_ENTRY(entry) link;
	struct peer *peer;
	uint16_t room; /* in pub.rcpts */
	uint8_t state; /* enum entry_state */
	struct sched_rcpt one;
};
TAILQ_HEAD(entry_queue, entry);

struct peer {
	struct job *job;
	struct destination *destination;
	struct entry_queue entries;
	uint32_t running; /* entries taken and not done */
	bool fresh;       /* in job->fresh: its batch is being read */
	bool lined;       /* in the ring and the line: entries wait */
	bool ranked;      /* in destination->ranks, its job being parked */
	bool head;        /* in its class's heads: ranked, first, open */
	struct order_node ring;
	RB_ENTRY(peer) line; /* of the destination; in job->fresh if fresh */
	RB_ENTRY(peer) rank;
	RB_ENTRY(peer) heads;
	LIST_ENTRY(peer) first; /* in destination->firsts */
};
RB_HEAD(line_tree, peer);
RB_HEAD(fresh_tree, peer);
RB_HEAD(rank_tree, peer);
RB_HEAD(head_tree, peer);
LIST_HEAD(first_list, peer);

struct destination {
	struct transport *transport;
	struct site *site;
	const char *name, *nexthop; /* both the site's */
	uint32_t peers;
	uint8_t state; /* enum site_state, as last heard */
	bool open;     /* in transport->open: room, and somebody in line */
	bool dying;    /* in sched->dead: dead, and somebody in line */
	struct line_tree line;
	struct peer *front; /* first of the line */
	RB_ENTRY(destination) link;
	uint64_t at, ring_at; /* its key in open: the labels of front */
	TAILQ_ENTRY(destination) dead;
	struct rank_tree ranks;
	struct first_list firsts; /* of each class and octave in ranks */
};
RB_HEAD(open_tree, destination);
TAILQ_HEAD(dead_list, destination);

/* Where candidate.c finds a job. */
enum job_index {
	INDEX_NONE,
	INDEX_FREE,   /* itself, in its class */
	INDEX_PARKED, /* its peers, in the ranks of their destinations */
};

LIST_HEAD(job_children, job);
struct job {
	struct sched_message *message;
	struct transport *transport;
	SLIST_ENTRY(job) of_message;
	bool listed;     /* in transport->jobs */
	bool moved;      /* has preempted: stands out of the order of arrival */
	bool fully_read; /* no more entries will come */
	bool is_unread;  /* in transport->unread */
	uint8_t index;   /* enum job_index */
	uint8_t octave;  /* as indexed: 0 unbegun, else 1 + log2(needed) */
	struct order_node order;
	RB_ENTRY(job) arrival; /* in transport->by_arrival: listed, not moved */
	RB_ENTRY(job) unread;  /* in transport->unread: listed, not read */
	RB_ENTRY(job) free;    /* in its class */
	/* preemption */
	struct job *parent;
	struct job_children children;
	LIST_ENTRY(job) sibling;
	int64_t slots;  /* units of 1/cost slot */
	int64_t credit; /* of what the parent paid, not yet used; same units */
	uint32_t price; /* cost when it paid; 0: there is no account */
	/* entries */
	struct order ring; /* of lined peers */
	struct peer *turn; /* the one that comes first next time */
	struct fresh_tree fresh;
	struct peer *last_fresh;
	uint32_t made;     /* that there ever were */
	uint32_t waiting;  /* of those, in lined peers */
	uint32_t total;    /* rule 6 */
	uint32_t selected; /* or dealt with without an attempt */
	uint32_t expected; /* by the census */
	struct total_class *class;
	/* recipients */
	uint32_t held; /* in memory */
	int64_t limit; /* slots of the pool */
};
SLIST_HEAD(job_list, job);
RB_HEAD(arrival_tree, job);
RB_HEAD(unread_tree, job);
RB_HEAD(free_tree, job);

/* Jobs of one total, see candidate.c. */
struct class_octave {
	struct free_tree free;
	struct head_tree heads;
};
struct total_class {
	RB_ENTRY(total_class) link;
	uint32_t total;
	uint32_t users; /* jobs whose class it is */
	uint8_t octaves;
	struct class_octave octave[];
};
RB_HEAD(class_tree, total_class);

struct transport {
	struct sched *sched;
	uint32_t index;
	struct sched_transport_params params;
	struct order jobs;
	struct open_tree open;
	struct arrival_tree by_arrival;
	struct unread_tree unread;
	struct class_tree classes;
	uint32_t busy, njobs;
	int64_t unused; /* slots of the pool; down to -extra_recipient_limit */
};

struct sched_message {
	struct sched *sched;
	void *owner;
	usec_t arrival;
	uint64_t seq; /* among messages of one instant */
	TAILQ_ENTRY(sched_message) link;
	struct job_list jobs;
	uint32_t waiting; /* recipients */
	uint32_t running; /* entries */
	uint32_t held;    /* recipients in memory */
	bool begun;       /* its first batch was read */
	bool reading;     /* it is the owner's turn to read */
	bool all_read, due;
	usec_t read_at, due_at;
	RB_ENTRY(sched_message) due_link; /* in sched->due */
};
TAILQ_HEAD(message_list, sched_message);
RB_HEAD(due_tree, sched_message);

struct sched {
	struct sched_params params;
	const struct site_table *sites;
	struct sched_watch watch;
	struct transport *transports;
	uint32_t count;
	uint32_t turn; /* the transport that comes first next time */
	uint64_t seq;
	usec_t now;                   /* as it was last given */
	struct message_list messages; /* by arrival */
	struct due_tree due;
	struct dead_list dead;
	struct sched_figures figures;
};

/* message.c */
void message_held(struct sched_message *m, struct job *job, int64_t change);

/* peer.c */
int peer_add_rcpt(
    struct job *job, struct destination *d, const struct sched_rcpt *rcpt);
/* What was read becomes part of the job, which is listed. */
void job_take_fresh(struct job *job);
/* Everything that is being read is dropped. */
void job_drop_fresh(struct job *job);
/* The first entry that waits is no more among those. */
struct entry *peer_take(struct peer *p, enum entry_state state);
/* And back again, at the head. */
void peer_untake(struct entry *e);
/* The entry is over. */
void entry_end(struct entry *e);
/* Off and onto the lines while the job's place changes. */
void job_leave_lines(struct job *job);
void job_enter_lines(struct job *job);
void job_drop_waiting(struct job *job);

/* destination.c */
struct destination *
destination_get(struct transport *t, const char *name, size_t nexthop_at);
/* Free it if it has no peers. */
void destination_release(struct destination *d);
/* Its place in open and dead is put right, by front and state. */
void destination_place(struct destination *d);
/* The site is asked for its state. */
void destination_ask(struct destination *d);
/* Both. */
void destination_refresh(struct destination *d);
void destination_line_in(struct peer *p);
void destination_line_out(struct peer *p);
struct peer *destination_find(struct destination *d, struct job *job);
/* The current job of the transport, or NULL. */
struct job *transport_current(struct transport *t);
/* Of the current job, the peer whose turn it is. */
struct peer *transport_turn(struct transport *t, struct job *current);
void job_order_moved(struct order_node *node);
void peer_ring_moved(struct order_node *node);

/* job.c */
struct job *job_get(struct sched_message *m, struct transport *t);
void job_list_in(struct job *job);
/* It leaves job list and preemption tree. */
void job_list_out(struct job *job);
/* Out of the tree: what it did not use goes back, its children go up. */
void job_leave_tree(struct job *job);
void job_move_before(struct job *job, struct job *current);
/* total and class as they follow from what is known now. */
void job_recount(struct job *job);
uint32_t job_needed(const struct job *job);

/* candidate.c */
int class_want(struct job *job, uint32_t total);
void class_leave(struct job *job);
/* Into the index it belongs to, or out of any. */
void candidate_update(struct job *job);
void candidate_drop(struct job *job);
void candidate_forget_peer(struct peer *p);
/* A destination has opened or closed. */
void candidate_heads(struct destination *d, bool open);
struct job *candidate_best(
    struct job *current, uint32_t most, usec_t now, double *ret_score);

/* pool.c */
void pool_link(struct job *job);
void pool_pass(struct job *job);
void pool_preempt(struct job *job);
void pool_resize(struct transport *t, uint32_t was, uint32_t is);
/* When its next batch is due. */
void message_refill(struct sched_message *m);
int64_t message_room(const struct sched_message *m);

#define MESSAGE_BEFORE(a, b)                                        \
	((a)->arrival != (b)->arrival ? (a)->arrival < (b)->arrival \
				      : (a)->seq < (b)->seq)
static inline int
message_order(const struct sched_message *a, const struct sched_message *b)
{
	return a == b ? 0 : MESSAGE_BEFORE(a, b) ? -1 : 1;
}
static inline int
label_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

#endif
