/* sched/parts.h - the structs of the scheduler; inside of the module.
 *
 *	sched.c        start, parameters, figures, and why a message waits
 *	message.c      messages: recipients come in, batches, the end
 *	entry.c        entries that wait, first in, first out
 *	peer.c         peers: the ring of a job, the line of a
 *	               destination
 *	destination.c  destinations: open (room), full, dead
 *	job.c          the job list, the preemption tree
 *	index.c        the job that may preempt the current one
 *	select.c       selecting and ending
 *	pool.c         how many recipients may be in memory
 *	order.c        a list whose elements can be compared
 *
 * The scheduler owns its transports, a message its jobs, a peer its entries
 * that wait. A job lives as long as its message, a peer while entries of it
 * wait or run, a destination while it has peers.
 *
 * The ring of a job holds its peers with entries, in rotation. The line of a
 * destination holds its peers with entries, in the order of the job list.
 */
#ifndef SCHED_PARTS_H
#define SCHED_PARTS_H

#include "base/slab.h"
#include "sched/entry.h"
#include "sched/sched.h"

#include <sys/queue.h>
#include <bsd/sys/tree.h>

/* ---- order.c ---- */

/* A list whose elements can be compared: a label in each follows the order of
 * the list, so that trees can be sorted by it.
 *
 * Inserting costs O(log n), amortized, and mostly nothing: where there is no
 * label between two neighbours, the labels around them are spread. That keeps
 * their order, so trees that compare labels stay right; copies of labels are
 * mended by `moved`. */
struct order_node {
	TAILQ_ENTRY(order_node) link;
	uint64_t label;
};
TAILQ_HEAD(order_list, order_node);

/* How the labels of a list are given. */
struct order_labels {
	uint64_t gap; /* between neighbours at the end; small: soon spread */
	void (*moved)(struct order_node *node); /* a label has changed; NULL */
};
#define ORDER_GAP ((uint64_t)1 << 32)

#define ORDER_OF(node, type, field) \
	((type *)(void *)((char *)(uintptr_t)(node)-offsetof(type, field)))

/* Directly before `before`; NULL: at the end. */
void order_insert(struct order_list *o, struct order_node *before,
    struct order_node *node, const struct order_labels *labels);
/* The next one of the ring; the first follows the last. */
struct order_node *
order_next(const struct order_list *o, const struct order_node *node);

/* ---- both ends of a tree ---- */

/* elm is put before all others, of which `min` is the first, or after all, of
 * which `max` is the last; NULL: the tree is empty. Unlike RB_INSERT() nothing
 * is compared, and no node on the way from the root is read. */
#define TREE_PUT_FIRST(name, head, min, elm, field) \
	TREE_PUT(name, head, min, RB_LEFT, elm, field)
#define TREE_PUT_LAST(name, head, max, elm, field) \
	TREE_PUT(name, head, max, RB_RIGHT, elm, field)
#define TREE_PUT(name, head, end, side, elm, field) \
	do {                                        \
		RB_SET(elm, end, field);            \
		if ((end) == NULL)                  \
			RB_ROOT(head) = (elm);      \
		else                                \
			side(end, field) = (elm);   \
		name##_RB_INSERT_COLOR(head, elm);  \
	} while (0)

/* ---- the structs ---- */

/* An entry that was taken from its peer: what the caller holds. */
struct taken {
	struct sched_entry pub; /* first: they are the same address */
	struct entry *entry;
	struct peer *peer;
	bool has_place; /* at its site; false: the site was dead */
	SLIST_ENTRY(taken) spare;
};
SLIST_HEAD(taken_list, taken);

struct peer {
	struct job *job;
	struct destination *destination;
	struct entry_queue entries;
	uint32_t running; /* entries taken and not done */
	bool loading;     /* the batch of the peer is being read */
	bool lined;       /* in the ring and the line */
	union {
		struct order_node ring; /* if lined */
		uint64_t group; /* if loading: sched_rcpt_add_shared() */
	};
	RB_ENTRY(peer) line; /* of the destination; in loading if that */
};
RB_HEAD(line_tree, peer);
RB_HEAD(loading_tree, peer);

struct destination {
	struct site *site;
	uint32_t peers;
	uint16_t nexthop_at; /* in the site's name */
	uint8_t state;       /* enum site_state, at the last call */
	bool open;  /* in transport->open: has room and peers in line */
	bool dying; /* in sched->dead: dead, with peers in line */
	bool waits; /* this scheduler waits there (site_wait()) */
	struct line_tree line;
	struct peer *first_peer, *last_peer; /* of the line */
	union {
		RB_ENTRY(destination) link;    /* if open */
		TAILQ_ENTRY(destination) dead; /* if dying */
	};
	uint64_t order_key, ring_key; /* in open: labels of first_peer */
};
RB_HEAD(open_tree, destination);
TAILQ_HEAD(dead_list, destination);

/* The part of a job that is there while its message is still being read. */
struct job_reading {
	struct job *job;
	bool unread; /* in transport->unread: the job is listed */
	RB_ENTRY(job_reading) link;
	struct loading_tree loading; /* peers of that batch */
	struct peer *last_loading;
	uint32_t expected; /* entries, by the census */
	uint32_t made;     /* entries that there ever were */
};
RB_HEAD(unread_tree, job_reading);

/* The children of one job in the preemption tree. When the job leaves, they are
 * those of its parent: nothing is done for each of them. A chain of these is no
 * longer than the tree was high. */
struct branch {
	struct job *job;     /* the parent; NULL: there is none */
	struct branch *into; /* NULL: the branch is no part of another */
	uint32_t children;   /* of job, all of them */
	uint32_t users;      /* job, direct children, what is part of this */
};

/* A job as the index knows it; 0: it is not there. */
struct indexed {
	uint32_t needed, total;
};

/* A job in one tree of the index. */
struct index_node {
	RB_ENTRY(index_node) link;
	struct job *job;
	struct job *best; /* of those at and below the node, or NULL */
	usec_t until;     /* the last time at which it is known to be so */
	uint32_t block;   /* the need without its lower bits */
};
RB_HEAD(index_tree, index_node);
#define INDEX_BITS 32

struct job {
	struct sched_message *message;
	struct transport *transport;
	SLIST_ENTRY(job) of_message;
	struct job_reading *reading; /* NULL: no more entries will come */
	bool listed;                 /* in transport->jobs */
	bool moved;    /* has preempted, so it is not in order of arrival */
	uint32_t held; /* recipients in memory */
	struct order_node order;
	struct indexed indexed;
	union {
		RB_ENTRY(job) arrival; /* in by_arrival: listed, not moved */
		struct {               /* moved */
			struct branch *above; /* NULL: none */
			int64_t credit;       /* paid for and not used, units of
						 1/price slot */
			uint32_t price; /* cost when the parent paid; 0: no
					   account */
		};
	};
	struct branch *below; /* the children; NULL: there were none */
	int64_t slots;        /* units of 1/cost slot */
	/* entries */
	struct order_list ring; /* lined peers in rotation */
	struct peer *turn;      /* comes first at the next selection */
	uint32_t waiting;       /* of those, in lined peers */
	uint32_t total;         /* rule 6 */
	uint32_t selected;      /* or deferred without an attempt */
	int32_t limit;          /* slots of the pool, for recipients */
};
SLIST_HEAD(job_list, job);
RB_HEAD(arrival_tree, job);

struct transport {
	struct sched *sched;
	uint32_t index;
	bool used; /* in sched->turns */
	TAILQ_ENTRY(transport) turn;
	struct sched_transport_params params;
	struct order_list jobs;
	/* Where selection stands; NULL: behind the last job. Invariant: no job
	 * before the current one has an entry for a destination with room. */
	struct job *current;
	/* Jobs that can be candidates, by what they need. One that has changed
	 * is late until another one changes, or a search needs it: mostly the
	 * current one, which is no candidate. */
	struct index_tree classes[INDEX_BITS], zeros[INDEX_BITS];
	struct job *late; /* or NULL */
	usec_t searched;  /* the time of scores: the latest that was given */
	struct open_tree open;
	struct destination *first, *last; /* of open */
	struct arrival_tree by_arrival;
	struct job *youngest; /* of by_arrival, or NULL */
	struct unread_tree unread;
	uint32_t busy, njobs;
	int64_t unused; /* slots of the pool; below 0 what the extra pool lent,
			   or a reload took away */
};

TAILQ_HEAD(transport_turns, transport);

/* The part of a message that is there while it is still being read. */
struct reading {
	struct sched_message *message;
	bool begun; /* the first batch was read */
	bool asked; /* a batch is being read, or is to be */
	bool due;   /* in sched->due, by due_at */
	usec_t read_at, due_at;
	RB_ENTRY(reading) link;
};
RB_HEAD(due_tree, reading);

struct sched_message {
	struct sched *sched;
	void *owner;
	usec_t arrival;
	TAILQ_ENTRY(sched_message) link;
	struct job_list jobs;
	struct reading *reading; /* NULL: read to the end */
	uint64_t number;         /* of the messages so far */
	uint32_t waiting;        /* recipients */
	uint32_t running;        /* entries */
	uint32_t held;           /* recipients in memory */
	bool single;             /* one recipient to an entry */
};
TAILQ_HEAD(message_list, sched_message);

/* Where the structs of the scheduler come from. pages: of those that only new
 * mail needs more of. */
struct slabs {
	struct page_source pages;
	struct slab message, reading, job, job_reading, peer,
	    entry[ENTRY_KINDS], destination, index;
};

struct sched {
	struct sched_params params;
	struct slabs slabs;
	struct shared *sites;
	struct order_labels job_labels, ring_labels;
	struct sched_watch watch;
	struct transport *transports;
	uint32_t count;
	struct transport_turns turns; /* transports ever used, in rotation */
	uint64_t number;              /* of the last message */
	usec_t now;                   /* as it was last given */
	struct message_list messages; /* by arrival */
	struct due_tree due;
	struct dead_list dead;
	struct taken_list spare_taken;
	/* Recipients in memory above the minimum of their message, and the
	 * most that there may be: see pool.c. */
	int64_t above, above_most;
	struct sched_figures figures;
};

/* message.c */
/* No more will be read of it. */
void message_read(struct sched_message *m);

/* peer.c */
/* group: 0, or recipients of another group come into other entries. */
int peer_add_rcpt(struct job *job, struct destination *d, uint64_t group,
    const struct sched_rcpt *rcpt);
/* The batch that was read becomes part of the job, which is listed. */
void job_take_loading(struct job *job);
/* The batch that is being read is dropped. */
void job_drop_loading(struct job *job);
struct taken *taken_get(struct sched *s); /* NULL: no memory */
void taken_spare(struct sched *s, struct taken *taken);
/* The first waiting entry moves into *taken. */
void peer_take(struct peer *p, bool has_place, struct taken *taken);
/* The entry moves back to the head. */
void peer_untake(struct taken *taken);
/* A peer of the job for that destination, for an entry that moves there: one
 * that has entries, or a new one. NULL: no memory. */
struct peer *peer_for_move(struct job *job, struct destination *d);
/* The entry moves to its end. The peer that it was of may be gone then. */
void peer_move(struct taken *taken, struct peer *to);
/* The entry is over. */
void taken_end(struct taken *taken);
/* All peers of the job leave and enter their lines while its place changes. */
void job_leave_lines(struct job *job);
void job_enter_lines(struct job *job);
void job_drop_waiting(struct job *job);

/* destination.c */
struct destination *
destination_get(struct transport *t, const char *name, size_t nexthop_at);
/* Free it if it has no peers. */
void destination_release(struct transport *t, struct destination *d);
/* The destination enters or leaves open and dead, by first_peer and state. */
void destination_place(struct transport *t, struct destination *d);
/* state is read from the site. */
void destination_ask(struct transport *t, struct destination *d);
/* Both. */
void destination_refresh(struct transport *t, struct destination *d);
/* The site has room and no agent is free: the grant is given up, so that other
 * queues can use it. The state stays as if there were room, so the destination
 * is tried again when an agent is free. */
void destination_step_aside(struct transport *t, struct destination *d);
void destination_line_in(struct peer *p);
void destination_line_out(struct peer *p);
/* How many peers stand before it in its line; they are counted up to most, and
 * *ret_more says whether there are more. */
uint32_t destination_line_before(struct peer *p, uint32_t most, bool *ret_more);
struct peer *destination_find(struct destination *d, struct job *job);
/* The first job of the list that is not full, or NULL. */
struct job *transport_first(struct transport *t);
/* The peer of that job that is next in its ring and has room. */
struct peer *transport_turn(struct transport *t, struct job *first);
void job_order_moved(struct order_node *node);
void peer_ring_moved(struct order_node *node);

static inline const char *
peer_name(const struct peer *p)
{
	return site_name(p->destination->site);
}

/* job.c */
struct job *job_get(struct sched_message *m, struct transport *t);
void job_list_in(struct job *job);
/* The job leaves job list and preemption tree. */
void job_list_out(struct job *job);
/* The job leaves the tree: slots that it did not use go back to its parent, its
 * children become the parent's. */
void job_leave_tree(struct job *job);
/* The job can have children: false without memory. */
bool job_can_branch(struct job *job);
/* The job, which has moved, is a child of this one. */
void job_enter_tree(struct job *job, struct job *parent);
/* The branch that it is part of now. */
struct branch *branch_root(struct branch *b);
/* The job moves directly before the current one and is current. */
void job_pass_current(struct job *job);
void job_recount(struct job *job); /* total is computed anew */
/* No more entries will come. */
void job_read(struct job *job);

/* index.c */
/* total, selected or children of the job have changed, or it is listed anew. */
void index_update(struct job *job);
/* The job leaves the list, or is about to move. */
void index_remove(struct job *job);
/* All jobs of the list: there may be preemption now. */
void index_fill(struct transport *t);
/* No candidate needs less, wherever it stands; UINT32_MAX: there is none. */
uint32_t index_least_needed(struct transport *t);
/* The job behind the current one that needs at most `most` entries and has the
 * best score; NULL: there is none. The caller has called index_least_needed()
 * first. */
struct job *index_best(struct transport *t, uint32_t most, double *ret_score);

/* pool.c */
void pool_link(struct job *job);
/* The job is not among the unread any more. */
void pool_read(struct job *job, struct job_reading *reading);
void pool_pass(struct job *job);
void pool_preempt(struct job *job);
/* recipient_limit has changed. */
void pool_resize(struct transport *t, uint32_t was);
/* When its next batch is due. */
void message_refill(struct sched_message *m);
int64_t message_room(const struct sched_message *m);
/* So many recipients of the job more, or less, are in memory. */
void pool_held(struct sched_message *m, struct job *job, int64_t change);
/* Recipients above the minimum, of a message with `held` in memory. */
int64_t held_above(const struct sched *s, uint32_t held);
/* The bound is computed from the parameters. */
void pool_set_bound(struct sched *s);

/* Entries that are still to be selected. */
static inline uint32_t
job_needed(const struct job *job)
{
	return job->total - job->selected;
}
/* Rule 5.2: the most entries that the job can pay for before it ends. */
static inline uint32_t
job_affordable(const struct job *job)
{
	int64_t most = ((int64_t)job_needed(job) + job->slots) /
	    job->transport->params.delivery_slot_cost;

	return most < 0 ? 0 : most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}
static inline struct sched_job_view
job_view(const struct job *job)
{
	return (struct sched_job_view){ job->message->owner, job->slots,
		job->total, job->selected };
}
/* The job that it preempted, or that has taken it over, or NULL. */
static inline struct job *
job_parent(const struct job *job)
{
	return job->moved && job->above != NULL ? branch_root(job->above)->job
						: NULL;
}
/* The price of each of its entries, by its parent; 0: there is no account. */
static inline uint32_t
job_price(const struct job *job)
{
	return job->moved ? job->price : 0;
}
static inline bool
job_has_children(const struct job *job)
{
	return job->below != NULL && job->below->children > 0;
}

static inline int
label_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}
static inline int
message_order(const struct sched_message *a, const struct sched_message *b)
{
	return label_order(a->number, b->number);
}

#endif
