/* The parts of the model; the rules they follow are in docs/SCHEDULING.md. */
#ifndef TESTS_QSIM_MODEL_PARTS_H
#define TESTS_QSIM_MODEL_PARTS_H

#include "model.h"
#include "model_site.h"

/* Recipients of one message for one destination. */
struct peer {
	uint32_t site;
	uint32_t left; /* recipients neither selected nor deferred */
};

struct job {
	uint32_t message, transport;
	usec_t since;       /* the message is in the active queue */
	struct peer *peers; /* with recipients left, in rotation */
	uint32_t npeers;
	uint32_t total, selected; /* entries; deferred ones are selected */
	int64_t slots;
	/* The preemption tree. The account with the parent is closed when a
	 * grandparent adopts. */
	struct job *parent;
	bool account;
	uint32_t needed; /* entries that the parent paid for */
	uint32_t used;   /* of them */
};

struct list { /* of jobs, in order */
	struct job **jobs;
	uint32_t n;
	/* The jobs before the current one are the blockers; NULL: all are. */
	struct job *current;
};

struct delivery {
	usec_t end;
	uint32_t site;
	bool connected; /* else it fails */
};

struct model {
	const struct scenario *sc;
	struct model_output *out;
	usec_t now;
	struct model_site *sites;
	uint32_t nsites;
	struct list lists[CONF_TRANSPORTS_MAX];
	uint32_t busy[CONF_TRANSPORTS_MAX]; /* agents */
	/* Transports that were used, by the first time; the last was chosen. */
	uint32_t turn[CONF_TRANSPORTS_MAX];
	uint32_t nturn;
	struct delivery *running; /* in the order they began */
	uint32_t nrunning;
	bool *arrived;
	uint32_t *begun, *connected; /* of each nexthop */
};

/* Memory or a failed assertion. */
void *model_zeroed(size_t n, size_t size);
void *model_grown(void *p, size_t n, size_t size);

const struct conf_transport *
model_rules(const struct model *m, uint32_t transport);
/* l->n: the job is NULL. */
uint32_t model_list_place(const struct list *l, const struct job *j);
void model_list_insert(struct list *l, uint32_t at, struct job *j);
/* The first selectable peer in rotation; npeers: the job is full. */
uint32_t model_selectable_peer(struct model *m, const struct job *j);
bool model_is_full(struct model *m, const struct job *j);
/* The next entry of a peer, by its place in the rotation, is selected. */
void model_take_entry(struct model *m, struct job *j, uint32_t peer);
/* All entries for a site are deferred. */
void model_defer(struct model *m, struct job *j, uint32_t site);
void model_leave_list_if_done(struct model *m, struct job *j);
/* The job that preempts the current one, if one may, is the current one. */
void model_preempt(struct model *m, struct list *l);

#endif
