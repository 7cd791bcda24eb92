/* site/shared_parts.h - the structs of the shared table; inside of the module.
 *
 *	segment.c  the segment: made, kept, checked, mapped
 *	lock.c     the lock of a set, and what its dead owner left
 *	table.c    slots of a set: found, made, taken for another site
 *	line.c     places that are free, and whose turn it is
 *	place.c    one look at a site, under its lock, and what is done in it
 *	column.c   columns: taken, cleared, given up
 *	wake.c     telling a queue that it may have room
 *	handle.c   sites as this process has them open
 *	shared.c   the functions of struct site_table
 *	start.c    start, end, parameters, the way into the segment
 *	work.c     what is not done at once
 *	read.c     readers that do not map
 *
 * In the segment there are numbers only. How many places of a site are taken
 * is nowhere but in the cells of its columns, each written by its owner with
 * one store: there is no count beside them that a death could leave wrong.
 * What is derived from cells (in_use, dead) is made anew when an owner of the
 * lock has died.
 */
#ifndef SITE_SHARED_PARTS_H
#define SITE_SHARED_PARTS_H

#include "site/rules.h"
#include "site/shared.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/queue.h>
#include <bsd/sys/tree.h>

/* ---- the segment ---- */

#define SEGMENT_MAGIC    UINT64_C(0x31534554495351) /* "QSITES1" */
#define SEGMENT_VERSION  2
#define COLUMNS_MAX      256
#define SLOTS_MAX        (UINT32_C(1) << 21)

/* Nobody holds so many: what is above is damage. */
#define BUSY_MOST        (UINT32_C(1) << 20)

/* A turn is kept so long. */
#define SHARED_TURN      (100 * USEC_PER_MSEC)
/* A lock is waited for so long, then its set is left alone: longer each time,
 * as its owner may only be waiting for a processor. */
#define LOCK_LIMIT       (20 * USEC_PER_MSEC)
#define LOCK_TURNS       10 /* so often, while others get it */
#define LOCK_ALONE_LEAST (100 * USEC_PER_MSEC)
#define LOCK_ALONE_MOST  USEC_PER_SEC
/* Who waits looks by itself; who has something to tell tries again. */
#define LOOK_AGAIN       USEC_PER_SEC
#define TELL_AGAIN       (100 * USEC_PER_MSEC)

struct segment_head {
	uint64_t magic;
	uint32_t version;
	uint32_t ways;
	uint64_t size;   /* of the segment */
	uint64_t secret; /* of the hash */
	uint32_t sets, columns;
	uint32_t slot_size, set_size;
	uint32_t number; /* of the table: the next one has the next */
	uint32_t open;   /* 1: places may be taken. Atomic */
	uint64_t spool;  /* which QUEUE_BASE it serves */
};

struct column {
	uint64_t owner; /* queue + 1, generation; 0: free. Atomic */
	uint32_t word;  /* 1: look at the bits. Atomic; a futex */
	uint32_t tid;   /* of the thread that takes locks for it. Atomic */
	/* Of each set: there may be room in it. Atomic. */
	uint64_t bits[];
};

struct slot {
	struct window window; /* while dead: as it was at the death */
	usec_t dead_until;    /* in set->dead */
	uint32_t deaths;
	uint32_t ticket;   /* the next one */
	uint16_t name_len; /* of the whole name */
	char name[127];    /* transport/nexthop, the first bytes; no NUL */
	char why[SITE_WHY_MAX + 1];
	/* Of each column: places held; its ticket, 0: not in line; when it was
	 * told that it is its turn, 0: it was not. Behind them: the seal. */
	uint32_t cells[];
};

/* Seals never change. Who writes over a page, or over all that follows, writes
 * over one of them. */
struct set {
	uint64_t seal;
	uint32_t lock;   /* lock.c */
	uint32_t in_use; /* slots with a cell that is not 0 */
	uint32_t dead;
	uint32_t passed;            /* how often the lock was given back */
	uint64_t hash[SHARED_WAYS]; /* 0: the slot is free */
	usec_t used[SHARED_WAYS];
	/* Columns that found no slot. */
	uint64_t refused[COLUMNS_MAX / 64];
	uint64_t last_seal;
};

_Static_assert(SHARED_WAYS == 32, "a bit of in_use and dead for each");
_Static_assert(sizeof(struct segment_head) == 64, "version 2");
_Static_assert(sizeof(struct set) == 576, "version 2");
_Static_assert(offsetof(struct slot, cells) == 380, "version 2");

/* A segment as this process has mapped it: what its head says is read once. */
struct segment {
	char *base; /* NULL: there is none */
	size_t size;
	uint64_t secret, spool;
	uint32_t sets, columns, number;
	size_t column_size, slot_size, set_size;
	size_t columns_at, sets_at;
};

/* -EINVAL for what cannot be. */
int segment_layout(uint32_t slots, uint32_t columns, struct segment *ret);
int segment_map(int fd, struct segment *ret);
void segment_unmap(struct segment *seg);
/* What its head says, without a mapping. -EBADMSG: not one of ours. */
int segment_read_head(int fd, struct segment *ret);
/* The same from a head that was read. */
int segment_check(
    const struct segment_head *head, uint64_t size, struct segment *ret);

static inline struct column *
segment_column(const struct segment *seg, uint32_t column)
{
	return (
	    void *)(seg->base + seg->columns_at + column * seg->column_size);
}

static inline struct set *
segment_set(const struct segment *seg, uint32_t set)
{
	return (void *)(seg->base + seg->sets_at + set * seg->set_size);
}

static inline struct slot *
set_slot(const struct segment *seg, struct set *set, uint32_t way)
{
	return (void *)((char *)(set + 1) + way * seg->slot_size);
}

static inline struct segment_head *
segment_head(const struct segment *seg)
{
	return (void *)seg->base;
}

/* Still the table that was mapped; one that is lost is all zero. */
static inline bool
segment_is_sound(const struct segment *seg)
{
	const struct segment_head *head = segment_head(seg);

	return head->magic == SEGMENT_MAGIC && head->number == seg->number &&
	    head->secret == seg->secret;
}

static inline bool
segment_is_open(const struct segment *seg)
{
	return __atomic_load_n(&segment_head(seg)->open, __ATOMIC_ACQUIRE) == 1;
}

static inline uint64_t
set_seal(const struct segment *seg, uint32_t set)
{
	return (seg->secret + set) | 1;
}

static inline bool
set_is_sealed(const struct segment *seg, uint32_t set)
{
	const struct set *shared = segment_set(seg, set);

	return shared->seal == set_seal(seg, set) &&
	    shared->last_seal == set_seal(seg, set);
}

static inline uint32_t *
slot_seal(const struct segment *seg, struct slot *slot)
{
	return slot->cells + (size_t)3 * seg->columns;
}

/* Never 0, as memory is that was cut off. */
static inline uint32_t
slot_seal_value(const struct segment *seg)
{
	return (uint32_t)seg->secret | 1;
}

static inline bool
slot_is_sealed(const struct segment *seg, struct slot *slot)
{
	return *slot_seal(seg, slot) == slot_seal_value(seg);
}

static inline uint32_t *
slot_busy_cells(struct slot *slot)
{
	return slot->cells;
}

static inline uint32_t *
slot_tickets(const struct segment *seg, struct slot *slot)
{
	return slot->cells + seg->columns;
}

static inline uint32_t *
slot_turns(const struct segment *seg, struct slot *slot)
{
	return slot->cells + (size_t)2 * seg->columns;
}

/* Columns, a bit for each. */
struct column_mask {
	uint64_t bits[COLUMNS_MAX / 64];
};

static inline void
mask_add(struct column_mask *m, uint32_t column)
{
	m->bits[column / 64] |= UINT64_C(1) << column % 64;
}

static inline void
mask_remove(struct column_mask *m, uint32_t column)
{
	m->bits[column / 64] &= ~(UINT64_C(1) << column % 64);
}

/* ---- this process ---- */

/* A site that somebody here has open, holds a place at, or has something to
 * tell of. What struct site is to the scheduler. */
struct handle {
	struct shared *shared;
	RB_ENTRY(handle) link;
	uint64_t hash;
	struct site *alone; /* while there is no segment */
	void *mine;
	LIST_ENTRY(handle) watch;  /* in its set's, while watched */
	TAILQ_ENTRY(handle) ready; /* in shared->ready, while is_ready */
	struct site_view seen;     /* as it was last looked at */
	char *why;                 /* of seen; memory for one, or NULL */
	usec_t turn_at;            /* its turn since; 0: it is not */
	uint32_t opens, held, set;
	uint32_t owed[SITE_AGENT_DIED + 1]; /* reports that are not told yet */
	uint16_t transport, nexthop_at;
	uint8_t way;  /* where it was last */
	bool waits;   /* the scheduler was told that there is no room */
	bool lined;   /* its cell has, or may have, a ticket */
	bool watched; /* any of waits, lined, owed */
	bool is_ready;
	char name[]; /* transport/nexthop */
};
RB_HEAD(handle_tree, handle);
LIST_HEAD(handle_list, handle);
TAILQ_HEAD(handle_queue, handle);

/* What this process knows of a set. */
struct local_set {
	struct handle_list watched;
	usec_t alone_until; /* its lock was not to be had */
	usec_t alone_for;
	bool unclean; /* our column is not cleared in it yet */
	bool flush;   /* its dead ones are still to be opened */
};

struct waker {
	pthread_t thread;
	int fd; /* eventfd, -1: none */
	uint32_t *word;
	uint32_t own_word; /* while there is no segment */
	int stop;          /* atomic */
	bool runs;
};

struct shared {
	struct site_table table;
	struct sites *alone; /* while there is no segment */
	struct segment seg;
	const char *lost; /* why no more places are to be had; NULL: they are */
	bool uncounted;   /* places are held that seg does not know yet */
	bool borrowed;    /* the mapping is somebody else's */
	uint32_t column;
	uint64_t owner; /* of our column; 0: none */
	struct local_set *sets;
	uint64_t *forgets; /* of each column: its owner, to be cleared; or 0 */
	struct waker waker;
	struct handle_tree handles;
	struct handle_queue ready;
	uint32_t held, watched;
	bool untidy;      /* some forgets, unclean or flush */
	usec_t next_look; /* at all that is watched; USEC_NEVER: none */
	usec_t next_pass; /* at turns that were not used */
	usec_t told;      /* the caller looks again at this time */
	uint64_t found;   /* turns that have come, as this process saw them */
	struct site_backoff backoff;
	uint64_t random, secret;
	char why_before[SITE_WHY_MAX + 1], why_after[SITE_WHY_MAX + 1];
	struct shared_figures figures;
	char **names;
	uint32_t count;
	struct window_rules rules[];
};

/* ---- lock.c ---- */
/* Of the calling thread, as it is in the locks that it has. */
uint32_t lock_thread(void);
/* The word of a lock: nobody has it, or the owner of a column. */
bool lock_can_be(const struct segment *seg, uint32_t word);
/* False: not to be had for now. */
bool set_lock(struct shared *s, uint32_t set, usec_t now);
void set_unlock(struct shared *s, uint32_t set);

/* ---- table.c ---- */
/* -1: the site has no slot; -EBADMSG: its slot was written over. */
#define TABLE_NONE (-1)
int table_find(const struct shared *s, struct set *set, const struct handle *h);
/* A slot for it, as new. -1: all are in use. */
int table_make(
    struct shared *s, struct set *set, const struct handle *h, usec_t now);
bool table_has_spare(const struct set *set);
/* in_use as it follows from the cells; true: in use. */
bool table_note_use(const struct segment *seg, struct set *set, uint32_t way);
/* What no process writes is put into bounds. */
void table_mend_slot(struct slot *slot);
void table_mend(const struct segment *seg, struct set *set);
/* Cells of columns that nobody has, or that cannot be. True: there were. */
bool table_scrub(const struct segment *seg, struct slot *slot);
/* The column has nothing any more in this slot. */
void
table_clear_cell(const struct segment *seg, struct slot *slot, uint32_t column);

/* ---- line.c ---- */
uint32_t line_busy(const struct segment *seg, struct slot *slot);
bool
line_has_room(const struct segment *seg, struct slot *slot, uint32_t column);
void line_in(const struct segment *seg, struct slot *slot, uint32_t column);
void line_out(const struct segment *seg, struct slot *slot, uint32_t column);
/* Everybody leaves, and is to be woken. */
void line_clear(
    const struct segment *seg, struct slot *slot, struct column_mask *woken);
/* Those whose turn it has become are to be woken; those that did not use
 * theirs leave, but for self. */
void line_settle(const struct segment *seg, struct slot *slot, uint32_t self,
    usec_t now, struct column_mask *woken);

/* ---- place.c ---- */
struct look {
	struct shared *s;
	struct handle *h;
	struct set *set;
	struct slot *slot; /* NULL: none */
	const struct window_rules *rules;
	usec_t now;
	uint32_t way;
	struct column_mask woken;
};
/* Locked; what is owed is told. False: not to be had for now. */
bool look_begin(struct look *l, struct handle *h, usec_t now);
/* What was seen is kept, others are woken. */
void look_end(struct look *l);
/* False: while it lasted, or before, somebody has written over what was seen.
 */
bool look_is_sound(const struct look *l);
enum site_state look_state(struct look *l);
void look_line_in(struct look *l);
void look_line_out(struct look *l);
/* False: there is no slot. */
bool look_take(struct look *l);
void look_report(struct look *l, enum site_result result, const char *why);
void look_give_back(struct look *l);
void look_view(struct look *l, struct site_view *ret_view);
/* It leaves the line, and others have their turn. */
void look_pass(struct look *l);
/* Every dead one of a set that is locked is to be open when it is looked at. */
void set_flush(struct shared *s, struct set *set);
/* What was left to do in it is done; it is locked. */
void
set_tidy(struct shared *s, uint32_t set, struct column_mask *woken, usec_t now);
/* There may be a slot to spare again. */
void set_wake_refused(struct set *set, struct column_mask *woken);

/* ---- column.c ---- */
/* -ENOSPC */
int column_claim(struct shared *s, uint64_t owner);
void column_give_up(struct shared *s, usec_t now);
bool column_is_ours(const struct shared *s);
uint64_t column_owner(uint32_t queue, uint32_t generation);
void column_clear_locked(struct shared *s, uint32_t set, uint32_t column,
    struct column_mask *woken, usec_t now);
/* False: not everywhere, for now. */
bool
column_clear(struct shared *s, uint32_t column, uint64_t owner, usec_t now);
bool column_forget(struct shared *s, uint32_t column, usec_t now);

/* ---- wake.c ---- */
int waker_open(struct waker *w);
int waker_start(struct waker *w, uint32_t *word);
void waker_stop(struct waker *w);
void waker_close(struct waker *w);
/* The eventfd, by this process itself; and read. */
void waker_kick(struct waker *w);
void waker_clear(struct waker *w);
void
wake_columns(struct shared *s, const struct column_mask *woken, uint32_t set);

/* ---- handle.c ---- */
struct handle *
handle_get(struct shared *s, uint32_t transport, const char *name);
/* Gone if nothing holds it. */
void handle_release(struct handle *h);
/* watched, as it follows from the rest. */
void handle_watch(struct handle *h);
void handle_set_ready(struct handle *h, bool ready);
/* Memory that lives as long as the handle. */
const char *handle_keep_why(struct handle *h, const char *why);
/* All of them, to the segment: from the table of this process; from another
 * segment, where they wait as before. */
void handles_move(struct shared *s, usec_t now);
/* The places that are held are in the segment. False: not all. */
bool handles_count(struct shared *s, usec_t now);
void handles_free(struct shared *s);
static inline struct site *
handle_site(struct handle *h)
{
	return (struct site *)(void *)h;
}
static inline struct handle *
handle_of(struct site *site)
{
	return (struct handle *)(void *)site;
}
/* ---- work.c ---- */
/* shared_work() is to be called then, to look again; to pass on turns. */
void work_at(struct shared *s, usec_t when);
void work_note_turn(struct handle *h, usec_t now);

/* ---- shared.c ---- */
/* No place is taken any more; why: a constant. */
void shared_lose(struct shared *s, const char *why);
extern const struct site_table shared_functions;

/* ---- start.c ---- */
/* As shared_attach(), in memory that is mapped already and stays. */
int shared_attach_segment(
    struct shared *s, const struct segment *seg, uint64_t owner, usec_t now);

#endif
