/* qscheduler/supervisor/scale.h - how many queues: when to add one and when to
 * retire one, pure.
 *
 * What the queues' pages said at one moment goes in, once a second; a decision
 * comes out, with the figures that led to it. No clock is read, nothing is
 * carried out here (docs/SUPERVISION.md, "How many queues").
 *
 * A condition has to hold for its time, seen at each decision: one at which it
 * does not hold, or a gap between two of them, and its time begins anew.
 * Between two changes by load lies the interval, however they end. A queue that
 * was added and brought neither in deliveries nor in load half of what its
 * share would be (1 of n) doubles the time to the next one, until one helps or
 * the load goes away. A count that is held (setqload) outranks the load: one
 * step at each decision until it is reached.
 *
 * Never fails; absurd figures and a clock that steps give late decisions at
 * worst, never one out of bounds. */
#ifndef QSCHEDULER_SUPERVISOR_SCALE_H
#define QSCHEDULER_SUPERVISOR_SCALE_H

#include "base/base.h"

/* A longer time between two decisions says nothing of what was between. */
#define SCALE_GAP         (10 * USEC_PER_SEC)
/* The interval is doubled at most so often. */
#define SCALE_DOUBLED_MAX 6

struct scale_params {
	bool dynamic; /* the load may change the number */
	uint32_t min, max;
	uint32_t threshold_pct;
	usec_t grow_time, shrink_time, interval;
};

struct scale_queue {
	uint32_t load_pct;
	bool wanted;      /* open, or would be but for what is wrong with it */
	bool usable;      /* wanted, and neither disabled nor quarantined */
	bool known;       /* usable, and its load is not of long ago */
	bool by_hand;     /* the load was given by an operator */
	uint64_t waiting; /* for a delivery */
	uint64_t rate;    /* deliveries in some time, the same for all */
};

struct scale_input {
	usec_t now;
	const struct scale_queue *queues; /* by ascending number */
	uint32_t n;
	uint32_t held; /* so many usable ones, whatever the load; 0: by load */
	bool busy;     /* the last decision is still being carried out */
};

enum scale_act {
	SCALE_NOTHING,
	SCALE_GROW,
	SCALE_RETIRE,
};

struct scale_figures {
	uint32_t mean_pct;    /* of those known */
	uint32_t without_pct; /* if one of them were retired */
	uint32_t wanted, usable, known;
	uint64_t waiting, rate; /* of those known */
	bool by_hand;           /* at least one of the loads */
};

struct scale_decision {
	enum scale_act act;
	uint32_t index;  /* SCALE_RETIRE: which of the input */
	bool by_load;    /* else the held count, or too few to begin with */
	usec_t held_for; /* how long the condition has held */
	struct scale_figures figures;
};

struct scale {
	bool decided, changed, judging;
	bool over, under, low; /* conditions that hold */
	usec_t over_since, under_since, low_since;
	usec_t decided_at, changed_at;
	unsigned doubled;
	/* When the last one was added: */
	uint32_t base_pct, base_known;
	uint64_t base_rate;
};

void scale_init(struct scale *scale);
/* Of this moment alone, by queues and n of the input. */
uint32_t scale_mean_pct(const struct scale_input *in);
/* The figures are filled in whatever the decision. */
enum scale_act
scale_decide(struct scale *scale, const struct scale_params *params,
    const struct scale_input *in, struct scale_decision *ret_decision);
/* The last decision could not be carried out: it counts for the interval, and
 * is not judged by what it brought. */
void scale_undone(struct scale *scale);
/* The time between the last change and the next by growth. */
usec_t
scale_interval(const struct scale *scale, const struct scale_params *params);

#endif
