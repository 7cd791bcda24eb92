/* tests/bench/submit.c - submitters for the benchmark.
 *
 *	submit accept CONF SUBMITTERS MESSAGES BYTES RCPT [times]
 *	submit bare   DIR  SUBMITTERS MESSAGES BYTES
 *	submit joined DIR  SUBMITTERS MESSAGES BYTES
 *	submit ring   DIR  SUBMITTERS MESSAGES BYTES
 *
 * SUBMITTERS processes put MESSAGES in all; prints messages per second, and
 *with `times` the 99th percentile of the times of acceptance, in milliseconds.
 * `accept` is what queue-inject does for each message, by the same module.
 *`bare` is the loop of system calls that no acceptance can do without: open
 *without a name, one write of as many bytes as a queue file has, link, fsync,
 *close. `joined` and `ring` are that loop where one process has the messages of
 *all submitters, and syncs one of each together (joined.h).
 */
#include "base/clock.h"
#include "base/io.h"
#include "base/num.h"
#include "submit/submit.h"
#include "tests/bench/joined.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Envelope, Received field and trailer of such a message, about. */
#define QUEUE_FILE_EXTRA 330

struct load {
	const char *where; /* configuration file, or directory */
	const char *rcpt;
	uint64_t submitters, messages, bytes;
	/* Messages that are synced together, and how; 1, NULL: each alone. */
	unsigned joins;
	int (*sync)(const int *fds, unsigned n);
	usec_t *times; /* of each message, shared by all submitters, or NULL */
};

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "submit: %s: %s\n", what, why);
	exit(1);
}

static char *
message(uint64_t bytes)
{
	static const char header[] = "Subject: bench\n\n";
	char *text = malloc(bytes + 1);

	if (text == NULL || bytes < sizeof(header))
		fail("message", "no memory, or too small");
	memset(text, 'x', bytes);
	for (uint64_t i = 75; i < bytes; i += 76)
		text[i] = '\n';
	memcpy(text, header, sizeof(header) - 1);
	return text;
}

static int
accept_one(struct submission *m, const struct submit_origin *origin,
    const struct load *load, const char *text)
{
	struct queue_id id;
	int r = submission_begin(m, origin);

	if (r == 0)
		r = submission_content(m, text, load->bytes);
	if (r == 0)
		r = submission_sender(m, "bench@test.example", 18);
	if (r == 0)
		r = submission_rcpt(m, load->rcpt, strlen(load->rcpt));
	return r == 0 ? submission_commit(m, -1, &id) : r;
}

static void
accept_loop(const struct load *load, uint64_t count)
{
	const struct submit_origin origin = {
		.uid = getuid(), .host = "test.example", .eol = "\n"
	};
	char *text = message(load->bytes);
	struct buf error = { 0 };
	struct submission *m = NULL;
	struct submit *s = NULL;
	struct conf conf;

	if (conf_load(load->where, &conf, &error) < 0)
		fail(load->where, buf_str(&error));
	if (submit_new(&conf, &spool_sys_real, &s) < 0 ||
	    submission_new(s, &m) < 0)
		fail("submit_new", "no memory");
	for (uint64_t i = 0; i < count; i++) {
		const usec_t began = clock_mono();

		if (accept_one(m, &origin, load, text) < 0)
			fail("accept", submission_reason(m));
		if (load->times != NULL)
			load->times[i] = clock_mono() - began;
	}
	submission_free(&m);
	submit_free(&s);
	conf_done(&conf);
	free(text);
}

int
bare_link(int dir, const char *text, size_t len)
{
	char proc[64], name[64];
	struct stat st;
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (io_write_all(fd, text, len) < 0)
		return -1;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)st.st_ino);
	if (linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -1;
	return fd;
}

static int
bare_one(int dir, const char *text, size_t len)
{
	int fd = bare_link(dir, text, len);

	if (fd < 0 || fsync(fd) < 0)
		return -1;
	return close(fd);
}

/* As many at once as there are submitters. */
static int
join_one_each(int dir, const char *text, size_t len, const struct load *load)
{
	int fds[JOINED_MAX], r;
	unsigned n;

	for (n = 0; n < load->joins; n++) {
		fds[n] = bare_link(dir, text, len);
		if (fds[n] < 0)
			return -1;
	}
	r = load->sync(fds, n);
	while (n > 0)
		close(fds[--n]);
	return r;
}

static void
bare_loop(const struct load *load, uint64_t count)
{
	size_t len = load->bytes + QUEUE_FILE_EXTRA;
	char *text = message(len);
	int dir = open(load->where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		fail(load->where, "cannot be opened");
	for (uint64_t i = 0; i < count; i += load->joins)
		if ((load->sync == NULL
			    ? bare_one(dir, text, len)
			    : join_one_each(dir, text, len, load)) < 0)
			fail(load->where, "a system call failed");
	close(dir);
	free(text);
}

static int
compare(const void *a, const void *b)
{
	const usec_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
print(const struct load *load, uint64_t messages, usec_t took)
{
	printf("%.1f", (double)messages / ((double)took / 1e6));
	if (load->times != NULL && messages > 0) {
		qsort(load->times, messages, sizeof(usec_t), compare);
		printf(" %.3f",
		    (double)load->times[(messages - 1) * 99 / 100] / 1e3);
	}
	putchar('\n');
}

/* All start at once: at the end of the pipe's last writer. */
static void
run(struct load *load, void (*loop)(const struct load *, uint64_t))
{
	const uint64_t each = load->messages / load->submitters;
	int gate[2], status, bad = 0;
	usec_t began;
	char c;

	if (pipe2(gate, O_CLOEXEC) < 0)
		fail("pipe", "failed");
	for (uint64_t n = 0; n < load->submitters; n++) {
		if (fork() != 0)
			continue;
		close(gate[1]);
		if (read(gate[0], &c, 1) != 0)
			_exit(1);
		if (load->times != NULL)
			load->times += n * each;
		loop(load, each);
		_exit(0);
	}
	close(gate[0]);
	began = clock_mono();
	close(gate[1]);
	while (wait(&status) > 0)
		bad |= status;
	if (bad != 0)
		fail("a submitter", "failed");
	print(load, each * load->submitters, clock_mono() - began);
}

static usec_t *
make_times(uint64_t messages)
{
	void *times = mmap(NULL, messages * sizeof(usec_t),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (times == MAP_FAILED)
		fail("times", "no memory");
	return times;
}

static void
join(struct load *load, int (*sync)(const int *fds, unsigned n))
{
	if (load->submitters > JOINED_MAX)
		fail("usage", "too many submitters");
	load->joins = (unsigned)load->submitters;
	load->messages -= load->messages % load->joins;
	load->submitters = 1;
	load->sync = sync;
}

int
main(int argc, char **argv)
{
	struct load load = { .joins = 1 };

	if (argc < 6 || num_u64(argv[3], 1, 1000, &load.submitters) < 0 ||
	    num_u64(argv[4], 1, 10000000, &load.messages) < 0 ||
	    num_u64(argv[5], 64, 1 << 24, &load.bytes) < 0)
		fail("usage",
		    "accept|bare|joined|ring WHERE SUBMITTERS MESSAGES BYTES");
	load.where = argv[2];
	load.rcpt = argc > 6 ? argv[6] : "bench@test.example";
	if (argc > 7)
		load.times = make_times(load.messages);
	if (strcmp(argv[1], "joined") == 0)
		join(&load, joined_plain);
	else if (strcmp(argv[1], "ring") == 0)
		join(&load, joined_ring);
	run(&load, strcmp(argv[1], "accept") == 0 ? accept_loop : bare_loop);
	return 0;
}
