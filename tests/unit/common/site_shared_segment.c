/* The segment: made, kept, refused, damaged. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "site_shared_scratch.h"

static const struct shared_owner leave = { (uid_t)-1, (gid_t)-1 };

static ino_t
inode_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

static int
again(const struct scratch *t, uint32_t slots, uint32_t members)
{
	const struct shared_shape shape = { .slots = slots,
		.members = members };
	int fd = -1;

	cr_assert_eq(shared_create(t->name, &shape, &leave, &fd), 0);
	return fd;
}

Test(site_shared_segment, one_that_is_right_is_kept)
{
	struct scratch t;
	struct end e;
	struct site *a;
	struct stat st;
	int fd;

	scratch_begin(&t, 100, 3);
	cr_assert_eq(fstat(t.fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	end_begin(&e, &t, 1, &plain);
	a = end_site(&e, "a", 0);
	end_take(a, 0);
	end_take(a, 0);
	fd = again(&t, 100, 3);
	cr_expect_eq(inode_of(fd), inode_of(t.fd));
	end_full(a, 0);
	close(fd);
	end_close(&e);
	scratch_end(&t);
}

/* mutation: is_whole() does not compare spool. */
Test(site_shared_segment, one_of_another_QUEUE_BASE_is_replaced)
{
	const struct shared_shape shape = {
		.slots = 100, .members = 3, .spool = 4711
	};
	struct scratch t;
	int fd = -1, same = -1;

	scratch_begin(&t, 100, 3);
	cr_assert_eq(shared_create(t.name, &shape, &leave, &fd), 0);
	cr_expect_neq(inode_of(fd), inode_of(t.fd));
	cr_assert_eq(shared_create(t.name, &shape, &leave, &same), 0);
	cr_expect_eq(inode_of(same), inode_of(fd));
	close(same);
	close(fd);
	scratch_end(&t);
}

Test(site_shared_segment, any_other_is_replaced)
{
	static const struct {
		const char *name;
		uint32_t slots, members;
		off_t cut;
		mode_t mode;
		int at, value; /* a byte that is written; -1: none */
	} rows[] = {
		{ "more slots", 200, 3, -1, 0600, -1, 0 },
		{ "more members", 100, 4, -1, 0600, -1, 0 },
		{ "empty", 100, 3, 0, 0600, -1, 0 },
		{ "cut", 100, 3, 4096, 0600, -1, 0 },
		{ "open to others", 100, 3, -1, 0604, -1, 0 },
		{ "open to the group", 100, 3, -1, 0640, -1, 0 },
		{ "another magic", 100, 3, -1, 0600, 0, 'x' },
		{ "another version", 100, 3, -1, 0600, 8, 77 },
		{ "another count", 100, 3, -1, 0600, 35, 77 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct scratch t;
		int fd;

		scratch_begin(&t, 100, 3);
		if (rows[i].cut >= 0)
			cr_assert_eq(ftruncate(t.fd, rows[i].cut), 0);
		if (rows[i].at >= 0)
			cr_assert_eq(
			    pwrite(t.fd, &rows[i].value, 1, rows[i].at), 1);
		cr_assert_eq(fchmod(t.fd, rows[i].mode), 0);
		fd = again(&t, rows[i].slots, rows[i].members);
		cr_expect_neq(inode_of(fd), inode_of(t.fd), "%s", rows[i].name);
		close(fd);
		scratch_end(&t);
	}
}

Test(site_shared_segment, what_is_no_segment_is_replaced)
{
	struct scratch t;
	char path[IPC_NAME_MAX + 16];
	int fd;

	scratch_begin(&t, 100, 3);
	snprintf(path, sizeof(path), "/dev/shm%s", t.name);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0640), 0);
	fd = again(&t, 100, 3);
	close(fd);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(symlink("/dev/null", path), 0);
	fd = again(&t, 100, 3);
	close(fd);
	scratch_end(&t);
}

Test(site_shared_segment, shapes)
{
	static const struct {
		uint32_t slots, members;
		int want;
	} rows[] = {
		{ 0, 1, -EINVAL },
		{ 64, 0, -EINVAL },
		{ 64, SHARED_MEMBERS_MAX + 1, -EINVAL },
		{ UINT32_MAX, 1, -EINVAL },
		{ 64, SHARED_MEMBERS_MAX, 0 },
		{ 1, 1, 0 },
	};
	struct shared_segment seg;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(
		    shared_segment_layout(rows[i].slots, rows[i].members, &seg),
		    rows[i].want, "row %zu", i);
}

/* A queue that waits before there is a segment is told when there is one. */
Test(site_shared_segment, no_place_before_there_is_one)
{
	struct scratch t;
	struct end e, third;
	struct site *a;
	uint32_t told = 0;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	scratch_begin(&t, 64, 2);
	end_open(&e, &plain);
	a = end_site(&e, "A.example", 0);
	*site_user(a) = &told;
	end_full(a, 0);
	end_wait(a, 0);
	end_work(&e, 0);
	cr_expect_eq(shared_attach(e.shared, null, 1, 1, 0), -EBADMSG);
	cr_expect_eq(shared_attach(e.shared, -1, 1, 1, 0), -EBADF);
	cr_expect_not(shared_is_attached(e.shared));
	cr_expect(shared_is_lost(e.shared));
	cr_expect_not_null(shared_lost_why(e.shared));
	end_full(a, 0);
	site_flush(e.shared, 0);
	end_attach(&e, &t, 1);
	cr_expect_null(shared_lost_why(e.shared));
	end_work(&e, 0);
	cr_expect_eq(told, 1);
	cr_expect_str_eq(site_name(a), "A.example");
	end_take(a, 0);
	cr_expect_eq(shared_attach(e.shared, t.fd, 1, 1, 0), 0, "once more");
	cr_expect_eq(end_view(a).busy, 1);
	end_open(&third, &plain);
	cr_expect_eq(shared_attach(third.shared, t.fd, 2, 1, 0), 0);
	end_close(&third);
	end_open(&third, &plain);
	cr_expect_eq(shared_attach(third.shared, t.fd, 3, 1, 0), 0);
	end_close(&e);
	end_begin(&e, &t, 7, &plain);
	end_close(&third);
	end_close(&e);
	close(null);
	scratch_end(&t);
}

Test(site_shared_segment, members_run_out)
{
	struct scratch t;
	struct end a, b;

	scratch_begin(&t, 64, 1);
	end_begin(&a, &t, 1, &plain);
	end_open(&b, &plain);
	cr_expect_eq(shared_attach(b.shared, t.fd, 2, 1, 0), -ENOSPC);
	cr_expect_not(shared_is_attached(b.shared));
	end_full(end_site(&b, "a", 0), 0);
	end_close(&a);
	end_close(&b);
	scratch_end(&t);
}

/* ---- damage ---- */

static uint64_t
dice(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed >> 16;
}

static void
use(struct end *e, struct site **sites, size_t count, uint64_t *seed)
{
	usec_t now = (usec_t)(dice(seed) % 10 * SEC);
	size_t i;

	for (i = 0; i < count; i++) {
		struct site_view v;

		(void)site_state(sites[i], now);
		(void)site_wait(sites[i], dice(seed) % 2, now);
		if (site_take(sites[i], now) == SITE_ROOM)
			end_done(sites[i],
			    dice(seed) % 2 == 0 ? SITE_FAILED : SITE_DELIVERED,
			    now);
		site_view(sites[i], &v);
	}
	end_work(e, now);
}

/* Whatever is in it, no process ends or loops for ever; what is seen is fit to
 * be shown. */
static bool
count_seen(void *ctx, const struct shared_seen *seen)
{
	cr_assert_lt(
	    strnlen(seen->name, sizeof(seen->name)), sizeof(seen->name));
	cr_assert(isfinite(seen->view.fail_cohorts));
	++*(uint32_t *)ctx;
	return true;
}

/* Anything, anywhere, and all kinds of it: whoever has it mapped goes on, and
 * when a seal is broken takes no place any more. */
static void
damage(struct shared_segment *seg, uint64_t *seed, size_t n)
{
	size_t i, at;

	for (i = 0; i < 200; i++) {
		at = dice(seed) % seg->size;
		seg->base[at] = (char)dice(seed);
	}
	for (i = 0; i < SHARED_SET_SLOTS && n % 3 == 0; i++)
		shared_set_slot(seg, shared_segment_set(seg, 0), (uint32_t)i)
		    ->window = (struct window){ 0, 0, -1e300,
			n % 2 ? -INFINITY : NAN, INFINITY };
}

static void
use_damaged(uint64_t seed)
{
	struct site_params p = plain;
	struct site *sites[8];
	struct scratch t;
	struct shared_segment seg;
	uint32_t told = 0, seen = 0;
	struct end e;
	size_t i, n;

	p.positive = p.negative = (struct window_feedback){ 0.5, WINDOW_FIXED };
	p.destination_concurrency_limit = 0;
	p.failed_cohort_limit = 0;
	scratch_begin(&t, 32, 3);
	end_begin(&e, &t, 1, &p);
	for (i = 0; i < ARRAY_LEN(sites); i++) {
		char name[] = { (char)('a' + i), '\0' };

		sites[i] = end_site(&e, name, 0);
		*site_user(sites[i]) = &told;
	}
	cr_assert_eq(shared_segment_map(t.fd, &seg), 0);
	for (n = 0; n < 20; n++) {
		damage(&seg, &seed, n);
		e.shared->lost = NULL; /* it goes on in what is there */
		e.shared->sets[0].avoid_until = n % 5 == 0 ? 0 : 100 * SEC;
		use(&e, sites, ARRAY_LEN(sites), &seed);
		(void)shared_read(t.name, (uid_t)-1, count_seen, &seen);
	}
	shared_segment_unmap(&seg);
	end_close(&e);
	scratch_end(&t);
}

Test(site_shared_segment, damage_ends_nobody)
{
	uint64_t seed;

	for (seed = 0; seed < 40; seed++)
		use_damaged(seed);
}

/* What one cell says that nobody has, or that cannot be, holds nobody up. */
Test(site_shared_segment, cells_that_cannot_be)
{
	struct shared_segment seg;
	struct scratch t;
	struct end e;
	struct site *a;
	struct shared_slot *slot;
	struct shared_set *set;
	int way;

	scratch_begin(&t, 32, 3);
	end_begin(&e, &t, 1, &plain);
	a = end_site(&e, "a", 0);
	end_take(a, 0);
	cr_assert_eq(shared_segment_map(t.fd, &seg), 0);
	set = shared_segment_set(&seg, 0);
	way = shared_slot_find(e.shared, set, a);
	cr_assert_geq(way, 0);
	slot = shared_set_slot(&seg, set, (uint32_t)way);
	shared_slot_busy_cells(slot)[2] = 7;          /* nobody's member */
	shared_slot_busy_cells(slot)[0] = UINT32_MAX; /* ours */
	shared_slot_tickets(&seg, slot)[2] = 1;
	end_take(a, 0);
	end_full(a, 0);
	cr_expect_eq(end_view(a).busy, 2);
	shared_segment_member(&seg, 2)->owner = 1; /* somebody's, and absurd */
	shared_slot_busy_cells(slot)[2] = BUSY_MOST;
	end_done(a, SITE_DELIVERED, 0);
	end_take(a, 0);
	shared_segment_unmap(&seg);
	end_close(&e);
	scratch_end(&t);
}

/* ---- readers ---- */

struct wanted {
	const char *name;
	struct shared_seen seen;
	uint32_t count;
};

static bool
note(void *ctx, const struct shared_seen *seen)
{
	struct wanted *w = ctx;

	w->count++;
	if (strcmp(seen->name, w->name) == 0) {
		w->seen = *seen;
		w->seen.view.why = NULL;
	}
	return true;
}

Test(site_shared_segment, readers)
{
	struct wanted w = { .name = "smtp/b.ex?mple" };
	struct scratch t;
	struct end e;
	struct site *a, *b;

	scratch_begin(&t, 200, 2);
	end_begin(&e, &t, 1, &plain);
	a = end_site(&e, "a.example", 0);
	b = end_site(&e, "b.ex\x01mple", 0);
	end_take(a, 0);
	end_take(b, 0);
	end_take(b, 0);
	end_wait(b, 0);
	cr_expect_eq(shared_read(t.name, (uid_t)-1, note, &w), 0);
	cr_expect_eq(w.count, 2);
	cr_expect_eq(w.seen.view.busy, 2);
	cr_expect_eq(w.seen.view.window, 2);
	cr_expect_eq(w.seen.view.state, SITE_FULL);
	cr_expect_eq(w.seen.waiting, 1);
	cr_expect_eq(
	    shared_read("/no.such.sites", (uid_t)-1, note, &w), -ENOENT);
	end_close(&e);
	scratch_end(&t);
}

/* Its size is sealed, and a check does not miss the name. */
Test(site_shared_segment, I19_one_without_a_name)
{
	const struct shared_shape shape = { .slots = 100, .members = 3 };
	struct shared_id id, next;
	const char *why = "";
	struct stat st;
	int fd = -1, later = -1;

	cr_assert_eq(shared_create(NULL, &shape, &leave, &fd), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cr_expect_lt(ftruncate(fd, st.st_size / 2), 0);
	cr_expect_lt(ftruncate(fd, st.st_size * 2), 0);
	cr_assert_eq(shared_identify(fd, &id), 0);
	cr_expect_not(id.named);
	cr_expect_eq(shared_check(fd, &id, &why), 0, "%s", why);
	cr_assert_eq(shared_renew(NULL, &shape, &leave, &id, &later), 0);
	cr_assert_eq(shared_identify(later, &next), 0);
	cr_expect_eq(next.number, id.number + 1);
	cr_expect_eq(next.secret, id.secret);
	cr_expect_neq(inode_of(later), inode_of(fd));
	close(later);
	close(fd);
}
