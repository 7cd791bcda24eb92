/* One writer, several readers of a page: a copy that is given out is of one
 * publication, whole. A plain program, so that ThreadSanitizer sees it all
 * (make check-tsan); without it the races are merely faster. */
#include "ipc/page.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define READERS      3
#define COPIES       50000     /* for each reader */
#define PUBLICATIONS 200000000 /* at most; then readers are shut out */
#define GAP_MAX      2048      /* looks at a flag between publications */
#define TAKE_OVER    1000      /* publications between two deaths */

static char instance[32];
static struct queue_page *page;
static int sated;   /* atomic: readers with all their copies */
static int stopped; /* atomic: nothing is written any more */

struct reader {
	pthread_t thread;
	uint64_t whole, again, torn, failed, backward;
};

/* Every word of the publication says which one it is. */
static void
fill(struct queue_page *p, uint64_t n)
{
	uint64_t *const words[] = { &p->maildrop, &p->incoming, &p->active,
		&p->hold, &p->accepted, &p->rings, &p->io_errors, &p->rate_out,
		&p->age[0], &p->age[PAGE_AGES - 1] };
	size_t i;

	p->local_used = (int32_t)n;
	if (n % 32 == 0)
		sched_yield(); /* let them see it half done */
	for (i = 0; i < ARRAY_LEN(words); i++)
		*words[i] = n;
	p->scan_only = (uint32_t)n;
}

static bool
is_whole(const struct queue_page *p)
{
	const uint64_t n = p->maildrop;

	return (uint64_t)p->local_used == n && p->incoming == n &&
	    p->active == n && p->hold == n && p->accepted == n &&
	    p->rings == n && p->io_errors == n && p->rate_out == n &&
	    p->age[0] == n && p->age[PAGE_AGES - 1] == n &&
	    p->scan_only == (uint32_t)n && p->head.beat_mono == (int64_t)n;
}

static void *
write_pages(void *arg UNUSED)
{
	uint64_t n, gap;

	for (n = 1; n <= PUBLICATIONS &&
	     __atomic_load_n(&sated, __ATOMIC_ACQUIRE) < READERS;
	     n++) {
		page_write_begin(&page->head);
		if (n % TAKE_OVER == 0) { /* the writer died here */
			page_own(&page->head);
			page_write_begin(&page->head);
		}
		fill(page, n);
		page_write_end(&page->head, (usec_t)n, (usec_t)n);
		/* From none to long enough for a reader to get through. */
		for (gap = 0; gap < n % GAP_MAX; gap++)
			(void)__atomic_load_n(&sated, __ATOMIC_ACQUIRE);
		if (n % 64 == 0)
			sched_yield();
	}
	__atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void
read_one(struct reader *r, uint64_t *last)
{
	struct queue_page copy;
	int error = queue_page_read(instance, 1, &copy);

	if (error == -EAGAIN) {
		r->again++;
	} else if (error < 0) {
		r->failed++;
	} else if (copy.maildrop != 0) {
		r->whole++;
		r->torn += !is_whole(&copy);
		r->backward += copy.maildrop < *last;
		*last = copy.maildrop;
	}
}

static void *
read_pages(void *arg)
{
	struct reader *r = arg;
	uint64_t last = 0;

	while (r->whole < COPIES &&
	    __atomic_load_n(&stopped, __ATOMIC_ACQUIRE) == 0)
		read_one(r, &last);
	__atomic_add_fetch(&sated, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

static bool
report(const struct reader *r)
{
	printf("seqlock: %lu copies, %lu times none to be had, %lu torn, "
	       "%lu backward, %lu errors\n",
	    (unsigned long)r->whole, (unsigned long)r->again,
	    (unsigned long)r->torn, (unsigned long)r->backward,
	    (unsigned long)r->failed);
	return r->whole >= COPIES && r->torn + r->backward + r->failed == 0;
}

static int
torture(void)
{
	struct reader readers[READERS] = { 0 };
	pthread_t writer;
	bool good = true;
	size_t i;

	for (i = 0; i < READERS; i++)
		if (pthread_create(
			&readers[i].thread, NULL, read_pages, &readers[i]) != 0)
			abort();
	if (pthread_create(&writer, NULL, write_pages, NULL) != 0)
		abort();
	pthread_join(writer, NULL);
	for (i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		good &= report(&readers[i]);
	}
	return good ? 0 : 1;
}

int
main(void)
{
	const struct page_owner own = { (uid_t)-1, (gid_t)-1, 0600 };
	char name[IPC_NAME_MAX];
	uint32_t pid;
	void *p = NULL;
	int fd, r;

	snprintf(instance, sizeof(instance), "t%ld-seqlock", (long)getpid());
	ipc_name_queue(instance, 1, name);
	r = page_create(
	    name, sizeof(*page), QUEUE_PAGE_MAGIC, &own, &p, &fd, &pid);
	if (r < 0) {
		fprintf(stderr, "seqlock: %s: error %d\n", name, -r);
		return 1;
	}
	page = p;
	r = torture();
	shm_unlink(name);
	printf("seqlock: %d passed, %d failed\n", r == 0, r != 0);
	return r;
}
