/* The list of transports: `smtp slow:smtp local`. */
#include "config/param.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NAME_MAX_BYTES 32
#define ALIAS          "alias"

const char *const agent_program_names[AGENT_NPROGRAMS] = {
	[AGENT_PROGRAM_LOCAL] = "deliver-local",
	[AGENT_PROGRAM_SMTP] = "deliver-smtp",
};

const struct agent_kind_row agent_kinds[AGENT_NKINDS] = {
	[AGENT_SMTP] = { "smtp", AGENT_PROGRAM_SMTP, true },
	[AGENT_LMTP] = { "lmtp", AGENT_PROGRAM_SMTP, true },
	[AGENT_LOCAL] = { "local", AGENT_PROGRAM_LOCAL, true },
	[AGENT_PIPE] = { "pipe", AGENT_PROGRAM_LOCAL, true },
	[AGENT_DISCARD] = { "discard", AGENT_PROGRAM_LOCAL, false },
	[AGENT_ERROR] = { "error", AGENT_PROGRAM_LOCAL, false },
	[AGENT_ALIAS] = { ALIAS, AGENT_PROGRAM_LOCAL, true },
};

struct list {
	struct conf_transport *rows;
	uint32_t n;
};

static struct conf *
conf_of(void *field)
{
	return (void *)((char *)field - offsetof(struct conf, transports));
}

static int
kind_find(const char *name, size_t len)
{
	int i;

	for (i = 0; i < AGENT_NKINDS; i++)
		if (strlen(agent_kinds[i].name) == len &&
		    memcmp(agent_kinds[i].name, name, len) == 0)
			return i;
	return -1;
}

static bool
name_fits(const char *name, size_t len)
{
	size_t i;

	if (len == 0 || len > NAME_MAX_BYTES || name[0] < 'a' || name[0] > 'z')
		return false;
	for (i = 0; i < len; i++)
		if (!(name[i] >= 'a' && name[i] <= 'z') &&
		    !(name[i] >= '0' && name[i] <= '9') && name[i] != '-')
			return false;
	return true;
}

/* `default` would stand for every transport; `message` would own the parameter
 * message_recipient_limit. */
static bool
name_is_ambiguous(const char *name)
{
	size_t len = strlen(name), n;
	const struct param *p;

	for (p = params; p < params + nparams; p++)
		if (p->name != NULL && strncmp(p->name, name, len) == 0 &&
		    param_find_override(p->name, &n) != NULL && n == len)
			return true;
	return false;
}

static int
bad_item(struct buf *why, const char *item, size_t len, const char *text)
{
	int r = buf_printf(why, "\"%.*s\": %s", (int)len, item, text);

	return r < 0 ? r : -EINVAL;
}

/* The transport of aliases is there in any case, so an item that names it is
 * passed over. 1: it is another item. */
static int
judge_alias(
    const char *item, size_t len, size_t name_len, int kind, struct buf *why)
{
	bool named =
	    name_len == strlen(ALIAS) && memcmp(item, ALIAS, name_len) == 0;

	if (named && kind == AGENT_ALIAS)
		return 0;
	if (named)
		return bad_item(why, item, len,
		    "the transport of this name is of the kind alias");
	if (kind == AGENT_ALIAS)
		return bad_item(why, item, len,
		    "the kind alias has one transport, which is always there");
	return 1;
}

static int
append(struct list *list, const char *name, size_t len, enum agent_kind kind)
{
	struct conf_transport *t = &list->rows[list->n];

	t->name = strndup(name, len);
	if (t->name == NULL)
		return -ENOMEM;
	t->kind = kind;
	list->n++;
	return 0;
}

/* One NAME or NAME:KIND. */
static int
add_item(struct list *list, const char *item, size_t len, struct buf *why)
{
	const char *colon = memchr(item, ':', len);
	size_t name_len = colon == NULL ? len : (size_t)(colon - item);
	const char *kind_name = colon == NULL ? item : colon + 1;
	int kind = kind_find(kind_name, (size_t)(item + len - kind_name));
	uint32_t i;
	int r;

	if (!name_fits(item, name_len))
		return bad_item(why, item, len,
		    "a name is lower-case letters, digits and hyphens");
	if (kind < 0)
		return bad_item(why, item, len,
		    "the kind must be smtp, lmtp, local, pipe, discard or "
		    "error");
	r = judge_alias(item, len, name_len, kind, why);
	if (r <= 0)
		return r;
	for (i = 0; i < list->n; i++)
		if (strlen(list->rows[i].name) == name_len &&
		    memcmp(list->rows[i].name, item, name_len) == 0)
			return bad_item(why, item, len, "is there twice");
	if (list->n == CONF_TRANSPORTS_LISTED_MAX)
		return bad_item(why, item, len, "too many transports");
	r = append(list, item, name_len, (enum agent_kind)kind);
	if (r < 0)
		return r;
	if (name_is_ambiguous(list->rows[list->n - 1].name))
		return bad_item(why, item, len,
		    "its parameters would have names that others have");
	return 0;
}

static void
list_done(struct conf_transport *rows, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		free(rows[i].name);
}

int
transports_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	struct conf *conf = conf_of(field);
	struct conf_transport rows[CONF_TRANSPORTS_MAX + 1] = { 0 };
	struct list list = { .rows = rows };
	const char *word;
	size_t len;
	int r = 0;

	while (r == 0 && (word = text_next_word(&value, &len)) != NULL)
		r = add_item(&list, word, len, why);
	if (r == 0 && list.n == 0)
		r = buf_add_str(why, "must name one") < 0 ? -ENOMEM : -EINVAL;
	if (r == 0)
		r = append(&list, ALIAS, strlen(ALIAS), AGENT_ALIAS);
	if (r < 0) {
		list_done(rows, list.n);
		return r;
	}
	list_done(conf->transports, conf->ntransports);
	memcpy(conf->transports, rows, sizeof(conf->transports));
	conf->ntransports = list.n;
	return 0;
}

int
transports_format(
    const struct param *p UNUSED, const void *field, struct buf *out)
{
	const struct conf_transport *rows = field;
	uint32_t i;
	int r = 0;

	for (i = 0; i < CONF_TRANSPORTS_MAX && rows[i].name != NULL; i++) {
		const char *kind = agent_kinds[rows[i].kind].name;

		if (rows[i].kind == AGENT_ALIAS)
			continue;
		if (i > 0)
			r = buf_add_char(out, ' ');
		if (r == 0)
			r = buf_add_str(out, rows[i].name);
		if (r == 0 && strcmp(kind, rows[i].name) != 0)
			r = buf_printf(out, ":%s", kind);
		if (r < 0)
			return r;
	}
	return 0;
}

int
conf_transport_find(const struct conf *conf, const char *name)
{
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++)
		if (strcmp(conf->transports[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* An account is one user's: what its children or its mailbox hold is never more
 * than a share of the slots, whatever windows are allowed. */
static uint32_t
account_limit(const struct conf *conf, const struct conf_transport *t)
{
	uint64_t share =
	    (uint64_t)t->sched.process_limit * conf->local_account_share / 100;
	uint32_t limit = t->site.destination_concurrency_limit;

	if (share == 0)
		share = 1;
	return limit == 0 || limit > share ? (uint32_t)share : limit;
}

void
conf_site_params(
    const struct conf *conf, uint32_t transport, struct site_params *ret_params)
{
	const struct conf_transport *t = &conf->transports[transport];
	struct site_params p = t->site;

	if (t->kind == AGENT_LOCAL) {
		p.destination_concurrency_limit = account_limit(conf, t);
		if (p.initial_destination_concurrency >
		    p.destination_concurrency_limit)
			p.initial_destination_concurrency =
			    p.destination_concurrency_limit;
	}
	*ret_params = p;
}
