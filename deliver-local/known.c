#include "deliver-local/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "config/conf.h"

#define ROWS 256

struct row {
	char name[MAILBOX_PART_MAX + 1]; /* as it was asked for; "": free */
	usec_t since;
	struct account account;
};

/* A name has one row, which the name that came last has. */
struct known {
	struct row rows[ROWS];
};

static size_t
row_of(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash % ROWS;
}

int
known_new(struct known **ret_known)
{
	*ret_known = calloc(1, sizeof(**ret_known));
	return *ret_known == NULL ? -ENOMEM : 0;
}

void
known_free(struct known **known)
{
	free(*known);
	*known = NULL;
}

void
known_forget(struct known *known)
{
	memset(known, 0, sizeof(*known));
}

const struct account *
known_find(const struct known *known, const char *name, usec_t now)
{
	const struct row *row = &known->rows[row_of(name)];

	if (row->name[0] == '\0' || strcmp(row->name, name) != 0 ||
	    now - row->since >= KNOWN_TIME)
		return NULL;
	return &row->account;
}

void
known_put(struct known *known, const char *name, const struct account *account,
    usec_t since)
{
	struct row *row = &known->rows[row_of(name)];
	const size_t len = strlen(name);

	if (len == 0 || len >= sizeof(row->name))
		return;
	memcpy(row->name, name, len + 1);
	row->since = since;
	row->account = *account;
}

/* ---- the name that a delivery begins with ---- */

static const char *
name_of_program(const struct child_plan *plan)
{
	const struct program *program =
	    programs_find(plan->programs, plan->delivery->nexthop);

	return program == NULL ? "" : program->user;
}

static const char *
name_of_mailbox(const struct child_plan *plan, struct mailbox *room)
{
	const char *why;

	if (plan->maildir_user[0] != '\0')
		return plan->maildir_user;
	return mailbox_parse(plan->recipient, room, &why) < 0 ? "" : room->user;
}

void
known_plan(struct child_plan *plan, const struct known *known, usec_t now)
{
	struct mailbox mailbox;
	const char *name = "";

	plan->asks[0] = '\0';
	plan->account = NULL;
	if (known == NULL || plan->private)
		return;
	if (plan->delivery->kind == AGENT_LOCAL)
		name = name_of_mailbox(plan, &mailbox);
	else if (plan->delivery->kind == AGENT_PIPE)
		name = name_of_program(plan);
	if (strlen(name) >= sizeof(plan->asks))
		return;
	memcpy(plan->asks, name, strlen(name) + 1);
	plan->account = name[0] == '\0' ? NULL : known_find(known, name, now);
	plan->asked = plan->account != NULL;
}

/* ---- the child ---- */

int
known_ask(struct child_plan *plan, struct known_news *news, int fd)
{
	if (plan->asks[0] == '\0' || plan->account != NULL)
		return 0;
	*news = (struct known_news){ .tag = KNOWN_TAG };
	plan->asked = account_find(plan->asks, &news->account);
	if (plan->asked == 1) {
		plan->account = &news->account;
		news->kept = account_find_groups(&news->account) == 0;
	}
	return io_write_all(fd, news, sizeof(*news));
}

int
known_account(const struct child_plan *plan, const char *name,
    struct account *ret_account)
{
	if (plan->asks[0] == '\0' || strcmp(plan->asks, name) != 0)
		return account_find(name, ret_account);
	if (plan->account != NULL)
		*ret_account = *plan->account;
	return plan->asked;
}

/* ---- the parent ---- */

static bool
is_text(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static bool
is_whole(const struct known_news *news)
{
	const struct account *a = &news->account;

	return news->tag == KNOWN_TAG && news->kept == 1 &&
	    is_text(a->name, sizeof(a->name)) &&
	    is_text(a->home, sizeof(a->home)) &&
	    is_text(a->shell, sizeof(a->shell)) && a->ngroups > 0 &&
	    a->ngroups <= ACCOUNT_GROUPS_MAX;
}

void
known_take(
    struct known *known, const char *name, const void *data, usec_t since)
{
	struct known_news news;

	memcpy(&news, data, sizeof(news));
	if (is_whole(&news))
		known_put(known, name, &news.account, since);
}
