#include "deliver-local/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/subuid.h"
#include "spool/waiting.h"

#define NAME    "lock/expanding"
#define LOCK(i) (((off_t)1 << 20) + (off_t)(i)) /* behind the slots */
#define AT(i)   ((off_t)(i) * (off_t)sizeof(struct slot))

/* On disk, for processes of this host alone. */
struct slot {
	uint32_t account; /* 0: free; root has no limits */
	uint32_t messages;
	uint64_t bytes;
	int64_t until; /* CLOCK_MONOTONIC; 0: the process runs */
};
_Static_assert(sizeof(struct slot) == 24, "written as it lies in memory");

usec_t (*charge_clock)(void) = clock_mono;

/* The messages of an expansion that has ended, which todo-proc may not have
 * counted yet. The clock begins anew with the host, so a time may be absurd. */
static bool
is_kept(const struct slot *slot)
{
	const usec_t now = charge_clock();

	return slot->account != 0 && slot->until > now &&
	    slot->until <= now + CHARGE_KEPT;
}

/* ---- the slot ---- */

static bool
try_slot(struct charge *c, uint32_t i, bool kept)
{
	struct slot slot = { 0 };

	if (use_lock(c->file, F_OFD_SETLK, LOCK(i), F_WRLCK) < 0)
		return false;
	if (pread(c->file, &slot, sizeof(slot), AT(i)) != sizeof(slot) ||
	    kept || !is_kept(&slot))
		return true;
	(void)use_lock(c->file, F_OFD_SETLK, LOCK(i), F_UNLCK);
	return false;
}

/* Slots of expansions that ended a moment ago are taken last. */
static void
take_slot(struct charge *c)
{
	const uint32_t first = arc4random_uniform(CHARGE_SLOTS);
	uint32_t i;

	for (i = 0; i < 2 * CHARGE_SLOTS; i++) {
		c->slot = (first + i) % CHARGE_SLOTS;
		if (try_slot(c, c->slot, i >= CHARGE_SLOTS))
			return;
	}
	c->slot = CHARGE_SLOTS;
}

static int
fill_slot(const struct charge *c, usec_t until)
{
	const struct slot slot = { .account = (uint32_t)c->account,
		.messages = (uint32_t)c->own.messages,
		.bytes = c->own.bytes,
		.until = until };
	ssize_t n;

	if (c->slot == CHARGE_SLOTS)
		return 0;
	n = pwrite(c->file, &slot, sizeof(slot), AT(c->slot));
	if (n < 0)
		return -errno;
	return n == sizeof(slot) ? 0 : -ENOSPC;
}

/* ---- the slots of others ---- */

struct counting {
	const struct charge *c;
	struct use use;
	struct slot slots[CHARGE_SLOTS];
};

static void
count_slot(struct counting *n, const struct spool *sp, int fd, uint32_t i)
{
	const struct slot *slot = &n->slots[i];
	const bool own = sp->queue == n->c->sp->queue && i == n->c->slot;

	if (own || slot->account != (uint32_t)n->c->account ||
	    (!is_kept(slot) &&
		use_lock(fd, F_OFD_GETLK, LOCK(i), F_WRLCK) != 1))
		return;
	use_add(&n->use,
	    &(struct use){
		slot->messages, slot->bytes, slot->messages, slot->messages });
}

static int
count_slots(void *arg, const struct spool *sp)
{
	struct counting *n = arg;
	uint32_t i;
	int64_t got;
	int fd = openat(
	    sp->fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	got = io_pread_all(fd, n->slots, sizeof(n->slots), 0);
	for (i = 0; got > 0 && i < (uint64_t)got / sizeof(n->slots[0]); i++)
		count_slot(n, sp, fd, i);
	io_close(&fd);
	return got < 0 ? (int)got : 0;
}

/* All that the user has but for this expansion. */
static int
count(const struct charge *c, struct use *ret)
{
	static struct counting n;
	int r;

	n.c = c;
	n.use = (struct use){ 0 };
	r = use_each_queue(c->conf, c->sp, count_slots, &n);
	if (r == 0)
		r = use_count(c->conf, c->sp, c->account, ret);
	if (r == 0)
		use_add(ret, &n.use);
	return r;
}

/* ---- one expansion ---- */

int
charge_begin(struct charge *c, const struct conf *conf, const struct spool *sp,
    uid_t submitter, bool is_expansion)
{
	const int r = use_accounts_read(SUBUID_FILE);

	*c = (struct charge){ .conf = conf,
		.sp = sp,
		.account = waiting_account(submitter),
		.parent_made = is_expansion,
		.file = -1,
		.slot = CHARGE_SLOTS };
	if (r < 0)
		return r;
	c->counted = !use_is_free(conf, sp, c->account);
	if (!c->counted)
		return 0;
	c->file = openat(
	    sp->fd, NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (c->file < 0)
		return -errno;
	take_slot(c);
	return 0;
}

int
charge_more(struct charge *c, uint64_t bytes)
{
	struct use there;
	int r;

	if (!c->counted)
		return 0;
	use_add(&c->own, &(struct use){ 1, bytes, 1, 1 });
	r = fill_slot(c, 0);
	if (r == 0)
		r = count(c, &there);
	if (r < 0 || there.made <= c->parent_made ||
	    use_check(c->conf, c->account, &there, &c->own, c->reason) == 0)
		return r;
	return -EUSERS;
}

void
charge_end(struct charge *c, bool done)
{
	if (!c->counted)
		return;
	if (!done)
		c->own = (struct use){ 0 };
	(void)fill_slot(c, done ? charge_clock() + CHARGE_KEPT : 0);
	io_close(&c->file);
	c->counted = false;
}
