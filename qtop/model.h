/* qtop/model.h - what is shown: the pages of an instance at one moment, judged.
 *
 * Nothing in a page is believed: sums saturate, a queue whose number is none is
 * left out, a page that cannot be read or is old is said to be so.
 * The caller passes both times.
 */
#ifndef QTOP_MODEL_H
#define QTOP_MODEL_H

#include "ipc/page.h"

/* Where pages come from: shared memory, or a test. As sched_page_read() and
 * queue_page_read(). */
struct model_source {
	int (*read_sched)(const char *instance, struct sched_page *ret_page);
	int (*read_queue)(
	    const char *instance, uint32_t queue, struct queue_page *ret_page);
};
extern const struct model_source model_source_shm;

struct model_row {
	struct sched_row sched;
	struct queue_page page; /* zeroed when it could not be read */
	int error;              /* of reading the page: 0 or -errno */
	bool stale;             /* the page is old */
	bool manual;            /* load_pct was set by setqload */
	usec_t now_mono;        /* of the model, for what is left of times */
	uint32_t load_pct;
	uint64_t in;        /* maildrop and incoming */
	usec_t oldest_age;  /* -1: nothing there */
	usec_t page_age;    /* since the last publication */
	usec_t manual_left; /* until the manual load ends */
};

struct model {
	int error;        /* of reading /qscheduler: 0 or -errno */
	bool stale;       /* the supervisor gave no sign of life */
	usec_t sched_age; /* since its last one */
	usec_t now_mono, now_wall;
	struct sched_page sched; /* zeroed when it could not be read */
	struct model_row rows[PAGE_QUEUES_MAX];
	uint32_t nrows;
	struct model_row total; /* sums; load_pct is the mean of open queues */
};

void model_sample(struct model *model, const struct model_source *source,
    const char *instance, usec_t now_mono, usec_t now_wall);

#endif
