/* Shared memory that is cut off under a mapping. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/mapping.h"

#define SIZE ((size_t)5 * 4096 + 100)

TestSuite(ipc_mapping, .timeout = 60);

static int
make(off_t size)
{
	int fd = memfd_create("mapping", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, size), 0);
	return fd;
}

static char *
map(int fd)
{
	void *base = NULL;

	cr_assert_eq(mapping_map(fd, SIZE, &base), 0);
	return base;
}

/* The compiler knows nothing of what is there. */
static char
peek(const char *base, size_t at)
{
	return *(const volatile char *)(base + at);
}

static void
poke(char *base, size_t at, char c)
{
	*(volatile char *)(base + at) = c;
}

/* mutation: put_zeros() over the page of the fault only */
Test(ipc_mapping, I11_cut_off_is_zero_and_marked)
{
	static const off_t cuts[] = { 0, 1, 4096, 3 * 4096 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(cuts); i++) {
		int fd = make((off_t)SIZE);
		char *base = map(fd);

		poke(base, 0, 'a');
		poke(base, SIZE - 1, 'z');
		cr_expect_not(mapping_is_lost(base));
		cr_assert_eq(ftruncate(fd, cuts[i]), 0);
		cr_expect_eq(peek(base, SIZE - 1), 0);
		cr_expect(mapping_is_lost(base));
		cr_expect_eq(peek(base, 0), 0, "all of it, not a part");
		poke(base, 1, 'b');
		cr_expect_eq(peek(base, 1), 'b');
		mapping_unmap(base, SIZE);
		close(fd);
	}
}

/* mutation: no `lost = 0` in note() */
Test(ipc_mapping, I11_one_that_is_lost_leaves_others_alone)
{
	int one = make((off_t)SIZE), two = make((off_t)SIZE);
	char *a = map(one), *b = map(two);

	poke(b, 7, 'b');
	cr_assert_eq(ftruncate(one, 0), 0);
	poke(a, 7, 'a');
	cr_expect(mapping_is_lost(a));
	cr_expect_not(mapping_is_lost(b));
	cr_expect_eq(peek(b, 7), 'b');
	mapping_unmap(a, SIZE);
	cr_assert_eq(ftruncate(one, (off_t)SIZE), 0);
	a = map(one);
	cr_expect_not(mapping_is_lost(a), "the new one");
	mapping_unmap(a, SIZE);
	mapping_unmap(b, SIZE);
	close(one);
	close(two);
}

Test(ipc_mapping, I11_what_cannot_be_mapped)
{
	int fd = make((off_t)SIZE - 1), null = open("/dev/null", O_RDWR);
	void *base = NULL;

	cr_expect_eq(mapping_map(fd, SIZE, &base), -EBADMSG);
	cr_expect_eq(mapping_map(null, SIZE, &base), -EBADMSG);
	cr_expect_eq(mapping_map(-1, SIZE, &base), -EBADF);
	cr_expect_null(base);
	mapping_unmap(NULL, SIZE);
	close(fd);
	close(null);
}

/* mutation: no limit in note() */
Test(ipc_mapping, more_than_there_is_room_for)
{
	static void *bases[MAPPINGS_MAX];
	int fd = make((off_t)SIZE);
	void *one = NULL;
	size_t i;

	for (i = 0; i < MAPPINGS_MAX; i++)
		bases[i] = map(fd);
	cr_expect_eq(mapping_map(fd, SIZE, &one), -ENFILE);
	mapping_unmap(bases[9], SIZE);
	bases[9] = map(fd);
	for (i = 0; i < MAPPINGS_MAX; i++)
		mapping_unmap(bases[i], SIZE);
	close(fd);
}

/* ---- other faults ---- */

static void
fault_elsewhere(void)
{
	int fd = make(4096), other = make((off_t)SIZE);
	char *own = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	char *base = map(other);

	poke(base, 0, 'x');
	if (ftruncate(fd, 0) == 0)
		_exit(peek(own, 0));
}

static void
sent(void)
{
	(void)map(make((off_t)SIZE));
	(void)raise(SIGBUS);
	_exit(0);
}

static void
unmapped(void)
{
	int fd = make((off_t)SIZE);
	char *base = map(fd);

	mapping_unmap(base, SIZE);
	base = mmap(base, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (ftruncate(fd, 0) == 0)
		_exit(peek(base, 0));
}

/* mutation: place_of() answers for any address */
Test(ipc_mapping, I11_any_other_fault_ends_the_process)
{
	static void (*const runs[])(void) = { fault_elsewhere, sent, unmapped };
	size_t i;

	for (i = 0; i < ARRAY_LEN(runs); i++) {
		int status;
		pid_t pid = fork();

		cr_assert_geq(pid, 0);
		if (pid == 0) {
			(void)signal(SIGBUS, SIG_DFL);
			runs[i]();
			_exit(0);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
		    "row %zu: status %x", i, (unsigned)status);
	}
}

/* ---- threads ---- */

struct reader {
	pthread_t thread;
	char *base;
	size_t sum;
};

static void *
read_all(void *arg)
{
	struct reader *r = arg;
	int round;
	size_t i;

	for (round = 0; round < 2000; round++)
		for (i = 0; i < SIZE; i += 512)
			r->sum += (size_t)peek(r->base, i);
	return NULL;
}

Test(ipc_mapping, I11_two_threads_that_fault_together)
{
	int fd = make((off_t)SIZE);
	struct reader r[2] = { { .base = map(fd) } };
	size_t i;

	r[1].base = r[0].base;
	for (i = 0; i < 2; i++)
		cr_assert_eq(
		    pthread_create(&r[i].thread, NULL, read_all, &r[i]), 0);
	cr_assert_eq(ftruncate(fd, 0), 0);
	for (i = 0; i < 2; i++)
		pthread_join(r[i].thread, NULL);
	cr_expect_eq(r[0].sum + r[1].sum, 0);
	cr_expect_eq(peek(r[0].base, 0), 0);
	mapping_unmap(r[0].base, SIZE);
	close(fd);
}
