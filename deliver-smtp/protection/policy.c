#include "deliver-smtp/protection/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORT_SMTPS 465 /* RFC 8314 */

/* Of a transport, for next hops without a row. */
struct policy_default {
	char *transport;
	enum tls_level level;
	bool implicit;
};

struct policies {
	struct tls_context *tls;
	struct tls_policies *table;
	struct credentials *credentials;
	struct policy_default transports[CONF_TRANSPORTS_MAX];
	uint32_t ntransports;
	bool auth_in_clear, auth_soft;
	unsigned mechanisms;
	unsigned references;
};

static int
take_transports(struct policies *p, const struct conf *conf)
{
	const struct conf_transport *t = conf->transports;
	char *name;

	for (; p->ntransports < conf->ntransports; t++) {
		name = strdup(t->name);
		if (name == NULL)
			return -ENOMEM;
		p->transports[p->ntransports++] = (struct policy_default){ name,
			(enum tls_level)t->tls_level, t->tls_wrappermode };
	}
	return 0;
}

static bool
verifies(const struct policies *p)
{
	uint32_t i;

	for (i = 0; i < p->ntransports; i++)
		if (p->transports[i].level == TLS_LEVEL_VERIFY)
			return true;
	return tls_policies_strictest(p->table) == TLS_LEVEL_VERIFY;
}

/* Authorities are read only for those who ask for them: that takes time and
 * memory. */
static int
take_authorities(
    struct policies *p, const struct conf *conf, struct buf *ret_why)
{
	bool read = verifies(p) && conf->smtp_tls_CAfile[0] != '\0';
	int r = tls_context_new(
	    read ? conf->smtp_tls_CAfile : NULL, &p->tls, ret_why);

	if (r < 0 && read)
		r = tls_context_new(NULL, &p->tls, ret_why);
	return r;
}

int
policies_new(const struct conf *conf, struct policies **ret_policies,
    struct buf *ret_why)
{
	struct policies *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL)
		return -ENOMEM;
	p->references = 1;
	p->auth_in_clear = conf->smtp_auth_in_clear;
	p->auth_soft = conf->smtp_auth_soft_bounce;
	p->mechanisms = conf->smtp_sasl_mechanism_filter;
	r = take_transports(p, conf);
	if (r == 0)
		r = tls_policies_load(
		    conf->smtp_tls_policy_file, &p->table, ret_why);
	if (r == 0)
		r = credentials_load(
		    conf->smtp_password_file, &p->credentials, ret_why);
	if (r == 0)
		r = take_authorities(p, conf, ret_why);
	if (r < 0)
		policies_unref(&p);
	else
		*ret_policies = p;
	return r;
}

struct policies *
policies_ref(struct policies *policies)
{
	policies->references++;
	return policies;
}

void
policies_unref(struct policies **policies)
{
	struct policies *p = *policies;

	*policies = NULL;
	if (p == NULL || --p->references > 0)
		return;
	while (p->ntransports > 0)
		free(p->transports[--p->ntransports].transport);
	tls_policies_free(&p->table);
	credentials_free(&p->credentials);
	tls_context_unref(&p->tls);
	free(p);
}

struct tls_context *
policies_tls(const struct policies *policies)
{
	return policies->tls;
}

/* ---- one delivery ---- */

/* Without match= the name is that of the next hop, which the operator or the
 * recipient's address has; never one that the DNS gave for it. */
static void
choose_names(const struct tls_policy *row, const struct nexthop *hop,
    struct policy *policy)
{
	size_t i;

	for (i = 0; row != NULL && i < row->nnames; i++)
		policy->names[policy->nnames++] = row->names[i];
	if (policy->nnames == 0 && hop->kind != NEXTHOP_UNIX)
		policy->names[policy->nnames++] = hop->host;
}

static const struct policy_default *
find_default(const struct policies *policies, const char *transport)
{
	uint32_t i;

	for (i = 0; i < policies->ntransports; i++)
		if (strcmp(policies->transports[i].transport, transport) == 0)
			return &policies->transports[i];
	return NULL;
}

bool
policy_find(const struct policies *policies, const char *transport,
    const char *nexthop, const struct nexthop *hop, struct policy *ret_policy)
{
	const struct policy_default *of = find_default(policies, transport);
	const struct tls_policy *row =
	    tls_policies_find(policies->table, nexthop);
	struct policy policy = {
		.credential = credentials_find(policies->credentials, nexthop),
		.auth_in_clear = policies->auth_in_clear,
		.auth_soft = policies->auth_soft,
		.mechanisms = policies->mechanisms,
	};

	if (of == NULL)
		return false;
	policy.level = row != NULL ? row->level : of->level;
	policy.implicit = policy.level != TLS_LEVEL_NONE &&
	    (of->implicit || (row != NULL && row->implicit) ||
		(hop->kind != NEXTHOP_UNIX && hop->port == PORT_SMTPS));
	if (policy.level == TLS_LEVEL_MAY &&
	    (policy.implicit ||
		(policy.credential != NULL && !policy.auth_in_clear)))
		policy.level = TLS_LEVEL_ENCRYPT;
	if (policy.level == TLS_LEVEL_VERIFY)
		choose_names(row, hop, &policy);
	policy.apart = row != NULL || policy.credential != NULL ||
	    policy.level == TLS_LEVEL_VERIFY;
	*ret_policy = policy;
	return true;
}
