/* sched/segment.h - the jobs that have moved, in the order of the list, and
 * their hulls: private to common/sched; the design is in docs/SCHEDULING.md,
 * rule 5. A job has its place and its shelves from segment_insert() to
 * segment_remove(). Soft: without memory it has no place, a node no shelf. */
#ifndef SCHED_SEGMENT_H
#define SCHED_SEGMENT_H

#include "sched/hull.h"

#include <sys/queue.h>

struct transport;

/* A job as the hulls know it; 0: it is in none. */
struct indexed {
	uint32_t needed, total;
};

/* A part of the moved jobs. What a node has of each of its parts: a job, or all
 * jobs of a node below it. A job with children is none of them, nor is one that
 * needs nothing. */
#define SEGMENT_PARTS 16
struct segment_part {
	usec_t since; /* the first arrival */
	/* The least total of those that have begun nothing, and of the others;
	 * the least that one of the others needs. UINT32_MAX: there is none. */
	uint32_t unbegun, begun, needed;
	union {
		struct job *job;       /* in a leaf */
		struct segment *below; /* in other nodes */
	};
};
struct segment {
	struct segment *up;  /* or the next spare one */
	struct shelf *shelf; /* NULL: none, as in leaves and in the root */
	uint16_t n;
	bool leaf;
	struct segment_part part[SEGMENT_PARTS]; /* in the order of the list */
};

/* Jobs by what they need: index.c. */
#define INDEX_CLASSES 32
#define INDEX_LATE    4
struct index {
	struct hull classes[INDEX_CLASSES], zeros[INDEX_CLASSES];
	uint64_t hulls; /* that hold jobs: zeros below, classes above */
};

/* All jobs below a node of the segments, as a search knows those that never
 * moved. */
struct shelf {
	struct index index;
	struct job *next; /* the first one that is not in it yet, or NULL */
	unsigned floor;   /* of the node: 1 stands above leaves */
	union {
		LIST_ENTRY(shelf) link; /* in shelves_due, if next */
		struct shelf *waste;    /* the next one that is taken apart */
	};
};
LIST_HEAD(shelf_list, shelf);
/* Of 2^32 jobs, four to a node in the mean, there are sixteen. */
#define SEGMENT_FLOORS 18

/* segment.c */
/* The job has moved: it gets a place, if there is memory. */
void segment_insert(struct job *job);
void segment_remove(struct job *job);
/* total, selected or children of the job have changed. */
void segment_update(struct job *job);
/* The next job behind it that has a place, or NULL. */
struct job *segment_next_job(const struct job *job);
/* The place of a node in the one above it, of a job in its leaf. */
unsigned segment_place(const struct segment *s);
unsigned segment_place_of_job(const struct job *job);
/* The least that a candidate needs, anywhere in the list; UINT32_MAX: there is
 * none. */
uint32_t segment_least_needed(const struct transport *t);
/* All jobs of the node, as the one above it knows them. */
struct segment_part segment_sum(struct segment *s);
/* The first job below the node, and the next one behind one of them that is
 * below it, or NULL. */
struct job *segment_first(const struct segment *s);
struct job *segment_after(const struct segment *s, const struct job *job);

/* shelf.c */
/* The node, which has an upper one or is to have it, gets a new shelf that is
 * to be filled, and none without memory. */
void shelf_renew(struct transport *t, struct segment *s);
void shelf_drop(struct transport *t, struct segment *s);
/* An instalment of the work that is due: some jobs come to their shelf, some
 * nodes of others go. */
void shelf_work(struct transport *t);
/* The job is about to leave its place. */
void shelf_pass(struct job *job);
/* The job, which has a place, is known by its shelves as it is now. */
void shelf_move(struct job *job, struct indexed to, uint64_t stays);
/* Of a shelf of a node that the job is below: it holds the job, if that can be
 * a candidate. */
bool shelf_holds(const struct shelf *shelf, const struct job *job);
/* All that were dropped. */
void shelf_free_waste(struct transport *t);
/* All jobs are in it. */
static inline bool
shelf_is_whole(const struct shelf *shelf)
{
	return shelf != NULL && shelf->next == NULL;
}

#endif
