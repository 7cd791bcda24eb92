/* A table of sites that this process has alone, and what the tests do with it.
 */
#ifndef TEST_SITE_SCRATCH_H
#define TEST_SITE_SCRATCH_H

#include "site/shared.h"

#define SEC USEC_PER_SEC
#define MIN (300 * SEC)
#define MAX (4000 * SEC)

/* No feedback, so that windows stay, which begin with 2; a cohort kills. */
extern const struct site_params plain;
/* MIN, MAX, not spread. */
extern const struct site_backoff exact;

struct fixture {
	struct shared *shared;
};

/* Two transports with the same parameters. */
void begin(struct fixture *t, const struct site_params *params,
    const struct site_backoff *backoff, uint64_t seed);
/* New parameters, as shared_configure(). */
int fixture_configure(struct fixture *t, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff);
/* No site is open. */
void end(struct fixture *t);
/* Of the first transport; it was looked at. */
struct site *open_at(struct fixture *t, const char *name, usec_t now);
struct site_view view(struct site *site);
/* There must be room. */
void take(struct site *site, usec_t now);
void done(struct site *site, enum site_result result, usec_t now);
/* A delivery from its beginning to its end. */
void deliver(struct site *site, enum site_result result, usec_t now);
/* A delivery of this message that ends in doubt. */
void doubt(struct site *site, uint32_t message, usec_t now);
/* As many failures as it takes; the time when it opens again. */
usec_t kill_at(struct site *site, usec_t now);

#endif
