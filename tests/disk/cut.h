/* cut.h - the power goes while a spool is written. Writers tell outside of the
 * file system what they were told; after it came back a judge looks with the
 * spool's own reader.
 */
#ifndef TESTS_DISK_CUT_H
#define TESTS_DISK_CUT_H

#include "disk.h"

#include <stdatomic.h>

#define CUT_WRITERS  4
#define CUT_ACKS_MAX 4096

/* The seed of a message; its content begins with it. */
struct stamp {
	uint32_t cut, writer, seq, len;
};

struct ack {
	struct queue_id id;
	struct stamp stamp;
};

/* Outlives the power: memory shared by the writers and the judge. */
struct notebook {
	const struct block_control *power;
	atomic_uint nacks;
	/* Told after the cut: a file system that goes down may answer 0
	 * wrongly. Not judged. */
	atomic_uint late;
	unsigned target;
	int wake;
	struct ack acks[CUT_ACKS_MAX];
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

/* A workload while the power goes, and its check afterwards. */
struct cut_script {
	/* In a process of its own, until the power goes; each of CUT_WRITERS
	 * from 0, and one more. */
	void (*write)(struct trial *t, uint32_t writer);
	/* Count in t->tally; the number of files that are wrong in a way that
	 * no power cut explains. */
	unsigned (*judge)(struct trial *t, const struct spool *sp);
};
extern const struct cut_script cut_mail, cut_marks, cut_reports;

void cut_note(struct notebook *book, const struct ack *ack);

#endif
