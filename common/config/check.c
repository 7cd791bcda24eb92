/* Checks of several values together, and of values that do nothing. */
#include "config/param.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>

static int complain(const struct conf *conf, const char *name,
    const char *other, struct buf *error, const char *fmt, ...) PRINTF(5, 6);

/* Reported under the name of the parameter that was set, not of a default. */
static int
complain(const struct conf *conf, const char *name, const char *other,
    struct buf *error, const char *fmt, ...)
{
	const struct param *p = param_find(name), *q = param_find(other);
	va_list ap;
	int r;

	if (conf->origins->all[p - params].source == CONF_FROM_DEFAULT)
		p = q;
	r = conf_add_origin(conf, p, -1, error);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	r = buf_vprintf(error, fmt, ap);
	va_end(ap);
	return r < 0 ? r : -EINVAL;
}

uint32_t
conf_queues_for(uint32_t cores, uint32_t most)
{
	uint32_t count = cores / 2 < 2 ? 2 : cores / 2;

	return count < most ? count : most;
}

/* A host may come back with another number of cores: the supervisor then makes
 * the queues that are missing, and drains the others that hold mail. */
static int
default_count(struct conf *conf, struct buf *error UNUSED)
{
	const struct param *p = param_find("queue_count");
	cpu_set_t cores;

	if (conf->origins->all[p - params].source != CONF_FROM_DEFAULT)
		return 0;
	if (sched_getaffinity(0, sizeof(cores), &cores) < 0)
		CPU_ZERO(&cores); /* more than 1024 */
	conf->queue_count =
	    conf_queues_for((uint32_t)CPU_COUNT(&cores), conf->queue_max);
	return 0;
}

static int
check_count(struct conf *conf, struct buf *error)
{
	if (conf->queue_count <= conf->queue_max)
		return 0;
	return complain(conf, "queue_count", "queue_max", error,
	    "queue_count %u is above queue_max %u", conf->queue_count,
	    conf->queue_max);
}

static int
check_numbers(struct conf *conf, struct buf *error)
{
	uint32_t last = conf->queue_start + conf->queue_max - 1;

	if (last <= CONF_QUEUE_NUM_MAX)
		return 0;
	return complain(conf, "queue_start", "queue_max", error,
	    "the last queue would be number %u, above %u", last,
	    CONF_QUEUE_NUM_MAX);
}

static int
check_backoff(struct conf *conf, struct buf *error)
{
	if (conf->backoff.minimal_backoff_time <=
	    conf->backoff.maximal_backoff_time)
		return 0;
	return complain(conf, "minimal_backoff_time", "maximal_backoff_time",
	    error, "minimal_backoff_time is above maximal_backoff_time");
}

/* The initial window is never above the limit. */
static int
cap_initial(struct conf *conf, struct buf *error UNUSED)
{
	struct conf_transport *t;
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++) {
		t = &conf->transports[i];
		if (t->site.destination_concurrency_limit != 0 &&
		    t->site.initial_destination_concurrency >
			t->site.destination_concurrency_limit)
			t->site.initial_destination_concurrency =
			    t->site.destination_concurrency_limit;
	}
	return 0;
}

/* A message that no mailbox may hold would be deferred until its time is over.
 * The default follows a larger message_size_limit. */
static int
check_mailbox_size(struct conf *conf, struct buf *error)
{
	const struct param *p = param_find("mailbox_size_limit");
	const uint64_t message = conf->message_size_limit;

	if (conf->mailbox_size_limit == 0 ||
	    (message != 0 && conf->mailbox_size_limit >= message))
		return 0;
	if (conf->origins->all[p - params].source == CONF_FROM_DEFAULT) {
		conf->mailbox_size_limit = message;
		return 0;
	}
	return complain(conf, "mailbox_size_limit", "message_size_limit", error,
	    "mailbox_size_limit %" PRIu64
	    " is below message_size_limit %" PRIu64
	    "%s: raise mailbox_size_limit, or lower message_size_limit",
	    conf->mailbox_size_limit, message,
	    message == 0 ? ", which is no limit" : "");
}

static int (*const checks[])(struct conf *conf, struct buf *error) = {
	default_count,
	check_count,
	check_numbers,
	check_backoff,
	cap_initial,
	check_mailbox_size,
};

int
conf_check(struct conf *conf, struct buf *error)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < ARRAY_LEN(checks); i++)
		r = checks[i](conf, error);
	return r;
}

/* ---- parameters that are set and do nothing ---- */

#define KIND(k) (1u << (k))

static const struct {
	const char *name; /* of a parameter, or its beginning and `*` */
	uint32_t kinds;   /* of transports, one of which must be there */
} needs[] = {
	{ "smtp_*", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "maildir_*", KIND(AGENT_LOCAL) },
	{ "mailbox_size_limit", KIND(AGENT_LOCAL) | KIND(AGENT_ALIAS) },
	{ "local_account_share", KIND(AGENT_LOCAL) },
	{ "programs_file", KIND(AGENT_PIPE) },
	{ "command_time_limit", KIND(AGENT_PIPE) | KIND(AGENT_ALIAS) },
	{ "default_mx_lookup", KIND(AGENT_SMTP) },
	{ "default_host_lookup", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_fallback_relay", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_destination_mx_rollup", KIND(AGENT_SMTP) },
	{ "default_smtp_*", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_domain_literals", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_tls_*", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_8bit_conversion", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_chunking", KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
	{ "default_discard_ehlo_keywords",
	    KIND(AGENT_SMTP) | KIND(AGENT_LMTP) },
};

static int
say(const struct conf *conf, const struct param *p, int transport,
    struct buf *out, const char *why)
{
	int r = conf_add_origin(conf, p, transport, out);

	return r < 0 ? r : buf_printf(out, "does nothing: %s\n", why);
}

static bool
is_named(const char *pattern, const char *name)
{
	size_t len = strcspn(pattern, "*");

	return strncmp(pattern, name, len) == 0 &&
	    (pattern[len] == '*' || name[len] == '\0');
}

/* The kinds that a parameter needs; all of them where the table is silent. */
static uint32_t
kinds_of(const struct param *p)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(needs); i++)
		if (is_named(needs[i].name, p->name))
			return needs[i].kinds;
	return UINT32_MAX;
}

static bool
is_own_of_all(const struct conf *conf, const struct param *p)
{
	const struct conf_origin *from = conf->origins->override + (p - params);
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++)
		if (from[i * nparams].source == CONF_FROM_DEFAULT)
			return false;
	return true;
}

static bool
warns_nobody(const struct conf *conf)
{
	return conf->delay_warning_time > 0 &&
	    conf->delay_warning_time >= conf->maximal_queue_lifetime;
}

static int
check_row(const struct conf *conf, const struct param *p, uint32_t there,
    struct buf *out)
{
	uint32_t wanted = kinds_of(p);

	if (strcmp(p->name, "delay_warning_time") == 0 && warns_nobody(conf))
		return say(conf, p, -1, out,
		    "maximal_queue_lifetime is no longer than that");
	if ((wanted & there) == 0)
		return say(conf, p, -1, out,
		    "there is no transport of the kind that it is for");
	if (p->per_transport && is_own_of_all(conf, p))
		return say(
		    conf, p, -1, out, "every transport has a value of its own");
	return 0;
}

static int
say_kind(
    const struct conf *conf, const struct param *p, uint32_t i, struct buf *out)
{
	const struct conf_transport *t = &conf->transports[i];
	struct buf why = { 0 };
	const char *between = "";
	int kind, r;

	r = buf_printf(&why, "%s is of kind %s; the parameter is for ", t->name,
	    agent_kinds[t->kind].name);
	for (kind = 0; r == 0 && kind < AGENT_NKINDS; kind++)
		if ((kinds_of(p) & KIND(kind)) != 0) {
			r = buf_printf(
			    &why, "%s%s", between, agent_kinds[kind].name);
			between = " and ";
		}
	if (r == 0)
		r = say(conf, p, (int)i, out, buf_str(&why));
	buf_done(&why);
	return r;
}

static int
check_overrides(const struct conf *conf, const struct param *p, struct buf *out)
{
	const struct conf_origin *from = conf->origins->override + (p - params);
	uint32_t i;
	int r = 0;

	for (i = 0; r == 0 && i < conf->ntransports; i++)
		if (from[i * nparams].source != CONF_FROM_DEFAULT &&
		    (kinds_of(p) & KIND(conf->transports[i].kind)) == 0)
			r = say_kind(conf, p, i, out);
	return r;
}

int
conf_idle(const struct conf *conf, struct buf *out)
{
	const struct param *p;
	uint32_t there = 0, i;
	int r = 0;

	for (i = 0; i < conf->ntransports; i++)
		there |= KIND(conf->transports[i].kind);
	for (p = params; r == 0 && p < params + nparams; p++) {
		if (p->type == PARAM_SECTION)
			continue;
		if (conf_is_set(conf, p->name))
			r = check_row(conf, p, there, out);
		if (r == 0 && p->per_transport)
			r = check_overrides(conf, p, out);
	}
	return r;
}

bool
conf_is_set(const struct conf *conf, const char *name)
{
	const struct param *p = param_find(name);

	return conf->origins->all[p - params].source != CONF_FROM_DEFAULT;
}
