/* D12: the power goes while mail is being accepted. Writers tell outside of
 * the file system what they were told; after the journal was replayed, the
 * spool's own reader looks for it. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define CUTS        20
#define CUTS_MAX    200 /* until a wrong order is caught */
#define WRITERS     4
#define ACKS_MAX    4096
#define CONTENT_MAX 160000
#define IMAGE_MB    64
#define PATIENCE_MS 20000

/* What a message is made from; it begins its content. */
struct stamp {
	uint32_t cut, writer, seq, len;
};

struct ack {
	struct queue_id id;
	struct stamp stamp;
};

/* Outlives the power: memory shared by the writers and the judge. */
struct notebook {
	atomic_bool cutting;
	atomic_uint nacks;
	/* Told while the file system was going down: an fsync may then
	 * answer 0 wrongly (D29), which no power cut does. Not judged. */
	atomic_uint late;
	unsigned target;
	int wake;
	struct ack acks[ACKS_MAX];
};

struct tally {
	unsigned accepted, lost, lossy_cuts, named, torn, late;
};

struct trial {
	const struct disk_test *test;
	struct image image;
	char mount[PLACE_MAX], base[PLACE_MAX + 8];
	struct notebook *book;
	struct tally tally;
	uint32_t cut;
};

static void
fill(char content[CONTENT_MAX], const struct stamp *stamp)
{
	uint64_t x = 88172645463325252u ^ (uint64_t)stamp->cut << 40 ^
	    (uint64_t)stamp->writer << 32 ^ stamp->seq;
	uint32_t i;

	memcpy(content, stamp, sizeof(*stamp));
	for (i = sizeof(*stamp); i < stamp->len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		content[i] = (char)x;
	}
}

/* Mostly of one block or some, now and then more than the writer buffers. */
static uint32_t
length_of(const struct stamp *stamp)
{
	uint32_t len = (stamp->seq * 2654435761u + stamp->writer * 977) % 12000;

	if (stamp->seq % 32 == 31)
		len += 140000;
	return (uint32_t)sizeof(*stamp) + len;
}

static void
note(struct notebook *book, const struct ack *ack)
{
	unsigned n;

	if (atomic_load(&book->cutting)) {
		atomic_fetch_add(&book->late, 1);
		return;
	}
	n = atomic_fetch_add(&book->nacks, 1);
	if (n < ACKS_MAX)
		book->acks[n] = *ack;
	if (n + 1 == book->target)
		(void)io_write_all(book->wake, "", 1);
}

/* Until the power goes. */
static void
write_mail(struct trial *t, uint32_t writer)
{
	static char content[CONTENT_MAX];
	const struct accept_options opt = { .dir = SPOOL_INCOMING,
		.strict = t->test->strict };
	struct ack ack = { .stamp = { .cut = t->cut, .writer = writer } };
	struct spool sp;

	if (spool_open(&sp, t->test->sys, t->base, 1) < 0)
		_exit(1);
	while (atomic_load(&t->book->nacks) < ACKS_MAX) {
		ack.stamp.len = length_of(&ack.stamp);
		fill(content, &ack.stamp);
		if (queue_put(&sp, &opt, content, ack.stamp.len, &ack.id) < 0)
			break;
		note(t->book, &ack);
		ack.stamp.seq++;
	}
	_exit(0);
}

static int
start_writers(struct trial *t, pid_t pids[WRITERS])
{
	uint32_t i;

	for (i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return -errno;
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			write_mail(t, i);
		}
	}
	return 0;
}

/* So many messages, and then a moment that nobody can foresee. */
static int
wait_and_cut(struct trial *t, int wake)
{
	struct pollfd p = { .fd = wake, .events = POLLIN };
	struct timespec moment = { .tv_nsec = random() % 3000000 };
	int r, fd = open(t->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (poll(&p, 1, PATIENCE_MS) <= 0) {
		r = -ETIMEDOUT;
	} else {
		nanosleep(&moment, NULL);
		atomic_store(&t->book->cutting, true);
		r = image_cut(fd);
	}
	close(fd);
	return r;
}

static int
run_until_cut(struct trial *t)
{
	pid_t pids[WRITERS] = { 0 };
	int wake[2], r, i;

	memset(t->book, 0, sizeof(*t->book));
	t->book->target = 20 + (unsigned)random() % 200;
	if (pipe2(wake, O_CLOEXEC) < 0)
		return -errno;
	t->book->wake = wake[1];
	r = start_writers(t, pids);
	if (r == 0)
		r = wait_and_cut(t, wake[0]);
	for (i = 0; i < WRITERS; i++) {
		if (pids[i] <= 0)
			continue;
		if (r < 0)
			kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	close(wake[0]);
	close(wake[1]);
	return r;
}

/* Is it the very message? The checksum has been compared already. */
static bool
is_stamped(const struct spool *sp, uint64_t inode,
    const struct queue_file *file, const struct stamp *want)
{
	static char content[CONTENT_MAX], expected[CONTENT_MAX];
	struct stamp stamp;
	bool same = false;
	int fd = spool_open_file(sp, SPOOL_INCOMING, inode, O_RDONLY);

	if (fd >= 0 && file->content_len >= sizeof(stamp) &&
	    file->content_len <= CONTENT_MAX &&
	    io_pread_all(fd, content, file->content_len,
		(int64_t)file->content_off) == (int64_t)file->content_len) {
		memcpy(&stamp, content, sizeof(stamp));
		if (stamp.len == file->content_len) {
			fill(expected, &stamp);
			same = memcmp(content, expected, stamp.len) == 0 &&
			    (want == NULL ||
				memcmp(&stamp, want, sizeof(stamp)) == 0);
		}
	}
	io_close(&fd);
	return same;
}

static void
judge_accepted(struct trial *t, const struct spool *sp)
{
	unsigned i, n = atomic_load(&t->book->nacks), lost = 0;
	struct queue_file file;

	if (n > ACKS_MAX)
		n = ACKS_MAX;
	for (i = 0; i < n; i++) {
		const struct ack *ack = &t->book->acks[i];

		if (queue_look(sp, ack->id.inode, &file) < 0 ||
		    file.arrival_wall != ack->id.arrival_wall ||
		    file.nonce != ack->id.nonce ||
		    !is_stamped(sp, ack->id.inode, &file, &ack->stamp))
			lost++;
	}
	t->tally.accepted += n;
	t->tally.lost += lost;
	t->tally.lossy_cuts += lost > 0;
	t->tally.late += atomic_load(&t->book->late);
}

/* Whatever has a name is a whole message, or is told to be none. Number of
 * those that are neither. */
static unsigned
judge_names(struct trial *t, const struct spool *sp)
{
	struct spool_scan scan;
	struct spool_item item;
	struct queue_file file;
	unsigned wrong = 0;
	int r;

	spool_scan_begin(&scan, sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) != 0) {
		r = queue_look(sp, item.inode, &file);
		t->tally.named++;
		if (r == -EBADMSG)
			t->tally.torn++;
		else if (r < 0 || !is_stamped(sp, item.inode, &file, NULL))
			wrong++;
		spool_remove(sp, SPOOL_INCOMING, item.inode);
	}
	spool_scan_done(&scan);
	return wrong;
}

static void
sync_all(const char *mount)
{
	int fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		syncfs(fd);
	io_close(&fd);
}

static enum disk_result
one_cut(struct trial *t)
{
	struct spool sp;
	unsigned wrong;
	int r = run_until_cut(t);

	if (r < 0)
		return disk_failed(
		    t->test, "cannot cut the power: %s", strerror(-r));
	r = image_revive(&t->image, t->mount);
	if (r < 0)
		return disk_failed(
		    t->test, "cannot mount again: %s", strerror(-r));
	r = spool_open(&sp, &spool_sys_real, t->base, 1);
	if (r < 0)
		return disk_failed(
		    t->test, "the queue did not survive: %s", strerror(-r));
	judge_accepted(t, &sp);
	wrong = judge_names(t, &sp);
	/* What was removed now must not come back at the next cut. */
	sync_all(t->mount);
	spool_close(&sp);
	if (wrong > 0)
		return disk_failed(
		    t->test, "%u files are wrong and not told", wrong);
	return DISK_OK;
}

static bool
enough(const struct trial *t)
{
	if (t->test->must_lose && t->tally.lost == 0)
		return t->cut >= CUTS_MAX;
	return t->cut >= CUTS;
}

static enum disk_result
all_cuts(struct trial *t)
{
	const struct tally *y = &t->tally;
	enum disk_result result = DISK_OK;
	struct spool sp;

	if (queue_open(t->base, &sp) < 0)
		return disk_failed(t->test, "no queue");
	spool_close(&sp);
	for (; result == DISK_OK && !enough(t); t->cut++)
		result = one_cut(t);
	if (result != DISK_OK)
		return result;
	printf("disk: %s: %u cuts, %u messages accepted, %u lost at %u cuts; "
	       "%u names found, %u told as torn; %u not judged (D29)\n",
	    t->test->name, t->cut, y->accepted, y->lost, y->lossy_cuts,
	    y->named, y->torn, y->late);
	if (!t->test->must_lose && y->lost > 0)
		return disk_failed(t->test, "accepted mail was lost");
	if (t->test->must_lose && y->lost == 0)
		return disk_failed(t->test,
		    "the wrong order was not caught: this test proves nothing");
	return DISK_OK;
}

enum disk_result
cut_run(const struct disk_test *test)
{
	struct trial t = { .test = test };
	enum disk_result result;
	const char *why;

	srandom(12);
	place("cut", t.mount);
	snprintf(t.base, sizeof(t.base), "%s/base", t.mount);
	t.book = mmap(NULL, sizeof(*t.book), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t.book == MAP_FAILED)
		return disk_failed(test, "no memory");
	why = image_open(&t.image, IMAGE_MB);
	if (why != NULL)
		result = disk_skip(test, "%s", why);
	else if (image_mount(&t.image, t.mount) < 0)
		result = disk_skip(test, "cannot mount an ext4 file system");
	else
		result = all_cuts(&t);
	unmount(t.mount);
	image_close(&t.image);
	munmap(t.book, sizeof(*t.book));
	return result;
}
