/* site/shared.h - one destination, one window, however many queues: the table
 * of destinations in shared memory. site/site.h has what is done at one site.
 * Design: docs/SITES.md. Rules of windows and deaths: docs/SCHEDULING.md, 2 and
 * 3.
 *
 * The supervisor makes the segment and never maps it afterwards. Each
 * queue-send maps it and is a member of it: the member's cells say how many
 * places it holds at each site, and whether it waits there. All processes that
 * map the segment belong to one user and trust each other's data, but not each
 * other's life: a lock whose owner died is taken over, and the set that it
 * guards is mended; a lock whose owner is stopped is waited for a moment, and
 * results are written later.
 *
 * A set of SHARED_SET_SLOTS slots has one lock; the hash of a site's name
 * chooses its set. A slot without places and waiters may be taken for another
 * site, the least recently used first: what was learned is lost then, a limit
 * never is. A site whose set has no such slot waits for one.
 */
#ifndef SITE_SHARED_H
#define SITE_SHARED_H

#include <sys/types.h>

#include "site/site.h"

#define SHARED_SET_SLOTS 32
#define SHARED_SLOTS_MAX (UINT32_C(1) << 21)

/* ---- supervisor ---- */

struct shared_shape {
	uint32_t slots;   /* at least; rounded up to whole sets */
	uint32_t members; /* queues that can have one at the same time */
	uint64_t spool;   /* which QUEUE_BASE: what was learned of another one's
			   * destinations is not for this one */
};
struct shared_owner {
	uid_t uid; /* (uid_t)-1: leave */
	gid_t gid; /* (gid_t)-1: leave, and it may not read */
};
/* The segment under this name (IPC_NAME_MAX), mode 0640, without a group 0600:
 * one that is there, belongs to owner and has this shape and layout is kept,
 * since processes of a supervisor that was killed may still have deliveries in
 * it; anything else is replaced by a new one. Open for reading and writing, its
 * memory allocated. -EPERM: the name is somebody else's; -EEXIST: it came back
 * at every try; -ENOSPC, …
 * name NULL: a new segment without a name, for a host whose shared memory a
 * user has filled. Nobody can truncate it, and no reader finds it. */
int shared_create(const char *name, const struct shared_shape *shape,
    const struct shared_owner *owner, int *ret_fd);
/* The identity of a table. */
struct shared_id {
	uint64_t secret;
	uint32_t number;
	bool open;
	bool named; /* the table has a name in shared memory */
};
int shared_identify(int fd, struct shared_id *ret);
/* A table in the place of `old`, whatever is there under the name; name NULL: a
 * table without a name. Its number is the next one; each site has the set that
 * it had before. */
int shared_renew(const char *name, const struct shared_shape *shape,
    const struct shared_owner *owner, const struct shared_id *old, int *ret_fd);
/* A new table is closed, and no place is taken in it before this call, so that
 * all places that are held can be counted in it first. */
int shared_open_up(int fd);
/* -ENOENT, -EBADMSG: the table is not what it was; *ret_why says why, to follow
 * its name. */
int shared_check(int fd, const struct shared_id *id, const char **ret_why);
/* The owners of all members. visit returns false when all processes of that
 * owner are gone: the member is free then. */
int shared_owners(int fd,
    bool (*visit)(void *ctx, uint32_t queue, uint32_t generation), void *ctx);

/* ---- queue-send ---- */

struct shared_params {
	const struct site_params *sites; /* of each transport */
	const char *const *names; /* of each: part of a site's name here */
	uint32_t count;
	struct site_backoff backoff;
};

struct shared;
/* Without a segment yet: no site has room until there is one. seed: of random
 * spreads. */
int shared_new(const struct shared_params *params, uint64_t seed,
    struct shared **ret_shared);
/* With a table of so many slots that no other process has and that has no name,
 * as simulations and tests want it: the same parameters, seed and calls give
 * the same results. -EINVAL: slots is 0 or too large. */
int shared_new_alone(const struct shared_params *params, uint32_t slots,
    uint64_t seed, struct shared **ret_shared);
/* All places are given back, no site is waited for, the member is free. */
void shared_free(struct shared **shared);
/* Called before shared_free(): all of that is left undone, since there may
 * still be connections. The member stays as it is until it is forgotten. */
void shared_abandon(struct shared *shared);
/* New parameters, by index; names stay as they were. A window is cut to a new
 * limit when the site is used next. -EINVAL for another count. Then
 * sched_configure(). */
int shared_configure(struct shared *shared, const struct shared_params *params);

/* From now on in the segment of fd, which stays the caller's: the first one, or
 * one in the place of another, with all the places that are held. What the
 * member of this queue held in it before is free: the processes that had it are
 * gone. -EBADMSG: not a segment of ours; -ENOSPC: no member is free. When this
 * fails no place is taken any more, and it may be tried again. */
int shared_attach(struct shared *shared, int fd, uint32_t queue,
    uint32_t generation, usec_t now);
/* There was a segment, whatever has become of it. */
bool shared_is_attached(const struct shared *shared);
/* No place is to be had: there is no table yet, or it was cut off or written
 * over, until there is another one. What is held stays held, and what was to be
 * told is kept. */
bool shared_is_lost(struct shared *shared);
/* Why, to follow "the table": a constant; NULL: it is not. */
const char *shared_lost_why(const struct shared *shared);
/* The number of the table; 0 while there is none. */
uint32_t shared_number(const struct shared *shared);
/* All places that are held stand in the cells of the table. */
bool shared_is_counted(const struct shared *shared);
/* All processes of that group are gone: its member becomes free, if it is still
 * of that generation. */
void shared_forget(
    struct shared *shared, uint32_t queue, uint32_t generation, usec_t now);

/* Set the function that bars sites; NULL bars none. barred() is called for a
 * site whose state is SITE_ROOM. If barred() returns true, the site counts as
 * full, and its scheduler does not wait for a place. The caller calls
 * sched_site_ready() when the answer may have changed. The lock of the site's
 * set may be held, so barred() may call only site_transport(), site_name(),
 * site_open() and site_close(). barred() closes only sites that barred() has
 * opened. */
void shared_set_barred(struct shared *shared,
    bool (*barred)(void *ctx, struct site *site), void *ctx);

/* A descriptor that is readable when another process made room at a site that
 * this queue waits at, or the site died. A thread that sleeps on the member's
 * word in shared memory writes it; nothing runs while nothing happens. */
int shared_wake_fd(const struct shared *shared);
/* The work to do when it is readable, and at the time returned (USEC_NEVER:
 * none; the descriptor is readable as well when that time becomes an earlier
 * one): ready is called for each site that may have room, with the pointer of
 * site_user(); results that could not be written are written; as a net,
 * all sites that are waited at are checked once a second. */
usec_t shared_work(struct shared *shared, usec_t now,
    void (*ready)(void *ctx, void *user), void *ctx);

/* ---- places that are kept (docs/SITES.md) ----
 *
 * A connection that is open between two deliveries has its place. Such a place
 * is not among the deliveries of the site; take() of this process takes it
 * before any other, also while other queues wait. */

/* Before done(), or sched_done(), of a delivery: its place is kept. */
void shared_keep(struct site *site);
/* A kept place is taken by no delivery any more. Its connection may be open:
 * done() with SITE_AGENT_DIED gives it back. */
void shared_keep_not(struct site *site);
/* Whether places that this queue holds are wanted by others. Its share is the
 * window divided by the queues that hold places or wait. */
enum shared_want {
	SHARED_WANT_NONE, /* no other waits that no place is on its way to */
	SHARED_WANT_IDLE, /* some wait: for places without a delivery */
	/* Some wait, this queue holds more than its share, and has got no place
	 * for a turn; or the site is dead, or its window has become smaller
	 * than the places that are held. */
	SHARED_WANT_NOW,
};
/* given_up: places of this queue whose connections are being closed. turn: how
 * long a queue has more than its share although others wait. */
enum shared_want
shared_want(struct site *site, uint32_t given_up, usec_t turn, usec_t now);
/* A place is about to be given up for them: if this queue waits, too, it waits
 * behind them from now on. */
void shared_yield(struct site *site, usec_t now);

struct shared_figures {
	uint64_t takes, full, waits, wakes, wakes_lost;
	uint64_t recovered; /* locks of the dead */
	uint64_t stuck;     /* locks that were not to be had in time */
	uint64_t evicted;   /* slots taken for another site */
	uint64_t crowded;   /* sets without a slot to spare */
};
void shared_figures(const struct shared *shared, struct shared_figures *ret);

/* ---- readers: by pread, never mapped ---- */

/* One site, read without a lock, for lists on a screen. Names are cut to the
 * part that a slot keeps. visit returns false to end. */
struct shared_seen {
	char name[128];        /* transport/nexthop */
	struct site_view view; /* why points into the struct */
	char why[SITE_WHY_MAX + 1];
	uint32_t waiting; /* queues that wait */
};
/* owner: may own the table, besides root and this user; (uid_t)-1: nobody else.
 * -ENOENT, -EACCES; -EPERM: another owner; -EBADMSG: not a table; -ENOMEM. */
int shared_read(const char *name, uid_t owner,
    bool (*visit)(void *ctx, const struct shared_seen *seen), void *ctx);

#endif
