#include "config/param.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */

/* The C type of the field of each type of row. */
#define CTYPE_U32        uint32_t
#define CTYPE_U64        uint64_t
#define CTYPE_SIZE       uint64_t
#define CTYPE_DURATION   usec_t
#define CTYPE_PERCENT    uint32_t
#define CTYPE_DECIMAL    double
#define CTYPE_FEEDBACK   struct window_feedback
#define CTYPE_BOOL       bool
#define CTYPE_WORD       char *
#define CTYPE_CHOICE     uint32_t
#define CTYPE_PATH       char *
#define CTYPE_DIR        char *
#define CTYPE_HOST       char *
#define CTYPE_DOMAINS    char *
#define CTYPE_NEXTHOP    char *
#define CTYPE_USER       char *
#define CTYPE_ADDRESS    char *
#define CTYPE_USERS      char *
#define CTYPE_INSTANCE   char *
#define CTYPE_MAILDIR    char *
#define CTYPE_FORWARD    char *
#define CTYPE_SOURCE4    struct conf_bind
#define CTYPE_SOURCE6    struct conf_bind
#define CTYPE_HELO       struct conf_helo
#define CTYPE_TRANSPORTS struct conf_transport * /* the array */
#define CTYPE_KEYWORDS   uint32_t
#define CTYPE_MECHANISMS uint32_t
#define CTYPE_FALLBACK   struct conf_fallback

#define IS_TYPE(T, container, field) \
	_Generic(((struct container *)0)->field, T: 1, default: 0)

#define SECTION(title)
#define PARAM(T, name, field, fallback, min, max, change, env, help) \
	_Static_assert(IS_TYPE(CTYPE_##T, conf, field), \
	    #name ": the row does not have the type of its field");
#define TPARAM(T, name, field, fallback, local, min, max, help) \
	_Static_assert(IS_TYPE(CTYPE_##T, conf_transport, field), \
	    #name ": the row does not have the type of its field");
#include "config/param.def"
#undef SECTION
#undef PARAM
#undef TPARAM

#define SECTION(title) { .type = PARAM_SECTION, .help = title },
#define PARAM(T, n, f, dflt, lo, hi, chg, var, txt)                       \
	{ .type = PARAM_##T, .name = #n, .offset = offsetof(struct conf, f), \
	  .fallback = dflt, .min = lo, .max = hi, .change = PARAM_##chg,     \
	  .env = var, .help = txt },
#define TPARAM(T, n, f, dflt, local, lo, hi, txt)                         \
	{ .type = PARAM_##T, .per_transport = true, .name = #n,              \
	  .offset = offsetof(struct conf_transport, f), .fallback = dflt,    \
	  .fallback_local = local, .min = lo, .max = hi, .help = txt },
const struct param params[] = {
#include "config/param.def"
};
const size_t nparams = ARRAY_LEN(params);
/* clang-format on */

const struct param *
param_find(const char *name)
{
	const struct param *p;

	for (p = params; p < params + nparams; p++)
		if (p->name != NULL && strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

const char *
param_of_postfix(const char *name)
{
	static const char *const rows[][2] = {
		{ "2bounce_notice_recipient", "double_bounce_recipient" },
		{ "alias_database", "alias_file" },
		{ "alias_maps", "alias_file" },
		{ "authorized_flush_users", "operator_group" },
		{ "authorized_mailq_users", "reader_group" },
		{ "fallback_relay", "default_fallback_relay" },
		{ "home_mailbox", "maildir_path" },
		{ "mail_spool_directory", "maildir_path" },
		{ "mailbox_command", "programs_file" },
		{ "maillog_file", "log_target" },
		{ "myorigin", "mydomain" },
		{ "queue_directory", "queue_base" },
		{ "queue_minfree", "queue_minfree_bytes" },
		{ "relay_domains", "routing_file" },
		{ "sender_dependent_relayhost_maps",
		    "sender_dependent_relayhost" },
		{ "smtp_bind_address", "default_smtp_bind_address" },
		{ "smtp_bind_address6", "default_smtp_bind_address6" },
		{ "smtp_generic_maps", "sender_rewrite" },
		{ "smtp_sasl_auth_enable", "smtp_password_file" },
		{ "smtp_sasl_password_maps", "smtp_password_file" },
		{ "smtp_tls_policy_maps", "smtp_tls_policy_file" },
		{ "syslog_facility", "log_target" },
		{ "transport_maps", "routing_file" },
		{ "virtual_alias_maps", "alias_file" },
		{ "virtual_mailbox_base", "maildir_path" },
		{ "virtual_mailbox_domains", "maildir_path" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i][0], name) == 0)
			return rows[i][1];
	return NULL;
}

const char *
param_suffix(const struct param *p)
{
	static const char all[] = "default_";

	if (strncmp(p->name, all, sizeof(all) - 1) == 0)
		return p->name + sizeof(all) - 1;
	return p->name;
}

const struct param *
param_find_override(const char *name, size_t *ret_transport_len)
{
	/* Names of transports have no underscore. */
	const char *x = strchr(name, '_');
	const struct param *p;

	if (x == NULL)
		return NULL;
	for (p = params; p < params + nparams; p++)
		if (p->per_transport && strcmp(param_suffix(p), x + 1) == 0) {
			*ret_transport_len = (size_t)(x - name);
			return p;
		}
	return NULL;
}
