/* site/shared_parts.h - the structs of the shared table; inside of the module.
 *
 *	shared_segment.c  the segment: made, kept, checked, mapped
 *	shared_lost.c     whether the table can be believed
 *	shared_lock.c     the lock of a set, and what its dead owner left
 *	shared_slot.c     slots of a set: found, made, taken for another site
 *	shared_waiters.c  queues that wait at a site, and grants of free places
 *	shared_access.c   one access to a site under the lock of its set
 *	shared_member.c   members: claimed, cleared, given up
 *	shared_waker.c    waking other queues, and the loop of this process
 *	shared_handle.c   sites that this process has open
 *	shared.c          the functions of site.h, and places that are kept
 *	shared_start.c    start, end, parameters, attaching to the segment
 *	shared_work.c     work that is left for later
 *	shared_read.c     readers that do not map
 *
 * In the segment there are numbers only. How many places of a site are taken
 * is stored only in the cells of the members, each written by its owner with
 * one store: no count beside them could be left wrong by a death. in_use,
 * which follows from the cells, is made anew when an owner of the lock died.
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

#define SHARED_MAGIC       UINT64_C(0x31534554495351) /* "QSITES1" */
#define SHARED_VERSION     4
#define SHARED_MEMBERS_MAX 256

/* More places than a queue can hold: damage. */
#define BUSY_MOST          (UINT32_C(1) << 20)

/* A grant that is not used ends after this time. */
#define SHARED_GRANT_TIME  (100 * USEC_PER_MSEC)
/* A lock is waited for so long, then avoided: longer each time, as its owner
 * may only be waiting for a processor. */
#define LOCK_LIMIT         (20 * USEC_PER_MSEC)
#define LOCK_ROUNDS        10 /* as often, while others get it */
#define LOCK_AVOID_LEAST   (100 * USEC_PER_MSEC)
#define LOCK_AVOID_MOST    USEC_PER_SEC
/* When sites that are waited at are checked, and results written again. */
#define CHECK_AGAIN        USEC_PER_SEC
#define TELL_AGAIN         (100 * USEC_PER_MSEC)

struct shared_head {
	uint64_t magic;
	uint32_t version;
	uint32_t set_slots;
	uint64_t size;   /* of the segment */
	uint64_t secret; /* of the hash */
	uint32_t sets, members;
	uint32_t slot_size, set_size;
	uint32_t number; /* of the table: the next one has the next */
	uint32_t open;   /* 1: places may be taken. Atomic */
	uint64_t spool;  /* which QUEUE_BASE it serves */
};

struct shared_member {
	uint64_t owner; /* queue + 1, generation; 0: free. Atomic */
	uint32_t word;  /* 1: read the bits. Atomic; a futex */
	uint32_t tid;   /* of the thread that takes locks for it. Atomic */
	/* A bit for each set: there may be room in it. Atomic. */
	uint64_t bits[];
};

struct shared_slot {
	struct window window; /* while dead: as it was at the death */
	usec_t dead_since;    /* in set->dead */
	usec_t dead_until;    /* the same */
	uint32_t deaths;
	uint32_t ticket;   /* the next one */
	uint16_t name_len; /* of the whole name */
	char name[127];    /* transport/nexthop, the first bytes; no NUL */
	char why[SITE_WHY_MAX + 1];
	/* Of each member: places held; its ticket, 0: it does not wait; the
	 * time of its grant, 0: none. Behind them: the seal. */
	uint32_t cells[];
};

/* Seals never change. A write over a page, or over all that follows, breaks
 * one of them. */
struct shared_set {
	uint64_t seal;
	uint32_t lock;   /* shared_lock.c */
	uint32_t in_use; /* slots with a cell that is not 0 */
	uint32_t dead;
	uint32_t passed;                 /* times the lock was given back */
	uint64_t hash[SHARED_SET_SLOTS]; /* 0: the slot is free */
	usec_t used[SHARED_SET_SLOTS];
	/* Members that found no slot. */
	uint64_t refused[SHARED_MEMBERS_MAX / 64];
	uint64_t last_seal;
};

_Static_assert(SHARED_SET_SLOTS == 32, "a bit of in_use and dead for each");
_Static_assert(sizeof(struct shared_head) == 64, "version 4");
_Static_assert(sizeof(struct shared_set) == 576, "version 4");
_Static_assert(offsetof(struct shared_slot, cells) == 388, "version 4");

/* A segment as this process has mapped it; the head is read once. */
struct shared_segment {
	char *base; /* NULL: there is none */
	size_t size;
	uint64_t secret, spool;
	uint32_t sets, members, number;
	size_t member_size, slot_size, set_size;
	size_t members_at, sets_at;
};

/* -EINVAL: a shape that cannot be. */
int shared_segment_layout(
    uint32_t slots, uint32_t members, struct shared_segment *ret);
int shared_segment_map(int fd, struct shared_segment *ret);
void shared_segment_unmap(struct shared_segment *seg);
/* A table for one process: its memory is taken when it is used. */
int shared_create_alone(uint32_t slots, uint64_t secret, int *ret_fd);
/* The head, read without a mapping. -EBADMSG: not a table. */
int shared_segment_read_head(int fd, struct shared_segment *ret);
/* The same from a head that was read. */
int shared_segment_check(
    const struct shared_head *head, uint64_t size, struct shared_segment *ret);

static inline struct shared_member *
shared_segment_member(const struct shared_segment *seg, uint32_t member)
{
	return (
	    void *)(seg->base + seg->members_at + member * seg->member_size);
}

static inline struct shared_set *
shared_segment_set(const struct shared_segment *seg, uint32_t set)
{
	return (void *)(seg->base + seg->sets_at + set * seg->set_size);
}

static inline struct shared_slot *
shared_set_slot(
    const struct shared_segment *seg, struct shared_set *set, uint32_t index)
{
	return (void *)((char *)(set + 1) + index * seg->slot_size);
}

static inline struct shared_head *
shared_segment_head(const struct shared_segment *seg)
{
	return (void *)seg->base;
}

/* Is it still the table that was mapped? One that was cut off is all zero. */
static inline bool
shared_segment_is_sound(const struct shared_segment *seg)
{
	const struct shared_head *head = shared_segment_head(seg);

	return head->magic == SHARED_MAGIC && head->number == seg->number &&
	    head->secret == seg->secret;
}

static inline bool
shared_segment_is_open(const struct shared_segment *seg)
{
	return __atomic_load_n(
		   &shared_segment_head(seg)->open, __ATOMIC_ACQUIRE) == 1;
}

static inline uint64_t
shared_set_seal(const struct shared_segment *seg, uint32_t set)
{
	return (seg->secret + set) | 1;
}

static inline bool
shared_set_is_sealed(const struct shared_segment *seg, uint32_t set)
{
	const struct shared_set *shared = shared_segment_set(seg, set);

	return shared->seal == shared_set_seal(seg, set) &&
	    shared->last_seal == shared_set_seal(seg, set);
}

static inline uint32_t *
shared_slot_seal(const struct shared_segment *seg, struct shared_slot *slot)
{
	return slot->cells + (size_t)3 * seg->members;
}

/* Never 0: memory that was cut off is 0. */
static inline uint32_t
shared_slot_seal_value(const struct shared_segment *seg)
{
	return (uint32_t)seg->secret | 1;
}

static inline bool
shared_slot_is_sealed(
    const struct shared_segment *seg, struct shared_slot *slot)
{
	return *shared_slot_seal(seg, slot) == shared_slot_seal_value(seg);
}

static inline uint32_t *
shared_slot_busy_cells(struct shared_slot *slot)
{
	return slot->cells;
}

static inline uint32_t *
shared_slot_tickets(const struct shared_segment *seg, struct shared_slot *slot)
{
	return slot->cells + seg->members;
}

static inline uint32_t *
shared_slot_grants(const struct shared_segment *seg, struct shared_slot *slot)
{
	return slot->cells + (size_t)2 * seg->members;
}

/* A bit for each member. */
struct shared_mask {
	uint64_t bits[SHARED_MEMBERS_MAX / 64];
};

static inline void
shared_mask_add(struct shared_mask *m, uint32_t member)
{
	m->bits[member / 64] |= UINT64_C(1) << member % 64;
}

static inline void
shared_mask_remove(struct shared_mask *m, uint32_t member)
{
	m->bits[member / 64] &= ~(UINT64_C(1) << member % 64);
}

/* ---- this process ---- */

/* A site that this process has open, holds a place at, waits at, or has results
 * to write for. */
struct site {
	struct shared *shared;
	RB_ENTRY(site) link;
	uint64_t hash;
	void *user;
	LIST_ENTRY(site) watch;  /* of its set, while watched */
	TAILQ_ENTRY(site) ready; /* in shared->ready, while is_ready */
	struct site_view seen;   /* as it was last looked at */
	char *why;               /* of seen; memory for one, or NULL */
	usec_t granted_at;       /* time of the grant; 0: none */
	usec_t opened_at;        /* while opens > 0 */
	usec_t gained_at; /* when a place was last taken that was not kept */
	uint32_t opens, held, set;
	uint32_t kept; /* of held: without a delivery, for the next one */
	uint32_t
	    owed[SITE_AGENT_DIED + 1]; /* results that are not written yet */
	uint32_t doubted;              /* message of owed[SITE_DOUBTED] */
	uint16_t transport, nexthop_at;
	uint8_t index;   /* slot at the last access */
	bool waits;      /* the scheduler was told that there is no room */
	bool has_ticket; /* the cell has, or may have, a ticket */
	bool watched;    /* waits, has_ticket, or owes results */
	bool is_ready;
	char name[]; /* transport/nexthop */
};
RB_HEAD(shared_handle_tree, site);
LIST_HEAD(shared_handle_list, site);
TAILQ_HEAD(shared_handle_queue, site);

/* State of a set in this process. */
struct shared_set_state {
	struct shared_handle_list watched;
	usec_t avoid_until; /* the lock could not be taken */
	usec_t avoid_for;
	bool unclean; /* our member is still to be cleared in it */
	bool flush;   /* dead sites are still to be opened */
};

struct shared_waker {
	pthread_t thread;
	int fd; /* eventfd, -1: none */
	uint32_t *word;
	int stop;   /* atomic */
	int kicked; /* atomic; fd is readable, or will be */
	bool runs;
};

struct shared {
	struct shared_segment seg;
	const char *lost; /* why no place is to be had; NULL: places are */
	bool uncounted;   /* places are held that are not in seg yet */
	bool borrowed;    /* the mapping belongs to the caller */
	uint32_t member;
	uint64_t owner; /* of our member; 0: none */
	struct shared_set_state *sets;
	uint64_t *forgets; /* of each member: the owner to clear, or 0 */
	struct shared_waker waker;
	struct shared_handle_tree handles;
	struct shared_handle_queue ready;
	uint32_t held, watched;
	bool untidy;         /* some forgets, unclean or flush */
	usec_t next_check;   /* of all that is watched; USEC_NEVER: none */
	usec_t next_pass_on; /* of grants that were not used */
	usec_t told;         /* shared_work() is called at this time */
	uint64_t found;      /* grants that checks of this process found */
	struct site_backoff backoff;
	uint64_t random, secret;
	char why_before[SITE_WHY_MAX + 1], why_after[SITE_WHY_MAX + 1];
	struct shared_figures figures;
	bool (*barred)(void *ctx, struct site *site); /* or NULL */
	void *barred_ctx;
	char **names;
	uint32_t count;
	struct window_rules rules[];
};

/* ---- shared_lock.c ---- */
/* The number of the calling thread, as it stands in locks that it has. */
uint32_t shared_lock_thread(void);
/* The word of a lock: free, or the thread of a member. */
bool shared_lock_is_possible(const struct shared_segment *seg, uint32_t word);
/* False: it cannot be taken at the moment. */
bool shared_set_lock(struct shared *s, uint32_t set, usec_t now);
void shared_set_unlock(struct shared *s, uint32_t set);

/* ---- shared_slot.c ---- */
/* SHARED_SLOT_NONE: the site has no slot; -EBADMSG: its slot was written over.
 */
#define SHARED_SLOT_NONE (-1)
int shared_slot_find(
    const struct shared *s, struct shared_set *set, const struct site *h);
/* A new slot for it. SHARED_SLOT_NONE: all are in use. */
int shared_slot_make(
    struct shared *s, struct shared_set *set, const struct site *h, usec_t now);
bool shared_set_has_spare(const struct shared_set *set);
/* The bit of in_use is set or cleared by the cells; true: in use. */
bool shared_slot_note_use(
    const struct shared_segment *seg, struct shared_set *set, uint32_t index);
/* Values that no process writes are put into bounds. */
void shared_slot_mend(struct shared_slot *slot);
void shared_set_mend(const struct shared_segment *seg, struct shared_set *set);
/* Cells of members without an owner, and impossible ones, are cleared. True:
 * there were some. */
bool
shared_slot_scrub(const struct shared_segment *seg, struct shared_slot *slot);
/* The member has no place and no ticket in this slot. */
void shared_slot_clear_cell(const struct shared_segment *seg,
    struct shared_slot *slot, uint32_t member);

/* ---- shared_waiters.c ---- */
uint32_t
shared_slot_busy(const struct shared_segment *seg, struct shared_slot *slot);
bool shared_waiters_has_room(const struct shared_segment *seg,
    struct shared_slot *slot, uint32_t member);
/* Waiters but this member; and queues that wait or hold places. */
uint32_t shared_waiters_count(const struct shared_segment *seg,
    struct shared_slot *slot, uint32_t member, uint32_t *ret_queues);
void shared_waiters_add(const struct shared_segment *seg,
    struct shared_slot *slot, uint32_t member);
void shared_waiters_remove(const struct shared_segment *seg,
    struct shared_slot *slot, uint32_t member);
/* All waiters leave, and are to be woken. */
void shared_waiters_clear(const struct shared_segment *seg,
    struct shared_slot *slot, struct shared_mask *woken);
/* Free places are granted to the oldest waiters, who are to be woken. A waiter
 * that did not use its grant in time leaves, except for self. */
void
shared_waiters_grant(const struct shared_segment *seg, struct shared_slot *slot,
    uint32_t self, usec_t now, struct shared_mask *woken);

/* ---- shared_access.c ---- */
struct shared_access {
	struct shared *s;
	struct site *h;
	struct shared_set *set;
	struct shared_slot *slot; /* NULL: none */
	const struct window_rules *rules;
	usec_t now;
	uint32_t index;
	struct shared_mask woken;
};
/* The set is locked, and results that are owed are written. False: it cannot
 * be locked at the moment, or the table is lost. */
bool shared_access_begin(struct shared_access *a, struct site *h, usec_t now);
/* The view is kept, the lock given back, others are woken. */
void shared_access_end(struct shared_access *a);
/* False: the set or slot was written over, before the access or during it. */
bool shared_access_is_sound(const struct shared_access *a);
enum site_state shared_access_state(struct shared_access *a);
/* The state; the queue is in line if it waits and the site is full, and out of
 * line if it does not wait. */
enum site_state shared_access_look(struct shared_access *a, bool waits);
/* False: there is no slot. */
bool shared_access_take(struct shared_access *a);
void
shared_access_report(struct shared_access *a, const struct site_report *report);
void shared_access_give_back(struct shared_access *a);
/* A place that is kept here may be taken. */
bool shared_access_has_kept(const struct shared_access *a);
enum shared_want shared_access_want(
    const struct shared_access *a, uint32_t given_up, usec_t turn);
void shared_access_view(struct shared_access *a, struct site_view *ret_view);
/* Others get the grant of this queue, which is the last waiter then if it still
 * waits. */
void shared_access_pass_on(struct shared_access *a);
/* Every dead site of a set, which is locked, opens at the next access. */
void shared_set_flush(struct shared *s, struct shared_set *set);
/* Do the work that was left for later in a set, which is locked. */
void shared_set_tidy(
    struct shared *s, uint32_t set, struct shared_mask *woken, usec_t now);
/* Members that found no slot are to be woken, if there is one again. */
void shared_set_wake_refused(struct shared_set *set, struct shared_mask *woken);

/* ---- shared_member.c ---- */
/* -ENOSPC */
int shared_member_claim(struct shared *s, uint64_t owner);
void shared_member_give_up(struct shared *s, usec_t now);
uint64_t shared_member_owner(uint32_t queue, uint32_t generation);
void shared_member_clear_locked(struct shared *s, uint32_t set, uint32_t member,
    struct shared_mask *woken, usec_t now);
/* False: not in all sets yet. */
bool shared_member_clear(
    struct shared *s, uint32_t member, uint64_t owner, usec_t now);
bool shared_member_forget(struct shared *s, uint32_t member, usec_t now);

/* ---- shared_waker.c ---- */
int shared_waker_open(struct shared_waker *w);
int shared_waker_start(struct shared_waker *w, uint32_t *word);
void shared_waker_stop(struct shared_waker *w);
void shared_waker_close(struct shared_waker *w);
/* The eventfd is written by this process itself; and read. */
void shared_waker_kick(struct shared_waker *w);
void shared_waker_clear(struct shared_waker *w);
void shared_wake_members(
    struct shared *s, const struct shared_mask *woken, uint32_t set);

/* ---- shared_handle.c ---- */
struct site *
shared_handle_get(struct shared *s, uint32_t transport, const char *name);
/* The handle is freed if nothing holds it. */
void shared_handle_release(struct site *h);
/* `watched` is set or cleared by the other fields. */
void shared_handle_watch(struct site *h);
void shared_handle_set_ready(struct site *h, bool ready);
/* A copy of the reason that lives as long as the handle. */
const char *shared_handle_keep_why(struct site *h, const char *why);
/* Every handle finds its set in s->sets, which are those of a new segment; it
 * waits as before. */
void shared_handles_move(struct shared *s);
/* The places that are held are written into the segment. False: not all. */
bool shared_handles_count(struct shared *s, usec_t now);
void shared_handles_free(struct shared *s);

/* ---- shared_work.c ---- */
/* shared_work() is to be called then: to check; to pass on grants. */
void shared_work_at(struct shared *s, usec_t when);
void shared_work_note_grant(struct site *h, usec_t now);

/* ---- shared.c ---- */
/* No place is taken any more. why: a constant. */
void shared_lose(struct shared *s, const char *why);

/* ---- shared_start.c ---- */
/* As shared_attach(), in memory that is mapped already. */
int shared_attach_segment(struct shared *s, const struct shared_segment *seg,
    uint64_t owner, usec_t now);

#endif
