/* Tables that are cut off or written over while they are used, and the new one
 * that all come to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

struct loss {
	const char *name;
	int byte;        /* that it is filled with; -1: a random one */
	off_t cut;       /* -1: it is not cut off */
	size_t from, to; /* of 1000 */
};
static const struct loss losses[] = {
	{ "cut to nothing", 0, 0, 0, 0 },
	{ "cut to half", 0, 4096 * 2, 0, 0 },
	{ "zeros", 0, -1, 0, 1000 },
	{ "ones", 0xff, -1, 0, 1000 },
	{ "noise", -1, -1, 0, 1000 },
	{ "the head", 0, -1, 0, 2 },
	{ "the members", 0xff, -1, 2, 30 },
	{ "the second half", 0, -1, 500, 1000 },
	{ "the second half, noise", -1, -1, 500, 1000 },
	{ "its sets", 0xff, -1, 30, 1000 },
};

static void
lose(const struct scratch *t, const struct loss *l, size_t size)
{
	static unsigned char bytes[1 << 20];
	const size_t from = size * l->from / 1000, to = size * l->to / 1000;
	size_t i;

	cr_assert_leq(size, sizeof(bytes));
	for (i = 0; i < size; i++)
		bytes[i] =
		    (unsigned char)(l->byte < 0 ? (int)(arc4random() & 255)
						: l->byte);
	if (l->cut >= 0)
		cr_assert_eq(ftruncate(t->fd, l->cut), 0);
	else
		cr_assert_eq(
		    pwrite(t->fd, bytes + from, to - from, (off_t)from),
		    (ssize_t)(to - from));
}

static const char *const lost_names[] = { "a", "b", "c", "d", "e", "f", "g",
	"h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t" };
#define NLOST ARRAY_LEN(lost_names)

/* All windows are full: whatever is seen later, no place may be had.
 * mutation: no shared_access_is_sound() in take_in(); no seal in
 * shared_set_is_sealed() */
static void
lose_and_take(const struct loss *l)
{
	struct site *sites[2][NLOST];
	struct scratch t;
	struct end e[2];
	size_t i, k;

	scratch_begin(&t, 64, 3);
	for (k = 0; k < 2; k++) {
		end_begin(&e[k], &t, (uint32_t)k + 1, &plain);
		for (i = 0; i < NLOST; i++) {
			sites[k][i] = end_site(&e[k], lost_names[i], 0);
			end_take(sites[k][i], 0);
		}
	}
	lose(&t, l, e[0].shared->seg.size);
	for (k = 0; k < 2; k++)
		for (i = 0; i < NLOST; i++) {
			end_full(sites[k][i], (usec_t)i * SEC);
			(void)site_wait(sites[k][i], true, 30 * SEC);
		}
	for (k = 0; k < 2; k++) {
		cr_expect(shared_is_lost(e[k].shared), "%s", l->name);
		end_done(sites[k][0], SITE_DELIVERED, 60 * SEC);
		end_close(&e[k]);
	}
	scratch_end(&t);
}

Test(site_shared_lost, I11_what_is_lost_gives_no_places)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(losses); i++)
		lose_and_take(&losses[i]);
}

/* The places that are held are in the new table before anybody takes one there,
 * and what could not be told is told there.
 * mutation: no shared_handles_count() in begin(); open = 1 in head_init() */
Test(site_shared_lost, I11_all_come_to_a_new_table_with_their_places)
{
	const struct shared_shape shape = { .slots = 64, .members = 3 };
	struct site *sites[2];
	struct shared_id id;
	struct scratch t;
	struct end e[2];
	const char *why;
	uint32_t told = 0;
	int fd, k;

	scratch_begin(&t, 64, 3);
	for (k = 0; k < 2; k++) {
		end_begin(&e[k], &t, (uint32_t)k + 1, &plain);
		sites[k] = end_site(&e[k], "a", 0);
		end_take(sites[k], 0);
	}
	*site_user(sites[0]) = &told;
	end_wait(sites[0], 0);
	cr_assert_eq(shared_identify(t.fd, &id), 0);
	cr_expect(id.open);
	cr_expect_eq(shared_check(t.fd, &id, &why), 0);
	cr_assert_eq(ftruncate(t.fd, 0), 0);
	cr_expect_eq(shared_check(t.fd, &id, &why), -EBADMSG);
	end_full(sites[0], 0);
	cr_expect_not_null(shared_lost_why(e[0].shared));
	cr_assert_eq(shared_renew(t.name, &shape, &leave, &id, &fd), 0);
	close(t.fd);
	t.fd = fd;
	cr_assert_eq(shared_attach(e[0].shared, fd, 1, 1, 0), 0);
	cr_expect(shared_is_counted(e[0].shared));
	cr_expect_eq(shared_number(e[0].shared), id.number + 1);
	end_full(sites[0], 0);
	end_done(sites[1], SITE_DELIVERED, 0); /* still in the old one */
	cr_assert_eq(shared_attach(e[1].shared, fd, 2, 1, 0), 0);
	end_full(sites[1], 0);
	cr_expect_eq(shared_open_up(fd), 0);
	end_work(&e[0], TELL_AGAIN);
	end_work(&e[1], TELL_AGAIN);
	cr_expect_eq(told, 1, "who waited is told");
	end_take(sites[0], SEC);
	end_full(sites[1], SEC);
	cr_expect_eq(end_view(sites[1]).busy, 2);
	end_close(&e[0]);
	end_close(&e[1]);
	scratch_end(&t);
}

/* mutation: the member that cannot be had is not noticed in attach() */
Test(site_shared_lost, I11_a_new_table_that_cannot_be_used)
{
	const struct shared_shape shape = { .slots = 64, .members = 1 };
	struct shared_id id;
	struct scratch t;
	struct end a, b;
	struct site *s;
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	scratch_begin(&t, 64, 2);
	end_begin(&a, &t, 1, &plain);
	end_begin(&b, &t, 2, &plain);
	s = end_site(&b, "a", 0);
	end_take(s, 0);
	cr_assert_eq(shared_identify(t.fd, &id), 0);
	cr_assert_eq(shared_renew(t.name, &shape, &leave, &id, &fd), 0);
	cr_assert_eq(shared_open_up(fd), 0);
	cr_expect_eq(shared_attach(b.shared, null, 2, 1, 0), -EBADMSG);
	cr_expect(shared_is_lost(b.shared));
	cr_assert_eq(shared_attach(a.shared, fd, 1, 1, 0), 0);
	cr_expect_eq(shared_attach(b.shared, fd, 2, 1, 0), -ENOSPC);
	end_full(s, 0);
	end_close(&a); /* its member is free */
	cr_assert_eq(shared_attach(b.shared, fd, 2, 1, 0), 0);
	end_take(s, 0);
	end_full(s, 0);
	end_close(&b);
	close(fd);
	close(null);
	scratch_end(&t);
}

/* A supervisor that starts anew looks at all of it.
 * mutation: adopt() that looks at the head only */
Test(site_shared_lost, damage_in_any_set_is_seen_at_the_next_start)
{
	static const struct {
		const char *name;
		size_t at;
		uint32_t value;
		bool kept;
	} rows[] = {
		{ "nobody's lock", offsetof(struct shared_set, lock),
		    0x3ffffff0, 0 },
		{ "a lock of ones", offsetof(struct shared_set, lock),
		    UINT32_MAX, 0 },
		{ "a lock of the dead", offsetof(struct shared_set, lock),
		    UINT32_C(1) << 30, 1 },
		{ "the first seal", offsetof(struct shared_set, seal), 7, 0 },
		{ "the last seal", offsetof(struct shared_set, last_seal), 7,
		    0 },
		{ "a count", offsetof(struct shared_set, passed), 7, 1 },
		{ "a slot", sizeof(struct shared_set), 7, 1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct shared_segment seg;
		struct scratch t;
		struct end e;
		int fd;

		scratch_begin(&t, 100, 3);
		end_begin(&e, &t, 1, &plain);
		end_take(end_site(&e, "a", 0), 0);
		cr_assert_eq(shared_segment_map(t.fd, &seg), 0);
		memcpy(
		    (char *)shared_segment_set(&seg, seg.sets - 1) + rows[i].at,
		    &rows[i].value, sizeof(rows[i].value));
		fd = again(&t, 100, 3);
		cr_expect_eq(inode_of(fd) == inode_of(t.fd), rows[i].kept, "%s",
		    rows[i].name);
		close(fd);
		shared_segment_unmap(&seg);
		end_die(&e);
		scratch_end(&t);
	}
}

/* mutation: no shared_lock_is_possible() in avoid() */
Test(site_shared_lost, a_lock_that_was_written_over)
{
	static const uint32_t values[] = { UINT32_MAX, 1, 0x3ffffff0,
		0x80000001, 0x7fffffff };
	size_t i;

	for (i = 0; i < ARRAY_LEN(values); i++) {
		struct shared_segment seg;
		struct scratch t;
		struct end e;
		struct site *a;

		scratch_begin(&t, 32, 3);
		end_begin(&e, &t, 1, &plain);
		a = end_site(&e, "a", 0);
		cr_assert_eq(shared_segment_map(t.fd, &seg), 0);
		shared_segment_set(&seg, 0)->lock = values[i];
		end_full(a, 0);
		cr_expect(shared_is_lost(e.shared), "%x", values[i]);
		shared_segment_unmap(&seg);
		end_close(&e);
		scratch_end(&t);
	}
}

/* The supervisor alone knows whose processes are gone; a pid that is used again
 * says nothing.
 * mutation: free_column() of a member that visit() keeps */
static bool
keep_second(void *ctx, uint32_t queue, uint32_t generation)
{
	++*(uint32_t *)ctx;
	cr_expect_eq(generation, 1);
	return queue == 2;
}

Test(site_shared_lost, P16_columns_of_queues_that_are_gone)
{
	uint32_t seen = 0;
	struct scratch t;
	struct end a, b;
	struct site *s;

	scratch_begin(&t, 32, 3);
	end_begin(&a, &t, 1, &plain);
	end_begin(&b, &t, 2, &plain);
	s = end_site(&b, "a", 0);
	end_take(end_site(&a, "a", 0), 0);
	end_take(end_site(&a, "a", 0), 0);
	end_full(s, 0);
	end_die(&a); /* its member has this process's thread in it */
	cr_expect_eq(shared_owners(t.fd, keep_second, &seen), 0);
	cr_expect_eq(seen, 2);
	end_take(s, SEC);
	end_take(s, SEC);
	end_full(s, SEC);
	end_close(&b);
	scratch_end(&t);
}
