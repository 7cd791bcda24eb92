/* The scheduler a second time, the simplest way: arrays that are scanned.
 *
 * Written from docs/SCHEDULING.md, rules 2 to 5, and shares nothing with
 * common/sched; what the two make of one scenario must be the same. All
 * recipients of a message are read before anything is selected, so rule 6 has
 * no part in it. Not for anything large: a selection looks at everything.
 */
#ifndef TESTS_QSIM_MODEL_H
#define TESTS_QSIM_MODEL_H

#include "qsim/scenario.h"

/* The end of an entry. */
struct model_pick {
	usec_t at;
	uint32_t message;   /* index into the scenario's */
	uint32_t transport; /* index into conf.transports */
	const char *name;   /* of the destination */
	uint32_t nrcpts;
	bool deferred; /* the destination was dead: not selected */
};

struct model_output {
	struct model_pick *picks;
	size_t n, room;
	/* Names of destinations that are recipients. */
	char **names;
	size_t nnames, names_room;
};

/* Everything that is selected or deferred, in order. Asserts on lack of
 * memory. The names live as long as *sc and *out. */
void model_run(const struct scenario *sc, struct model_output *out);
void model_output_done(struct model_output *out);
/* As `qsim replay` prints it: the selections only. */
void model_print(const struct scenario *sc, const struct model_output *out,
    struct buf *text);

#endif
