/* deliver-smtp/protection/policy.h - the protection that a delivery needs: by
 * its next hop from smtp_tls_policy_file, else by its transport; and the
 * credentials for it, from smtp_password_file. What is not known is never taken
 * for permission: a delivery whose transport is not known waits.
 *
 * Policies do not change; a reload makes new ones, for sessions that begin
 * later. Sessions and kept connections hold references to theirs.
 *
 * Soft: -errno, with words for the operator. Never logs.
 */
#ifndef DELIVER_SMTP_PROTECTION_POLICY_H
#define DELIVER_SMTP_PROTECTION_POLICY_H

#include "config/conf.h"
#include "deliver-smtp/protection/tls.h"
#include "route/credentials.h"
#include "route/nexthop.h"

struct policies;

/* Of the levels of TLS of the transports, and of the files. A file of policies
 * or credentials that cannot be read is an error. Authorities that cannot be
 * read are not: *ret_why has the reason then, and no server is verified. */
int policies_new(const struct conf *conf, struct policies **ret_policies,
    struct buf *ret_why);
struct policies *policies_ref(struct policies *policies);
void policies_unref(struct policies **policies);
struct tls_context *policies_tls(const struct policies *policies);

struct policy {
	enum tls_level level;
	bool implicit;                           /* TLS from the first octet */
	const char *names[TLS_POLICY_NAMES_MAX]; /* to be verified */
	size_t nnames;
	const struct credential *credential; /* NULL: none */
	bool auth_in_clear, auth_soft;       /* the parameters */
	unsigned mechanisms;                 /* enum smtp_auth: allowed */
	/* There is a row for the next hop, or its name is verified: what
	 * happens to it says nothing of others with the same servers. */
	bool apart;
};

/* nexthop is the text of hop; both and the policies outlive *ret_policy. False:
 * the policies have no such transport. */
bool policy_find(const struct policies *policies, const char *transport,
    const char *nexthop, const struct nexthop *hop, struct policy *ret_policy);

#endif
