/* The pages in shared memory: whatever lies there, a reader gets a copy whose
 * counts, states and texts are in range, or none. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc/page_layout.h"
#include "ipc/page_text.h"

static char instance[32];
static int sched_fd = -1, queue_fd = -1;

static void
remove_segment(void)
{
	char name[IPC_NAME_MAX];

	ipc_name_scheduler(instance, name);
	(void)shm_unlink(name);
}

static void
open_segments(void)
{
	char name[IPC_NAME_MAX];

	if (sched_fd >= 0)
		return;
	snprintf(instance, sizeof(instance), "fuzz-%d", (int)getpid());
	ipc_name_scheduler(instance, name);
	sched_fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	queue_fd = memfd_create("page", MFD_CLOEXEC);
	MUST(sched_fd >= 0 && queue_fd >= 0);
	MUST(ftruncate(sched_fd, sizeof(struct sched_page)) == 0);
	MUST(atexit(remove_segment) == 0);
}

/* A head that is right but for what the input changes. */
static void
make_head(
    struct page_head *head, struct fuzz_in *in, uint64_t magic, size_t size)
{
	uint8_t wrong = (uint8_t)fuzz_number(in, 1);

	*head = (struct page_head){
		.magic = magic,
		.version = page_version(magic),
		.size = (uint32_t)size,
		.beat_mono = (int64_t)fuzz_number(in, 8),
	};
	if (wrong & 1)
		head->magic ^= fuzz_number(in, 8);
	if (wrong & 2)
		head->version = (uint32_t)fuzz_number(in, 4);
	if (wrong & 4)
		head->size = (uint32_t)fuzz_number(in, 4);
}

static void
check_stale(const struct page_head *head)
{
	const usec_t nows[] = { INT64_MIN, -1, 0, 1, head->beat_mono,
		INT64_MAX };

	for (size_t i = 0; i < ARRAY_LEN(nows); i++) {
		__int128 age = (__int128)nows[i] - head->beat_mono;

		MUST(page_stale(head, nows[i]) ==
		    (head->beat_mono <= 0 || age > PAGE_STALE ||
			age < -PAGE_STALE));
	}
}

/* ---- the page of a queue ---- */

static void
check_queue(struct fuzz_in *in, size_t cut)
{
	struct queue_page page, got;
	int r;

	memset(&page, 0, sizeof(page));
	for (size_t i = 0; i < 6; i++)
		((int32_t *)&page)[i] = (int32_t)fuzz_number(in, 4);
	make_head(&page.head, in, QUEUE_PAGE_MAGIC, sizeof(page));
	MUST(ftruncate(queue_fd, 0) == 0);
	MUST(pwrite(queue_fd, &page, sizeof(page) - cut, 0) ==
	    (ssize_t)(sizeof(page) - cut));
	FUZZ_FILL(got);
	r = queue_page_read_fd(queue_fd, &got);
	if (r < 0) {
		MUST(r == -EBADMSG && FUZZ_UNTOUCHED(got));
		return;
	}
	MUST(cut == 0 && got.head.magic == QUEUE_PAGE_MAGIC);
	MUST(got.head.version == QUEUE_PAGE_VERSION);
	MUST(got.local_used >= 0 && got.remote_used >= 0);
	MUST(got.local_limit >= 0 && got.remote_limit >= 0);
	MUST(queue_page_load(&got) <= 1000);
	check_stale(&got.head);
}

/* ---- the page of the supervisor ---- */

static void
check_texts(const struct sched_page *page, usec_t now)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < 2; i++) {
		MUST(strnlen(page->rows[i].reason, SCHED_REASON_SIZE) <
		    SCHED_REASON_SIZE);
		MUST(page->rows[i].state <= QUEUE_STATE_QUARANTINED);
		MUST(page_text_row(&page->rows[i], now, &out) == 0);
		MUST(page_text_load(&page->rows[i], now, &out) == 0);
		MUST(strcmp(queue_state_name(page->rows[i].state), "?") != 0);
	}
	MUST(page_text_count(page, now, &out) == 0);
	MUST(page_text_change(page, now, &out) == 0);
	MUST(fuzz_is_shown(buf_str(&out), out.len));
	MUST(out.len < 4096);
	buf_done(&out);
}

static void
take_bytes(struct fuzz_in *in, void *out, size_t size)
{
	size_t n = in->left < size ? in->left : size;

	if (n > 0)
		memcpy(out, in->next, n);
	in->next += n;
	in->left -= n;
}

static void
check_sched(struct fuzz_in *in, size_t cut)
{
	static struct sched_page page, got;
	usec_t now = (usec_t)fuzz_number(in, 8);
	int r;

	memset(&page, 0, sizeof(page));
	make_head(&page.head, in, SCHED_PAGE_MAGIC, sizeof(page));
	page.qcount = (uint32_t)fuzz_number(in, 4);
	page.qconf = (uint32_t)fuzz_number(in, 4);
	take_bytes(in, page.change, sizeof(page.change));
	take_bytes(in, &page.held_count, 4);
	take_bytes(in, &page.held_until_mono, 8);
	take_bytes(in, &page.change_wall, 8);
	take_bytes(in, page.rows, 2 * sizeof(page.rows[0]));
	MUST(ftruncate(sched_fd, (off_t)(sizeof(page) - cut)) == 0);
	MUST(pwrite(sched_fd, &page, sizeof(page) - cut, 0) ==
	    (ssize_t)(sizeof(page) - cut));
	got.qcount = 0xa5a5a5a5;
	r = sched_page_read(instance, &got);
	if (r < 0) {
		MUST(r == -EBADMSG && got.qcount == 0xa5a5a5a5);
		return;
	}
	MUST(cut == 0 && got.head.size == sizeof(page));
	MUST(got.qcount <= PAGE_QUEUES_MAX && got.qconf <= PAGE_QUEUES_MAX);
	check_texts(&got, now);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint8_t way = (uint8_t)fuzz_number(&in, 1);
	size_t cut = way >> 1 & 0x3f;

	open_segments();
	if (way & 1)
		check_sched(&in, cut);
	else
		check_queue(&in, cut);
	return 0;
}
