/* The readers' side of the pages. No value of a page is trusted. */
#include "ipc/page.h"
#include "ipc/page_layout.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES      20
#define RETRY_NSEC (500 * 1000)
#define LOAD_MAX   1000

const char *
queue_state_name(uint32_t state)
{
	static const char *const names[] = {
		[QUEUE_STATE_NONE] = "none",
		[QUEUE_STATE_OPEN] = "open",
		[QUEUE_STATE_CLOSING] = "closing",
		[QUEUE_STATE_DISABLED] = "disabled",
		[QUEUE_STATE_QUARANTINED] = "quarantined",
	};

	return state < ARRAY_LEN(names) ? names[state] : "?";
}

/* The owners whose segments are trusted. */
struct trust {
	uid_t uids[3];
	size_t n;
};

static bool
is_trusted(const struct trust *trust, uid_t uid)
{
	size_t i;

	for (i = 0; i < trust->n; i++)
		if (trust->uids[i] == uid)
			return true;
	return false;
}

/* The descriptor, and its owner. */
static int
open_segment(const char *name, size_t size, uid_t *ret_uid)
{
	struct stat st;
	int fd = shm_open(name, O_RDONLY | O_NONBLOCK, 0); /* a pipe? */

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size < (off_t)size) {
		close(fd);
		return -EBADMSG;
	}
	*ret_uid = st.st_uid;
	return fd;
}

static int
read_exactly(int fd, void *data, size_t len, size_t off)
{
	int64_t n = io_pread_all(fd, data, len, (int64_t)off);

	if (n < 0)
		return (int)n;
	return n == (int64_t)len ? 0 : -EBADMSG; /* the segment shrank */
}

/* One try: the copy lies between two readings of the number. */
static int
copy_once(int fd, size_t seq_off, void *page, size_t size)
{
	uint32_t before, after;
	int r;

	r = read_exactly(fd, &before, sizeof(before), seq_off);
	if (r < 0)
		return r;
	page_fence_acquire();
	r = read_exactly(fd, page, size, 0);
	if (r < 0)
		return r;
	page_fence_acquire();
	r = read_exactly(fd, &after, sizeof(after), seq_off);
	if (r < 0)
		return r;
	return before == after && (before & 1) == 0 ? 0 : -EAGAIN;
}

/* A page of a version, and its size. */
struct page_kind {
	uint64_t magic;
	uint32_t version;
	size_t size;
};

static const struct page_kind sched_kind = { SCHED_PAGE_MAGIC,
	SCHED_PAGE_VERSION, sizeof(struct sched_page) };
static const struct page_kind queue_kind = { QUEUE_PAGE_MAGIC,
	QUEUE_PAGE_VERSION, sizeof(struct queue_page) };
static const struct page_kind queue_kind_3 = { QUEUE_PAGE_MAGIC, 3,
	QUEUE_PAGE_SIZE_3 };

static int
copy_page(int fd, const struct page_kind *kind, void *page, long pause_nsec)
{
	const struct timespec pause = { .tv_nsec = pause_nsec };
	const size_t off = page_head_offset(kind->magic);
	const struct page_head *head = (const void *)((const char *)page + off);
	int i, r = -EAGAIN;

	for (i = 0; i < TRIES && r == -EAGAIN; i++) {
		if (i > 0 && pause_nsec > 0)
			nanosleep(&pause, NULL);
		r = copy_once(fd, off + offsetof(struct page_head, seq), page,
		    kind->size);
	}
	if (r < 0)
		return r;
	if (head->magic != kind->magic || head->version != kind->version ||
	    head->size != kind->size)
		return -EBADMSG;
	return 0;
}

static int
read_page(const char *name, const struct trust *trust,
    const struct page_kind *kind, void *page)
{
	uid_t owner = 0;
	int r, fd = open_segment(name, kind->size, &owner);

	if (fd < 0)
		return fd;
	r = is_trusted(trust, owner) ? copy_page(fd, kind, page, RETRY_NSEC)
				     : -EPERM;
	close(fd);
	return r;
}

static void
clamp_u32(uint32_t *value, uint32_t max)
{
	if (*value > max)
		*value = max;
}

static void
clean_sched_page(struct sched_page *page)
{
	size_t i;

	clamp_u32(&page->qcount, PAGE_QUEUES_MAX);
	clamp_u32(&page->qconf, PAGE_QUEUES_MAX);
	page->change[sizeof(page->change) - 1] = '\0';
	page->conf_error[sizeof(page->conf_error) - 1] = '\0';
	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		struct sched_row *row = &page->rows[i];

		if (row->state > QUEUE_STATE_QUARANTINED)
			row->state = QUEUE_STATE_DISABLED;
		row->reason[sizeof(row->reason) - 1] = '\0';
	}
}

static int
read_sched_page(const char *instance, const struct trust *trust,
    struct sched_page *ret_page)
{
	struct sched_page page;
	char name[IPC_NAME_MAX];
	int r;

	ipc_name_scheduler(instance, name);
	r = read_page(name, trust, &sched_kind, &page);
	if (r < 0)
		return r;
	clean_sched_page(&page);
	*ret_page = page;
	return 0;
}

int
sched_page_read(const char *instance, struct sched_page *ret_page)
{
	const struct trust trust = { { 0, geteuid() }, 2 };

	return read_sched_page(instance, &trust, ret_page);
}

int
sched_page_read_root(const char *instance, struct sched_page *ret_page)
{
	const struct trust trust = { { 0 }, 1 };

	return read_sched_page(instance, &trust, ret_page);
}

/* The user that the supervisor's page names as owner of the queues' pages. It
 * is written once, before the first of them is made. */
static void
trust_qmails(const char *instance, struct trust *trust)
{
	struct sched_page page;

	if (sched_page_read(instance, &page) == 0)
		trust->uids[trust->n++] = page.qmails_uid;
}

static void
clean_queue_page(struct queue_page *page)
{
	int32_t *const values[] = { &page->local_used, &page->remote_used,
		&page->local_limit, &page->remote_limit };
	size_t i;

	for (i = 0; i < ARRAY_LEN(values); i++)
		if (*values[i] < 0)
			*values[i] = 0;
}

static int
read_queue_page(const char *instance, uint32_t queue, const struct trust *trust,
    struct queue_page *ret_page)
{
	struct queue_page page;
	char name[IPC_NAME_MAX];
	int r;

	ipc_name_queue(instance, queue, name);
	r = read_page(name, trust, &queue_kind, &page);
	if (r == -EBADMSG) {
		page = (struct queue_page){ 0 };
		r = read_page(name, trust, &queue_kind_3, &page);
	}
	if (r < 0)
		return r;
	clean_queue_page(&page);
	*ret_page = page;
	return 0;
}

int
queue_page_read(
    const char *instance, uint32_t queue, struct queue_page *ret_page)
{
	struct trust trust = { { 0, geteuid() }, 2 };
	int r = read_queue_page(instance, queue, &trust, ret_page);

	if (r == -EPERM) {
		trust_qmails(instance, &trust);
		r = read_queue_page(instance, queue, &trust, ret_page);
	}
	return r;
}

int
queue_page_read_of(const char *instance, uint32_t queue, uid_t qmails_uid,
    struct queue_page *ret_page)
{
	const struct trust trust = { { 0, geteuid(), qmails_uid }, 3 };

	return read_queue_page(instance, queue, &trust, ret_page);
}

int
queue_page_read_owned(const char *instance, uint32_t queue, uid_t qmails_uid,
    struct queue_page *ret_page)
{
	const struct trust trust = { { 0, qmails_uid }, 2 };

	return read_queue_page(instance, queue, &trust, ret_page);
}

int
queue_page_read_fd(int fd, struct queue_page *ret_page)
{
	struct queue_page page;
	int r = copy_page(fd, &queue_kind, &page, 0);

	if (r < 0)
		return r;
	clean_queue_page(&page);
	*ret_page = page;
	return 0;
}

static uint32_t
ratio_pct(int32_t used, int32_t limit)
{
	int64_t pct;

	if (used <= 0 || limit <= 0)
		return 0;
	pct = (int64_t)used * 100 / limit;
	return pct > LOAD_MAX ? LOAD_MAX : (uint32_t)pct;
}

uint32_t
queue_page_load(const struct queue_page *page)
{
	const uint32_t local = ratio_pct(page->local_used, page->local_limit);
	const uint32_t remote =
	    ratio_pct(page->remote_used, page->remote_limit);
	const uint32_t busiest = ratio_pct(page->busiest_pct, 100);
	const uint32_t sum = local > remote ? local : remote;

	return busiest > sum ? busiest : sum;
}

usec_t
queue_page_disk_late(const struct queue_page *page, usec_t now_mono)
{
	usec_t late;

	if (page->disk_since_mono <= 0 ||
	    __builtin_sub_overflow(now_mono, page->disk_since_mono, &late))
		return 0;
	return late > 0 ? late : 0;
}

bool
page_stale(const struct page_head *head, usec_t now_mono)
{
	int64_t age;

	if (head->beat_mono <= 0 ||
	    __builtin_sub_overflow(now_mono, head->beat_mono, &age))
		return true;
	return age > PAGE_STALE || age < -PAGE_STALE;
}
